package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Event is an event of a device or a switch, as a proxy reports it.
type Event struct {
	canonical.Event
	Key Key // of the device
}

// eventsTimeout bounds the requests to all nodes.
const eventsTimeout = 5 * time.Second

// ListEvents requests the events of all targets at once, the newest of each last. The list of
// a target that serves none is nil.
func ListEvents(ctx context.Context, targets []Target) [][]Event {
	ctx, cancel := context.WithTimeout(ctx, eventsTimeout)
	defer cancel()
	lists := make([][]Event, len(targets))
	var requests sync.WaitGroup
	for i := range targets {
		requests.Go(func() { lists[i], _ = fetchEvents(ctx, &targets[i]) }) // on failure our own events take their place
	}
	requests.Wait()
	return lists
}

func fetchEvents(ctx context.Context, t *Target) ([]Event, error) {
	var body bytes.Buffer
	status, err := get(ctx, t.httpClient(), t.pathURL("/events"), &body, nil)
	switch {
	case err != nil:
		return nil, err
	case status != http.StatusOK:
		return nil, errors.New(firstLine(body.Bytes()))
	}
	return parseEvents(t.publicURL(), body.Bytes())
}

// parseEvents reads a proxy's list of events, which is never nil. Most keys of its JSON
// are the names of the fields of canonical.Event.
func parseEvents(url string, body []byte) ([]Event, error) {
	var answer struct {
		Events []struct {
			Time                               time.Time
			Kind                               canonical.EventKind
			Hostname, GPU, UUID, Text, Process string
			PCIBusID                           string `json:"pci_bus_id"`
			XID, SXID                          uint32
			Count                              uint64
			PID                                int
			Severity, Action, Condition, State string
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	all := make([]Event, 0, len(answer.Events))
	for _, l := range answer.Events {
		e := canonical.Event{
			At: l.Time, Kind: l.Kind, Hostname: OneLine(l.Hostname), GPU: OneLine(l.GPU), UUID: l.UUID, PCIBusID: OneLine(l.PCIBusID),
			Code: max(l.XID, l.SXID), Count: l.Count, Text: OneLine(l.Text), PID: l.PID, Process: OneLine(l.Process),
			Severity:  canonical.Severity(indexOf(canonical.Severities[:], l.Severity)),
			Action:    canonical.Action(indexOf(canonical.Actions[:], l.Action)),
			Condition: canonical.NumConditions,
			State:     canonical.Health(indexOf(canonical.HealthStates[:], l.State)),
		}
		if c, known := canonical.ConditionOf(l.Condition); known {
			e.Condition = c
		}
		all = append(all, Event{e, keyOf(url, &canonical.Device{Hostname: l.Hostname, GPU: l.GPU, UUID: l.UUID})})
	}
	return all, nil
}

// indexOf returns the index of word in words, or 0 if it is not there.
func indexOf(words []string, word string) int { return max(0, slices.Index(words, word)) }
