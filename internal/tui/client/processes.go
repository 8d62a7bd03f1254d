package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Process is one process on one device, as a proxy lists it.
type Process struct {
	canonical.Process
	Key Key // of its device
}

// processTimeout bounds the list of all nodes.
const processTimeout = 5 * time.Second

// processLists asks all targets for their processes at once. why is the first
// reason for which one of them lists none.
func ListProcesses(ctx context.Context, targets []Target) (all []Process, why string) {
	ctx, cancel := context.WithTimeout(ctx, processTimeout)
	defer cancel()
	lists, errs := make([][]Process, len(targets)), make([]error, len(targets))
	var asking sync.WaitGroup
	for i := range targets {
		asking.Go(func() { lists[i], errs[i] = fetchProcesses(ctx, &targets[i]) })
	}
	asking.Wait()
	all = []Process{}
	for i := range targets {
		all = append(all, lists[i]...)
		if errs[i] != nil && why == "" {
			why = OneLine(errs[i].Error())
		}
	}
	return all, why
}

func fetchProcesses(ctx context.Context, t *Target) ([]Process, error) {
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

// parseProcesses reads a proxy's list of processes. Most keys of its JSON are the
// names of the fields of canonical.Process.
func parseProcesses(url string, body []byte) ([]Process, error) {
	var answer struct {
		Processes []struct {
			canonical.Process
			Instance string   `json:"mig_instance"`
			Memory   *float64 `json:"used_memory_bytes"`
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("the list of processes is no JSON of ours: %w", err)
	}
	all := make([]Process, len(answer.Processes))
	for i := range answer.Processes {
		listed := &answer.Processes[i]
		p := listed.Process
		p.User, p.Group, p.Command = OneLine(p.User), OneLine(p.Group), OneLine(p.Command)
		if p.Instance, p.MemoryUsed = listed.Instance, math.NaN(); listed.Memory != nil {
			p.MemoryUsed = *listed.Memory
		}
		all[i] = Process{p, keyOf(url, &canonical.Device{Hostname: p.Hostname, GPU: p.GPU, UUID: p.UUID, Instance: p.Instance})}
	}
	return all, nil
}
