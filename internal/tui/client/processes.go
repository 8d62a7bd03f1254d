package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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

// processTimeout bounds the requests to all nodes.
const processTimeout = 5 * time.Second

// ListProcesses requests the processes of all targets at once; the list is never nil. why is
// the error of the first target that failed.
func ListProcesses(ctx context.Context, targets []Target) (all []Process, why string) {
	ctx, cancel := context.WithTimeout(ctx, processTimeout)
	defer cancel()
	lists, errs := make([][]Process, len(targets)), make([]error, len(targets))
	var requests sync.WaitGroup
	for i := range targets {
		requests.Go(func() { lists[i], errs[i] = fetchProcesses(ctx, &targets[i]) })
	}
	requests.Wait()
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
	status, err := get(ctx, t.httpClient(), t.pathURL("/api/v1/processes"), &body, nil)
	switch {
	case err != nil:
		return nil, err
	case status != http.StatusOK:
		return nil, errors.New(firstLine(body.Bytes()))
	}
	return parseProcesses(t.publicURL(), body.Bytes())
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
		return nil, fmt.Errorf("the list of processes is not JSON of kpulse-proxy: %w", err)
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
