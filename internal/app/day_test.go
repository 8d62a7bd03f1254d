package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/slow"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
)

// A day of a node, on a simulated clock: the exporter's page at each tick and the final ledger
// are both functions of the tick.

const (
	dayTick   = 15 * time.Second // between two scrapes
	dayTicks  = 24 * 240         // in a day
	dayBoards = 4
	// dayLimit is the longest time that a reading counts for: DESIGN's 5 minutes.
	dayLimit = 5 * time.Minute
)

// dayLoad is the load of a board for five minutes: SM, tensor, DRAM and graphics engine activity,
// and the class and the score with the preset ai.
type dayLoad struct {
	values [4]float64
	class  string
	score  float64
}

var dayLoads = []dayLoad{
	{[4]float64{0, 0, 0, 0}, "idle", 0},
	{[4]float64{.9, .7, .2, .9}, "tensor_heavy_compute", .35*.9 + .35*.7 + .2*.2 + .1*.9},
	{[4]float64{.6, .2, .3, .9}, "tensor_compute", .35*.6 + .35*.2 + .2*.3 + .1*.9},
	{[4]float64{.9, 0, .2, .9}, "compute_heavy", .35*.9 + .2*.2 + .1*.9},
	{[4]float64{.3, 0, .6, .8}, "memory_bound", .35*.3 + .2*.6 + .1*.8},
	{[4]float64{.1, 0, .1, .1}, "low_utilization", .35*.1 + .2*.1 + .1*.1},
}

// loadAt returns the load of a board at a tick.
func loadAt(board, tick int) dayLoad { return dayLoads[(board+tick/20)%len(dayLoads)] }

// isThere reports whether the exporter reports a board. The third is away for ten minutes every
// three hours, and for two hours in the afternoon.
func isThere(board, tick int) bool {
	return board != 2 || tick%720 >= 40 && (tick < 14*240 || tick >= 16*240)
}

// partsOf returns the labels of the parts of a board. In the morning the last one has MIG
// instances, other ones each hour; "" is the whole board.
func partsOf(board, tick int) []string {
	if board != 3 || tick < 6*240 || tick >= 12*240 {
		return []string{""}
	}
	hour := tick / 240
	return []string{
		fmt.Sprintf(`,GPU_I_PROFILE="1g.10gb",GPU_I_ID="%d"`, hour%5),
		fmt.Sprintf(`,GPU_I_PROFILE="3g.40gb",GPU_I_ID="%d"`, 5+hour%3),
	}
}

// holdersOf returns the holders of a part of a board: a pod for five minutes, on the first board
// also one for seven, and on the second a job for half an hour. The last board is free in the
// evening.
func holdersOf(board, part, tick int) []string {
	pod := func(every int) string {
		return fmt.Sprintf(`,namespace="ml",pod="train-%d-%d-%d-%d",container="main"`, every, board, part, tick/every)
	}
	switch {
	case board == 0:
		return []string{pod(20), pod(28)}
	case board == 1:
		return []string{fmt.Sprintf(`,hpc_job="%d"`, 1000+tick/120)}
	case board == 3 && tick > 20*240:
		return []string{""}
	}
	return []string{pod(20)}
}

// fault returns the exporter's fault at a tick, or "". Each hour it fails for some ticks, and at
// night it is away for twenty minutes.
func fault(tick int) string {
	switch {
	case tick >= 4*240 && tick < 4*240+80, tick%240 == 100:
		return "gone"
	case tick%240 == 101:
		return "<html>502 Bad Gateway</html>\n"
	case tick%240 == 150:
		return "{}\n"
	}
	return ""
}

// dayPage returns the exporter's page at a tick.
func dayPage(tick int) []byte {
	var page []byte
	row := func(name, labels string, v float64) { page = fmt.Appendf(page, "%s{%s} %g\n", name, labels, v) }
	for board := range dayBoards {
		if !isThere(board, tick) {
			continue
		}
		load := loadAt(board, tick)
		for part, cut := range partsOf(board, tick) {
			for _, holder := range holdersOf(board, part, tick) {
				labels := fmt.Sprintf(`gpu="%d",UUID="GPU-%d",modelName="NVIDIA H100 80GB HBM3",Hostname="n"%s%s`, board, board, cut, holder)
				for i, name := range []string{"DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"} {
					row(name, labels, load.values[i])
				}
				row("DCGM_FI_DEV_GPU_TEMP", labels, 50+float64(tick%240/200*49))
				row("DCGM_FI_DEV_XID_ERRORS", labels, []float64{0, 13, 31, 43}[tick/240%4])
				row("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", labels, 1e6*float64(tick))
			}
		}
	}
	return append(page, "# the end\n"...)
}

// truth is the ledger that the script implies after a day, in seconds.
type truth struct {
	utilized map[string]float64 // by board, with its instances
	classes  map[string]float64 // by board and class
	held     float64            // of all holders
}

// dayTruth computes the truth tick by tick. It does not count the part of a gap beyond the limit,
// nor the time before a part appears.
func dayTruth() truth {
	want := truth{map[string]float64{}, map[string]float64{}, 0}
	last, read := 0, -1 // the program reads the first page before the first scrape
	for tick := range dayTicks {
		if fault(tick) != "" {
			continue
		}
		seconds := min(time.Duration(tick-read)*dayTick, dayLimit).Seconds()
		for board := range dayBoards {
			if isThere(board, tick) && isThere(board, last) {
				want.spend(board, tick, last, seconds)
			}
		}
		last, read = tick, tick
	}
	return want
}

// spend adds the activity of the parts of a board that are there at both ticks.
func (w *truth) spend(board, tick, last int, seconds float64) {
	name, load := fmt.Sprint(board), loadAt(board, tick)
	if now, before := partsOf(board, tick), partsOf(board, last); now[0] != "" && before[0] == "" {
		w.held += seconds // of the board's holder until then
	}
	for part, cut := range partsOf(board, tick) {
		was := slices.Contains(partsOf(board, last), cut)
		if cut != "" && !was {
			continue
		}
		w.utilized[name] += seconds * load.score
		w.classes[name+" "+load.class] += seconds
		if was && holdersOf(board, part, last)[0] != "" {
			w.held += seconds
		}
	}
}

// TestDay runs a day in each form, with a scraper, the terminal's client, rules, reloads, faults, and
// workloads and instances that come and go. The last values of all counters must sum to the
// script's truth, and neither memory nor series may grow with time.
func TestDay(t *testing.T) {
	slow.Test(t, "lives a day of a node in each form of series, in half a minute of CPU")
	for _, form := range []string{"lean", "full"} {
		t.Run(form, func(t *testing.T) { liveDay(t, form) })
	}
}

func liveDay(t *testing.T, form string) {
	dir := t.TempDir()
	page, config := filepath.Join(dir, "page.prom"), filepath.Join(dir, "config.yml")
	writeFile(t, config, "preset: ai\n")
	writeFile(t, page, string(dayPage(0)))
	rules := filepath.Join(dir, "day.rules.yml")
	writeFile(t, rules, "groups:\n- name: day\n  interval: 1m\n  rules:\n  - record: node:held:seconds\n    expr: sum(kpulse_allocation_seconds_total)\n")
	synctest.Test(t, func(t *testing.T) {
		opts := configured(t, "", nil, "--source="+page, "--config.file="+config, "--rules.file="+rules, "--series="+form,
			"--poll=20s", "--web.enable-lifecycle") // longer than dayTick: the script knows no reads between scrapes
		p, err := assemble(opts, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.run(ctx) }()
		web := client.ForHandler(p.handler)
		past := history.NewHistory()
		d := &day{t: t, web: web, past: past, seen: map[string]float64{}, ended: map[string]float64{}, files: []string{page, config}}
		for tick := range dayTicks {
			d.live(tick)
		}
		d.check(dayTruth(), form)
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// day is the scraper and the terminal of TestDay.
type day struct {
	t     *testing.T
	web   *http.Client
	files []string           // the exporter's page, and the config file
	past  *history.History   // the terminal's
	seen  map[string]float64 // the counters of seconds in the last scrape
	// ended sums, by sumOf, the last values of counters that are no longer served or that were
	// reset.
	ended map[string]float64
	first usage // after 13 hours
}

// usage is the resources that must not grow.
type usage struct{ heap, goroutines, descriptors, series int }

// live runs a tick: the exporter's page changes, and the scraper scrapes.
func (d *day) live(tick int) {
	time.Sleep(dayTick)
	if text := fault(tick); text == "gone" {
		_ = os.Remove(d.files[0])
	} else if text != "" {
		writeFile(d.t, d.files[0], text)
	} else {
		writeFile(d.t, d.files[0], string(dayPage(tick)))
	}
	if tick%120 == 60 { // every half hour: another setting, which does not change the scores
		writeFile(d.t, d.files[1], fmt.Sprintf("preset: ai\nxid_hold: %dh\n", 1+tick/120))
		if status, text := d.ask(http.MethodPost, "/-/reload"); status != http.StatusOK {
			d.t.Fatalf("tick %d: reload: %d %s", tick, status, text)
		}
	}
	status, text := d.ask(http.MethodGet, "/metrics")
	if failed := status != http.StatusOK; failed != (fault(tick) != "") {
		d.t.Fatalf("tick %d: status %d: %s", tick, status, text)
	}
	if tick%4 == 0 {
		d.past.Add(client.Fetch(d.t.Context(), client.Target{URL: client.InProcess, Client: d.web}))
		d.past.Forget(time.Now())
	}
	if status != http.StatusOK {
		return
	}
	series := d.note(text)
	switch tick {
	case 13 * 240: // from here on the terminal's history is full
		d.first = d.usage(series)
	case 22 * 240:
		d.compare(d.usage(series))
	}
}

// ask returns the status and the body of a response.
func (d *day) ask(method, path string) (int, string) {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), method, "http://localhost:0"+path, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	res, err := d.web.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// note keeps the counters of seconds in a scrape, and returns its number of series.
func (d *day) note(text string) (series int) {
	now := make(map[string]float64, len(d.seen))
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "} ")
		if !ok || !strings.HasPrefix(line, "kpulse_") {
			continue
		}
		series++
		if family, _, _ := strings.Cut(name, "{"); !strings.HasSuffix(family, "_seconds_total") {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			d.t.Fatalf("%s: %v", line, err)
		}
		now[name] = v
	}
	for name, v := range d.seen {
		if after, there := now[name]; !there || after < v {
			d.ended[sumOf(name)] += v
		}
	}
	d.seen = now
	return series
}

// sumOf returns the sum that a counter adds to: its family and, for a device, board and class; ""
// for none, as for the unknown class of a board with instances.
func sumOf(series string) string {
	family, labels, _ := strings.Cut(series, "{")
	board, class := labelIn(labels, "gpu"), labelIn(labels, "class")
	switch family {
	case "kpulse_gpu_real_utilization_seconds_total":
		return "utilized " + board
	case "kpulse_gpu_workload_class_seconds_total":
		if board == "3" && labelIn(labels, "mig_instance") == "" && class == "unknown" {
			return ""
		}
		return "class " + board + " " + class
	case "kpulse_allocation_seconds_total":
		return "held"
	case "kpulse_allocation_class_seconds_total":
		return "held by class"
	}
	return ""
}

// usage returns the resources in use while nothing runs.
func (d *day) usage(series int) usage {
	runtime.GC()
	runtime.GC() // for memory that finalizers kept
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	files, _ := os.ReadDir("/proc/self/fd") // none elsewhere
	return usage{int(memory.HeapAlloc), runtime.NumGoroutine(), len(files), series}
}

// compare compares the usage with that of nine hours before.
func (d *day) compare(now usage) {
	d.t.Logf("after 13 h %+v, after 22 h %+v", d.first, now)
	const garbage = 1 << 20 // the dictionary of series keeps 1,024 parsed label blocks of series that went
	if grown := now.heap - d.first.heap; grown > garbage {
		d.t.Errorf("the heap grew by %d KiB in 9 hours", grown>>10)
	}
	if now.goroutines > d.first.goroutines || now.descriptors > d.first.descriptors {
		d.t.Errorf("%d goroutines and %d descriptors, at first %d and %d", now.goroutines, now.descriptors, d.first.goroutines, d.first.descriptors)
	}
	if now.series > d.first.series*5/4 {
		d.t.Errorf("%d series, at first %d", now.series, d.first.series)
	}
}

// check compares the sums of the counters with the truth.
func (d *day) check(want truth, form string) {
	_ = d.note("") // ends all
	got := func(what string, want, slack float64) {
		if sum := d.ended[what]; math.Abs(sum-want) > slack {
			d.t.Errorf("%s: %v s, want %v", what, sum, want)
		}
		delete(d.ended, what)
	}
	for board, seconds := range want.utilized {
		got("utilized "+board, seconds, 1e-4)
	}
	for class, seconds := range want.classes {
		got("class "+class, seconds, 1e-6)
	}
	got("held", want.held, 1e-3)
	if form == "full" { // the lean form does not serve a young counter's value if its workload ends
		got("held by class", want.held, 1e-3)
	}
	for what, sum := range d.ended {
		if strings.HasPrefix(what, "class ") && sum != 0 {
			d.t.Errorf("%s: %v s, want none", what, sum)
		}
	}
}

// labelIn returns the value of a label in the text of a label block.
func labelIn(labels, name string) string {
	_, rest, ok := strings.Cut(","+labels, ","+name+`="`)
	if value, _, _ := strings.Cut(rest, `"`); ok {
		return value
	}
	return ""
}
