package client

import (
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

func TestProcesses(t *testing.T) {
	proxy := func(status int, body string) *http.Client {
		return ForHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/api/v1/processes" || !strings.HasPrefix(r.RemoteAddr, "127.0.0.1:") {
				t.Errorf("%s asked for %s", r.RemoteAddr, r.URL)
			}
			answer(status, body)(w, r)
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
		{"not shown to others", 403, "processes are shown only to clients on this machine\nmore", 0, "processes are shown only to clients on this machine"},
		{"not known", 404, "processes are not listed", 0, "processes are not listed"},
		{"a page", 200, "<html>", 0, "not JSON of kpulse-proxy"},
		{"another shape", 200, `{"processes":[{"pid":"x"}]}`, 0, "not JSON of kpulse-proxy"},
	} {
		list, why := ListProcesses(t.Context(), []Target{{URL: "http://user:secret@n:9401/metrics", Client: proxy(test.status, test.body)}})
		if len(list) != test.n || !strings.Contains(why, test.err) || (why == "") != (test.err == "") || strings.Contains(why, "\n") {
			t.Errorf("%s: %d processes, %q", test.name, len(list), why)
		}
		if test.n == 0 {
			continue
		}
		if p := list[0]; p.Key != (Key{"http://n:9401/metrics", "GPU-1", "3"}) || p.Command != "a b [31m" || p.MemoryUsed != 1<<30 || p.Kind != canonical.ProcessCompute {
			t.Errorf("%+v", p)
		}
		if p := list[1]; p.Key.UUID != "index:h/2" || !math.IsNaN(p.MemoryUsed) || p.GPU != "2" {
			t.Errorf("%+v", p)
		}
	}
}

// TestNoProcess checks that an empty list is not mistaken for a missing one.
func TestNoProcess(t *testing.T) {
	client := scripted(answer(200, `{"processes":[]}`))
	if list, why := ListProcesses(t.Context(), []Target{{URL: InProcess, Client: client}}); list == nil || why != "" {
		t.Errorf("%+v, %q", list, why)
	}
}
