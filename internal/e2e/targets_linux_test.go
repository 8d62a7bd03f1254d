package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
	ticks "github.com/kpulse/kpulse-proxy/internal/source/dcgm/dmon"
)

// The performance targets of DESIGN, measured as ratios within one run: medians of interleaved
// rounds, so a noisy machine disturbs both sides equally. `make bench` measures them and `make
// report` writes the results; test runs do not, because timings must not decide them.

// costTarget is a measure with its goal and its upper limit.
type costTarget struct {
	what        string
	unit        string // "" means a ratio or a count
	goal, worst limits
	measure     func(*rig) measured
	inProcess   bool // measures this code, not a binary
}

// limits has one value for all sizes, or one for each.
type limits []float64

func (l limits) of(size int) float64 { return l[min(size, len(l)-1)] }

// scrapeTargets are measured at each size.
var scrapeTargets = []costTarget{
	{"CPU of scan, translate, compute and append / expfmt's parse of the body", "", limits{0.03}, limits{0.09},
		func(r *rig) measured { return beside(r.t, r.body, expfmtParse(r.t, r.body)) }, true},
	{"CPU of scan, translate, compute and append / the exporter's rendering of the body", "", limits{1. / 25}, limits{1. / 10},
		func(r *rig) measured { return beside(r.t, r.body, exporterRendering(r.t, r.body, &bytes.Buffer{})) }, true},
	{"allocations of scan, translate, compute and append, once steady", "", limits{0}, limits{0},
		func(r *rig) measured { return measured{testing.AllocsPerRun(10, steadyScrape(r.t, r.body))} }, true},
	{"CPU per scrape / ReverseProxy", "", limits{1.15, 1.15, 1.15, 1.5}, limits{2, 2, 2, 2.4},
		func(r *rig) measured { return cpuRatio(r.t, r.ours, r.baseline, len(r.body), false) }, false},
	{"CPU per gzipped scrape / ReverseProxy without gzip", "", limits{3, 3, 3, 8}, limits{5, 5, 5, 13},
		func(r *rig) measured { return cpuRatio(r.t, r.ours, r.baseline, len(r.body), true) }, false},
	{"p50 latency / ReverseProxy, 1 client", "", limits{1.25, 1.25, 1.25, 1.5}, limits{2},
		func(r *rig) measured { return latencyRatio(r.t, r.ours, r.baseline, len(r.body), 1) }, false},
	{"p50 latency / ReverseProxy, 8 clients", "", limits{1.25, 1.25, 1.25, 1.5}, limits{2},
		func(r *rig) measured { return latencyRatio(r.t, r.ours, r.baseline, len(r.body), 8) }, false},
	{"peak RSS, 8 clients with gzip", "MB", limits{30, 30, 36, 72}, limits{37.5, 37.5, 45, 90},
		func(r *rig) measured { return measured{peakRSS(r.t, r.binary, r.body)} }, false},
}

// targetsOfAll are measured once.
var targetsOfAll = []costTarget{
	{"CPU of parsing one dmon tick, 8 GPUs × 25 fields / by the standard library", "", limits{0.25}, limits{0.35},
		func(r *rig) measured {
			ours, baseline := dmonTick(r.t), splitTick()
			return measure(9, func() float64 { return timeOf(20_000, ours) / timeOf(20_000, baseline) })
		}, true},
	{"allocations of parsing one dmon tick", "", limits{0}, limits{0},
		func(r *rig) measured { return measured{testing.AllocsPerRun(100, dmonTick(r.t))} }, true},
	{"kpulse_* series per GPU, all counters", "", limits{46}, limits{50},
		func(r *rig) measured { n, _ := seriesPerGPU(r.t, allCounters); return measured{n} }, true},
	{"kpulse_* series per GPU, the exporter's default counters", "", limits{36}, limits{40},
		func(r *rig) measured { n, _ := seriesPerGPU(r.t, defaultCounters); return measured{n} }, true},
	{"kpulse_* series per allocation", "", limits{6}, limits{7},
		func(r *rig) measured { _, n := seriesPerGPU(r.t, allCounters); return measured{n} }, true},
	{"program file, stripped, without cgo", "MB", limits{27}, limits{30}, func(r *rig) measured { return measured{fileSize(r.t, r.binary)} }, false},
	{"CPU of check health against a proxy / an empty Go program", "", limits{6}, limits{8}, healthRatio, false},
	cpuOfTerminal(16, 500*time.Millisecond, 1), cpuOfTerminal(64, 500*time.Millisecond, 2),
	{"terminal: first frame with readings, 16 GPUs", "ms", limits{100}, limits{300},
		func(r *rig) measured { return measure(9, func() float64 { return firstFrame(r.t, r.binary) })[:1] }, false}, // the fastest: on a busy machine the others wait for a core
}

// rig is what the targets of one size are measured with.
type rig struct {
	t      *testing.T
	binary string // the program as released
	body   []byte

	ours, baseline *child
}

// newRig starts kpulse-proxy and a reverse proxy in front of one upstream. Every scrape of each reads the upstream.
func newRig(t *testing.T, binary string, body []byte) *rig {
	up := startUpstream(func() ([]byte, error) { return body, nil })
	t.Cleanup(up.stop)
	path, err := exec.LookPath("reverse-proxy")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, up.url)
	baseline, err := startChild(cmd, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return &rig{t: t, binary: binary, body: body, baseline: baseline,
		ours: startProxy(t, binary, "--source="+up.url+"/metrics", "--source.min-interval=0s", "--poll=0")}
}

// stop kills the children, which would disturb the next measurement.
func (r *rig) stop() {
	if r.ours != nil {
		r.ours.Cmd.Process.Kill()
		r.baseline.Cmd.Process.Kill()
	}
}

// beside measures what a scrape of a body costs in process, as a ratio to a baseline.
func beside(t *testing.T, body []byte, baseline func()) measured {
	us, n := steadyScrape(t, body), max(1, 4<<20/len(body))
	return measure(11, func() float64 { return timeOf(n, us) / timeOf(n, baseline) })
}

// expfmtParse returns a function that parses a body with Prometheus' expfmt.
func expfmtParse(t *testing.T, body []byte) func() {
	return func() {
		parser := expfmt.NewTextParser(model.LegacyValidation)
		if _, err := parser.TextToMetricFamilies(bytes.NewReader(body)); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
}

const reportPage = "../../testdata/bench/REPORT.md"

// reportHead is the text above the table.
const reportHead = `# What it costs

` + "`make report`" + ` wrote this page, in one run on %d cores with %s. A ratio compares two programs, or two functions, in the same round;
the median is over all rounds, and half of them are between the quartiles. A size is entities × fields of the upstream's body.
[rules/README.md](../../rules/README.md) says what a fleet costs a Prometheus.

| size | measure | goal | limit | median | quartiles | verdict |%s
|---|---|--:|--:|--:|---|---|%s
`

// TestTargets measures all targets; -update writes them to the report. KPULSE_OLD names an older program: its
// rounds are interleaved with ours, and its quartiles stand beside.
func TestTargets(t *testing.T) {
	if os.Getenv("KPULSE_BENCH") == "" {
		t.Skip("run by make bench and make report")
	}
	binary, old := buildProxy(t), os.Getenv("KPULSE_OLD")
	page, more := fmt.Sprintf(reportHead, runtime.NumCPU(), runtime.Version(), "", ""), ""
	if old != "" {
		page = fmt.Sprintf(reportHead, runtime.NumCPU(), runtime.Version(), " old: quartiles |", "---|")
	}
	add := func(size int, name string, target costTarget, r, before *rig) {
		const repeats = 3
		var ours, theirs measured
		if before == nil || target.inProcess {
			ours, more = target.measure(r), ""
		} else {
			for range repeats {
				ours, theirs = append(ours, target.measure(r)...), append(theirs, target.measure(before)...)
			}
			slices.Sort(ours)
			slices.Sort(theirs)
			more = " " + short(theirs.quartile(1)) + " to " + short(theirs.quartile(3)) + " |"
		}
		v, goal, worst := ours.quartile(2), target.goal.of(size), target.worst.of(size)
		verdict := "met"
		switch {
		case v > worst:
			verdict = "**worse than allowed**"
		case v > goal:
			verdict = "missed"
		}
		row := fmt.Sprintf("| %s | %s | %s | %s | %s | %s to %s | %s |%s", name, target.what, short(goal), short(worst),
			strings.TrimSpace(short(v)+" "+target.unit), short(ours.quartile(1)), short(ours.quartile(3)), verdict, more)
		t.Log(row)
		page += row + "\n"
	}
	for i, s := range sizes {
		body := rawtest.Body(s.devices, s.families, 1)
		r, before := newRig(t, binary, body), (*rig)(nil)
		if old != "" {
			before = newRig(t, old, body)
		}
		for _, target := range scrapeTargets {
			add(i, fmt.Sprintf("%s (%d × %d)", s.name, s.devices, s.families), target, r, before)
		}
		r.stop()
		if before != nil {
			before.stop()
		}
	}
	for _, target := range targetsOfAll {
		before := (*rig)(nil)
		if old != "" {
			before = &rig{t: t, binary: old}
		}
		add(0, "", target, &rig{t: t, binary: binary}, before)
	}
	if *update {
		writeFile(t, reportPage, page)
	}
}

// short formats a number with three significant digits.
func short(v float64) string {
	text := strconv.FormatFloat(v, 'g', 3, 64)
	if strings.Contains(text, "e") {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return text
}

// fileSize returns the size of a file in MB.
func fileSize(t *testing.T, path string) float64 {
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return float64(info.Size()) / 1e6
}

// healthRatio compares the CPU time of check health with that of an empty Go program.
func healthRatio(r *rig) measured {
	proxy := startProxy(r.t, r.binary, "--backend=replay")
	defer proxy.Stop()
	dir := r.t.TempDir()
	writeFile(r.t, filepath.Join(dir, "main.go"), "package main\n\nfunc main() {}\n")
	empty := filepath.Join(dir, "empty")
	if out, err := exec.Command("go", "build", "-o", empty, filepath.Join(dir, "main.go")).CombinedOutput(); err != nil {
		r.t.Fatalf("%v\n%s", err, out)
	}
	cpu := func(n int, name string, args ...string) (total float64) {
		for range n {
			cmd := exec.Command(name, args...)
			_ = cmd.Run() // exits with the state of the GPUs
			total += (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
		}
		return total
	}
	return measure(9, func() float64 { return cpu(5, r.binary, "check", "health", "--url="+proxy.URL) / cpu(5, empty) })
}

// cpuRatio compares the CPU time that one scrape costs two programs; the second one sends no gzip.
// Scrapes alternate on kept-alive connections, as Prometheus' are, so what disturbs the machine for
// a tenth of a second disturbs both.
func cpuRatio(t *testing.T, one, other *child, bodySize int, gzip bool) measured {
	n := max(8, 48<<20/bodySize)
	ours, theirs := keptScrape(t, one, gzip), keptScrape(t, other, false)
	round := func(n int) float64 {
		before, beforeOther := cpuTime(t, one), cpuTime(t, other)
		for range n {
			ours()
			theirs()
		}
		return float64(cpuTime(t, one)-before) / float64(cpuTime(t, other)-beforeOther)
	}
	round(3)
	return measure(9, func() float64 { return round(n) })
}

// latencyRatio compares median latencies for a number of clients.
func latencyRatio(t *testing.T, ours, baseline *child, bodySize, clients int) measured {
	n := max(3, 16<<20/bodySize/clients)
	p50 := func(c *child) float64 {
		all := scrapes(t, c, clients, n, false)
		slices.Sort(all)
		return all[len(all)/2].Seconds()
	}
	return measure(9, func() float64 { return p50(ours) / p50(baseline) })
}

// peakRSS returns our peak memory, in MiB, with default flags while eight clients scrape for a few
// seconds.
func peakRSS(t *testing.T, binary string, body []byte) float64 {
	up := startUpstream(func() ([]byte, error) { return body, nil })
	defer up.stop()
	c := startProxy(t, binary, "--source="+up.url+"/metrics")
	defer c.Stop()
	for begun := time.Now(); time.Since(begun) < 3*time.Second; {
		scrapes(t, c, 8, 2, true)
	}
	return peakMemory(t, c)
}

// dmonTick returns a function that parses the next tick of 8 GPUs with 25 fields, and before every
// 14th one the header, as dcgmi dmon prints them.
func dmonTick(t testing.TB) func() {
	header := []byte("#Entity         ")
	for f := range 25 {
		header = fmt.Appendf(header, "%-13s", fmt.Sprintf("F%d", f))
	}
	header = append(header, '\n')
	rows := dmonRows()
	parser, batch, n := ticks.Parser{}, &raw.Batch{Dict: raw.NewDict()}, 0
	feed := func(line []byte) {
		if parser.Line(batch, line) {
			return
		}
		if len(batch.Samples) != 8*25 {
			t.Fatalf("%d samples of a tick", len(batch.Samples))
		}
		batch.Reset()
		parser.Line(batch, line)
	}
	tick := func() {
		if n%14 == 0 {
			feed(header)
		}
		n++
		for _, row := range rows {
			feed(row)
		}
	}
	tick()
	tick()
	return tick
}

// dmonRows returns the rows of a tick.
func dmonRows() (rows [][]byte) {
	for g := range 8 {
		row := fmt.Appendf(nil, "%-16s", fmt.Sprintf("GPU %d", g))
		for f := range 25 {
			row = fmt.Appendf(row, "%-13.3f", float64(g*25+f)*.0137)
		}
		rows = append(rows, append(row, '\n'))
	}
	return rows
}

// splitTick returns a function that reads the rows of a tick with the standard library.
func splitTick() func() {
	rows := dmonRows()
	return func() {
		for _, row := range rows {
			for _, cell := range strings.Fields(string(row))[2:] {
				if _, err := strconv.ParseFloat(cell, 64); err != nil {
					panic(err)
				}
			}
		}
	}
}
