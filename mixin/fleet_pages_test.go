package mixin_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
	"github.com/kpulse/kpulse-proxy/mixin/fleet"
)

const (
	// leastHosts is the number of hosts that all incidents need.
	leastHosts = 16
	// chartSeries is the most series that can be told apart in a chart, tableRows the most
	// rows that a browser draws at once.
	chartSeries = 30
	tableRows   = 200
)

// TestFleetPages plays a fleet with incidents (see package fleet) to a real Prometheus, and opens every page as Grafana does. The fleet has
// leastHosts hosts, or KPULSE_FLEET_HOSTS, as in `make fleet`.
func TestFleetPages(t *testing.T) {
	slow.Test(t, "prometheus, Node.js: every panel over a fleet")
	t.Parallel()
	f := openFleet(t)
	t.Run("facts", f.checkFacts)
	t.Run("panels", f.checkAll)
	t.Run("unknown", f.checkUnknown)
	t.Run("grafana", func(t *testing.T) {
		r := newRenderer(t)
		t.Run("panels", func(t *testing.T) { f.checkGrafana(t, r) })
		t.Run("thresholds", r.checkThresholds)
		t.Run("incidents", func(t *testing.T) { f.checkIncidents(t, r) })
		t.Run("unmet", f.checkUnmet)
	})
}

// playedFleet is a fleet that was played into a Prometheus.
type playedFleet struct {
	*fleet.Played
	*asker
	pages  map[string]dashboard
	hosts  int
	failed map[string]bool // keys of unmet
}

// openFleet plays a fleet and starts a Prometheus on it.
func openFleet(t *testing.T) *playedFleet {
	t.Helper()
	binary := program(t, "prometheus")
	f := &playedFleet{pages: dashboards(t), hosts: leastHosts, failed: map[string]bool{}}
	if text := os.Getenv("KPULSE_FLEET_HOSTS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < leastHosts {
			t.Fatalf("KPULSE_FLEET_HOSTS=%s: must be at least %d", text, leastHosts)
		}
		f.hosts = n
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, []byte("global: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	plan := fleet.Plan{Hosts: f.hosts, Groups: slices.Concat(groups(t, "prometheus_rules.yaml"), groups(t, "tests/all_alerts.yaml"))}
	shorten(t, plan.Groups)
	plan.Asked = namesIn(t, plan.Groups)
	if f.hosts > leastHosts {
		plan.Past = lengths["7d"]
	}
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		played, err := fleet.Play(t.Context(), filepath.Join(dir, "data"), plan)
		if err != nil {
			t.Fatal(err)
		}
		f.Played = played
	})
	t.Logf("%d GPUs, %d series, %d samples, played in %s; %d alerts fire", f.GPUs, f.Series, f.Samples, time.Since(began).Round(time.Second), len(f.Alerts))
	address := freeAddress(t)
	start(t, address, binary, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address,
		"--storage.tsdb.retention.time=10y", "--query.timeout=10m")
	f.asker = newAsker("http://" + address)
	return f
}

// shorten makes two GPU-hours enough for the alerts about waste, which wait for a day's.
func shorten(t *testing.T, all []rulefmt.RuleGroup) {
	t.Helper()
	shortened := 0
	for _, group := range all {
		for i := range group.Rules {
			if r := &group.Rules[i]; strings.HasSuffix(r.Alert, "Waste") {
				r.Expr = strings.Replace(r.Expr, "[1d]) / 60 > 24", "[1d]) / 60 > 2", 1)
				shortened += strings.Count(r.Expr, "> 2\n")
			}
		}
	}
	if shortened != 2 {
		t.Fatalf("%d alerts about waste, not 2", shortened)
	}
}

// namesIn returns the names of the series that rules, dashboards and their variables query.
func namesIn(t *testing.T, groups []rulefmt.RuleGroup) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, group := range groups {
		for _, rule := range group.Rules {
			addNames(t, names, rule.Expr)
			for _, text := range rule.Annotations {
				for _, name := range regexp.MustCompile(`\bkpulse_\w+|\bgang:\w+:\w+`).FindAllString(text, -1) {
					names[name] = true
				}
			}
		}
	}
	for _, e := range expressions(t) {
		addNames(t, names, e.text)
	}
	return names
}

func addNames(t *testing.T, names map[string]bool, expr string) {
	t.Helper()
	tree, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	parser.Inspect(tree, func(node parser.Node, _ []parser.Node) error {
		if v, ok := node.(*parser.VectorSelector); ok {
			names[v.Name] = true
		}
		return nil
	})
}

// checkFacts compares Prometheus' data with the script of the fleet.
func (f *playedFleet) checkFacts(t *testing.T) {
	gone := f.incident(t, "XID 79")
	hosts := float64(f.hosts)
	for _, fact := range []struct {
		expr           string
		before         time.Duration // the end
		want, tolerant float64
	}{
		{`count(up{job="kpulse-proxy"})`, 0, hosts - 1, 0}, // one is no target any more
		{`sum(up{job="kpulse-proxy"})`, 0, hosts - 2, 0},
		{`sum(up{job="kpulse-proxy"})`, 21 * time.Minute, hosts, 0},
		{`count(group by (cluster, hostname, gpu, uuid) (kpulse_gpu_present))`, 0, 8 * (hosts - 2), 0},
		{`count(kpulse_gpu_present == 0)`, 0, 2 + 8, 0},
		{`count(group by (model) (kpulse_gpu_info))`, 0, 3, 0},
		{`count(group by (mig_profile) (kpulse_gpu_info{mig_profile!=""})) >= bool 3`, 40 * time.Minute, 1, 0},
		// A board at 92 % of the range from 75 W to 700 W, in the hour with incidents.
		{`rate(kpulse_gpu_energy_joules_total{cluster="east", hostname="gpu-001", gpu="7"}[50m])`, 0, 650, 5},
		// The driver reports the XID 25 minutes before the end, and the board disappears a minute later.
		{`max(kpulse_gpu_xid_last{uuid="` + gone.UUID + `"}) or vector(0)`, 25*time.Minute + 15*time.Second, 0, 0},
		{`kpulse_gpu_xid_last{uuid="` + gone.UUID + `"}`, 24*time.Minute + 15*time.Second, 79, 0},
		{`kpulse_gpu_present{uuid="` + gone.UUID + `"}`, 24*time.Minute + 15*time.Second, 1, 0},
		{`kpulse_gpu_present{uuid="` + gone.UUID + `"}`, 23*time.Minute + 45*time.Second, 0, 0},
		{`count(kpulse_gpu_temperature_celsius{uuid="` + gone.UUID + `"}) or vector(0)`, 23*time.Minute + 45*time.Second, 0, 0}, // it ends at once, without five minutes of look-back
		{`count(group by (hpc_user) (kpulse_allocation_info{hpc_user!=""})) >= bool 2`, 0, 1, 0},
		{`sum(host:kpulse_gpu_class_gpus:rate5m)`, 0, 8*hosts - 3*8 - 2, .1 * hosts}, // a board with MIG has three devices
		{`count_over_time(host:kpulse_gpus_present:count{cluster="east", hostname="gpu-000"}[1h])`, 0, 60, 1},
		{`count_over_time(kpulse_gpu_temperature_celsius{cluster="east", hostname="gpu-000", gpu="0"}[1h])`, 0, 240, 1},
	} {
		r, err := f.ask(question{expr: fact.expr, to: f.End.Add(-fact.before)})
		var text string
		got := math.NaN()
		if err == nil && len(r.series) == 1 && json.Unmarshal(r.series[0].Value[1], &text) == nil {
			got, err = strconv.ParseFloat(text, 64)
		}
		if err != nil || !(math.Abs(got-fact.want) <= fact.tolerant) {
			t.Errorf("%s before the end, %s is %v (%d series, %v), want %v", fact.before, fact.expr, got, len(r.series), err, fact.want)
		}
	}
}

// incident returns the incident with a name.
func (f *playedFleet) incident(t *testing.T, name string) fleet.Incident {
	t.Helper()
	i := slices.IndexFunc(f.Incidents, func(i fleet.Incident) bool { return i.Name == name })
	if i < 0 {
		t.Fatalf("the fleet has no incident %q", name)
	}
	return f.Incidents[i]
}

// lengths are the time ranges to open pages with.
var lengths = map[string]time.Duration{"1h": time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour}

// choices returns the values of variables to open pages with; a page ignores variables that it lacks.
func (f *playedFleet) choices(t *testing.T) map[string]map[string][]string {
	gone, hung := f.incident(t, "XID 79"), f.incident(t, "hung job")
	return map[string]map[string][]string{
		"all":      nil,
		"one host": {"cluster": {gone.Cluster}, "hostname": {"gpu-005"}, "instance": {"gpu-005:9401"}},
		"one job":  {"cluster": {hung.Cluster}, "hpc_job": {hung.Job}, "job": {hung.Job}},
		"gone GPU": {"cluster": {gone.Cluster}, "hostname": {gone.Hostname}, "instance": {gone.Instance}, "gpu": {gone.UUID}},
	}
}

// excuse is the reason why a panel may be empty.
type excuse struct {
	choices []string // with these choices
	why     string
}

// Choices of something healthy.
var (
	wellGPU  = []string{"all", "one host", "one job"} // the first GPU of the list or the host; on Node, the first host
	wellHost = []string{"one host"}
	// elsewhere are a healthy host, and a cluster without missing GPUs.
	elsewhere  = []string{"one host", "one job"}
	everywhere = []string{"all", "one host", "one job", "gone GPU"}
)

// excused are the panels that may be empty, by page and title.
var excused = map[string]excuse{
	"kpulse-classes/Waiting for data, or busy and empty":       {[]string{"one host", "gone GPU"}, "nothing on the host waits"},
	"kpulse-efficiency/Namespaces by unused GPU-hours":         {[]string{"gone GPU"}, "a Slurm job holds the host"},
	"kpulse-classes/Job stragglers":                            {[]string{"one host", "gone GPU"}, "the straggler is on another host"},
	"kpulse-efficiency/Devices held and idle":                  {[]string{"gone GPU"}, "no GPU of the host is idle"},
	"kpulse-efficiency/Memory held by idle GPUs":               {[]string{"gone GPU"}, "no GPU of the host is idle"},
	"kpulse-gpu/What holds the clocks down":                    {wellHost, "nothing does"},
	"kpulse-gpu/Last XID":                                      {wellGPU, "the GPU had none"},
	"kpulse-gpu/XIDs by code":                                  {wellGPU, "the GPU had none"},
	"kpulse-gpu/Real utilization":                              {[]string{"gone GPU"}, "it does nothing"},
	"kpulse-gpu/GPU-Util":                                      {[]string{"gone GPU"}, "it does nothing"},
	"kpulse-health/Boards by recommended action":               {wellHost, "nothing is to be done on the host"},
	"kpulse-health/New XIDs by code":                           {wellHost, "the host had none"},
	"kpulse-health/Raised conditions":                          {wellHost, "nothing is raised on the host"},
	"kpulse-health/Recommended actions":                        {wellHost, "nothing is to be done on the host"},
	"kpulse-fleet/Missing boards":                              {elsewhere, "none of the host or the cluster is gone"},
	"kpulse-fleet/What is not set up yet":                      {[]string{"one host", "gone GPU"}, "the cluster has all"},
	"kpulse-health/Correctable errors per hour":                {[]string{"one host", "gone GPU"}, "the host had none"},
	"kpulse-health/Memory errors and remapped rows":            {[]string{"one host", "gone GPU"}, "the host had none"},
	"kpulse-health/Missing boards":                             {elsewhere, "none of the host or the cluster is gone"},
	"kpulse-health/NVLink errors per hour":                     {[]string{"one host", "one job", "gone GPU"}, "the host or the cluster had none"},
	"kpulse-health/PCIe replays per hour":                      {[]string{"one host", "gone GPU"}, "the host had none"},
	"kpulse-health/PCIe below its maximum":                     {[]string{"one host", "gone GPU"}, "every link of the host has all its lanes"},
	"kpulse-health/NVLinks down":                               {everywhere[1:], "every link of the host or the cluster is up"},
	"kpulse-health/Fabric":                                     {everywhere[1:], "the fabric of the host or the cluster is healthy"},
	"kpulse-health/SXIDs of NVSwitches":                        {everywhere[1:], "the switches of the host or the cluster had none"},
	"kpulse-health/XIDs by board":                              {wellHost, "the host had none"},
	"kpulse-health/XID codes in words":                         {wellHost, "the host had none"},
	"kpulse-job/Conditions of its boards":                      {[]string{"all", "one job"}, "no condition of the job's boards is raised"},
	"kpulse-job/XIDs by board":                                 {[]string{"all", "one job"}, "the hosts of the job had none"},
	"kpulse-node/Missing boards":                               {wellGPU, "none of the host is gone"},
	"kpulse-node/XIDs by board":                                {wellGPU, "the host had none"},
	"kpulse-namespace/Kubernetes workloads":                    {[]string{"one job"}, "it is a Slurm job"},
	"kpulse-power/GPU-hours of throttling by board":            {wellHost, "nothing holds the host's clocks down"},
	"kpulse-power/Throttled share of busy time":                {wellHost, "nothing holds the host's clocks down"},
	"kpulse-proxy/Proxies and sources that are down":           {[]string{"one host", "one job", "gone GPU"}, "only that of another host is down"},
	"kpulse-proxy/Restarts and lost ticks of streams per hour": {[]string{"one job", "gone GPU"}, "the one proxy with streams is in west, on another host"},
	"kpulse-proxy/Fields missing by source":                    {[]string{"one host", "gone GPU"}, "only another host lacks any"},
}

// unmarked are annotations that mark nothing, of one page or of all, and why.
var unmarked = map[place]string{
	{"kpulse-gpu", "annotation MIG re-cuts"}: "no choice has the GPU with MIG",
	{"kpulse-job", "annotation MIG re-cuts"}: "no job holds the GPU with MIG",
	{"", "annotation GPU resets"}:            "no counter of a GPU falls",
	{"", "annotation Proxy restarts"}:        "no proxy restarts",
}

// unmet are known failures, by page, title and kind, each with the point of the issue
// "Dashboards that hold in an incident and at 1,600 GPUs" that will fix it.
var unmet = map[string]string{}

// checkAll opens every page with every choice and length, and checks every panel.
func (f *playedFleet) checkAll(t *testing.T) {
	type opened struct {
		name, choice, length string
		page                 *page
	}
	var all []opened
	for name, d := range f.pages {
		for choice, chosen := range f.choices(t) {
			for length, long := range lengths {
				p, err := f.open(d, f.End.Add(-long), f.End, chosen)
				if err != nil {
					t.Fatalf("%s with %s over %s: %v", name, choice, length, err)
				}
				all = append(all, opened{name, choice, length, p})
			}
		}
	}
	found := &findings{}
	var workers sync.WaitGroup
	next := make(chan opened)
	for range 2 {
		workers.Go(func() {
			for o := range next {
				for _, p := range o.page.Panels {
					o.page.check(found, p, place{strings.TrimSuffix(o.name, ".json"), p.Title}, o.choice, o.length)
				}
				for _, a := range o.page.Annotations.List {
					o.page.mark(found, a, place{o.page.UID, "annotation " + a.Name}, fmt.Sprintf("with %s over %s", o.choice, o.length))
				}
			}
		})
	}
	for _, o := range all {
		next <- o
	}
	close(next)
	workers.Wait()
	found.excuse(t, f.hosts == leastHosts)
	for at, n := range found.marks {
		if f.hosts > leastHosts && n > 0 {
			continue // counters begin anew with each hour of the past
		}
		if (n == 0) != (unmarked[at]+unmarked[place{"", at.panel}] != "") {
			found.fail(at, "marks", "%d over all choices", n)
		}
	}
	f.report(t, found)
	t.Logf("%d pages opened, %d panels checked, %d queries run", len(all), found.panels, len(f.known))
	for _, length := range sorted(lengths) {
		s := found.slowest[length]
		t.Logf("the slowest query over %s took %s: %s/%s with %s", length, s.took.Round(time.Millisecond), s.page, s.panel, s.choice)
	}
}

// checkUnknown opens the page of the proxies for a cluster that does not exist: of what is not known, it counts nothing, not 0.
func (f *playedFleet) checkUnknown(t *testing.T) {
	p, err := f.open(f.pages["kpulse-proxy.json"], f.End.Add(-time.Hour), f.End, map[string][]string{"cluster": {"nowhere"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range p.Panels {
		for _, target := range of.Targets {
			if r, err := f.ask(p.question(of, target)); err != nil || len(r.series) > 0 {
				t.Errorf("%s shows %v of nothing (%v)", of.Title, r.series, err)
			}
		}
	}
}

// place is a panel of a page.
type place struct{ page, panel string }

// findings are the results of checking panels.
type findings struct {
	mu       sync.Mutex
	panels   int
	failures map[string][]string       // sentences, by place and kind
	empty    map[place]map[string]bool // empty over some length, by choice
	marks    map[place]int             // results of annotations
	slowest  map[string]timed          // queries, by length
}

// timed is how long a query of a panel took, while another one ran.
type timed struct {
	place
	choice string
	took   time.Duration
}

// time records how long a query took.
func (f *findings) time(length string, query timed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.slowest == nil {
		f.slowest = map[string]timed{}
	}
	if query.took > f.slowest[length].took {
		f.slowest[length] = query
	}
}

// mark runs the query of an annotation.
func (p *page) mark(found *findings, a annotation, at place, where string) {
	r, err := p.asker.ask(p.marked(a))
	if err != nil {
		found.fail(at, "error", "%s: %v\n%s", where, err, a.Expr)
	}
	found.mu.Lock()
	defer found.mu.Unlock()
	if found.marks == nil {
		found.marks = map[place]int{}
	}
	found.marks[at] += len(r.series)
}

func (f *findings) fail(at place, kind, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failures == nil {
		f.failures = map[string][]string{}
	}
	key := at.page + "/" + at.panel + ": " + kind
	f.failures[key] = append(f.failures[key], fmt.Sprintf(format, args...))
}

// see records whether a panel has data with a choice.
func (f *findings) see(at place, choice string, has bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.panels++
	if has {
		return
	}
	if f.empty == nil {
		f.empty = map[place]map[string]bool{}
	}
	if f.empty[at] == nil {
		f.empty[at] = map[string]bool{}
	}
	f.empty[at][choice] = true
}

// check runs all queries of a panel.
func (p *page) check(found *findings, of panel, at place, choice, length string) {
	if of.Type == "row" || of.Type == "text" {
		return
	}
	where := fmt.Sprintf("with %s over %s", choice, length)
	count := 0
	for _, t := range of.Targets {
		q, began := p.question(of, t), time.Now()
		r, err := p.asker.ask(q)
		found.time(length, timed{at, choice, time.Since(began)})
		if err != nil {
			found.fail(at, "error", "%s, query %s: %v\n%s", where, t.RefID, err, q.expr)
			continue
		}
		count += len(r.series)
		if of.Type == "table" && len(r.series) > tableRows {
			found.fail(at, "rows", "%s: %d", where, len(r.series))
		}
	}
	found.see(at, choice, count > 0)
	if of.Type != "table" && of.Type != "stat" && count > chartSeries {
		found.fail(at, "series", "%s: %d", where, count)
	}
}

// excuse turns empty panels that are not excused into failures. With least set, for the
// smallest fleet, it also reports excused panels that are never empty.
func (f *findings) excuse(t *testing.T, least bool) {
	t.Helper()
	for at, choices := range f.empty {
		e, known := excused[at.page+"/"+at.panel]
		for _, choice := range sorted(choices) {
			if !known || !slices.Contains(e.choices, choice) {
				f.fail(at, "empty", "with %s", choice)
			}
		}
	}
	for _, name := range sorted(excused) {
		if !least {
			break // more hosts have more to show
		}
		page, panel, _ := strings.Cut(name, "/")
		for _, choice := range excused[name].choices {
			if !f.empty[place{page, panel}][choice] {
				t.Errorf("%s is excused with %s, but is never empty then", name, choice)
			}
		}
	}
}

// report reports unknown failures.
func (f *playedFleet) report(t *testing.T, found *findings) {
	t.Helper()
	for _, key := range sorted(found.failures) {
		f.failed[key] = true
		if unmet[key] == "" {
			list := found.failures[key]
			slices.Sort(list)
			t.Errorf("%s: %s", key, strings.Join(slices.Compact(list), "; "))
		}
	}
}

// checkUnmet reports known failures that no longer occur.
func (f *playedFleet) checkUnmet(t *testing.T) {
	for _, key := range sorted(unmet) {
		if !f.failed[key] {
			t.Errorf("%s no longer fails: remove it from the table", key)
		}
	}
}
