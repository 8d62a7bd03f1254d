package history

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// start is a multiple of each step.
var start = time.Unix(1_800_000_000, 0).Truncate(time.Hour)

// reading returns a node with one GPU whose real utilization is v.
func reading(after, period time.Duration, v float64) *client.Node {
	g := &client.GPU{Key: client.Key{UUID: "u"}, RealUtilization: v, Class: canonical.Idle}
	for i := range g.Values {
		g.Values[i] = math.NaN()
	}
	if v >= 0.5 {
		g.Class = canonical.ComputeHeavy
	}
	return &client.Node{Up: true, At: start.Add(after), FetchedAt: start.Add(after), Period: period, GPUs: []*client.GPU{g}}
}

func means(points []Point) []float64 {
	var all []float64
	for _, p := range points {
		all = append(all, p.Mean)
	}
	return all
}

func same(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool {
		return x == y || math.IsNaN(x) && math.IsNaN(y) || math.Abs(x-y) <= math.Abs(y)/2048
	})
}

var nan = math.NaN()

func TestHistoryBuckets(t *testing.T) {
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	for _, test := range []struct {
		name       string
		period     float64
		at, values []float64 // seconds after start
		end        float64
		step       time.Duration
		columns    int
		want, hi   []float64
	}{
		{name: "a bucket a reading", period: 1, at: []float64{0, 1, 2}, values: []float64{.1, .2, .3}, end: 2.9, step: time.Second, columns: 4,
			want: []float64{nan, .1, .2, .3}},
		{name: "what was not read is blank", period: 1, at: []float64{2}, values: []float64{.5}, end: 2, step: time.Second, columns: 3,
			want: []float64{nan, nan, .5}},
		{name: "several readings in one", period: 1, at: []float64{0, 1, 2, 3}, values: []float64{.1, .3, .5, .7}, end: 3.9, step: 2 * time.Second, columns: 2,
			want: []float64{.2, .6}, hi: []float64{.3, .7}},
		{name: "a gap stays one", period: 1, at: []float64{0, 6}, values: []float64{.1, .2}, end: 6, step: time.Second, columns: 7,
			want: []float64{.1, .1, nan, nan, nan, nan, .2}},
		{name: "a slow source's reading stands for its period", period: 4, at: []float64{0, 4, 8}, values: []float64{.1, .2, .3}, end: 9, step: 2 * time.Second, columns: 5,
			want: []float64{.1, .1, .2, .2, .3}},
		{name: "missing is no zero", period: 1, at: []float64{0, 1, 2}, values: []float64{.1, nan, .3}, end: 2, step: time.Second, columns: 3,
			want: []float64{.1, nan, .3}},
		{name: "half minutes", period: 10, at: []float64{0, 10, 20, 30, 40, 50, 60}, values: []float64{.1, .2, .3, .4, .5, .6, .7}, end: 60, step: time.Minute, columns: 2,
			want: []float64{.35, .7}, hi: []float64{.6, .7}},
	} {
		h := NewHistory()
		for i, at := range test.at {
			h.Add(reading(seconds(at), seconds(test.period), test.values[i]))
		}
		dst := make([]Point, test.columns)
		h.Fill(dst, client.Key{UUID: "u"}, client.MetricReal, start.Add(seconds(test.end)), test.step)
		if !same(means(dst), test.want) {
			t.Errorf("%s: %v, want %v", test.name, means(dst), test.want)
		}
		for i, hi := range test.hi {
			if got := dst[i].Max; got < hi-1e-6 || got > (1+1./1024)*hi {
				t.Errorf("%s: column %d goes up to %v, want %v or a little more", test.name, i, got, hi)
			}
		}
	}
}

// TestHistoryScrollsWithoutShimmer compares the columns of each step after each new reading with
// those before: except for the newest, which is being filled, they must be the same, shifted.
func TestHistoryScrollsWithoutShimmer(t *testing.T) {
	for _, step := range []time.Duration{250 * time.Millisecond, time.Second, 2 * time.Second, 6 * time.Second, 30 * time.Second, time.Minute} {
		for _, period := range []time.Duration{100 * time.Millisecond, time.Second, 7 * time.Second} {
			h := NewHistory()
			var before []Point
			var beforeAt int64
			for i := range 600 {
				at := time.Duration(i)*period + 13*time.Millisecond
				h.Add(reading(at, period, float64(i%97)/100))
				now := start.Add(at)
				after := make([]Point, 20)
				h.Fill(after, client.Key{UUID: "u"}, client.MetricReal, now, step)
				column := now.UnixMilli() / step.Milliseconds()
				if shift := int(column - beforeAt); before != nil && shift < len(before) {
					old, young := before[shift:len(before)-1], after[:len(before)-1-shift]
					if !same(means(old), means(young)) {
						t.Fatalf("step %v, period %v, reading %d: the drawn history changed from %v to %v", step, period, i, means(old), means(young))
					}
				}
				before, beforeAt = after, column
			}
		}
	}
}

func TestHistoryIgnoresTheSameReading(t *testing.T) {
	h := NewHistory()
	first := reading(0, time.Second, .5)
	h.Add(first)
	again := *first
	again.FetchedAt = start.Add(3 * time.Second) // read at the same time as the first
	again.GPUs = reading(0, 0, .9).GPUs
	h.Add(&again)
	dst := make([]Point, 4)
	h.Fill(dst, client.Key{UUID: "u"}, client.MetricReal, start.Add(3*time.Second), time.Second)
	if want := []float64{.5, .5, nan, nan}; !same(means(dst), want) {
		t.Errorf("%v, want %v", means(dst), want)
	}
}

func TestHistoryDistrustsForeignClocks(t *testing.T) {
	for _, test := range []struct {
		at   time.Duration // by the node's clock
		want time.Duration
	}{{-time.Second, -time.Second}, {time.Hour, 0}, {-time.Hour, 0}} {
		n := &client.Node{At: start.Add(test.at), FetchedAt: start, Period: time.Second}
		if got := n.ReadAt().Sub(start); got != test.want {
			t.Errorf("read at %v, want %v", got, test.want)
		}
	}
}

func TestHistoryClasses(t *testing.T) {
	h := NewHistory()
	for i, v := range []float64{.1, .9, .9, .1, .1, .1} {
		h.Add(reading(time.Duration(i)*time.Second, time.Second, v))
	}
	// The second column holds 2 s of each class: the first in the table wins.
	got := h.LastClasses(client.Key{UUID: "u"}, start.Add(5*time.Second), 4*time.Second, 3)
	if want := []canonical.Class{canonical.NumClasses, canonical.Idle, canonical.Idle}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := h.LastClasses(client.Key{UUID: "u"}, start.Add(2*time.Second), time.Second, 1); got[0] != canonical.ComputeHeavy {
		t.Errorf("class %v in the third second", got[0])
	}
}

func TestHistoryForgets(t *testing.T) {
	h := NewHistory()
	h.Add(reading(0, time.Second, .5))
	gone := reading(time.Second, time.Second, .5)
	gone.GPUs[0].Gone = true
	h.Add(gone)
	h.Forget(start.Add(10 * time.Minute))
	if len(h.devices) != 1 {
		t.Error("forgotten too early")
	}
	h.Forget(start.Add(10*time.Minute + time.Second))
	if len(h.devices) != 0 {
		t.Error("not forgotten")
	}
}

func TestStep(t *testing.T) {
	for _, test := range []struct {
		window time.Duration
		n      int
		want   time.Duration
	}{{time.Minute, 60, time.Second}, {time.Minute, 59, 2 * time.Second}, {6 * time.Hour, 100, 5 * time.Minute}, {24 * time.Hour, 1, time.Hour}} {
		if got := Step(test.window, test.n); got != test.want {
			t.Errorf("%v in %d columns: %v, want %v", test.window, test.n, got, test.want)
		}
	}
	for _, window := range Windows {
		for n := 10; n < 700; n++ {
			step := Step(window, n)
			if l := resolutions[resolutionOf(step)]; l.width*time.Duration(l.buckets) < window || step*time.Duration(n) < window {
				t.Fatalf("%v in %d columns of %v: not all of it is kept so finely", window, n, step)
			}
		}
	}
	for _, step := range Steps {
		if step%resolutions[0].width != 0 {
			t.Errorf("step %v is not a multiple of the finest level", step)
		}
	}
}

// TestYoungHistoryFillsCharts checks that, without a chosen window, charts begin with a short
// one and widen it with the history, in few steps.
func TestYoungHistoryFillsCharts(t *testing.T) {
	const columns = 36
	h := NewHistory()
	changes, before := 0, time.Duration(0)
	for i := range 600 {
		h.Add(reading(time.Duration(i)*time.Second, time.Second, .5))
		step := Step(h.Window(start.Add(time.Duration(i)*time.Second)), columns)
		if step != before {
			changes, before = changes+1, step
		}
		if shown := min(time.Duration(i)*time.Second, DefaultWindow); i > 15 && shown < step*columns/3 {
			t.Errorf("after %d s a chart shows %v", i, step*columns)
		}
	}
	if changes != len(youngWindows)+1 || before != Step(DefaultWindow, columns) {
		t.Errorf("%d changes, at last columns of %v", changes, before)
	}
}

func TestHistoryAllocatesNothingWhenItIsFull(t *testing.T) {
	h := NewHistory()
	n := reading(0, time.Second, .5)
	next := func() {
		n.At, n.FetchedAt = n.At.Add(2*time.Second), n.FetchedAt.Add(2*time.Second)
		h.Add(n)
	}
	for range 15 * 720 { // six hours
		next()
	}
	dst := make([]Point, 100)
	if allocs := testing.AllocsPerRun(100, func() {
		next()
		h.Fill(dst, n.GPUs[0].Key, client.MetricReal, n.At, 2*time.Second)
	}); allocs > 0 {
		t.Errorf("%v allocations for a reading", allocs)
	}
}

func BenchmarkHistoryFill(b *testing.B) {
	h := NewHistory()
	for i := range 7200 {
		h.Add(reading(time.Duration(i)*time.Second, time.Second, .5))
	}
	dst := make([]Point, 120)
	b.ReportAllocs()
	for b.Loop() {
		h.Fill(dst, client.Key{UUID: "u"}, client.MetricReal, start.Add(7200*time.Second), 30*time.Second)
	}
}

// TestHistoryKeepsWhatItMust checks, for readings of many periods and with pauses, that each bucket
// that must be kept has their mean, and stands for the empty ones after it while its reading is
// valid.
func TestHistoryKeepsWhatItMust(t *testing.T) {
	type bucket struct {
		sum, n   float64
		validity time.Duration
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, kept := range resolutions {
		h, want := NewHistory(), map[int64]*bucket{}
		width, at := kept.width.Milliseconds(), time.Duration(0)
		for range 200 {
			period := kept.width * time.Duration(1+random.IntN(40)) / 8
			for range random.IntN(60) {
				at += period
				v := float64(1 + random.IntN(9))
				h.Add(reading(at, period, v))
				number := start.Add(at).UnixMilli() / width
				if want[number] == nil {
					want[number] = &bucket{}
				}
				b := want[number]
				b.sum, b.n, b.validity = b.sum+v, b.n+1, max(b.validity, period)
			}
			if random.IntN(9) == 0 {
				at += time.Duration(random.Int64N(2*kept.buckets)) * kept.width
			}
			dst := make([]Point, kept.buckets)
			h.Fill(dst, client.Key{UUID: "u"}, client.MetricReal, start.Add(at), kept.width)
			newest := start.Add(at).UnixMilli() / width
			for i, got := range dst {
				mean := nan
				for number := newest - kept.buckets + 1 + int64(i); number > newest-kept.buckets; number-- {
					if b := want[number]; b != nil {
						if gap := newest - kept.buckets + 1 + int64(i) - number; time.Duration(gap)*kept.width <= 3*b.validity/2 {
							mean = b.sum / b.n
						}
						break
					}
				}
				if older := i < 60; !same([]float64{got.Mean}, []float64{mean}) && !(older && math.IsNaN(mean)) { // older buckets may still be there
					t.Fatalf("width %v, bucket %d of %d: %v, want %v", kept.width, i, len(dst), got.Mean, mean)
				}
			}
		}
	}
}

// TestLateMetricsKeepTheOthers checks that a metric that first comes later leaves the others'
// values.
func TestLateMetricsKeepTheOthers(t *testing.T) {
	h := NewHistory()
	for i, power := range []float64{nan, 300, 301} {
		n := reading(time.Duration(i)*time.Second, time.Second, .5)
		n.GPUs[0].Values[canonical.Power] = power
		h.Add(n)
	}
	dst := make([]Point, 3)
	for m, want := range map[client.Metric][]float64{client.MetricReal: {.5, .5, .5}, client.MetricPower: {nan, 300, 301}} {
		if h.Fill(dst, client.Key{UUID: "u"}, m, start.Add(2*time.Second), time.Second); !same(means(dst), want) {
			t.Errorf("metric %d: %v, want %v", m, means(dst), want)
		}
	}
}

// TestHistoryFillsTheWindow checks that a chart of any width has as much history as its title says.
func TestHistoryFillsTheWindow(t *testing.T) {
	h := NewHistory()
	for at := time.Duration(0); at <= retention; at += 2 * time.Second {
		h.Add(reading(at, 2*time.Second, .5))
	}
	for _, window := range Windows {
		for n := 20; n <= 660; n += 20 {
			step := Step(window, n)
			dst := make([]Point, n)
			h.Fill(dst, client.Key{UUID: "u"}, client.MetricReal, start.Add(retention), step)
			for i, p := range dst[n-int(window/step)+1:] { // the first bucket may begin before the history
				if math.IsNaN(p.Mean) {
					t.Errorf("the last %v in %d columns of %v: nothing %v ago", window, n, step, window-time.Duration(i)*step)
					break
				}
			}
		}
	}
}
