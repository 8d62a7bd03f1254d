package tui

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

// Process is one process on one device, as a proxy lists it. What it does not
// tell is "", and nil in MemoryUsed.
type Process struct {
	PID        int      `json:"pid"`
	User       string   `json:"user"`
	Group      string   `json:"group"`
	Command    string   `json:"command"`
	Hostname   string   `json:"hostname"`
	GPU        string   `json:"gpu"`
	UUID       string   `json:"uuid"`
	Instance   string   `json:"mig_instance"`
	MemoryUsed *float64 `json:"used_memory_bytes"`
	Kind       string   `json:"kind"`

	Key Key `json:"-"` // of its device
}

// processesMsg is what the nodes answered; err is why the first of them that
// tells nothing does not.
type processesMsg struct {
	list []Process
	err  string
}

// processTimeout bounds the list of all nodes.
const processTimeout = 5 * time.Second

// lister returns what asks all targets for their processes at once.
func lister(ctx context.Context, targets []Target) func() tea.Msg {
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, processTimeout)
		defer cancel()
		lists, errs := make([][]Process, len(targets)), make([]error, len(targets))
		var all sync.WaitGroup
		for i := range targets {
			all.Go(func() { lists[i], errs[i] = listProcesses(ctx, &targets[i]) })
		}
		all.Wait()
		msg := processesMsg{list: []Process{}}
		for i := range targets {
			msg.list = append(msg.list, lists[i]...)
			if errs[i] != nil && msg.err == "" {
				msg.err = oneLine(errs[i].Error())
			}
		}
		return msg
	}
}

func listProcesses(ctx context.Context, t *Target) ([]Process, error) {
	var body bytes.Buffer
	status, err := get(ctx, t.client(), t.processes(), &body, keepAll)
	switch {
	case err != nil:
		return nil, err
	case status != http.StatusOK:
		first, _, _ := bytes.Cut(bytes.TrimSpace(body.Bytes()), []byte{'\n'})
		return nil, fmt.Errorf("%s", first)
	}
	return parseProcesses(t.shown(), body.Bytes())
}

// parseProcesses reads a proxy's list of processes.
func parseProcesses(url string, body []byte) ([]Process, error) {
	var answer struct {
		Processes []Process `json:"processes"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("the list of processes is no JSON of ours: %w", err)
	}
	for i := range answer.Processes {
		p := &answer.Processes[i]
		p.User, p.Group, p.Command = oneLine(p.User), oneLine(p.Group), oneLine(p.Command)
		p.Key = Key{Node: url, UUID: p.UUID, Instance: p.Instance}
		if p.UUID == "" {
			p.Key.UUID = "index:" + p.Hostname + "/" + p.GPU
		}
	}
	return answer.Processes, nil
}

// askProcesses asks the nodes for their processes while somebody looks at them.
func (m *model) askProcesses() tea.Cmd {
	if m.list == nil || m.asking || m.state.View != viewJobs || !m.state.FrozenAt.IsZero() {
		return nil
	}
	m.asking = true
	return m.list
}
