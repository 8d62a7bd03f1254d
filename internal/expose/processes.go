package expose

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// ProcessLister lists the processes that use the devices.
type ProcessLister interface {
	// Processes returns them in any order, at the latest when ctx ends, to one goroutine at a time,
	// which owns the slice. If Hostname and GPU are "", they are taken from the device of the same
	// UUID and Instance in the readings. With an error, a non-nil list holds what could be read.
	Processes(ctx context.Context) ([]canonical.Process, error)
}

// processes answers /api/v1/processes with JSON: an object whose field processes is a list,
// ordered by device and pid, and whose field incomplete says why devices are missing, if any
// are.
type processes struct {
	*Options
	lock chan struct{} // full while a request lists
}

// processView is a process as it is served. Unknown fields are left out.
type processView struct {
	PID        int                   `json:"pid"`
	User       string                `json:"user,omitempty"`
	Group      string                `json:"group,omitempty"`
	Command    string                `json:"command,omitempty"`
	Hostname   string                `json:"hostname,omitempty"`
	GPU        string                `json:"gpu,omitempty"`
	UUID       string                `json:"uuid,omitempty"`
	Instance   string                `json:"mig_instance,omitempty"`
	MemoryUsed *uint64               `json:"used_memory_bytes,omitempty"`
	Kind       canonical.ProcessKind `json:"kind,omitempty"`
}

// ServeHTTP answers GET and HEAD.
func (p *processes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case p.Processes == nil:
		answerError(w, "processes are not listed: start with --collector.processes and a backend that reads this machine", http.StatusNotFound)
		return
	case !p.ExposeProcesses && !isLocal(r):
		answerError(w, "processes are shown only to clients on this machine, at its localhost address; "+
			"start with --web.expose-processes to show them to every client", http.StatusForbidden)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), p.Timeout)
	defer cancel()
	list, err := p.list(ctx)
	if err != nil && list == nil {
		status := http.StatusBadGateway
		if failure, ok := errors.AsType[*canonical.Failure](err); ok && failure.Timeout || errors.Is(err, context.DeadlineExceeded) {
			status = http.StatusGatewayTimeout
		}
		answerError(w, "processes cannot be listed: "+err.Error(), status)
		return
	}
	p.identify(list)
	view := struct {
		Processes  []processView `json:"processes"`
		Incomplete string        `json:"incomplete,omitempty"`
	}{Processes: []processView{}}
	for _, p := range list {
		view.Processes = append(view.Processes, processView{p.PID, p.User, p.Group, p.Command, p.Hostname, p.GPU, p.UUID, p.Instance, bytesOf(p.MemoryUsed), p.Kind})
	}
	if err != nil {
		view.Incomplete = err.Error()
	}
	answerJSON(w, view, "")
}

// list lists the processes once no other request does.
func (p *processes) list(ctx context.Context) ([]canonical.Process, error) {
	select {
	case p.lock <- struct{}{}:
		defer func() { <-p.lock }()
		return p.Processes.Processes(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// identify names the devices as our series do, and sorts the list.
func (p *processes) identify(list []canonical.Process) {
	type id struct{ uuid, instance string }
	devices := map[id]*canonical.Device{}
	for _, f := range p.Sources.now() {
		if state, _ := f.Status(); state.Roster != nil {
			for _, d := range state.Roster.Devices {
				if k := (id{d.UUID, d.Instance}); d.UUID != "" && devices[k] == nil {
					devices[k] = &d
				}
			}
		}
	}
	for i := range list {
		if d := devices[id{list[i].UUID, list[i].Instance}]; d != nil {
			list[i].Hostname, list[i].GPU = cmp.Or(list[i].Hostname, d.Hostname), cmp.Or(list[i].GPU, d.GPU)
		}
	}
	slices.SortFunc(list, func(a, b canonical.Process) int {
		return cmp.Or(cmp.Compare(a.Hostname, b.Hostname), canonical.CompareIndexes(a.GPU, b.GPU), cmp.Compare(a.UUID, b.UUID),
			canonical.CompareIndexes(a.Instance, b.Instance), cmp.Compare(a.PID, b.PID), cmp.Compare(a.Kind, b.Kind))
	})
}

// bytesOf returns nil for a value that is absent or not a number of bytes: from 2^53 on, a
// float64 cannot represent every integer.
func bytesOf(v float64) *uint64 {
	if !(v >= 0 && v < 1<<53) {
		return nil
	}
	n := uint64(v)
	return &n
}

// proxyHeaders are headers that proxies add to forwarded requests: the sender is then not the
// client.
var proxyHeaders = []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Forwarded", "Via"}

// isLocal reports whether a request appears to come from this machine. It must also be
// addressed to localhost: a reverse proxy here may add no header, and a browser here may open a
// foreign page whose host name resolves to this machine.
func isLocal(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	proxied := slices.ContainsFunc(proxyHeaders, func(name string) bool { return len(r.Header.Values(name)) > 0 })
	return err == nil && peer.Addr().IsLoopback() && canonical.NamesLoopback(r.Host) && !proxied
}
