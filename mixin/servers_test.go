package mixin_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"github.com/kpulse/kpulse-proxy/internal/e2e/ports"
	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
)

// shrink is the divisor of the durations of rules and alerts, so that they fit the demo, whose
// script takes two minutes: ten minutes become five seconds.
const shrink = 120

// demoPeriod is the duration of a second of the demo's script.
const demoPeriod = 500 * time.Millisecond

// forms are the two forms of the series. Each has a node of that name.
var forms = []string{"lean", "full"}

// TestTheDemoPages plays the embedded demo on two nodes, one in each form, to a real
// Prometheus with the rules and alerts of the mixin, and checks the alerts that a real
// Alertmanager receives for each, and every panel.
func TestTheDemoPages(t *testing.T) {
	slow.Test(t, "prometheus, prometheus-alertmanager: a fleet of two nodes for minutes")
	t.Parallel()
	dir := t.TempDir()
	binary, alertmanager, prometheus := buildProxy(t, dir), freeAddress(t), freeAddress(t)
	var proxies []string
	stop := map[string]func(){}
	for _, form := range forms {
		address := freeAddress(t)
		proxies = append(proxies, address)
		stop[form] = start(t, address, binary, "--backend=replay", "--poll="+demoPeriod.String(), "--node-name="+form, "--series="+form, "--web.listen-address="+address)
	}
	start(t, alertmanager, program(t, "prometheus-alertmanager", "alertmanager"), "--config.file=alertmanager.example.yml",
		"--storage.path="+filepath.Join(dir, "alertmanager"), "--web.listen-address="+alertmanager, "--cluster.listen-address=")
	// By default a lost notification is resent only after a minute, half of the script: too late.
	start(t, prometheus, program(t, "prometheus"), "--config.file="+configure(t, dir, alertmanager, proxies...),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+prometheus, "--rules.alert.resend-delay=10s")

	s := servers{prometheus: "http://" + prometheus, alertmanager: "http://" + alertmanager, time: demoTime}
	s.awaitScrapes(t, len(proxies))
	// The script of the demo: a pod holds GPU 6 idle, GPU 5 loses its cooling, GPU 3 has XID
	// 79 and then falls off the bus, and GPU 2 has XID 31, an application error.
	seen := s.watch(t, 8*time.Minute, onEach(
		"KpulseGPUIdleAllocated of 6 on %s",
		"KpulseGPUThermalThrottling of 5 on %s",
		"KpulseGPUHot of 5 on %s, inhibited",
		"KpulseGPURebootNeeded of 3 on %s",
		"KpulseGPUMissing of 3 on %s",
	))
	never := onEach("KpulseGPURebootNeeded of 2 on %s", "KpulseGPUResetNeeded of 2 on %s", "KpulseGPUCheckHardware of 2 on %s", "KpulseGPUHot of 5 on %s")
	for _, alert := range sorted(seen) {
		if slices.Contains(never, alert) {
			t.Errorf("%s fired", alert)
		}
		if slices.Contains([]string{"KpulseProxyDown", "KpulseProxyInstanceDown"}, alert) && !s.holds(`min_over_time(up{job="kpulse-proxy"}[1h]) == 0`) {
			t.Errorf("%s fired, but no scrape failed", alert)
		}
	}
	s.checkLinks(t)
	for _, form := range forms {
		s.checkPanels(t, choice{hostname: form, gpu: "GPU-5d0e0001-3c41-4f0a-9a61-0b7c6e5f1a00"}, slices.Collect(maps.Keys(empty)))
	}
	stop["full"]()
	s.watch(t, 5*time.Minute, []string{"KpulseProxyInstanceDown"})
	stop["lean"]()
	s.watch(t, 5*time.Minute, []string{"KpulseProxyDown", "KpulseProxyInstanceDown, inhibited"})
}

// onEach returns names for each form, with its node for %s.
func onEach(names ...string) (all []string) {
	for _, form := range forms {
		for _, name := range names {
			all = append(all, fmt.Sprintf(name, form))
		}
	}
	return all
}

// servers are the addresses of the running servers.
type servers struct {
	prometheus, alertmanager string
	time                     shorter // of Prometheus' rules
}

// settled is how long alerts must stay the same to count: Alertmanager receives simultaneous
// alerts one by one, and sends no notification before its group_wait is over.
const settled = time.Second

// awaitScrapes waits for the first scrape of a number of proxies, and until KpulseProxyDown has
// ended. Prometheus discovers its targets after five seconds, so that alert fires rightly until
// then, and for a second or, on a busy machine, longer afterwards.
func (s servers) awaitScrapes(t *testing.T, proxies int) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		var alerts []any
		if s.holds(fmt.Sprintf(`sum(up{job="kpulse-proxy"}) == %d`, proxies)) && !s.holds(`ALERTS{alertname="KpulseProxyDown"}`) &&
			get(s.alertmanager+"/api/v2/alerts?filter=alertname=KpulseProxyDown", &alerts) == nil && len(alerts) == 0 {
			return
		}
	}
	t.Fatal("a proxy was not scraped, or still alerts as not scraped, after three minutes")
}

// watch returns the alerts that Alertmanager has had, once all of wanted are among them.
func (s servers) watch(t *testing.T, patience time.Duration, wanted []string) map[string]bool {
	t.Helper()
	seen, since := map[string]bool{}, map[string]time.Time{}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		var alerts []struct {
			Labels map[string]string
			Status struct{ InhibitedBy []string }
		}
		if err := get(s.alertmanager+"/api/v2/alerts", &alerts); err != nil {
			continue // not up yet
		}
		now, earlier := time.Now(), since
		since = map[string]time.Time{}
		for _, a := range alerts {
			name := a.Labels["alertname"]
			if gpu := a.Labels["gpu"]; gpu != "" {
				name += " of " + gpu + " on " + a.Labels["hostname"]
			}
			if len(a.Status.InhibitedBy) > 0 {
				name += ", inhibited"
			}
			since[name] = now
			if first, ok := earlier[name]; ok {
				since[name] = first
			}
			if now.Sub(since[name]) >= settled {
				seen[name] = true
			}
		}
		if !slices.ContainsFunc(wanted, func(name string) bool { return !seen[name] }) {
			return seen
		}
	}
	t.Fatalf("of %q only %q came", wanted, sorted(seen))
	return nil
}

// checkLinks: the link of each alert begins an hour before the alert became active.
func (s servers) checkLinks(t *testing.T) {
	t.Helper()
	var answer struct {
		Data struct {
			Alerts []struct {
				State               string
				ActiveAt            time.Time
				Labels, Annotations map[string]string
			}
		}
	}
	if err := get(s.prometheus+"/api/v1/alerts", &answer); err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, a := range answer.Data.Alerts {
		_, after, _ := strings.Cut(a.Annotations["dashboard_url"], "?from=")
		from, _, _ := strings.Cut(after, "&")
		ms, err := strconv.ParseInt(from, 10, 64)
		if began := time.UnixMilli(ms).Add(time.Hour); err != nil || a.ActiveAt.Sub(began).Abs() > time.Second {
			t.Errorf("%v is active since %v, but leads to %s", a.Labels, a.ActiveAt, a.Annotations["dashboard_url"])
		}
		if a.State == "firing" {
			checked++
		}
	}
	if checked < 4 {
		t.Errorf("%d alerts fire", checked)
	}
}

// empty are panels for which the demo has no data, and why.
var empty = map[string]string{
	"Fields missing by source":     "the demo has all fields",
	"Batch jobs":                   "pods hold the GPUs of the demo, not jobs of a batch system",
	"Users":                        "there are no such jobs",
	"Accounts":                     "there are no such jobs",
	"Users by unused GPU-hours":    "there are no such jobs",
	"Accounts by unused GPU-hours": "there are no such jobs",
	"Restarts and lost ticks of streams per hour": "the demo is not a stream",
	"Job stragglers":                   "no workload of the demo has four devices",
	"NVLink errors per hour":           "the demo has no such counters",
	"NVLink errors":                    "the demo has no such counters",
	"PCIe below its maximum":           "the demo has no such fields",
	"PCIe lanes":                       "the demo has no such fields",
	"NVLinks up":                       "the demo has no such fields",
	"NVLinks down":                     "the demo has no such fields",
	"NVLink fabric":                    "the demo has no such fields",
	"Fabric":                           "the demo has no such fields",
	"SXIDs of NVSwitches":              "the demo has no kernel log",
	"CPU and memory of the host":       "the demo is no machine",
	"Throttled share of busy time":     "the demo has no such counters",
	"GPU-hours of throttling by board": "the demo has no such counters",
	"XIDs by code":                     "the selected GPU has none",
	"CPU of its hosts":                 "the demo is on no host",
	"Memory of its hosts":              "the demo is on no host",
}

// momentary are panels that are empty at times: they show sources whose scrapes fail on a busy
// machine, rules that have not run yet, errors that last seconds in the script, and a last XID where there
// was one.
var momentary = []string{"Proxies and sources that are down", "What is not set up yet", "Correctable errors per hour", "PCIe replays per hour", "Last XID"}

// choice has chosen values of a dashboard's variables; an empty hostname is all.
type choice struct{ hostname, gpu string }

// checkPanels runs every query of every dashboard, with a host and a GPU chosen, until every
// panel has shown something at some time, except those excused by title: on a busy machine some
// results come late, when others are already older than the two minutes shown.
func (s servers) checkPanels(t *testing.T, c choice, excused []string) {
	t.Helper()
	shown := map[string]bool{} // of each panel, whether it has shown something
	var lacking []string
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(2 * time.Second) {
		lacking = nil
		s.ask(t, c, func(where, title string, found int) {
			if slices.Contains(momentary, title) {
				return
			}
			shown[where] = shown[where] || found > 0
			if slices.Contains(excused, title) == shown[where] {
				lacking = append(lacking, where)
			}
		})
		if len(lacking) == 0 || time.Now().After(end) {
			break
		}
	}
	for _, where := range lacking {
		t.Errorf("%s for %s is empty, or is excused but shows something", where, c.hostname)
	}
	answered := 0
	for _, found := range shown {
		if found {
			answered++
		}
	}
	t.Logf("%d of %d panels show something", answered, len(shown))
}

// ask runs every query of every dashboard, with a host and a GPU chosen, and reports how many
// series each panel has, without those of other hosts.
func (s servers) ask(t *testing.T, c choice, report func(where, title string, found int)) {
	t.Helper()
	values := strings.NewReplacer(
		"$__rate_interval", "4s", "$__range_s", "300", "$__range", "5m", "$__interval", "2s", `"$gpu"`, `"`+c.gpu+`"`,
		"$cluster", ".*", "$model", ".*", "$hostname", cmp.Or(c.hostname, ".*"), "$namespace", ".*", "$hpc_job", ".*", "$workload_namespace", ".*", "$workload_kind", ".*", "$workload_name", ".*", "$hpc_user", ".*", "$hpc_account", ".*", "$instance", ".*",
	)
	for name, d := range dashboards(t) {
		for _, a := range d.Annotations.List {
			if _, err := s.count(s.time.of(values.Replace(a.Expr)), c.hostname); err != nil {
				t.Errorf("%s, annotation %q: %v\n%s", name, a.Name, err, values.Replace(a.Expr))
			}
		}
		for _, p := range d.Panels {
			where := fmt.Sprintf("%s, panel %q", name, p.Title)
			found := 0
			for _, target := range p.Targets {
				n, err := s.count(s.time.of(values.Replace(target.Expr)), c.hostname)
				if err != nil {
					t.Errorf("%s: %v\n%s", where, err, values.Replace(target.Expr))
				}
				found += n
			}
			if p.Type != "row" {
				report(where, p.Title, found)
			}
		}
	}
}

// TestPanelsWithSharedAndCutGPUs runs every panel on a board with MIG instances and several
// holders, and on one that two jobs share, scraped twice as by two replicas: series that PromQL
// usually matches one to one are repeated here, and no query or rule may fail. The jobs belong
// to two users of one account.
func TestPanelsWithSharedAndCutGPUs(t *testing.T) {
	slow.Test(t, "prometheus: every panel")
	t.Parallel()
	dir := t.TempDir()
	binary, proxy, prometheus := buildProxy(t, dir), freeAddress(t), freeAddress(t)
	_, port, err := net.SplitHostPort(proxy)
	if err != nil {
		t.Fatal(err)
	}
	jobs := t.TempDir()
	for job, user := range map[string]string{"17": "ada", "18": "bob"} {
		if err := os.WriteFile(filepath.Join(jobs, job), []byte("user="+user+"\naccount=physics\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	start(t, proxy, binary, "--source=tests/mig.prom", "--hpc-job-info-dir="+jobs, "--web.listen-address="+proxy)
	start(t, prometheus, program(t, "prometheus"), "--config.file="+configure(t, dir, "127.0.0.1:1", proxy, "localhost:"+port),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+prometheus)
	s := servers{prometheus: "http://" + prometheus, time: demoTime}
	recorded := func() bool {
		n, err := s.count(`holder:kpulse_allocation_held_gpus:rate5m{hpc_job!=""} and on () host:kpulse_gpu_class_gpus:rate5m`, "")
		owners, failed := s.count(`count by (hpc_user) (holder:kpulse_allocation_energy:rate5m{hpc_user!=""})`, "")
		return err == nil && failed == nil && n == 2 && owners == 2
	}
	for end := time.Now().Add(3 * time.Minute); !recorded(); time.Sleep(time.Second) {
		if time.Now().After(end) {
			t.Fatal("nothing was recorded for the jobs within three minutes")
		}
	}
	shown := map[string]int{}
	for _, gpu := range []string{"GPU-aaaaaaaa-0000-0000-0000-000000000000", "GPU-bbbbbbbb-0000-0000-0000-000000000000"} {
		s.ask(t, choice{gpu: gpu}, func(_, title string, found int) { shown[title] = max(shown[title], found) })
	}
	for title, want := range map[string]int{"Batch jobs": 8, "Users": 8, "Accounts": 4, "Users by unused GPU-hours": 10} { // four or five columns per row
		if shown[title] < want {
			t.Errorf("panel %q shows %d values, want %d", title, shown[title], want)
		}
	}
	var rules struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, LastError string }
			}
		}
	}
	if err := get(s.prometheus+"/api/v1/rules", &rules); err != nil || len(rules.Data.Groups) == 0 {
		t.Fatal(len(rules.Data.Groups), err)
	}
	for _, group := range rules.Data.Groups {
		for _, rule := range group.Rules {
			if rule.LastError != "" {
				t.Errorf("%s: %s", rule.Name, rule.LastError)
			}
		}
	}
}

// count returns how many series a range query over the last two minutes has, without those of
// other hosts than hostname if that is not empty.
func (s servers) count(expr, hostname string) (n int, err error) {
	now := time.Now()
	query := url.Values{
		"query": {expr}, "step": {"2"},
		"start": {strconv.FormatInt(now.Add(-2*time.Minute).Unix(), 10)}, "end": {strconv.FormatInt(now.Unix(), 10)},
	}
	var answer struct {
		Error string
		Data  struct {
			Result []struct{ Metric map[string]string }
		}
	}
	err = get(s.prometheus+"/api/v1/query_range?"+query.Encode(), &answer)
	if err == nil && answer.Error != "" {
		err = fmt.Errorf("%s", answer.Error)
	}
	for _, series := range answer.Data.Result {
		if of := series.Metric["hostname"]; hostname == "" || of == "" || of == hostname {
			n++
		}
	}
	return n, err
}

// holds reports whether an expression has a result now.
func (s servers) holds(expr string) bool {
	var answer struct {
		Data struct{ Result []json.RawMessage }
	}
	err := get(s.prometheus+"/api/v1/query?"+url.Values{"query": {expr}}.Encode(), &answer)
	return err == nil && len(answer.Data.Result) > 0
}

// client has a timeout, so that a hanging server fails the test.
var client = http.Client{Timeout: 5 * time.Minute}

func get(address string, answer any) error {
	res, err := client.Get(address)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return json.NewDecoder(res.Body).Decode(answer)
}

var duration = regexp.MustCompile(`(\[|offset |for: "|keep_firing_for: "|interval: "?)((?:\d+(?:ms|[smhd]))+)`)

// demoTime divides the durations of the rules for the demo.
var demoTime = shorter{by: shrink, interval: time.Second, window: 3 * time.Second} // three scrapes

// shorter divides the durations of rules.
type shorter struct {
	by       int64
	interval time.Duration // of each group
	window   time.Duration // the least range of a rate
}

// of returns rules or an expression with divided durations.
func (s shorter) of(text string) string {
	return duration.ReplaceAllStringFunc(text, func(match string) string {
		parts := duration.FindStringSubmatch(match)
		long, err := model.ParseDuration(parts[2])
		if err != nil {
			return match
		}
		ms := time.Duration(long).Milliseconds() / s.by
		switch {
		case strings.HasPrefix(parts[1], "interval"):
			ms = s.interval.Milliseconds()
		case parts[1] == "[":
			ms = max(ms, s.window.Milliseconds())
		case parts[1] == "offset " && long >= model.Duration(time.Minute) && long <= model.Duration(5*time.Minute):
			ms = max(ms, s.interval.Milliseconds()) // to the previous evaluation
		default:
			ms = max(ms, 1)
		}
		return fmt.Sprintf("%s%dms", parts[1], ms)
	})
}

// configure writes the shrunk rules and the configuration of Prometheus, and returns the path
// of the latter. proxies are addresses.
func configure(t *testing.T, dir, alertmanager string, proxies ...string) string {
	t.Helper()
	for _, file := range []string{"prometheus_rules.yaml", "prometheus_alerts.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(demoTime.of(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := fmt.Sprintf(`
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [prometheus_rules.yaml, prometheus_alerts.yaml]
alerting: {alertmanagers: [{static_configs: [{targets: ['%[2]s']}]}]}
scrape_configs:
- {job_name: kpulse-proxy, static_configs: [{targets: ['%[1]s']}]}
- {job_name: kpulse-proxy-telemetry, metrics_path: /-/metrics, static_configs: [{targets: ['%[1]s']}]}
`, strings.Join(proxies, "', '"), alertmanager)
	path := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// buildProxy builds kpulse-proxy.
func buildProxy(t *testing.T, dir string) string {
	t.Helper()
	binary := filepath.Join(dir, "kpulse-proxy")
	build := exec.Command("go", "build", "-o", binary, "./cmd/kpulse-proxy")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// program returns the path of the first of names that is installed. CI sets
// KPULSE_REQUIRE_PROMETHEUS: there a missing program is a failure.
func program(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("KPULSE_REQUIRE_PROMETHEUS") != "" {
		t.Fatalf("no %s in the PATH", names[0])
	}
	t.Skipf("no %s in the PATH; apt-get install %s", names[0], names[0])
	return ""
}

// start runs a server until the test ends or stop is called. It returns when the server
// answers at its address that it is ready.
func start(t *testing.T, address, binary string, args ...string) (stop func()) {
	t.Helper()
	end := startIn(t, "", address, binary, args...)
	return func() { end(syscall.SIGTERM) }
}

// startIn is start in a folder; the caller of stop chooses the signal.
func startIn(t *testing.T, dir, address, binary string, args ...string) (stop func(syscall.Signal)) {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stopped, ended := false, make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait()
	}()
	stop = func(signal syscall.Signal) {
		select {
		case <-ended:
			if !stopped {
				t.Errorf("%s ended by itself", filepath.Base(binary))
			}
		default:
			cmd.Process.Signal(signal)
			<-ended
		}
		stopped = true
	}
	t.Cleanup(func() {
		stop(syscall.SIGTERM)
		if t.Failed() {
			t.Logf("%s wrote:\n%s", filepath.Base(binary), log.Bytes()[max(0, log.Len()-4000):])
		}
	})
	for end := time.Now().Add(3 * time.Minute); !ready(address); {
		select {
		case <-ended:
			t.FailNow() // stop says why
		case <-time.After(100 * time.Millisecond):
		}
		if time.Now().After(end) {
			t.Fatalf("%s is not ready within three minutes", filepath.Base(binary))
		}
	}
	return stop
}

// ready reports whether the server at an address is ready.
func ready(address string) bool {
	res, err := client.Get("http://" + address + "/-/ready")
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// freeAddress returns an address of 127.0.0.1 without a listener.
func freeAddress(t *testing.T) string {
	t.Helper()
	port, err := ports.Free()
	if err != nil {
		t.Fatal(err)
	}
	return "127.0.0.1:" + port
}

// readAll returns the files of a glob by their paths, at least one.
func readAll(t *testing.T, glob string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(glob)
	if err != nil || len(paths) == 0 {
		t.Fatal(glob, err)
	}
	texts := map[string][]byte{}
	for _, path := range paths {
		if texts[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return texts
}
