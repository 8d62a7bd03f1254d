package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/exporter"
)

// forms are the forms of a history, by name.
var forms = map[string]expose.Form{"lean": {}, "full": {Full: true}}

// life is a random history of an exporter whose GPUs pods hold, leave and share.
type life struct {
	random *rand.Rand
	file   string
	gpus   [3]struct {
		load int // index into loads
		pods []int
		hot  bool
		xid  int
	}
	pods int // so far
}

// loads are SM, tensor, DRAM and graphics engine activity of several classes.
var loads = [...][4]float64{{0, 0, 0, 0}, {.9, .7, .2, .95}, {.6, .2, .3, .9}, {.85, .05, .2, .9}, {.3, 0, .6, .8}, {.2, 0, .1, .5}, {.1, 0, .1, .1}}

// step advances by a scrape.
func (l *life) step(t *testing.T) {
	t.Helper()
	for i := range l.gpus {
		g := &l.gpus[i]
		if l.random.IntN(12) == 0 {
			g.load = l.random.IntN(len(loads))
		}
		if l.random.IntN(8) == 0 {
			g.hot = !g.hot
		}
		if l.random.IntN(20) == 0 {
			g.xid = []int{0, 13, 31, 43}[l.random.IntN(4)]
		}
		if l.random.IntN(10) == 0 {
			g.pods = nil
			for range l.random.IntN(3) {
				l.pods++
				g.pods = append(g.pods, l.pods)
			}
		}
	}
	var page bytes.Buffer
	family := func(name string, value func(gpu int) float64) {
		fmt.Fprintf(&page, "# TYPE %s gauge\n", name)
		for i := range l.gpus {
			labels := fmt.Sprintf(`gpu="%d",UUID="GPU-%d",modelName="NVIDIA H100 80GB HBM3",Hostname="n"`, i, i)
			if len(l.gpus[i].pods) == 0 {
				fmt.Fprintf(&page, "%s{%s} %g\n", name, labels, value(i))
			}
			for _, pod := range l.gpus[i].pods {
				fmt.Fprintf(&page, "%s{%s,namespace=\"ml\",pod=\"p%d\",container=\"c\"} %g\n", name, labels, pod, value(i))
			}
		}
	}
	for at, name := range []string{"DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"} {
		family(name, func(gpu int) float64 { return loads[l.gpus[gpu].load][at] })
	}
	family("DCGM_FI_DEV_GPU_TEMP", func(gpu int) float64 { return map[bool]float64{false: 50, true: 99}[l.gpus[gpu].hot] })
	family("DCGM_FI_DEV_XID_ERRORS", func(gpu int) float64 { return float64(l.gpus[gpu].xid) })
	family("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", func(gpu int) float64 { return float64(4 * (l.gpus[gpu].load & 1)) })
	if err := os.WriteFile(l.file, page.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// restart is the time after which the program restarts.
const restart = 30 * time.Minute

// tell plays a life and passes each scrape to visit: the time since the first one, its snapshot,
// and the page of each form.
func tell(t *testing.T, seed uint64, every, length time.Duration, visit func(since time.Duration, snap *canonical.Snapshot, pages map[string]string)) {
	t.Helper()
	l := life{random: rand.New(rand.NewPCG(seed, 0)), file: filepath.Join(t.TempDir(), "page.prom")}
	writers := map[string]*expose.Writer{}
	for name, form := range forms {
		writers[name] = expose.NewWriter(form)
	}
	for earlier := time.Duration(0); earlier < length; earlier += restart {
		l.step(t)
		begun, text := time.Time{}, bytes.Buffer{}
		open := func() (source.Source, error) { return exporter.New(l.file, exporter.Options{MaxBody: 1 << 20}) }
		playSnapshots(t, open, every, restart-every, func(at time.Time, snap *canonical.Snapshot) {
			if begun.IsZero() {
				begun = at
			}
			pages := map[string]string{}
			for name, w := range writers {
				text.Reset()
				if err := w.Write(&text, snap); err != nil {
					t.Fatal(err)
				}
				pages[name] = text.String()
			}
			visit(earlier+at.Sub(begun), snap, pages)
			l.step(t)
		})
	}
}

// live appends a life in both forms to history, as scrapes from a time on.
func live(t *testing.T, history *bytes.Buffer, seed uint64, from time.Time, every, length time.Duration) {
	t.Helper()
	tell(t, seed, every, length, func(since time.Duration, _ *canonical.Snapshot, pages map[string]string) {
		for form, page := range pages {
			for line := range strings.Lines(page) {
				if series, value, ok := strings.Cut(line, "{"); ok && !strings.HasPrefix(line, "#") {
					fmt.Fprintf(history, "%s{form=%q,life=\"%d\",%s %d\n", series, form, seed, strings.TrimSuffix(value, "\n"), from.Add(since).Unix())
				}
			}
		}
	})
}

// TestFormsTellTheSame feeds random histories in both forms to a real Prometheus, and runs the same
// queries over ranges of all kinds on both.
func TestFormsTellTheSame(t *testing.T) {
	t.Parallel()
	binary := prometheusBinary(t)
	const length = time.Hour
	var history bytes.Buffer
	begun := time.Now().Add(-6 * time.Hour).Truncate(time.Minute)
	lives := []struct {
		seed  uint64
		every time.Duration
	}{{rand.Uint64N(1000), 15 * time.Second}, {1000 + rand.Uint64N(1000), 30 * time.Second}}
	for _, one := range lives {
		live(t, &history, one.seed, begun, one.every, length)
	}
	history.WriteString("# EOF\n")
	server := startPrometheus(t, binary, nil, history.Bytes())
	for _, one := range lives {
		both := asked{server, one.seed, map[string]int{}, map[string]int{}}
		for range 40 {
			at := begun.Add(time.Duration(rand.Int64N(int64(length/one.every))) * one.every)
			long := 2*one.every + time.Duration(rand.Int64N(int64(length/one.every)))*one.every
			both.compare(t, begun, at, long, one.every)
		}
		for what, n := range both.answered {
			if n == 0 {
				t.Errorf("life %d: %s has no result", one.seed, what)
			}
		}
		t.Logf("life %d: births within a range: %v", one.seed, both.exact)
		for counter := range bornLater {
			if both.exact[counter] == 0 {
				t.Errorf("life %d: no birth of %s was compared to the second", one.seed, counter)
			}
		}
	}
}

// span matches the range of a query.
var span = regexp.MustCompile(`\[\d+s\]`)

// asked is a server with a life in both forms.
type asked struct {
	server   *prometheus
	life     uint64
	answered map[string]int // number of results, by query
	exact    map[string]int // births in ranges at whose ends the counter was not young, by counter
}

// compare queries an instant and a range before it. What holds is the same in both forms.
func (a asked) compare(t *testing.T, begun, at time.Time, long, every time.Duration) {
	t.Helper()
	now := fmt.Sprintf("[%ds]", int(every.Seconds())-1) // only the scrape at that time
	over := fmt.Sprintf("[%ds]", int(long.Seconds()))
	for _, expr := range []string{
		`count by (gpu, class) (last_over_time(kpulse_gpu_workload_class{FORM}` + now + `) == 1)`,
		`count by (gpu, state) (last_over_time(kpulse_gpu_health{FORM}` + now + `) == 1)`,
		`count by (gpu, condition, state) (last_over_time(kpulse_gpu_health_condition{FORM}` + now + `) == 1)`,
		`count by (gpu, reason) (last_over_time(kpulse_gpu_clock_event_active{FORM}` + now + `) == 1)`,
		`count by (gpu, action) (last_over_time(kpulse_gpu_recommended_action{FORM,action!="none"}` + now + `) == 1)`,
		`sum by (gpu, class) (sum_over_time(kpulse_gpu_workload_class{FORM}` + over + `)) > 0`,
		`sum by (gpu) (increase(kpulse_allocation_seconds_total{FORM}` + over + `))`,
	} {
		a.differ(t, expr, at, exactly)
	}
	for counter, by := range bornLater {
		a.compareBirths(t, counter, by, begun, at, long, every)
	}
}

// bornLater are the counters that begin late in the lean form, with the labels that tell them apart.
var bornLater = map[string]string{
	"kpulse_gpu_workload_class_seconds_total": "gpu, class",
	"kpulse_gpu_health_seconds_total":         "gpu, state",
	"kpulse_allocation_class_seconds_total":   "gpu, workload_pod, class",
}

// compareBirths compares the increase of counters over a range: it is the same in both forms, whether
// or not the range holds births, but for counters that are young at an end of it.
func (a asked) compareBirths(t *testing.T, counter, by string, begun, at time.Time, long, every time.Duration) {
	t.Helper()
	now := fmt.Sprintf("sum by (%s) (last_over_time(%s{FORM}[%ds]))", by, counter, int(every.Seconds())-1)
	young := union(a.young(t, now, at, every), a.young(t, now, at.Add(-long), every))
	// A young counter's count is lost when the program ends.
	if last := begun.Add(restart - every); last.Before(at) && last.After(at.Add(-long)) {
		young = union(young, a.young(t, now, last, every))
	}
	birth := compute.DefaultOptions().Birth
	before, present := a.ask(t, now, "lean", at.Add(-long)), a.ask(t, now, "lean", at)
	over := fmt.Sprintf("sum by (%s) (increase(%s{FORM}[%ds])) > 0", by, counter, int(long.Seconds()))
	a.differ(t, over, at, func(labels string) float64 {
		within := 1e-6
		if _, is := young[labels]; is {
			within = (birth + every).Seconds()
		}
		_, was := before[labels]
		switch _, there := present[labels]; {
		case !there:
			// Prometheus extrapolates a series that has ended by up to 1.1 intervals, at its slope; after a
			// restart, the full form goes on where the lean one has ended. The lean form is steepest if it ends
			// just after its first minute at 0: it then has the seconds of a minute and a scrape, within a minute.
			within += 1.1 * every.Seconds() * (birth + every).Seconds() / birth.Seconds()
		case !was && within < 1:
			a.exact[counter]++
		}
		return within
	})
}

// exactly allows for rounding.
func exactly(string) float64 { return 1e-6 }

// differ fails if the answers of the two forms differ by more than within of their labels.
func (a asked) differ(t *testing.T, expr string, at time.Time, within func(labels string) float64) {
	t.Helper()
	lean, full := a.ask(t, expr, "lean", at), a.ask(t, expr, "full", at)
	a.answered[span.ReplaceAllString(expr, "")] += len(full)
	for labels := range union(lean, full) {
		if math.Abs(lean[labels]-full[labels]) > within(labels) {
			t.Errorf("life %d at %s: %s of %s is %v in the lean form, %v in the full form", a.life, at.Format(time.TimeOnly), expr, labels, lean[labels], full[labels])
		}
	}
}

// young returns the counters that are still 0 in the lean form but not in the full one. It fails if
// others differ, or if one is young for longer than a minute and a scrape.
func (a asked) young(t *testing.T, counters string, at time.Time, every time.Duration) map[string]float64 {
	t.Helper()
	young := map[string]float64{}
	lean, full := a.ask(t, counters, "lean", at), a.ask(t, counters, "full", at)
	for labels, v := range full {
		switch shown, there := lean[labels]; {
		case shown == v:
		case there && shown == 0 && v <= (compute.DefaultOptions().Birth+every).Seconds():
			young[labels] = v
		default:
			t.Errorf("life %d at %s: %s is %v in the lean form (there: %v), %v in the full form", a.life, at.Format(time.TimeOnly), labels, shown, there, v)
		}
	}
	return young
}

func (a asked) ask(t *testing.T, expr, form string, at time.Time) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for labels, text := range a.server.queryAt(t, strings.ReplaceAll(expr, "FORM", fmt.Sprintf(`form=%q,life="%d"`, form, a.life)), at) {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		values[labels] = v
	}
	return values
}

// union has the keys of both.
func union(a, b map[string]float64) map[string]float64 {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}
