package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	// measure returns the results of each binary, or only those of this code.
	measure func(*rig) []measured
	// why says what keeps a size from its goal.
	why string
}

// limits has one value for all sizes, or one for each.
type limits []float64

func (l limits) of(size int) float64 { return l[min(size, len(l)-1)] }

// moreBytes is why a scrape may cost more than that of a reverse proxy, at each size.
const moreBytes = "with our series the answer has 1.8, 1.6, 1.3 and 1.5 times the bytes that the reverse proxy sends"

// scrapeTargets are measured at each size.
var scrapeTargets = []costTarget{
	{"CPU of scan, translate, compute and append / expfmt's parse of the body", "", limits{0.03}, limits{0.09},
		func(r *rig) []measured { return beside(r.t, r.body, expfmtParse(r.t, r.body)) },
		"verdict, class and seconds of a device cost the same however few fields it has"},
	{"CPU of scan, translate, compute and append / the exporter's rendering of the body", "", limits{1. / 25}, limits{1. / 10},
		func(r *rig) []measured { return beside(r.t, r.body, exporterRendering(r.t, r.body, &bytes.Buffer{})) },
		"verdict, class and seconds of a device cost the same however few fields it has"},
	{"allocations of scan, translate, compute and append, once steady", "", limits{0}, limits{0},
		func(r *rig) []measured { return once(testing.AllocsPerRun(10, steadyScrape(r.t, r.body))) }, ""},
	{"CPU per scrape / ReverseProxy", "", limits{1.15, 1.15, 1.15, 1.5}, limits{2, 2, 2, 2.4},
		func(r *rig) []measured { return cpuRatio(r, false) }, moreBytes},
	{"CPU per gzipped scrape / ReverseProxy without gzip", "", limits{3, 3, 3, 8}, limits{5, 5, 5, 13},
		func(r *rig) []measured { return cpuRatio(r, true) }, moreBytes},
	{"p50 latency / ReverseProxy, 1 client", "", limits{1.25, 1.25, 1.25, 1.5}, limits{2},
		func(r *rig) []measured { return latencyRatio(r, 1) }, moreBytes},
	{"p50 latency / ReverseProxy, 8 clients", "", limits{1.25, 1.25, 1.25, 1.5}, limits{2},
		func(r *rig) []measured { return latencyRatio(r, 8) }, moreBytes},
	{"peak RSS, 8 clients with gzip", "MB", limits{30, 30, 36, 72}, limits{37.5, 37.5, 45, 90},
		func(r *rig) []measured {
			return r.each(func(binary string) measured { return measured{peakRSS(r.t, binary, r.body)} })
		}, "a body is sent while the next is read"},
}

// targetsOfAll are measured once.
var targetsOfAll = []costTarget{
	{"CPU of parsing one dmon tick, 8 GPUs × 25 fields / by the standard library", "", limits{0.25}, limits{0.35},
		func(r *rig) []measured {
			ours, baseline := dmonTick(r.t), splitTick()
			return []measured{measure(9, func() float64 { return timeOf(20_000, ours) / timeOf(20_000, baseline) })}
		}, "20 ns a number: a processor cannot predict where its digits end"},
	{"allocations of parsing one dmon tick", "", limits{0}, limits{0},
		func(r *rig) []measured { return once(testing.AllocsPerRun(100, dmonTick(r.t))) }, ""},
	{"kpulse_* series per GPU, all counters", "", limits{46}, limits{50},
		func(r *rig) []measured { n, _ := seriesPerGPU(r.t, allCounters); return once(n) }, ""},
	{"kpulse_* series per GPU, the exporter's default counters", "", limits{36}, limits{40},
		func(r *rig) []measured { n, _ := seriesPerGPU(r.t, defaultCounters); return once(n) }, ""},
	{"kpulse_* series per allocation", "", limits{6}, limits{7},
		func(r *rig) []measured { _, n := seriesPerGPU(r.t, allCounters); return once(n) }, ""},
	{"program file, stripped, without cgo", "MB", limits{27}, limits{30},
		func(r *rig) []measured {
			return r.each(func(binary string) measured { return measured{fileSize(r.t, binary)} })
		}, ""},
	{"CPU of check health against a proxy / an empty Go program", "", limits{6}, limits{10},
		func(r *rig) []measured {
			return r.each(func(binary string) measured { return healthRatio(r.t, binary) })
		}, "--version alone takes 6.3 to 6.9: the initializers of all linked packages run"},
	cpuOfTerminal(16, 500*time.Millisecond, 1), cpuOfTerminal(64, 500*time.Millisecond, 2),
	{"terminal: first frame with readings, 16 GPUs", "ms", limits{100}, limits{300},
		func(r *rig) []measured {
			return r.each(func(binary string) measured { // the fastest: on a busy machine the others wait for a core
				return measure(9, func() float64 { return firstFrame(r.t, binary) })[:1]
			})
		}, ""},
}

// rig is what the targets of one size are measured with.
type rig struct {
	t        *testing.T
	binaries []string // the program as released, and an older one to compare it with, if any
	body     []byte

	programs []*child // of binaries
	baseline *child
}

// newRig starts the programs and a reverse proxy in front of one upstream. Every scrape of each reads the upstream.
func newRig(t *testing.T, binaries []string, body []byte) *rig {
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
	r := &rig{t: t, binaries: binaries, body: body, baseline: baseline}
	for _, binary := range binaries {
		r.programs = append(r.programs, startProxy(t, binary, "--source="+up.url+"/metrics", "--source.min-interval=0s", "--poll=0"))
	}
	return r
}

// stop kills the children, which would disturb the next measurement.
func (r *rig) stop() {
	for _, c := range append(r.programs, r.baseline) {
		c.Cmd.Process.Kill()
	}
}

// each measures every binary; with two of them, three times in turn.
func (r *rig) each(f func(binary string) measured) []measured {
	results := make([]measured, len(r.binaries))
	for range 2*len(results) - 1 {
		for i, binary := range r.binaries {
			results[i] = append(results[i], f(binary)...)
		}
	}
	return results
}

// rounds measures every program in rounds, each of which returns a result for each program.
func (r *rig) rounds(n int, round func() []float64) []measured {
	results := make([]measured, len(r.programs))
	for range n {
		for i, v := range round() {
			results[i] = append(results[i], v)
		}
	}
	return results
}

// once is the result of this code if it needs no rounds.
func once(v float64) []measured { return []measured{{v}} }

// beside measures what a scrape of a body costs in process, as a ratio to a baseline.
func beside(t *testing.T, body []byte, baseline func()) []measured {
	us, n := steadyScrape(t, body), max(1, 4<<20/len(body))
	return []measured{measure(11, func() float64 { return timeOf(n, us) / timeOf(n, baseline) })}
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

// TestTargets measures the targets that KPULSE_BENCH matches; -update writes them to the report. KPULSE_OLD names an older program: in each
// round both scrape one upstream and are compared with one reverse proxy, and its quartiles stand beside ours.
func TestTargets(t *testing.T) {
	if os.Getenv("KPULSE_BENCH") == "" {
		t.Skip("run by make bench and make report")
	}
	only := regexp.MustCompile(os.Getenv("KPULSE_BENCH"))
	binaries := []string{buildProxy(t)}
	page := fmt.Sprintf(reportHead, runtime.NumCPU(), runtime.Version(), "", "")
	if old := os.Getenv("KPULSE_OLD"); old != "" {
		binaries = append(binaries, old)
		page = fmt.Sprintf(reportHead, runtime.NumCPU(), runtime.Version(), " old: quartiles |", "---|")
	}
	add := func(size int, name string, target costTarget, r *rig) {
		if only.MatchString(name + ": " + target.what) {
			row := rowOf(target, size, name, target.measure(r), len(binaries) > 1)
			t.Log(row)
			page += row + "\n"
		}
	}
	for i, s := range sizes {
		r := newRig(t, binaries, rawtest.Body(s.devices, s.families, 1))
		for _, target := range scrapeTargets {
			add(i, fmt.Sprintf("%s (%d × %d)", s.name, s.devices, s.families), target, r)
		}
		r.stop()
	}
	for _, target := range targetsOfAll {
		add(0, "", target, &rig{t: t, binaries: binaries})
	}
	if *update {
		writeFile(t, reportPage, page)
	}
}

// rowOf returns the row of a target's results in the report. With beside it has a column for the older program.
func rowOf(target costTarget, size int, name string, results []measured, beside bool) string {
	for _, m := range results {
		slices.Sort(m)
	}
	ours := results[0]
	v, goal, worst := ours.quartile(2), target.goal.of(size), target.worst.of(size)
	verdict := "met"
	switch {
	case v > worst:
		verdict = "**worse than allowed**"
	case v > goal:
		if verdict = "missed"; target.why != "" {
			verdict += ": " + target.why
		}
	}
	row := fmt.Sprintf("| %s | %s | %s | %s | %s | %s to %s | %s |", name, target.what, short(goal), short(worst),
		strings.TrimSpace(short(v)+" "+target.unit), short(ours.quartile(1)), short(ours.quartile(3)), verdict)
	switch {
	case len(results) > 1:
		row += " " + short(results[1].quartile(1)) + " to " + short(results[1].quartile(3)) + " |"
	case beside:
		row += " – |"
	}
	return row
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
func healthRatio(t *testing.T, binary string) measured {
	proxy := startProxy(t, binary, "--backend=replay")
	defer proxy.Stop()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "main.go"), "package main\n\nfunc main() {}\n")
	empty := filepath.Join(dir, "empty")
	if out, err := exec.Command("go", "build", "-o", empty, filepath.Join(dir, "main.go")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cpu := func(n int, name string, args ...string) (total float64) {
		for range n {
			cmd := exec.Command(name, args...)
			_ = cmd.Run() // exits with the state of the GPUs
			total += (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
		}
		return total
	}
	return measure(9, func() float64 { return cpu(5, binary, "check", "health", "--url="+proxy.URL) / cpu(5, empty) })
}

// cpuRatio compares the CPU time that one scrape costs each program with that of the reverse proxy,
// which sends no gzip. All scrapes alternate on kept-alive connections, as Prometheus' are, so what
// disturbs the machine for a tenth of a second disturbs all.
func cpuRatio(r *rig, gzip bool) []measured {
	n, last := max(8, 48<<20/len(r.body)), len(r.programs)
	all := append(slices.Clone(r.programs), r.baseline)
	scrapes := make([]func(), len(all))
	for i, c := range all {
		scrapes[i] = keptScrape(r.t, c, gzip && i < last)
	}
	round := func(n int) []float64 {
		used := make([]float64, len(all))
		for i, c := range all {
			used[i] = -float64(cpuTime(r.t, c))
		}
		for range n {
			for _, scrape := range scrapes {
				scrape()
			}
		}
		for i, c := range all {
			used[i] += float64(cpuTime(r.t, c))
		}
		for i := range last {
			used[i] /= used[last]
		}
		return used[:last]
	}
	round(3)
	return r.rounds(9, func() []float64 { return round(n) })
}

// latencyRatio compares median latencies for a number of clients.
func latencyRatio(r *rig, clients int) []measured {
	n := max(3, 16<<20/len(r.body)/clients)
	p50 := func(c *child) float64 {
		all := scrapes(r.t, c, clients, n, false)
		slices.Sort(all)
		return all[len(all)/2].Seconds()
	}
	return r.rounds(9, func() (ratios []float64) {
		baseline := p50(r.baseline)
		for _, c := range r.programs {
			ratios = append(ratios, p50(c)/baseline)
		}
		return ratios
	})
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
