package expose

import (
	"net/http"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// events answers /events with JSON: the latest canonical.MaxEvents, newest last. Clients on other
// machines get no PID and process unless exposed.
type events struct{ *Options }

// eventView is an event as it is served. Fields that do not apply to its kind are left out.
type eventView struct {
	Time     time.Time           `json:"time"`
	Kind     canonical.EventKind `json:"kind"`
	Hostname string              `json:"hostname,omitempty"`
	GPU      string              `json:"gpu,omitempty"`
	UUID     string              `json:"uuid,omitempty"`
	PCIBusID string              `json:"pci_bus_id,omitempty"`
	// XID or SXID is the code, and Count how often it occurred at once.
	XID       uint32 `json:"xid,omitempty"`
	SXID      uint32 `json:"sxid,omitempty"`
	Count     uint64 `json:"count,omitempty"`
	Severity  string `json:"severity,omitempty"`
	Action    string `json:"action,omitempty"`
	Condition string `json:"condition,omitempty"`
	State     string `json:"state,omitempty"`
	Text      string `json:"text,omitempty"`
	PID       int    `json:"pid,omitempty"`
	Process   string `json:"process,omitempty"`
}

// ServeHTTP answers GET and HEAD.
func (e *events) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	list := e.list()
	whole := e.ExposeProcesses || isLocal(r)
	views := make([]eventView, len(list))
	for i := range list {
		views[i] = viewOfEvent(&list[i])
		if !whole {
			views[i].PID, views[i].Process = 0, ""
		}
	}
	answerJSON(w, map[string][]eventView{"events": views}, "")
}

// list returns the latest events, oldest first. As with the series, the events of a board come
// from the first source that has it.
func (e *events) list() (all []canonical.Event) {
	claimed := map[string]bool{}
	for _, f := range e.Sources.now() {
		for _, one := range f.Events(nil) {
			if one.UUID == "" || !claimed[one.UUID] {
				all = append(all, one)
			}
		}
		if state, _ := f.Status(); state.Roster != nil {
			for i := range state.Roster.Devices {
				claimed[state.Roster.Devices[i].UUID] = true
			}
		}
	}
	if e.Events != nil {
		all = e.Events(all)
	}
	slices.SortStableFunc(all, func(a, b canonical.Event) int { return a.At.Compare(b.At) })
	return all[max(0, len(all)-canonical.MaxEvents):]
}

func viewOfEvent(e *canonical.Event) eventView {
	v := eventView{
		Time: e.At.UTC(), Kind: e.Kind, Hostname: e.Hostname, GPU: e.GPU, UUID: e.UUID, PCIBusID: e.PCIBusID,
		Count: e.Count, Text: e.Text, PID: e.PID, Process: e.Process,
	}
	switch e.Kind {
	case canonical.EventSXID:
		v.SXID, v.Severity = e.Code, e.Severity.String()
	case canonical.EventXID, canonical.EventResolved:
		v.XID, v.Severity, v.Action = e.Code, e.Severity.String(), e.Action.String()
	case canonical.EventRaised, canonical.EventCleared:
		v.Condition, v.State = e.Condition.String(), e.State.String()
		if e.Kind == canonical.EventRaised {
			v.Action = e.Action.String()
		}
	}
	return v
}
