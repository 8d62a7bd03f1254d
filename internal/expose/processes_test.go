package expose

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// listerFunc is a ProcessLister.
type listerFunc func(ctx context.Context) ([]canonical.Process, error)

func (f listerFunc) Processes(ctx context.Context) ([]canonical.Process, error) { return f(ctx) }

func listing(list ...canonical.Process) ProcessLister {
	return listerFunc(func(context.Context) ([]canonical.Process, error) { return list, nil })
}

// askProcesses asks a server of opts from the address peer.
func askProcesses(t *testing.T, opts Options, peer string) *httptest.ResponseRecorder {
	t.Helper()
	if opts.Sources == nil {
		opts.Sources = NewSet(sourceOf(snapshotOf("s")))
	}
	opts.MaxRequests, opts.Timeout = 4, time.Second
	h, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost:9401/api/v1/processes", nil)
	r.RemoteAddr = peer
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const here, elsewhere = "127.0.0.1:4321", "10.1.2.3:4321"

func TestProcesses(t *testing.T) {
	s := snapshotOf("s", append([]device{board()}, split()...)...)
	s.Source.Roster = &canonical.Roster{Devices: s.Frame.Topology.Devices, Present: 4}
	list := []canonical.Process{
		{PID: 30, UUID: "GPU-b0", Instance: "8", MemoryUsed: 0, Kind: canonical.ProcessMPS},
		{PID: 20, User: "bob", Group: "ml", Command: `python "a" <b> &`, UUID: "GPU-a0", MemoryUsed: 34359738368, Kind: canonical.ProcessCompute},
		{PID: 3, UUID: "GPU-a0", MemoryUsed: math.NaN(), Kind: canonical.ProcessGraphics},
		{PID: 1, UUID: "GPU-x", GPU: "10", Hostname: "node-a", MemoryUsed: -1},
		{PID: 1, UUID: "GPU-y", GPU: "9", Hostname: "node-a", MemoryUsed: math.Inf(1)},
	}
	const want = `{"processes":[` +
		`{"pid":3,"hostname":"node-a","gpu":"0","uuid":"GPU-a0","kind":"graphics"},` +
		`{"pid":20,"user":"bob","group":"ml","command":"python \"a\" \u003cb\u003e \u0026","hostname":"node-a","gpu":"0","uuid":"GPU-a0","used_memory_bytes":34359738368,"kind":"compute"},` +
		`{"pid":1,"hostname":"node-a","gpu":"9","uuid":"GPU-y"},` +
		`{"pid":1,"hostname":"node-a","gpu":"10","uuid":"GPU-x"},` +
		`{"pid":30,"hostname":"node-b","gpu":"0","uuid":"GPU-b0","mig_instance":"8","used_memory_bytes":0,"kind":"mps"}` +
		"]}\n"
	w := askProcesses(t, Options{Sources: NewSet(sourceOf(s)), Machine: Machine{Processes: listing(list...)}}, here)
	if w.Code != 200 || w.Body.String() != want {
		t.Errorf("%d\n got %s\nwant %s", w.Code, w.Body, want)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"} {
		if got := w.Header().Get(name); got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
}

// TestIncompleteProcesses: the processes that were read are shown, with what is missing.
func TestIncompleteProcesses(t *testing.T) {
	for want, list := range map[string][]canonical.Process{
		`{"processes":[{"pid":7,"used_memory_bytes":0}],"incomplete":"GPU 3 hangs; reset it"}`: {{PID: 7}},
		`{"processes":[],"incomplete":"GPU 3 hangs; reset it"}`:                                {},
	} {
		w := askProcesses(t, Options{Machine: Machine{Processes: listerFunc(func(context.Context) ([]canonical.Process, error) {
			return list, &canonical.Failure{Timeout: true, Cause: "GPU 3 hangs", Remedy: "reset it"}
		})}}, here)
		if w.Code != 200 || w.Body.String() != want+"\n" {
			t.Errorf("%d %s, want %s", w.Code, w.Body, want)
		}
	}
}

func TestProcessesAreRefused(t *testing.T) {
	one := listing(canonical.Process{PID: 1, Command: "hidden"})
	failing := func(err error) ProcessLister {
		return listerFunc(func(context.Context) ([]canonical.Process, error) { return nil, err })
	}
	for name, c := range map[string]struct {
		opts   Options
		peer   string
		status int
		says   string
	}{
		"off":                   {Options{}, here, 404, "--collector.processes"},
		"off, but exposed":      {Options{Machine: Machine{ExposeProcesses: true}}, elsewhere, 404, "--collector.processes"},
		"from elsewhere":        {Options{Machine: Machine{Processes: one}}, elsewhere, 403, "--web.expose-processes"},
		"exposed":               {Options{Machine: Machine{Processes: one, ExposeProcesses: true}}, elsewhere, 200, "hidden"},
		"broken":                {Options{Machine: Machine{Processes: failing(errors.New("no driver; install it"))}}, here, 502, "no driver; install it"},
		"too slow":              {Options{Machine: Machine{Processes: failing(&canonical.Failure{Timeout: true, Cause: "GPU 3 hangs", Remedy: "reset it"})}}, here, 504, "GPU 3 hangs; reset it"},
		"failed":                {Options{Machine: Machine{Processes: failing(&canonical.Failure{Cause: "lost", Remedy: "look"})}}, here, 502, "lost; look"},
		"broken from elsewhere": {Options{Machine: Machine{Processes: failing(errors.New("hidden"))}}, elsewhere, 403, "--web.expose-processes"},
	} {
		t.Run(name, func(t *testing.T) {
			w := askProcesses(t, c.opts, c.peer)
			body := w.Body.String()
			if w.Code != c.status || !strings.Contains(body, c.says) || c.status != 200 && strings.Contains(body, "hidden") {
				t.Errorf("%d %s, want %d with %q", w.Code, body, c.status, c.says)
			}
			if w.Header().Get("Cache-Control") != "no-store" {
				t.Error("the answer may be stored")
			}
		})
	}
}

// TestProcessesAreListedOneAtATime has a lister that takes 0.4 s of the second that
// each request has: of three at once, the last comes too late.
func TestProcessesAreListedOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := 0
		h, err := New(Options{Sources: NewSet(sourceOf(snapshotOf("s"))), MaxRequests: 4, Timeout: time.Second, Machine: Machine{Processes: listerFunc(func(ctx context.Context) ([]canonical.Process, error) {
			if busy++; busy > 1 {
				t.Error("two at a time")
			}
			defer func() { busy-- }()
			select {
			case <-time.After(400 * time.Millisecond):
				return nil, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})}})
		if err != nil {
			t.Fatal(err)
		}
		codes := map[int]int{}
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				r := httptest.NewRequest("GET", "http://localhost/api/v1/processes", nil)
				r.RemoteAddr = here
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				mu.Lock()
				defer mu.Unlock()
				codes[w.Code]++
			})
		}
		all.Wait()
		if codes[200] != 2 || codes[504] != 1 {
			t.Errorf("%v, want two lists and one too late", codes)
		}
	})
}

func TestIsLocal(t *testing.T) {
	for _, c := range []struct {
		peer, host, header string
		want               bool
	}{
		{"127.0.0.1:4321", "localhost:9401", "", true},
		{"127.8.9.1:4321", "127.0.0.1", "", true},
		{"[::1]:4321", "[::1]:9401", "", true},
		{"[::1]:4321", "[::1]", "", true},
		{"[::ffff:127.0.0.1]:4321", "LocalHost", "User-Agent", true},
		{"10.0.0.7:4321", "localhost:9401", "", false},
		{"[fe80::1%eth0]:4321", "localhost:9401", "", false},
		{"[::ffff:10.0.0.7]:4321", "localhost:9401", "", false},
		{"0.0.0.0:1", "localhost", "", false},
		{"", "localhost", "", false},
		{"@", "localhost", "", false},
		{"127.0.0.1", "localhost", "", false},
		{"vm(2):1024", "localhost", "", false},
		// Through a proxy on this machine.
		{"127.0.0.1:4321", "localhost:9401", "X-Forwarded-For", false},
		{"127.0.0.1:4321", "localhost:9401", "X-Real-IP", false},
		{"127.0.0.1:4321", "localhost:9401", "Forwarded", false},
		{"127.0.0.1:4321", "localhost:9401", "Via", false},
		// By a name that other machines can have.
		{"127.0.0.1:4321", "node-a:9401", "", false},
		{"127.0.0.1:4321", "localhost.evil.example:9401", "", false},
		{"127.0.0.1:4321", "10.0.0.7:9401", "", false},
		{"127.0.0.1:4321", "", "", false},
	} {
		r := &http.Request{RemoteAddr: c.peer, Host: c.host, Header: http.Header{}}
		if c.header != "" {
			r.Header.Set(c.header, "") // even if it is empty
		}
		if got := isLocal(r); got != c.want {
			t.Errorf("from %q to %q with %q: %v", c.peer, c.host, c.header, got)
		}
	}
}
