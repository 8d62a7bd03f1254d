package tui

import (
	"net/http"
	"strings"
	"testing"
)

func TestProcesses(t *testing.T) {
	proxy := func(status int, body string) *http.Client {
		return Client(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/api/v1/processes" || !strings.HasPrefix(r.RemoteAddr, "127.0.0.1:") {
				t.Errorf("%s asked for %s", r.RemoteAddr, r.URL)
			}
			says(status, body)(w, r)
		}))
	}
	two := `{"processes":[{"pid":7,"user":"ada","command":"a\nb\u001b[31m","gpu":"0","uuid":"GPU-1","mig_instance":"3","used_memory_bytes":1073741824,"kind":"compute"},{"pid":8,"hostname":"h","gpu":"2"}]}`
	for _, test := range []struct {
		name   string
		status int
		body   string
		n      int
		err    string
	}{
		{"two", 200, two, 2, ""},
		{"none", 200, `{"processes":[]}`, 0, ""},
		{"not shown to others", 403, "processes are shown on this machine alone\nmore", 0, "processes are shown on this machine alone"},
		{"not known", 404, "processes are not listed", 0, "processes are not listed"},
		{"a page", 200, "<html>", 0, "no JSON of ours"},
		{"another shape", 200, `{"processes":[{"pid":"x"}]}`, 0, "no JSON of ours"},
	} {
		msg, ok := lister(t.Context(), []Target{{URL: "http://user:secret@n:9401/metrics", Client: proxy(test.status, test.body)}})().(processesMsg)
		if !ok || len(msg.list) != test.n || !strings.Contains(msg.err, test.err) || (msg.err == "") != (test.err == "") || strings.Contains(msg.err, "\n") {
			t.Errorf("%s: %d processes, %q", test.name, len(msg.list), msg.err)
		}
		if test.n == 0 {
			continue
		}
		if p := msg.list[0]; p.Key != (Key{"http://n:9401/metrics", "GPU-1", "3"}) || p.Command != "a b[31m" || *p.MemoryUsed != 1<<30 {
			t.Errorf("%+v", p)
		}
		if p := msg.list[1]; p.Key.UUID != "index:h/2" || p.MemoryUsed != nil {
			t.Errorf("%+v", p)
		}
	}
}

// TestProcessesAreAskedForWhileLookedAt: they cost the node a look at its driver.
func TestProcessesAreAskedForWhileLookedAt(t *testing.T) {
	m, _ := fleet(t)
	m.list = lister(t.Context(), nil)
	if m.askProcesses() != nil {
		t.Error("asked in the fleet")
	}
	typed(m, "4")
	if m.askProcesses() == nil {
		t.Error("not asked in the jobs")
	}
	if m.askProcesses() != nil {
		t.Error("asked again before the answer")
	}
	m.Update(processesMsg{list: []Process{{PID: 1, Key: m.state.GPUs[1].Key}, {PID: 2, Key: m.state.GPUs[0].Key}, {PID: 3, Key: Key{UUID: "gone"}}}})
	if all := visible(&m.state); len(all) != 2 || all[0].PID != 2 {
		t.Errorf("shown are %+v", all)
	}
	if typed(m, "space"); m.askProcesses() != nil {
		t.Error("asked on a frozen screen")
	}
}

// TestNoProcessIsTold holds that nodes which list no process are told from nodes that
// list none.
func TestNoProcessIsTold(t *testing.T) {
	s := state("one")
	for _, test := range []struct {
		list []Process
		want bool
	}{{nil, false}, {[]Process{}, true}} {
		s.Processes = test.list
		if g, _ := at(s, viewJobs, 80, 24); strings.Contains(g.Glyphs(), "No process runs") != test.want {
			t.Errorf("%#v:\n%s", test.list, g.Glyphs())
		}
	}
	s.ProcessesErr = "give --collector.processes"
	if g, _ := at(s, viewJobs, 80, 24); !strings.Contains(g.Glyphs(), s.ProcessesErr) {
		t.Errorf("beside allocations it is not said why there are no processes:\n%s", g.Glyphs())
	}
	client := scripted(says(200, `{"processes":[]}`))
	if msg, ok := lister(t.Context(), []Target{{URL: InProcess, Client: client}})().(processesMsg); !ok || msg.list == nil || msg.err != "" {
		t.Errorf("%+v", msg)
	}
}
