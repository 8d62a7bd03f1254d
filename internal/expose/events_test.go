package expose

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// eventful is a source of one board with events.
func eventful(name, uuid string, events ...canonical.Event) *fakeSource {
	s := sourceOf(snapshotOf(name))
	s.state.Roster = &canonical.Roster{Devices: []canonical.Device{{UUID: uuid}}}
	for i := range events {
		events[i].UUID = uuid
	}
	s.events = events
	return s
}

func second(n int) time.Time { return time.Unix(int64(n), 0).In(time.FixedZone("", 3600)) }

// askEvents returns the answer to a client at peer.
func askEvents(t *testing.T, opts Options, peer string) string {
	t.Helper()
	opts.MaxRequests, opts.Timeout = 4, time.Second
	h, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost:9401/events", nil)
	r.RemoteAddr = peer
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	return w.Body.String()
}

func TestEvents(t *testing.T) {
	fell := canonical.Event{
		At: second(20), Kind: canonical.EventXID, Hostname: "n", GPU: "0", PCIBusID: "0000:b5:00", Code: 79, Count: 1,
		Severity: canonical.SeverityFatal, Action: canonical.ActionRebootNode, Text: `fell off the "bus"`, PID: 7, Process: "python",
	}
	opts := Options{
		Sources: NewSet(
			eventful("a", "GPU-a", fell,
				canonical.Event{At: second(30), Kind: canonical.EventRaised, Condition: canonical.CondXIDFatal, State: canonical.HealthCrit, Action: canonical.ActionRebootNode},
				canonical.Event{At: second(40), Kind: canonical.EventResolved, Code: 79, Severity: canonical.SeverityFatal},
				canonical.Event{At: second(40), Kind: canonical.EventCleared, Condition: canonical.CondXIDFatal, State: canonical.HealthCrit}),
			eventful("again", "GPU-a", fell),
			eventful("b", "GPU-b", canonical.Event{At: second(10), Kind: canonical.EventReset, Text: "energy fell"}),
		),
		Machine: Machine{Events: func(dst []canonical.Event) []canonical.Event {
			return append(dst, canonical.Event{At: second(35), Kind: canonical.EventSXID, Hostname: "n", PCIBusID: "0000:05:00", Code: 12028, Count: 1, Severity: canonical.SeverityWarning, Text: "Non-fatal"})
		}},
	}
	const want = `{"events":[` +
		`{"time":"1970-01-01T00:00:10Z","kind":"reset","uuid":"GPU-b","text":"energy fell"},` +
		`{"time":"1970-01-01T00:00:20Z","kind":"xid","hostname":"n","gpu":"0","uuid":"GPU-a","pci_bus_id":"0000:b5:00","xid":79,"count":1,"severity":"fatal","action":"reboot_node","text":"fell off the \"bus\""PROCESS},` +
		`{"time":"1970-01-01T00:00:30Z","kind":"raised","uuid":"GPU-a","action":"reboot_node","condition":"xid_fatal","state":"crit"},` +
		`{"time":"1970-01-01T00:00:35Z","kind":"sxid","hostname":"n","pci_bus_id":"0000:05:00","sxid":12028,"count":1,"severity":"warning","text":"Non-fatal"},` +
		`{"time":"1970-01-01T00:00:40Z","kind":"resolved","uuid":"GPU-a","xid":79,"severity":"fatal","action":"none"},` +
		`{"time":"1970-01-01T00:00:40Z","kind":"cleared","uuid":"GPU-a","condition":"xid_fatal","state":"crit"}` +
		"]}\n"
	const process = `,"pid":7,"process":"python"`
	for _, test := range []struct {
		peer    string
		exposed bool
		process string
	}{{here, false, process}, {elsewhere, false, ""}, {elsewhere, true, process}} {
		opts.ExposeProcesses = test.exposed
		if got := askEvents(t, opts, test.peer); got != strings.Replace(want, "PROCESS", test.process, 1) {
			t.Errorf("%s, exposed %t:\n got %s\nwant %s", test.peer, test.exposed, got, want)
		}
	}
}

// TestEventsAreBounded: only the newest events of all sources are served.
func TestEventsAreBounded(t *testing.T) {
	var many []canonical.Event
	for i := range canonical.MaxEvents {
		many = append(many, canonical.Event{At: second(i), Kind: canonical.EventReset})
	}
	opts := Options{Sources: NewSet(eventful("a", "GPU-a", many...), eventful("b", "GPU-b", canonical.Event{At: second(5000), Kind: canonical.EventReset}))}
	var answer struct{ Events []struct{ UUID string } }
	if err := json.Unmarshal([]byte(askEvents(t, opts, here)), &answer); err != nil {
		t.Fatal(err)
	}
	if n := len(answer.Events); n != canonical.MaxEvents || answer.Events[n-1].UUID != "GPU-b" {
		t.Errorf("%d events, the last of %s", n, answer.Events[n-1].UUID)
	}
	opts.Sources = NewSet(eventful("a", "GPU-a"))
	if got, want := askEvents(t, opts, here), "{\"events\":[]}\n"; got != want {
		t.Errorf("without any: %q, want %q", got, want)
	}
}

func TestResolveRoute(t *testing.T) {
	fatal := eventful("a", "GPU-a")
	fatal.fatal = []string{"GPU-a"}
	sources := []Source{fatal, eventful("b", "GPU-a"), eventful("c", "GPU-c")}
	able, unable := serve(t, Options{Sources: NewSet(sources...), Operations: Operations{MayResolve: anyone}}), serve(t, Options{Sources: NewSet(sources...)})
	for _, test := range []struct {
		server, method, query string
		status                int
		want                  string
	}{
		{unable.URL, "POST", "?uuid=GPU-a", 403, "only root of this machine may resolve, over a loopback address; or start with --web.enable-lifecycle\n"},
		{able.URL, "POST", "?uuid=GPU-x%22", 404, "no GPU has the uuid \"GPU-x\\\"\"; the label uuid of kpulse_gpu_info names them\n"},
		{able.URL, "POST", "", 400, "no GPU is named; write /-/resolve?uuid=GPU-…, with the label uuid of its series\n"},
		{able.URL, "GET", "?uuid=GPU-a", 405, "Method Not Allowed\n"},
		{able.URL, "POST", "?uuid=GPU-a", 200, "the fatal XIDs of GPU-a are resolved; the next reading and /events show it\n"},
		{able.URL, "POST", "?uuid=GPU-a", 200, "GPU-a has no fatal XID to resolve, and is not gone\n"},
	} {
		res, body := ask(t, test.method, test.server+"/-/resolve"+test.query)
		if res.StatusCode != test.status || string(body) != test.want {
			t.Errorf("%s %s: %s", test.method, test.query, fmt.Sprint(res.StatusCode, " ", string(body)))
		}
	}
	if res, _ := ask(t, "POST", able.URL+"/events"); res.StatusCode != 405 {
		t.Errorf("POST /events: %d", res.StatusCode)
	}
}

// TestResolveSwitch: an operator's word resolves the fatal SXIDs of a switch, whose address the log's
// reader knows.
func TestResolveSwitch(t *testing.T) {
	faulty := map[string]bool{"0000:05:00": true}
	operations := Operations{MayResolve: anyone, ResolveSwitch: func(address string) bool {
		was := faulty[address]
		delete(faulty, address)
		return was
	}}
	sources := NewSet(eventful("a", "GPU-a"))
	able, without := serve(t, Options{Sources: sources, Operations: operations}), serve(t, Options{Sources: sources, Operations: Operations{MayResolve: anyone}})
	operations.MayResolve = nil
	unable := serve(t, Options{Sources: sources, Operations: operations})
	for _, test := range []struct {
		server, address string
		status          int
		want            string
	}{
		{unable.URL, "0000:05:00", 403, "only root of this machine may resolve, over a loopback address; or start with --web.enable-lifecycle\n"},
		{without.URL, "0000:05:00", 200, "0000:05:00 has no fatal SXID to resolve\n"},
		{able.URL, "0000:06:00", 200, "0000:06:00 has no fatal SXID to resolve\n"},
		{able.URL, "0000:05:00", 200, "the fatal SXIDs of 0000:05:00 are resolved; the next reading shows it\n"},
		{able.URL, "0000:05:00", 200, "0000:05:00 has no fatal SXID to resolve\n"},
	} {
		if res, body := ask(t, "POST", test.server+"/-/resolve?switch="+test.address); res.StatusCode != test.status || string(body) != test.want {
			t.Errorf("%s: %d %s, want %d %s", test.address, res.StatusCode, body, test.status, test.want)
		}
	}
}

func anyone(*http.Request) bool { return true }
