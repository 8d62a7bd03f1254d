package e2e

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// world is a running program, its source, and the fault that befalls it.
type world struct {
	*testing.T
	fault    fault
	exporter *fakeExporter // nil if the program drives dcgmi
	dcgmi    string        // the program that it drives
	child    *child
	url      string   // of the source, as shown by the program
	dir      string   // the working directory
	scraped  int      // scrapes since the fault began
	failed   int      // failed scrapes of those
	headers  []string // of all requests, as pairs
	finally  func()   // checks what the program left behind
}

// startScraped starts a program that reads an exporter, once for each scrape.
func startScraped(t *testing.T, f fault) *world {
	t.Helper()
	return startAt(t, f, startExporter(t))
}

// startAt starts a program that reads this exporter.
func startAt(t *testing.T, f fault, e *fakeExporter) *world {
	t.Helper()
	w := newWorld(t, f, e)
	if f.cold {
		w.begin()
	}
	w.start(append(os.Environ(), f.env...), w.flags()...)
	return w
}

// newWorld returns a world whose program is not started.
func newWorld(t *testing.T, f fault, e *fakeExporter) *world {
	t.Helper()
	w := &world{T: t, fault: f, exporter: e, dir: t.TempDir(), url: e.url(), headers: f.headers}
	for name, text := range f.files {
		w.write(name, text)
	}
	return w
}

// flags returns the flags of a program that reads the exporter.
func (w *world) flags() []string {
	f := w.fault
	flags := append(w.fill(f.flags...), "--source.min-interval=0s")
	if !severalSources(f) {
		flags = append(flags, "--poll=0")
	}
	if i := slices.IndexFunc(f.flags, func(flag string) bool { return strings.HasPrefix(flag, "--source=") }); i >= 0 {
		if source, err := url.Parse(strings.TrimPrefix(flags[i], "--source=")); err == nil {
			w.url = source.Scheme + "://" + source.Host + source.RequestURI()
		}
	} else if f.config != "" {
		w.write("config.yml", w.fill(f.config)[0])
		flags = append(flags, "--config.file=config.yml")
	} else {
		flags = append(flags, "--source="+w.url)
	}
	return flags
}

// start starts the program with flags.
func (w *world) start(env []string, flags ...string) {
	w.Helper()
	cmd := w.command(env, flags...)
	c, err := startChild(cmd, filepath.Join(w.TempDir(), "log"))
	if err != nil {
		w.Fatal(err)
	}
	w.child = c
	w.Cleanup(func() { _ = cmd.Process.Kill() })
}

// severalSources reports whether the config file of a fault names several sources, each with its poll and node_name.
func severalSources(f fault) bool { return strings.Count(f.config, "source:") > 1 }

// command returns the program with flags.
func (w *world) command(env []string, flags ...string) *exec.Cmd {
	flags = append([]string{"--web.listen-address=127.0.0.1:0", "--web.enable-pprof"}, flags...)
	if !severalSources(w.fault) {
		flags = append(flags, "--node-name=n")
	}
	cmd := exec.Command(itself(w), flags...)
	if w.fault.shell != "" {
		cmd = exec.Command("/bin/sh", append([]string{"-c", w.fault.shell + "\nexec \"$0\" \"$@\"", itself(w)}, flags...)...)
	}
	cmd.Env, cmd.Dir = env, w.dir
	return cmd
}

// write writes a file to the working directory.
func (w *world) write(name, text string) {
	w.Helper()
	file := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
}

// begin inflicts the fault.
func (w *world) begin() {
	if w.exporter != nil {
		w.exporter.does(says(reading(during)))
	}
	if w.fault.exporter != nil {
		w.exporter.does(w.fault.exporter)
	}
	if w.fault.begin != nil {
		w.fault.begin(w)
	}
}

// end removes the fault.
func (w *world) end() {
	if w.exporter != nil {
		w.exporter.does(says(reading(after)))
	} else {
		mends(w)
	}
	if w.fault.end != nil {
		w.fault.end(w)
	}
}

// scrapes returns how often the fault is scraped: leaks of each scrape add up.
func (w *world) scrapes() int {
	if w.fault.late {
		return 3
	}
	return 6
}

// get requests a path from the program.
func (w *world) get(path string, headers ...string) (status int, body string) {
	w.Helper()
	status, body, err := w.child.Get(path, append(headers, w.headers...)...)
	if err != nil {
		w.Fatalf("%s: %v; %s", path, err, w.child.Fate())
	}
	return status, body
}

// scrape scrapes as Prometheus does.
func (w *world) scrape() (status int, body string) {
	w.Helper()
	timeout := "60" // more than a busy machine needs
	if w.fault.late {
		timeout = "0.5"
	}
	return w.get(fullPage, "X-Prometheus-Scrape-Timeout-Seconds", timeout)
}

// fullPage has all series: in the lean form counters that began are 0 for a minute.
const fullPage = "/metrics?series=full"

// serves waits until scrapes have this temperature, and all pages show a healthy source.
func (w *world) serves(celsius int) {
	w.Helper()
	want := "\n" + temperature(celsius) + "\n"
	w.until(func() string {
		if status, body, err := w.child.Get(fullPage, w.headers...); err != nil || status != http.StatusOK || !strings.Contains(body, want) {
			return fmt.Sprintf("/metrics does not serve%s: %d, %v, %.2000s", want, status, err, body)
		}
		if status, body := w.get("/-/ready"); status != http.StatusOK || body != "ready\n" {
			return fmt.Sprintf("/-/ready says %d %s", status, body)
		}
		if status, body := w.get("/"); status != http.StatusOK || !strings.Contains(body, "● up") || strings.Contains(body, "down\">● ") {
			return fmt.Sprintf("the landing page says %d %s", status, body)
		}
		return ""
	})
}

// temperature returns the series of the GPU's temperature.
func temperature(celsius int) string {
	return fmt.Sprintf(`kpulse_gpu_temperature_celsius{hostname="n",gpu="0",uuid="GPU-1"} %d`, celsius)
}

// settled is how long an event may take on a busy machine.
const settled = time.Minute

// settle waits until scrapes show the fault, for sources that are not read on demand.
func (w *world) settle() {
	w.Helper()
	want := w.fault.seen
	w.until(func() string {
		status, body := w.scrape()
		if status != max(want.status, http.StatusOK) || stale.MatchString(body) {
			return fmt.Sprintf("scrapes still answer %d:\n%.2000s", status, body)
		}
		for _, s := range w.fill(want.says...) {
			if !strings.Contains(body, s) {
				return fmt.Sprintf("/metrics lacks %s:\n%.2000s", s, near(body, s))
			}
		}
		return ""
	})
}

// logs returns "" once the program has logged text, else an error.
func (w *world) logs(text string) string {
	if strings.Contains(w.child.Logged(), text) {
		return ""
	}
	return "the log lacks " + text
}

// until polls until wrong returns "".
func (w *world) until(wrong func() string) {
	w.Helper()
	text := wrong()
	for end := time.Now().Add(settled); text != "" && time.Now().Before(end); text = wrong() {
		time.Sleep(10 * time.Millisecond)
	}
	if text != "" {
		_, stacks, _ := w.child.Get("/debug/pprof/goroutine?debug=2", w.headers...) // if it still runs
		w.Fatalf("%s\n%s\n%s", text, stacks, w.child.Fate())
	}
}

// stale matches a reading from before the fault.
var stale = regexp.MustCompile(`(?m)^(kpulse_gpu_temperature_celsius|DCGM_FI_DEV_GPU_TEMP)\{.*\} ` + strconv.Itoa(before) + `$`)

// check scrapes and compares the answer with fault.seen.
func (w *world) check() {
	w.Helper()
	want := w.fault.seen
	if w.fault.each != nil {
		w.fault.each(w)
	}
	for _, a := range w.fault.asks {
		w.ask(a)
	}
	status, body := w.scrape()
	w.scraped++
	if status != max(want.status, http.StatusOK) {
		w.Fatalf("scrape %d answers %d, want %d:\n%.2000s", w.scraped, status, max(want.status, http.StatusOK), body)
	}
	if old := stale.FindString(body); old != "" && !w.fault.cold {
		w.Errorf("a reading from before the fault is served: %s", old)
	}
	if status == http.StatusOK {
		if err := checkExposition([]byte(strings.Replace(body, want.twice, "", 1))); err != nil {
			w.Errorf("Prometheus would reject the page: %v\n%.3000s", err, body)
		}
		w.have("/metrics", "\n"+body, "\n", want.says...)
	} else {
		w.failed++
		if lines := strings.Count(body, "\n"); lines != 1 || !strings.Contains(body, "; ") || strings.Contains(body, "kpulse_gpu_") {
			w.Errorf("a failure is not one line with cause and remedy:\n%.2000s", body)
		}
		w.have("/metrics", body, "", want.says...)
	}
	w.lack("/metrics", body)
}

// lack checks that text has nothing of seen.lacks.
func (w *world) lack(where, text string) {
	w.Helper()
	for _, s := range w.fill(w.fault.seen.lacks...) {
		if strings.Contains(text, s) {
			w.Errorf("%s has %s:\n%.3000s", where, s, text)
		}
	}
}

// have checks that text has each of want, with around before and after it.
func (w *world) have(where, text, around string, want ...string) {
	w.Helper()
	for _, s := range w.fill(want...) {
		if !strings.Contains(text, around+s+around) {
			w.Errorf("%s lacks %s:\n%.2000s", where, s, near(text, s))
		}
	}
}

// near returns the lines of a series' family in text, or text if there are none.
func near(text, series string) string {
	name, _, labels := strings.Cut(series, "{")
	var lines []string
	for line := range strings.Lines(text) {
		if labels && strings.HasPrefix(line, name+"{") {
			lines = append(lines, line)
		}
	}
	if lines == nil {
		return text
	}
	return strings.Join(lines, "")
}

// failures matches log lines about a failed read or scrape, and their cause.
var failures = regexp.MustCompile(`msg="(?:source cannot be read|a scrape ran out of time)".* cause="((?:[^"\\]|\\.)*)"`)

// checkLog wants one line per outage. An outage of dcgmi may begin with another cause.
func (w *world) checkLog(log string) {
	w.Helper()
	causes := map[string]int{}
	for _, m := range failures.FindAllStringSubmatch(log, -1) {
		causes[m[1]]++
		if causes[m[1]] > 1 {
			w.Errorf("%s is logged again:\n%s", m[1], log)
		}
	}
	if len(causes) == 0 || len(causes) > 1 && w.exporter != nil {
		w.Errorf("the failure is logged with %d causes, want one:\n%s", len(causes), log)
	}
}

// checkPages checks the texts about the fault on other pages.
func (w *world) checkPages() {
	w.Helper()
	w.rise()
	want := w.fault.seen
	log := w.child.Logged()
	_, page := w.get("/")
	w.lack("the log", log)
	w.lack("the landing page", page)
	page = html.UnescapeString(page)
	if want.status >= http.StatusInternalServerError {
		w.have("the landing page", page, "", want.says...)
		w.have("the log", strings.ReplaceAll(log, `\"`, `"`), "", want.says...)
		w.checkLog(log)
	}
	w.have("the landing page", page, "", want.page...)
	w.have("the log", log, "", want.log...)
	_, metrics := w.get("/-/metrics")
	w.have("/-/metrics", metrics, "\n", want.metrics...)
	if want.kind != "" && w.exporter != nil {
		w.have("/-/metrics", metrics, "\n", fmt.Sprintf(`kpulse_proxy_scrape_failures_total{kind="%s",source="URL"} %d`, want.kind, w.failed))
	}
	if status, _ := w.get("/-/healthy"); status != http.StatusOK {
		w.Errorf("/-/healthy answers %d", status)
	}
}

// rise waits until the counters that must rise are above 0.
func (w *world) rise() {
	w.Helper()
	rises := w.fault.seen.rises
	if kind := w.fault.seen.kind; kind != "" {
		rises = append(rises, fmt.Sprintf(`kpulse_proxy_scrape_failures_total{kind="%s",source="URL"}`, kind))
	}
	for _, series := range w.fill(rises...) {
		above := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` [1-9]`)
		w.until(func() string {
			_, text := w.get("/-/metrics")
			if above.MatchString(text) {
				return ""
			}
			w.get("/metrics") // a read evaluates the rules
			return "/-/metrics lacks " + series + " above 0:\n" + near(text, series)
		})
	}
}
