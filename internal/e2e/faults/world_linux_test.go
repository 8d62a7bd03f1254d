package faults

import (
	"fmt"
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/e2e/e2etest"
)

// world is a program that serves, what it reads, and the fault that befalls it.
type world struct {
	*testing.T
	fault    fault
	exporter *exporter
	child    *e2etest.Child
	url      string // of the source, as the program shows it
	dir      string // of its own
	scraped  int    // how many scrapes there were since the fault began
	failed   int    // how many of them failed
	finally  func() // looks at what the program left behind once it ended
}

// startScraped starts a program that reads an exporter, once for each scrape.
func startScraped(t *testing.T, f fault) *world {
	t.Helper()
	w := &world{T: t, fault: f, exporter: startExporter(t), dir: t.TempDir()}
	w.url = w.exporter.url()
	flags := append(w.fill(f.flags...), "--poll=0", "--source.min-interval=0s")
	if i := slices.IndexFunc(f.flags, func(flag string) bool { return strings.HasPrefix(flag, "--source=") }); i >= 0 {
		w.url = strings.TrimPrefix(f.flags[i], "--source=")
	} else if f.config != "" {
		w.write("config.yml", w.fill(f.config)[0])
		flags = append(flags, "--config.file=config.yml")
	} else {
		flags = append(flags, "--source="+w.url)
	}
	if f.cold {
		w.begin()
	}
	w.start(nil, flags...)
	return w
}

// start starts the program with flags.
func (w *world) start(env []string, flags ...string) {
	w.Helper()
	cmd := exec.Command(e2etest.Path(w), append([]string{"--web.listen-address=127.0.0.1:0", "--web.enable-pprof", "--node-name=n"}, flags...)...)
	cmd.Env, cmd.Dir = env, w.dir
	c, err := e2etest.Start(cmd, filepath.Join(w.TempDir(), "log"))
	if err != nil {
		w.Fatal(err)
	}
	w.child = c
	w.Cleanup(func() { _ = cmd.Process.Kill() })
}

// write writes a file of the program.
func (w *world) write(name, text string) {
	w.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
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

// end takes it away.
func (w *world) end() {
	if w.exporter != nil {
		w.exporter.does(says(reading(after)))
	}
	if w.fault.end != nil {
		w.fault.end(w)
	}
}

// scrapes is how often the fault is met again, at which anything that each scrape leaves
// behind adds up.
func (w *world) scrapes() int {
	if w.fault.late {
		return 3
	}
	return 6
}

// get asks the program for a path.
func (w *world) get(path string, headers ...string) (status int, body string) {
	w.Helper()
	status, body, err := w.child.Get(path, headers...)
	if err != nil {
		w.Fatalf("%s: %v; %s", path, err, w.child.Fate())
	}
	return status, body
}

// scrape asks as a Prometheus does.
func (w *world) scrape() (status int, body string) {
	w.Helper()
	timeout := "60" // more than a busy machine needs
	if w.fault.late {
		timeout = "0.5"
	}
	return w.get("/metrics", "X-Prometheus-Scrape-Timeout-Seconds", timeout)
}

// serves waits until scrapes have the GPU at a temperature, and all pages say that all is well.
func (w *world) serves(celsius int) {
	w.Helper()
	want := "\n" + temperature(celsius) + "\n"
	w.until(func() string {
		if status, body, err := w.child.Get("/metrics"); err != nil || status != http.StatusOK || !strings.Contains(body, want) {
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

// temperature is the series of the GPU's.
func temperature(celsius int) string {
	return fmt.Sprintf(`kpulse_gpu_temperature_celsius{hostname="n",gpu="0",uuid="GPU-1"} %d`, celsius)
}

// settled is how long what is to come may take on a machine that is busy.
const settled = time.Minute

// until asks until nothing is wrong.
func (w *world) until(wrong func() string) {
	w.Helper()
	text := wrong()
	for end := time.Now().Add(settled); text != "" && time.Now().Before(end); text = wrong() {
		time.Sleep(10 * time.Millisecond)
	}
	if text != "" {
		w.Fatalf("%s\n%s", text, w.child.Fate())
	}
}

// stale finds a reading of before the fault.
var stale = regexp.MustCompile(`(?m)^(kpulse_gpu_temperature_celsius|DCGM_FI_DEV_GPU_TEMP)\{.*\} ` + strconv.Itoa(before) + `$`)

// check scrapes, and holds what comes to what is to be seen.
func (w *world) check() {
	w.Helper()
	want := w.fault.seen
	status, body := w.scrape()
	w.scraped++
	if status != max(want.status, http.StatusOK) {
		w.Fatalf("scrape %d answers %d, want %d:\n%.2000s", w.scraped, status, max(want.status, http.StatusOK), body)
	}
	if old := stale.FindString(body); old != "" && !w.fault.cold {
		w.Errorf("a reading of before the fault is served: %s", old)
	}
	if status == http.StatusOK {
		if err := e2etest.CheckExposition([]byte(strings.Replace(body, want.twice, "", 1))); err != nil {
			w.Errorf("Prometheus would refuse it: %v\n%.3000s", err, body)
		}
		w.have("/metrics", "\n"+body, "\n", want.says...)
	} else {
		w.failed++
		if lines := strings.Count(body, "\n"); lines != 1 || !strings.Contains(body, "; ") || strings.Contains(body, "kpulse_gpu_") {
			w.Errorf("a failure is not one line with cause and remedy:\n%.2000s", body)
		}
		w.have("/metrics", body, "", want.says...)
	}
	for _, text := range w.fill(want.lacks...) {
		if strings.Contains(body, text) {
			w.Errorf("/metrics has %s:\n%.3000s", text, body)
		}
	}
}

// have looks for texts, each of which has the same before and behind it.
func (w *world) have(where, text, around string, want ...string) {
	w.Helper()
	for _, s := range w.fill(want...) {
		if !strings.Contains(text, around+s+around) {
			w.Errorf("%s lacks %s:\n%.2000s", where, s, near(text, s))
		}
	}
}

// near returns the lines of a text that have the name of a series, or all of it if none has.
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

// checkPages looks at what is told of the fault elsewhere.
func (w *world) checkPages() {
	w.Helper()
	want := w.fault.seen
	log := w.child.Logged()
	_, page := w.get("/")
	page = html.UnescapeString(page)
	if want.kind != "" {
		w.have("the landing page", page, "", want.says...)
		w.have("the log", strings.ReplaceAll(log, `\"`, `"`), "", want.says...)
		if n := strings.Count(log, "source cannot be read") + strings.Count(log, "a scrape ran out of time"); n != 1 {
			w.Errorf("the failure is logged %d times, want once:\n%s", n, log)
		}
	}
	w.have("the landing page", page, "", want.page...)
	w.have("the log", log, "", want.log...)
	_, metrics := w.get("/-/metrics")
	w.have("/-/metrics", metrics, "\n", want.metrics...)
	if want.kind != "" {
		w.have("/-/metrics", metrics, "\n", fmt.Sprintf(`kpulse_proxy_scrape_failures_total{kind="%s",source="URL"} %d`, want.kind, w.failed))
	}
	if status, _ := w.get("/-/healthy"); status != http.StatusOK {
		w.Errorf("/-/healthy answers %d", status)
	}
}
