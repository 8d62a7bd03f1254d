package mixin_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/mixin/fleet"
)

var update = flag.Bool("update", false, "write what a fleet costs into ../rules/README.md")

// hostsPerProxy is how many exporters one proxy reads, so that a fleet fits on one machine.
const hostsPerProxy = 250

// countersOf are the counters of the exporters.
var countersOf = [...]string{"default", "all"}

// scrapedAs are the rows for each size of a fleet and its counters: the exporters alone, or proxies with these flags.
var scrapedAs = [...]struct {
	name  string
	flags []string
	rules []string // globs
}{
	{"exporter", nil, []string{"../rules/twin/*.rules.yml"}},
	{"lean", []string{"--series=lean"}, []string{"../rules/*.rules.yml"}},
	{"full", []string{"--series=full"}, []string{"../rules/*.rules.yml"}},
}

// TestCost measures what fleets of KPULSE_COST hosts (such as 10,200) cost a real Prometheus: with the exporters
// alone, and with proxies before them, each without and with rules. `make fleet` writes the table.
func TestCost(t *testing.T) {
	if os.Getenv("KPULSE_COST") == "" {
		t.Skip("KPULSE_COST=10,200 gives the sizes of the fleets to measure; make fleet does")
	}
	rows := []string{
		"| nodes | counters | scraped | series | `kpulse_*` per GPU | samples/s | bytes a sample on disk | MB | × exporters | MB with rules | × without | evaluation, s | proxy, ms/scrape |",
		"|--:|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
	}
	binary := buildProxy(t, t.TempDir())
	for size := range strings.SplitSeq(os.Getenv("KPULSE_COST"), ",") {
		hosts, err := strconv.Atoi(size)
		if err != nil || hosts < 1 {
			t.Fatalf("KPULSE_COST: %q is no number of hosts", size)
		}
		rows = append(rows, costRows(t, binary, hosts)...)
	}
	table := strings.Join(rows, "\n")
	t.Log("\n" + table)
	if *update && !t.Failed() {
		writeTable(t, "../rules/README.md", "cost", table)
	}
}

// costRows returns the rows of a size. Of small fleets it measures several side by side.
func costRows(t *testing.T, binary string, hosts int) (rows []string) {
	var plain, ruled [2 * len(scrapedAs)]spending
	atOnce := make(chan struct{}, max(2, 600/hosts))
	t.Run(strconv.Itoa(hosts), func(t *testing.T) {
		for i := range plain {
			as, counters := scrapedAs[i%len(scrapedAs)], countersOf[i/len(scrapedAs)]
			t.Run(counters+"/"+as.name, func(t *testing.T) {
				t.Parallel()
				atOnce <- struct{}{}
				defer func() { <-atOnce }()
				c := startCosted(t, binary, hosts, counters == "all", as.flags)
				plain[i] = c.observe(t, 2*time.Minute)
				c.evaluate(t, as.rules)
				ruled[i] = c.observe(t, 6*time.Minute) // some groups are evaluated every five minutes
				ruled[i].disk = c.onDisk(t)
			})
		}
	})
	for i, p := range plain {
		alone, r := plain[i-i%len(scrapedAs)].live, ruled[i]
		rows = append(rows, fmt.Sprintf("| %d | %s | %s | %.0f | %.0f | %.0f | %.2f | %.0f | %.2f | %.0f | %.2f | %.2f | %.1f |", hosts, countersOf[i/len(scrapedAs)],
			scrapedAs[i%len(scrapedAs)].name, p.series, p.ours, p.samples, r.disk, p.live/1e6, p.live/alone, r.live/1e6, r.live/p.live, r.evaluation, 1e3*p.proxy))
	}
	return rows
}

// writeTable replaces the text between the comments <!-- NAME:begin --> and <!-- NAME:end --> of a page.
func writeTable(t *testing.T, page, name, table string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->\n"
	before, rest, found := strings.Cut(string(text), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no %s… %s", page, begin, end)
	}
	if err := os.WriteFile(page, []byte(before+begin+"\n"+table+"\n\n"+end+after), 0o644); err != nil { //nolint:gosec // a page for all to read
		t.Fatal(err)
	}
}

// costed is a Prometheus that scrapes a fleet.
type costed struct {
	dir, prometheus string // its address
	proxies         []string
	hosts           int
}

// scrapeEvery is the scrape interval of a measured fleet.
const scrapeEvery = 15 * time.Second

// startCosted starts the exporters of a fleet, with their default counters or all, proxies with these flags unless they are nil, and Prometheus.
func startCosted(t *testing.T, binary string, hosts int, allCounters bool, flags []string) *costed {
	t.Helper()
	c := &costed{dir: t.TempDir(), prometheus: freeAddress(t), hosts: hosts}
	exporters := fleet.NewExporters(hosts, allCounters)
	upstream := httptest.NewServer(exporters)
	t.Cleanup(upstream.Close)
	config := fmt.Sprintf("global: {scrape_interval: %[1]s, scrape_timeout: %[1]s, evaluation_interval: 1m, external_labels: {cluster: east}}\nscrape_configs:\n- job_name: kpulse-proxy\n  static_configs:\n", scrapeEvery)
	for paths := range slices.Chunk(exporters.Paths, hostsPerProxy) {
		address, sources := strings.TrimPrefix(upstream.URL, "http://"), "sources:\n"
		if flags != nil {
			address = freeAddress(t)
		}
		for _, path := range paths {
			sources += fmt.Sprintf("- {backend: prometheus, source: %q, poll: 1m}\n", upstream.URL+path)
			target := fmt.Sprintf("__metrics_path__: %q", path)
			if flags != nil {
				target = fmt.Sprintf("__param_source: %q", upstream.URL+path)
			}
			config += fmt.Sprintf("  - {targets: ['%s'], labels: {%s, instance: %q}}\n", address, target, strings.Split(path, "/")[1])
		}
		if flags == nil {
			continue
		}
		file := filepath.Join(c.dir, "sources-"+address+".yml")
		if err := os.WriteFile(file, []byte(sources), 0o600); err != nil {
			t.Fatal(err)
		}
		start(t, address, binary, append([]string{"--config.file=" + file, "--source.min-interval=0s", "--series-limit=4000000", "--web.listen-address=" + address}, flags...)...)
		c.proxies = append(c.proxies, address)
	}
	if err := os.WriteFile(c.config(), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, c.prometheus, program(t, "prometheus"), "--config.file="+c.config(), "--storage.tsdb.path="+filepath.Join(c.dir, "data"),
		"--web.enable-lifecycle", "--web.enable-admin-api", "--web.listen-address="+c.prometheus)
	return c
}

func (c *costed) config() string { return filepath.Join(c.dir, "prometheus.yml") }

// spending is what a fleet costs.
type spending struct {
	series, ours float64 // in the head of Prometheus; of ours for each GPU, without what rules record
	samples      float64 // appended per second
	live         float64 // bytes in use after a garbage collection, the mean of several
	proxy        float64 // CPU seconds of a proxy for a scrape of a node
	disk         float64 // bytes of a sample in a block
	evaluation   float64 // seconds of an evaluation of all rules, the median of several
}

// observe waits until all targets are up, then measures for some time.
func (c *costed) observe(t *testing.T, lasts time.Duration) (s spending) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); c.query(t, `sum(up)`) < float64(c.hosts); time.Sleep(time.Second) {
		if time.Now().After(end) {
			t.Fatalf("%v of %d targets are up after 5 minutes", c.query(t, `sum(up)`), c.hosts)
		}
	}
	spent := func() (seconds float64) {
		for _, address := range c.proxies {
			seconds += served(t, "http://"+address+"/-/metrics", "process_cpu_seconds_total")
		}
		return seconds
	}
	appended := func() float64 {
		return served(t, "http://"+c.prometheus+"/metrics", `prometheus_tsdb_head_samples_appended_total{type="float"}`)
	}
	const readings = 6
	began, before, first := time.Now(), spent(), appended()
	var evaluations []float64
	for range readings {
		time.Sleep(lasts / readings)
		evaluations = append(evaluations, c.evaluation(t))
		served(t, "http://"+c.prometheus+"/debug/pprof/heap?gc=1", "")
		s.live += served(t, "http://"+c.prometheus+"/metrics", "go_memstats_heap_alloc_bytes") / readings
	}
	last := evaluations[readings/2:] // a group may wait for its first evaluation for as long as its interval
	slices.Sort(last)
	s.evaluation = last[len(last)/2]
	s.samples = (appended() - first) / time.Since(began).Seconds()
	s.proxy = (spent() - before) / (time.Since(began).Seconds() / scrapeEvery.Seconds() * float64(c.hosts))
	s.series = served(t, "http://"+c.prometheus+"/metrics", "prometheus_tsdb_head_series")
	s.ours = c.query(t, `count({__name__=~"kpulse_.+"}) / count(DCGM_FI_DEV_GPU_TEMP)`)
	return s
}

// evaluate makes Prometheus evaluate the rules of files too.
func (c *costed) evaluate(t *testing.T, globs []string) {
	t.Helper()
	list := "rule_files:\n"
	for _, glob := range globs {
		path, err := filepath.Abs(glob)
		if err != nil {
			t.Fatal(err)
		}
		list += "- '" + path + "'\n"
	}
	text, err := os.ReadFile(c.config())
	if err == nil {
		err = os.WriteFile(c.config(), append([]byte(list), text...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Post("http://"+c.prometheus+"/-/reload", "", nil)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	res.Body.Close()
}

// evaluation returns the seconds of the last evaluation of all groups together.
func (c *costed) evaluation(t *testing.T) (seconds float64) {
	t.Helper()
	var answer struct {
		Data struct {
			Groups []struct{ EvaluationTime float64 }
		}
	}
	if err := get("http://"+c.prometheus+"/api/v1/rules", &answer); err != nil {
		t.Fatal(err)
	}
	for _, g := range answer.Data.Groups {
		seconds += g.EvaluationTime
	}
	return seconds
}

// onDisk returns the bytes of the chunks for each sample, in a block that Prometheus writes of its head.
func (c *costed) onDisk(t *testing.T) float64 {
	t.Helper()
	res, err := http.Post("http://"+c.prometheus+"/api/v1/admin/tsdb/snapshot", "", nil)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	res.Body.Close()
	bytes, samples := 0., 0.
	blocks := filepath.Join(c.dir, "data", "snapshots", "*", "*")
	for _, text := range readAll(t, filepath.Join(blocks, "chunks", "*")) {
		bytes += float64(len(text))
	}
	for file, text := range readAll(t, filepath.Join(blocks, "meta.json")) {
		var block struct{ Stats struct{ NumSamples float64 } }
		if err := json.Unmarshal(text, &block); err != nil {
			t.Fatal(file, err)
		}
		samples += block.Stats.NumSamples
	}
	return bytes / samples
}

// query returns the value of an expression, 0 if it has none.
func (c *costed) query(t *testing.T, expr string) float64 {
	t.Helper()
	var a answer
	if err := get("http://"+c.prometheus+"/api/v1/query?"+url.Values{"query": {expr}}.Encode(), &a); err != nil || len(a.Data.Result) == 0 {
		return 0
	}
	return a.one()
}

// served returns a series without labels of an exposition; with no name, it only reads the answer.
func served(t *testing.T, address, name string) float64 {
	t.Helper()
	res, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || name == "" {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "\n"+name+" ")
	line, _, _ := strings.Cut(rest, "\n")
	v, err := strconv.ParseFloat(line, 64)
	if err != nil {
		t.Fatalf("%s serves no %s", address, name)
	}
	return v
}
