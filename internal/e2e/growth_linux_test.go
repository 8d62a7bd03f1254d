package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
	ticks "github.com/kpulse/kpulse-proxy/internal/source/dcgm/dmon"
)

// growth is how a cost grows with a number. The cost is per unit: proportional growth is a
// constant.
type growth struct {
	of, what, unit string
	points         []int
	rounds         int
	start          func(r *rig, n int) (round func() float64)
}

var growths = []growth{
	{"entities", "CPU in process for a sample, 60 fields", "ns", []int{8, 16, 64, 112, 448, 1024}, 9,
		func(r *rig, n int) func() float64 { return perSample(r.t, n, 60) }},
	{"fields", "CPU in process for a sample, 16 GPUs", "ns", []int{15, 30, 60, 120, 240}, 9,
		func(r *rig, n int) func() float64 { return perSample(r.t, 16, n) }},
	{"clients", "p50 latency / ReverseProxy, 16 GPUs × 60 fields", "", []int{1, 2, 4, 8, 16, 32}, 5, manyClients},
	{"sources", "CPU of a scrape for each source of 8 GPUs × 30 fields", "µs", []int{1, 4, 16, 64}, 7, manySources},
	{"rules", "CPU of an evaluation for each rule, a reading of 16 GPUs × 60 fields each second included", "µs", []int{10, 30, 100, 300}, 3, manyRules},
	{"GPUs on the terminal", "CPU for a frame, a new reading every 250 ms, on 160 × 45", "ms", []int{8, 16, 64, 128, 256}, 3, manyFrames},
}

// measure returns the results of each point, in rounds of all points.
func (g growth) measure(r *rig) []measured {
	all := make([]measured, len(g.points))
	r.t.Run(strings.Fields(g.of)[0], func(t *testing.T) { // all that it starts ends with it
		on := &rig{t: t, binary: r.binary}
		var rounds []func() float64
		for _, n := range g.points {
			rounds = append(rounds, g.start(on, n))
		}
		for range g.rounds {
			for i, round := range rounds {
				all[i] = append(all[i], round())
			}
		}
	})
	for _, m := range all {
		slices.Sort(m)
	}
	return all
}

// perSample measures the CPU time of a scrape in process, in nanoseconds per sample.
func perSample(t *testing.T, entities, fields int) func() float64 {
	scrape := steadyScrape(t, rawtest.Body(entities, fields, 1))
	n := max(1, 50_000/(entities*fields))
	return func() float64 { return 1e9 * timeOf(n, scrape) / float64(n*entities*fields) }
}

func manyClients(r *rig, n int) func() float64 {
	if r.ours == nil {
		*r = *newRig(r.t, r.binary, rawtest.Body(16, 60, 1))
	}
	return func() float64 { return latencyRatio(r.t, r.ours, r.baseline, len(r.body), n).quartile(2) }
}

// manySources measures a scrape of n sources with different GPUs, in microseconds per source.
func manySources(r *rig, n int) func() float64 {
	body := rawtest.Body(8, 30, 1)
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	r.t.Cleanup(server.Close)
	var config strings.Builder
	config.WriteString("sources:\n")
	for i := range n {
		own := bytes.ReplaceAll(body, []byte(`UUID="GPU-`), fmt.Appendf(nil, `UUID="GPU-%02x`, i))
		mux.HandleFunc("/"+strconv.Itoa(i)+"/metrics", func(w http.ResponseWriter, _ *http.Request) { w.Write(own) })
		fmt.Fprintf(&config, "- {source: %s/%d/metrics, poll: 0}\n", server.URL, i)
	}
	_, flag := fed(r.t, config.String())
	c := startProxy(r.t, r.binary, flag, "--source.min-interval=0s")
	scrape := keptScrape(r.t, c, false)
	scrape()
	return func() float64 {
		times := max(4, 256/n)
		return 1e6 * cpuOf(r.t, c, func() {
			for range times {
				scrape()
			}
		}) / float64(times*n)
	}
}

// manyRules measures an evaluation of n rules each second, in microseconds per rule.
func manyRules(r *rig, n int) func() float64 {
	body := rawtest.Body(16, 60, 1)
	up := startUpstream(func() ([]byte, error) { return body, nil })
	r.t.Cleanup(up.stop)
	var rules strings.Builder
	rules.WriteString("groups:\n- name: g\n  interval: 1s\n  rules:\n")
	for i := range n {
		fmt.Fprintf(&rules, "  - {record: 'a:b%d', expr: 'avg_over_time(DCGM_FI_PROF_SM_ACTIVE[1m]) > %d'}\n", i, i)
	}
	file := filepath.Join(r.t.TempDir(), "r.yml")
	writeFile(r.t, file, rules.String())
	c := startProxy(r.t, r.binary, "--source="+up.url+"/metrics", "--poll=1", "--rules.file="+file)
	evaluations := func() float64 { return ofFirstRule(r.t, c, "kpulse_proxy_rule_evaluations_total") }
	await := func(more float64) (count float64) {
		for until, end := evaluations()+more, time.Now().Add(patience); count < until && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			count = evaluations()
		}
		return count
	}
	await(2)
	return func() float64 {
		begun, before := await(1), cpuTime(r.t, c)
		done := await(3) - begun
		return float64(cpuTime(r.t, c)-before) / 1e3 / (done * float64(n))
	}
}

// ofFirstRule returns one of the proxy's own counters for the rule a:b0, 0 if absent.
func ofFirstRule(t testing.TB, c *child, name string) (value float64) {
	_, body, err := c.Get("/-/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, name+"{") && strings.Contains(line, `"a:b0"`) {
			value, err = strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// manyFrames measures the terminal, in milliseconds per frame. The terminals of all points show
// readings all the time and are measured in turn.
func manyFrames(r *rig, n int) func() float64 {
	const period, frames = 250 * time.Millisecond, 8
	show := startTerminal(r, n, period)
	return func() float64 { return 1e3 * show(frames*period) * period.Seconds() }
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
