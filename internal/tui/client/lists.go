package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// ServedEvent is an event of a device or a switch, as a proxy reports it.
type ServedEvent struct {
	canonical.Event
	Key Key // of the device
}

// Process is one process on one device, as a proxy lists it.
type Process struct {
	canonical.Process
	Key Key // of its device
}

// listTimeout bounds the requests to all nodes.
const listTimeout = 5 * time.Second

// ListEvents requests the events of all targets at once, the newest of each last. The list of
// a target that serves none is nil; our own events take its place.
func ListEvents(ctx context.Context, targets []Target) [][]ServedEvent {
	lists, _ := list(ctx, targets, "/events", parseEvents)
	return lists
}

// ListProcesses requests the processes of all targets at once; the list is never nil. why is
// the error of the first target that failed.
func ListProcesses(ctx context.Context, targets []Target) (all []Process, why string) {
	lists, why := list(ctx, targets, "/api/v1/processes", parseProcesses)
	return append([]Process{}, slices.Concat(lists...)...), why
}

// list requests the lists of targets at a path; why is the error of the first that failed.
func list[T any](ctx context.Context, targets []Target, path string, parse func(url string, body []byte) ([]T, error)) (lists [][]T, why string) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	lists, errs := make([][]T, len(targets)), make([]error, len(targets))
	var requests sync.WaitGroup
	for i := range targets {
		requests.Go(func() {
			var body []byte
			status, refusal, err := get(ctx, &targets[i], targets[i].pathURL(path), func(from io.Reader) (err error) {
				body, err = io.ReadAll(from)
				return err
			})
			switch {
			case err != nil:
			case status != http.StatusOK:
				err = errors.New(refusal)
			default:
				lists[i], err = parse(targets[i].publicURL(), body)
			}
			errs[i] = err
		})
	}
	requests.Wait()
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		why = OneLine(errs[i].Error())
	}
	return lists, why
}

// parseEvents reads a proxy's list of events, which is never nil. Most keys of its JSON
// are the names of the fields of canonical.Event.
func parseEvents(url string, body []byte) ([]ServedEvent, error) {
	var answer struct {
		Events []struct {
			canonical.Event
			Time                               time.Time
			PCIBusID                           string `json:"pci_bus_id"`
			XID, SXID                          uint32
			Severity, Action, Condition, State string
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	all := make([]ServedEvent, 0, len(answer.Events))
	for _, l := range answer.Events {
		e := l.Event
		e.At, e.PCIBusID, e.Code, e.Text, e.Process = l.Time, l.PCIBusID, max(l.XID, l.SXID), OneLine(e.Text), OneLine(e.Process)
		e.Severity = canonical.Severity(indexOf(canonical.Severities[:], l.Severity))
		e.Action = canonical.Action(indexOf(canonical.Actions[:], l.Action))
		e.State = canonical.Health(indexOf(canonical.HealthStates[:], l.State))
		e.Condition = canonical.NumConditions
		if c, known := canonical.ConditionOf(l.Condition); known {
			e.Condition = c
		}
		all = append(all, ServedEvent{e, keyOf(url, &canonical.Device{Hostname: l.Hostname, GPU: l.GPU, UUID: l.UUID})})
	}
	return all, nil
}

// indexOf returns the index of word in words, or 0 if it is not there.
func indexOf(words []string, word string) int { return max(0, slices.Index(words, word)) }

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
	for i, listed := range answer.Processes {
		p := listed.Process
		p.User, p.Group, p.Command = OneLine(p.User), OneLine(p.Group), OneLine(p.Command)
		if p.Instance, p.MemoryUsed = listed.Instance, math.NaN(); listed.Memory != nil {
			p.MemoryUsed = *listed.Memory
		}
		all[i] = Process{p, keyOf(url, &canonical.Device{Hostname: p.Hostname, GPU: p.GPU, UUID: p.UUID, Instance: p.Instance})}
	}
	return all, nil
}
