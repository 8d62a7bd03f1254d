package expose

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TestResultsStandBehindOurs: only on /metrics of all sources, small and large.
func TestResultsStandBehindOurs(t *testing.T) {
	large := strings.Repeat("r:y{z=\"0123456789\"} 1\n", 1<<14)
	server := serve(t, Options{
		Sources: NewSet(sourceOf(snapshotOf("first", board()))),
		Results: func(_ time.Time, pass func([]byte)) {
			pass([]byte("# TYPE r:x untyped\n"))
			pass([]byte("r:x 1\n"))
			pass([]byte(large))
		},
	})
	_, whole := ask(t, "GET", server.URL+"/metrics")
	_, ours, found := strings.Cut(string(whole), "kpulse_build_info{")
	_, ours, _ = strings.Cut(ours, "\n")
	if want := "# TYPE r:x untyped\nr:x 1\n" + large; !found || ours != want {
		t.Errorf("behind ours stands\n%.300s\nof %d bytes, want %d", ours, len(ours), len(want))
	}
	if _, one := ask(t, "GET", server.URL+"/metrics?source=first"); strings.Contains(string(one), "r:x") {
		t.Error("results stand in the view of one source")
	}
}

func TestReload(t *testing.T) {
	var fails error
	ran := 0
	able := serve(t, Options{Sources: NewSet(sourceOf(snapshotOf("s", board()))), Operations: Operations{Reload: func() error { ran++; return fails }}})
	unable := serve(t, Options{Sources: NewSet(sourceOf(snapshotOf("s", board())))})
	for _, row := range []struct {
		server, method string
		fails          error
		status, ran    int
		want           string
	}{
		{able.URL, "GET", nil, 405, 0, "Method Not Allowed\n"},
		{able.URL, "POST", nil, 200, 1, "reloaded\n"},
		{able.URL, "PUT", nil, 200, 2, "reloaded\n"},
		{able.URL, "POST", errors.New("a.yml:3: wrong; do right"), 500, 3, "nothing was reloaded: a.yml:3: wrong; do right\n"},
		{unable.URL, "POST", nil, 403, 3, "reloading over HTTP is off; start with --web.enable-lifecycle, or send SIGHUP\n"},
	} {
		fails = row.fails
		res, body := ask(t, row.method, row.server+"/-/reload")
		if res.StatusCode != row.status || string(body) != row.want || ran != row.ran {
			t.Errorf("%s: %d %q after %d reloads, want %d %q after %d", row.method, res.StatusCode, body, ran, row.status, row.want, row.ran)
		}
	}
}

// TestCollectors: collectors are among the proxy's own telemetry; New reports those that cannot
// be registered.
func TestCollectors(t *testing.T) {
	mine := prometheus.NewGauge(prometheus.GaugeOpts{Name: "mine", Help: "Mine."})
	opts := Options{Sources: NewSet(sourceOf(snapshotOf("s", board()))), Collectors: []prometheus.Collector{mine}}
	server := serve(t, opts)
	if _, body := ask(t, "GET", server.URL+"/-/metrics"); !strings.Contains(string(body), "\nmine 0\n") {
		t.Error("the collector is not served")
	}
	opts.MaxRequests, opts.Timeout = 1, time.Second
	opts.Collectors = append(opts.Collectors, mine)
	if _, err := New(opts); err == nil || !strings.Contains(err.Error(), "telemetry: duplicate") {
		t.Errorf("a collector twice gives %v", err)
	}
}
