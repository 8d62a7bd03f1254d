package expose

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

func TestRoutes(t *testing.T) {
	works, broken := sourceOf(snapshotOf("works", board())), brokenSource("gone", refused)
	waiting := sourceOf(snapshotOf("waiting", board()))
	waiting.ready = errors.New("waiting has not been read yet; wait")
	up := serve(t, Options{Sources: NewSet(broken, works)})
	down := serve(t, Options{Sources: NewSet(broken, waiting)})
	profiled := serve(t, Options{Sources: NewSet(sourceOf(snapshotOf("profiled", board()))), Operations: Operations{EnablePprof: true}})
	for _, row := range []struct {
		server, method, path string
		status               int
		contains             string
	}{
		{up.URL, "GET", "/", 200, "kpulse-proxy"},
		{up.URL, "GET", "/metrics", 200, "kpulse_gpu_info"},
		{up.URL, "HEAD", "/metrics", 200, ""},
		{up.URL, "GET", "/health", 200, "OK"},
		{up.URL, "HEAD", "/health", 200, ""},
		{up.URL, "GET", "/-/healthy", 200, "OK"},
		{up.URL, "GET", "/healthz", 200, "OK"},
		{up.URL, "GET", "/-/ready", 200, "ready"},
		{up.URL, "GET", "/-/metrics", 200, "go_goroutines"},
		{down.URL, "GET", "/health", 200, "OK"},
		{down.URL, "GET", "/-/healthy", 200, "OK"},
		{down.URL, "GET", "/healthz", 200, "OK"},
		{down.URL, "GET", "/", 200, "connection refused"},
		{down.URL, "GET", "/-/ready", 503, "source gone: http://node:9400/metrics: connection refused; start the exporter\nsource waiting has not been read yet; wait\n"},
		{up.URL, "POST", "/metrics", 405, ""},
		{up.URL, "DELETE", "/", 405, ""},
		{up.URL, "OPTIONS", "/health", 405, ""},
		{up.URL, "PUT", "/-/ready", 405, ""},
		{up.URL, "GET", "/metrics/", 404, ""},
		{up.URL, "GET", "//metrics", 307, `href="/metrics"`},
		{up.URL, "GET", "/Metrics", 404, ""},
		{up.URL, "GET", "/health/", 404, ""},
		{up.URL, "GET", "/-/", 404, ""},
		{up.URL, "GET", "/favicon.ico", 404, ""},
		{up.URL, "POST", "/nowhere", 404, ""},
		{up.URL, "GET", "/debug/pprof", 404, ""},
		{up.URL, "GET", "/debug/pprof/", 404, ""},
		{up.URL, "GET", "/api/v1/processes", 404, "start with --collector.processes"},
		{up.URL, "POST", "/api/v1/processes", 405, ""},
		{up.URL, "GET", "/api/v1/processes/", 404, ""},
		{up.URL, "GET", "/debug/pprof/heap", 404, ""},
		{profiled.URL, "GET", "/debug/pprof", 307, `href="/debug/pprof/"`},
		{profiled.URL, "GET", "/debug/pprof/", 200, "goroutine"},
		{profiled.URL, "GET", "/debug/pproff", 404, ""},
		{profiled.URL, "GET", "/debug/pprof/heap", 200, ""},
		// The command line may hold the credentials of an upstream.
		{profiled.URL, "GET", "/debug/pprof/cmdline", 404, ""},
		{profiled.URL, "GET", "/debug/pprof/nothing", 404, ""},
	} {
		res, body := ask(t, row.method, row.server+row.path)
		if res.StatusCode != row.status || !strings.Contains(string(body), row.contains) {
			t.Errorf("%s %s: %d\n%.300s\nwant %d with %q", row.method, row.path, res.StatusCode, body, row.status, row.contains)
		}
		if row.status == 405 && res.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s %s: Allow is %q", row.method, row.path, res.Header.Get("Allow"))
		}
		if got := res.Header.Get("Server"); got != "kpulse-proxy" {
			t.Errorf("%s %s: the server is %q", row.method, row.path, got)
		}
		if res.Header.Get("Content-Type") == "" {
			t.Errorf("%s %s: no content type", row.method, row.path)
		}
	}
}

func TestTelemetry(t *testing.T) {
	server := serve(t, Options{Sources: NewSet(brokenSource("gone", refused)), FailureKinds: []string{"timeout", "unreachable"}})
	ask(t, "GET", server.URL+"/metrics")
	ask(t, "GET", server.URL+"/metrics")
	ask(t, "GET", server.URL+"/some/path")
	ask(t, "GET", server.URL+"/")
	_, body := ask(t, "GET", server.URL+"/-/metrics")
	parser := expfmt.NewTextParser(model.LegacyValidation)
	if _, err := parser.TextToMetricFamilies(strings.NewReader(string(body))); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`kpulse_proxy_http_requests_total{code="502",path="/metrics"} 2`,
		`kpulse_proxy_http_requests_total{code="404",path="other"} 1`,
		`kpulse_proxy_http_requests_total{code="200",path="/"} 1`,
		`kpulse_proxy_http_request_duration_seconds_count{code="502",path="/metrics"} 2`,
		`kpulse_proxy_scrape_failures_total{kind="unreachable",source="gone"} 2`,
		`kpulse_proxy_scrape_failures_total{kind="timeout",source="gone"} 0`,
		`kpulse_proxy_scrapes_in_flight 0`,
	} {
		if !strings.Contains(string(body), "\n"+line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	for _, name := range []string{"go_goroutines", "process_cpu_seconds_total", "kpulse_proxy_build_info"} {
		if !strings.Contains(string(body), "\n# TYPE "+name+" ") {
			t.Errorf("no family %s", name)
		}
	}
	if strings.Contains(string(body), "some/path") {
		t.Error("a path that anybody can invent became a label")
	}
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	f := sourceOf(snapshotOf("s", board()))
	for want, opts := range map[string]Options{
		"no source":             {MaxRequests: 1, Timeout: 1},
		"allow at least 1":      {Sources: NewSet(f), Timeout: 1},
		"leaves no time":        {Sources: NewSet(f), MaxRequests: 1},
		`sources are named "s"`: {Sources: NewSet(f, f), MaxRequests: 1, Timeout: time.Second},
	} {
		if _, err := New(opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestParsePassthrough(t *testing.T) {
	for word, want := range map[string]Passthrough{"valid": PassValid, "verbatim": PassVerbatim, "off": PassOff} {
		if got, err := ParsePassthrough(word); got != want || err != nil {
			t.Errorf("%q: %v, %v", word, got, err)
		}
	}
	for _, word := range []string{"", "Valid", "on"} {
		if _, err := ParsePassthrough(word); err == nil || !strings.Contains(err.Error(), "valid, verbatim or off") {
			t.Errorf("%q: %v", word, err)
		}
	}
}

func TestLandingPage(t *testing.T) {
	works := sourceOf(snapshotOf("http://works:9400/metrics", board(), unread()))
	works.state.At = time.Now().Add(-90 * time.Second)
	works.state.Missing = []canonical.Field{canonical.SMActive, canonical.RemappedRowsUncorrectable, canonical.RemappedRowsCorrectable}
	works.state.DroppedSeries, works.state.DroppedAllocations = 5, 70
	works.state.UnknownFamilies = []string{"VENDOR_NEW_ONE", "<script>alert(1)</script>"}
	fresh := sourceOf(snapshotOf("fresh", board()))
	fresh.state, fresh.ready = canonical.Source{Name: "fresh"}, errors.New("fresh has not been read yet")
	works.state.Backend = "prometheus"
	works.state.Notes = []canonical.Note{{Cause: "no <switches>", Remedy: "see modules"}, {Cause: "no remedy"}}
	fresh.state.Missing = works.state.Missing // only exporters have a list of counters
	notes := func() []canonical.Note {
		return []canonical.Note{{Cause: "no XIDs from <the> log", Remedy: "run as root"}}
	}
	lines := func(f []canonical.Field) []string {
		return []string{fmt.Sprintf("LINES_OF_%d,gauge,<b>help</b>", len(f))}
	}
	server := serve(t, Options{Sources: NewSet(works, brokenSource("gone", refused), fresh), Page: Page{Lines: lines, Notes: notes}})
	res, body := ask(t, "GET", server.URL+"/")
	page := string(body)
	if res.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("content type %q", res.Header.Get("Content-Type"))
	}
	for _, want := range []string{
		"http://works:9400/metrics", "● up", "<dd>2 (boards and MIG instances)</dd>", "<dd>14</dd>",
		"<code>gpu_sm_active_ratio</code>", "list of counters that the exporter collects", "<pre>LINES_OF_3,gauge,&lt;b&gt;help&lt;/b&gt;\n</pre>",
		"<dt>Over the limit</dt><dd>5 samples of devices", "<dt>Over the limit</dt><dd>70 allocations beyond --series-limit so far",
		"Not translated", "<code>VENDOR_NEW_ONE</code>",
		"● down", "connection refused", "start the exporter",
		"fresh has not been read yet", "never",
		"<dt>Note</dt><dd>no &lt;switches&gt;; see modules</dd>", "<dt>Note</dt><dd>no remedy</dd>",
		"Note: no XIDs from &lt;the&gt; log; run as root",
		`href="/metrics"`, `href="/-/ready"`, `href="/-/metrics"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if !regexp.MustCompile(`\b1m[3-5]\ds ago`).MatchString(page) {
		t.Error("the page lacks the age of the reading")
	}
	if strings.Contains(page, "<script>") {
		t.Error("the page runs what an upstream says")
	}
	if strings.Contains(page, "/debug/pprof") {
		t.Error("the page links to profiles, which are off")
	}
	if n := strings.Count(page, "Over the limit"); n != 2 {
		t.Errorf("%d limits are said to be reached: those of other sources are not", n)
	}
	if n := strings.Count(page, "list of counters"); n != 1 {
		t.Errorf("%d sources have a list of counters", n)
	}
	if n := strings.Count(page, "<code>gpu_remapped_rows_total</code>"); n != 2 {
		t.Errorf("a family that misses two fields shows %d times", n)
	}
	if strings.Contains(page, "src=") || strings.Contains(page, "@import") {
		t.Error("the page loads something")
	}
}

// TestLandingPageTellsWhatIsOn: it does not mention what is off.
func TestLandingPageTellsWhatIsOn(t *testing.T) {
	sources := []Source{sourceOf(snapshotOf("works", board()))}
	on := Options{
		Sources:    NewSet(sources...),
		Machine:    Machine{Processes: listing()},
		Results:    func(time.Time, func([]byte)) {},
		Operations: Operations{EnablePprof: true, Reload: func() error { return nil }},
	}
	for _, test := range []struct {
		opts Options
		want bool
	}{{on, true}, {Options{Sources: NewSet(sources...)}, false}} {
		_, body := ask(t, "GET", serve(t, test.opts).URL+"/")
		for _, told := range []string{`href="/debug/pprof/"`, `href="/api/v1/processes"`, "kpulse_proxy_rule_*", "/-/reload"} {
			if strings.Contains(string(body), told) != test.want {
				t.Errorf("the page tells of %s: %t, want %t", told, !test.want, test.want)
			}
		}
	}
}

// TestOwnTelemetry: the proxy's own telemetry has each family that the lean form leaves to it, of two
// sources of one machine that share a device, and reads none of them for it.
func TestOwnTelemetry(t *testing.T) {
	whole := &canonical.Host{CPUs: 96, CPUUtilization: 0.25, MemoryTotal: 2 << 40, MemoryAvailable: 1 << 40}
	var sources []Source
	for _, name := range []string{"a", "b"} {
		s := onHost(snapshotOf(name, board()), "node-a", whole)
		s.Source.Period, s.Source.Samples = time.Second, 30
		s.Source.Streams[0] = canonical.Stream{Name: "dmon", Bytes: 7, MissedAt: time.Unix(1, 0)}
		f := sourceOf(s)
		f.state = s.Source
		sources = append(sources, f)
	}
	server := serve(t, Options{Sources: NewSet(sources...)})
	ask(t, "GET", server.URL+"/metrics?series=lean")
	_, page := ask(t, "GET", server.URL+"/-/metrics")
	body := string(page)
	for _, name := range ownTelemetry() {
		if !strings.Contains(body, "\n# TYPE kpulse_proxy_"+name+" ") {
			t.Errorf("no family kpulse_proxy_%s", name)
		}
	}
	for _, line := range []string{
		`kpulse_proxy_source_samples{source="b"} 30`, `kpulse_proxy_host_cpus{hostname="node-a"} 96`,
		`kpulse_proxy_source_shared_devices{source="a"} 0`, `kpulse_proxy_source_shared_devices{source="b"} 1`,
	} {
		if !strings.Contains(body, "\n"+line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	if n := sources[0].(*fakeSource).reads.Load(); n != 1 {
		t.Errorf("read %d times, want once, by the scrape", n)
	}
}

// TestSwitchesAreServedOnce: of the sources, which /sd makes targets, only the first serves
// them.
func TestSwitchesAreServedOnce(t *testing.T) {
	server := serve(t, Options{Sources: NewSet(sourceOf(snapshotOf("a")), sourceOf(snapshotOf("b"))), Machine: Machine{Switches: func(dst []canonical.SXIDCount) []canonical.SXIDCount {
		return append(dst, canonical.SXIDCount{Hostname: "n", PCIBusID: "0000:05:00", Code: 12028, Count: 2}, canonical.SXIDCount{Hostname: "n", PCIBusID: "0000:05:00", Code: 24007, Fatal: true, Count: 1})
	}, SwitchFaults: func(dst []canonical.SwitchFault) []canonical.SwitchFault {
		return append(dst, canonical.SwitchFault{Hostname: "n", PCIBusID: "0000:05:00", Code: 24007})
	}}})
	const want = `# TYPE kpulse_nvswitch_sxid_errors_total counter
kpulse_nvswitch_sxid_errors_total{hostname="n",pci_bus_id="0000:05:00",sxid="12028",severity="warning"} 2
kpulse_nvswitch_sxid_errors_total{hostname="n",pci_bus_id="0000:05:00",sxid="24007",severity="fatal"} 1
# HELP kpulse_nvswitch_fatal_sxid 1 for each fatal SXID of an NVSwitch that neither a reboot nor an operator resolved, which is the health condition nvswitch of the boards.
# TYPE kpulse_nvswitch_fatal_sxid gauge
kpulse_nvswitch_fatal_sxid{hostname="n",pci_bus_id="0000:05:00",sxid="24007"} 1
`
	for query, served := range map[string]bool{"": true, "?source=a": true, "?source=b": false} {
		if _, body := ask(t, "GET", server.URL+"/metrics"+query); strings.Contains(string(body), want) != served {
			t.Errorf("%q serves them: %t, want %t", query, !served, served)
		}
	}
}

// TestLandingPageAdvisesNoLineOfWhatIsServed: a reading that the exporter serves without a
// usable value is in its list of counters.
func TestLandingPageAdvisesNoLineOfWhatIsServed(t *testing.T) {
	source := sourceOf(snapshotOf("source", board()))
	source.state.Backend = "prometheus"
	source.state.Missing = []canonical.Field{canonical.SMActive, canonical.MemoryTemperature}
	source.state.Unusable = []canonical.Field{canonical.MemoryTemperature}
	_, body := ask(t, "GET", serve(t, Options{Sources: NewSet(source), Page: Page{Lines: canonical.NamesOf}}).URL+"/")
	for _, want := range []string{"<code>gpu_sm_active_ratio</code> <code>gpu_memory_temperature_celsius</code>", "<pre>gpu_sm_active_ratio\n</pre>", "The source serves <code>gpu_memory_temperature_celsius</code> without a usable value: blank, out of range, stale or of unknown unit."} {
		if !strings.Contains(string(body), want) {
			t.Errorf("the page lacks %q:\n%s", want, body)
		}
	}
}

// TestLandingPageTellsWhatIsWrong: boards that are missing, and readings that do not change.
func TestLandingPageTellsWhatIsWrong(t *testing.T) {
	listed := *kept().Ledger.Roster
	listed.HeldOnly = true
	held := &listed
	for _, c := range []struct {
		name   string
		roster *canonical.Roster
		frozen time.Duration
		has    []string
		lacks  []string
	}{
		{
			"boards that are not there", kept().Ledger.Roster, 5 * time.Minute,
			[]string{
				"<dt>Missing</dt><dd class=\"down\">GPU 2 of node-a <code>GPU-a2</code>",
				"<dt>Missing</dt><dd class=\"down\">GPU 1 of node-b <code>GPU-b1</code>",
				"<dt>Missed</dt><dd class=\"down\">GPU 1 of node-a:",
				`<span class="gone">gone</span> <small>last XID 79</small> <small>→ replace: Drain the node, and have the board replaced.</small></td>`, `<td data-is="Held by">ml/lost</td>`,
				`<span class="gone">gone</span> <small>→ reboot_node: Drain the node and reboot it: nothing less brings the GPU back.</small></td>`, `<span class="unknown">unknown</span> <small>missing</small></td>`,
				"<dt>Missed</dt><dd class=\"down\">GPU 3 of node-a:", "--expected-gpus, or expected_gpus in the config file,",
			},
			[]string{"GPU-a0", "GPU-b0", "Frozen"}, // these are there; an instance of b0 left
		},
		{"nothing changed for long", nil, 5*time.Minute + 2*time.Second, []string{"<dt>Frozen</dt>", "no value has changed for 5m2s:"}, []string{"Missing", "Missed"}},
		{"all is well", rostered("s", 0, board()).Ledger.Roster, 0, nil, []string{"Missing", "Missed", "Frozen"}},
		{"held boards only", held, 0, []string{`<span class="unknown">unknown</span> <small>not held, so not listed</small></td>`}, []string{"<dt>Missing", ">missing<"}},
	} {
		f := sourceOf(snapshotOf("s", board()))
		f.state.Roster, f.snapshot.Ledger = c.roster, kept().Ledger
		if f.snapshot.Ledger.Roster = c.roster; held == c.roster {
			f.snapshot.Ledger.Absences = nil
			for range 5 {
				f.snapshot.Ledger.Absences = append(f.snapshot.Ledger.Absences, canonical.Absence{State: canonical.HealthUnknown})
			}
		}
		f.state.ChangedAt = f.state.At.Add(-c.frozen)
		_, body := ask(t, "GET", serve(t, Options{Sources: NewSet(f)}).URL+"/")
		for _, want := range c.has {
			if !strings.Contains(string(body), want) {
				t.Errorf("%s: the page lacks %s", c.name, want)
			}
		}
		for _, not := range c.lacks {
			if strings.Contains(string(body), not) {
				t.Errorf("%s: the page has %s", c.name, not)
			}
		}
	}
}

func TestScrapeOfOurselves(t *testing.T) {
	server := serve(t, Options{Sources: NewSet(sourceOf(snapshotOf("a", board()))), MaxRequests: 8, Self: "kpulse-proxy (1)"})
	for agent, want := range map[string]int{"kpulse-proxy (1)": 508, "kpulse-proxy (2)": 200, "": 200} {
		if res, body := ask(t, "GET", server.URL+"/metrics", "User-Agent: "+agent); res.StatusCode != want {
			t.Errorf("asked by %q: %d %.100s, want %d", agent, res.StatusCode, body, want)
		}
	}
}

// Prometheus can scrape each discovered target, and gets only its source.
func TestDiscovery(t *testing.T) {
	first, second := board(), board()
	second.UUID = "GPU-second"
	server := serve(t, Options{Sources: NewSet(
		sourceOf(snapshotOf("http://a:9400/metrics", first)),
		sourceOf(snapshotOf(`b & "c"`, second)),
	)})
	res, body := ask(t, "GET", server.URL+"/sd")
	if kind := res.Header.Get("Content-Type"); res.StatusCode != 200 || kind != "application/json" {
		t.Fatalf("%d, %q: Prometheus takes JSON alone", res.StatusCode, kind)
	}
	var groups []struct {
		Targets []string
		Labels  map[string]string
	}
	if err := json.Unmarshal(body, &groups); err != nil || len(groups) != 2 {
		t.Fatalf("%v, %d groups:\n%s", err, len(groups), body)
	}
	for i, uuid := range []string{first.UUID, second.UUID} {
		g := groups[i]
		if len(g.Targets) != 1 || "http://"+g.Targets[0] != server.URL || len(g.Labels) != 3 || g.Labels["instance"] != g.Labels["__param_source"] {
			t.Fatalf("group %d: %+v", i, g)
		}
		query := url.Values{"source": {g.Labels["__param_source"]}}
		res, page := ask(t, "GET", "http://"+g.Targets[0]+g.Labels["__metrics_path__"]+"?"+query.Encode())
		if res.StatusCode != 200 || !strings.Contains(string(page), `uuid="`+uuid+`"`) || strings.Count(string(page), "\nkpulse_source_up{") != 1 {
			t.Errorf("group %d, %+v: %d\n%.300s", i, g, res.StatusCode, page)
		}
	}
}

// Targets of a request by TLS are scraped by TLS.
func TestDiscoveryByTLS(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), "GET", "https://node1:9401/sd", nil)
	r.TLS = &tls.ConnectionState{}
	w := httptest.NewRecorder()
	discovery(NewSet(sourceOf(snapshotOf("s"))), nil)(w, r)
	const want = `[{"targets":["node1:9401"],"labels":{"__metrics_path__":"/metrics","__param_source":"s","__scheme__":"https"}}]`
	if got := strings.TrimSpace(w.Body.String()); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
