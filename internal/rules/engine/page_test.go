package engine

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"

	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
)

// selecting returns the interest of a rule with this expression.
func selecting(expr string) *interest { return newInterest(group15([2]string{"r", expr}), nil) }

// latest returns the newest sample of each series that has not ended.
func (st *store) latest() map[string]float64 {
	values := map[string]float64{}
	st.each(func(s *series) bool {
		if last, ok := s.last(); ok && !value.IsStaleNaN(last.F) {
			values[s.labels.String()] = last.F
		}
		return true
	})
	return values
}

func TestPageReadsWhatPrometheusDoes(t *testing.T) {
	for _, test := range []struct {
		name, page string
		want       map[string]float64
	}{
		{"values", "a 1\na{x=\"1\"} 2.5\na{x=\"2\"} -3e-2 \na{x=\"3\"}\t+Inf\na{x=\"4\"}4\na{x=\"5\"} 1e999\n",
			map[string]float64{`{__name__="a"}`: 1, `{__name__="a", x="1"}`: 2.5, `{__name__="a", x="2"}`: -0.03, `{__name__="a", x="3"}`: math.Inf(1), `{__name__="a", x="4"}`: 4}},
		{"other families", "# HELP a b\n# TYPE a gauge\nab 1\nb{x=\"a 2\"} 1\nb{x=\"\na 5\n\"} 2\nb{x=\"}\\\"\na 6\"} 2\nb{x=\"} 5\na 6\"} 2\nb{} 3\nb{x=\"\"} 3\nb{x=\"\\\\\"} 3\nb{x=\"1\",} 3\na 7\n",
			map[string]float64{`{__name__="a"}`: 7}},
		{"labels", "a{x=\"q\\\"\\\\\\n}\",y=\"\",} 1\n", map[string]float64{`{__name__="a", x="q\"\\\n}"}`: 1}},
		{"no end", "a 1", map[string]float64{`{__name__="a"}`: 1}},
		{"the same twice", "a 1\na 2\na{x=\"\"} 3\n", map[string]float64{`{__name__="a"}`: 1}},
		{"a label twice", "a{x=\"1\",x=\"2\"} 1\n", map[string]float64{}},
		{"a quoted name, with a newline in a label", "{\"b\",x=\"\na 5\n\"} 2\n{\"a\"} 3\na 7\n", map[string]float64{`{__name__="a"}`: 7}},
		{"a time of its own", "a 1 900\n", map[string]float64{`{__name__="a"}`: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			st, in, p := newStore(Limits{100, 100}), selecting("a"), &page{}
			for at := range int64(3) {
				p.observe(st, in, 1000+at, [][]byte{[]byte(test.page)})
				if got := st.latest(); fmt.Sprint(got) != fmt.Sprint(test.want) {
					t.Fatalf("reading %d of the page: got %v, want %v", at+1, got, test.want)
				}
			}
		})
	}
}

// TestSeriesWithTimesOfTheirOwnDoNotEnd: as in Prometheus, a series with timestamps does
// not end when its line is gone.
func TestSeriesWithTimesOfTheirOwnDoNotEnd(t *testing.T) {
	st, in, p := newStore(Limits{100, 100}), selecting("a"), &page{}
	p.observe(st, in, 1000, [][]byte{[]byte("a 1 900\na{x=\"1\"} 2\n")})
	p.observe(st, in, 2000, nil)
	if got := fmt.Sprint(st.latest()); got != `map[{__name__="a"}:1]` {
		t.Errorf("alive is %s", got)
	}
}

// TestSeriesOfSeveralPages: the first page that has a series owns it as long as it has it.
func TestSeriesOfSeveralPages(t *testing.T) {
	st, in := newStore(Limits{100, 100}), selecting("a")
	pages := []*page{{}, {}}
	at := int64(1000)
	for _, step := range []struct {
		page int
		text string // "" could not be read
		want string
	}{
		{1, "a 50\n", `map[{__name__="a"}:50]`},
		{0, "a 40\n", `map[{__name__="a"}:50]`},
		{1, "a 51\n", `map[{__name__="a"}:51]`},
		{1, "", `map[]`},
		{0, "a 41\n", `map[{__name__="a"}:41]`},
		{1, "a 52\n", `map[{__name__="a"}:41]`},
		{0, "b 1\n", `map[]`},
		{1, "a 53\n", `map[{__name__="a"}:53]`},
	} {
		at += 1000
		var parts [][]byte
		if step.text != "" {
			parts = [][]byte{[]byte(step.text)}
		}
		pages[step.page].observe(st, in, at, parts)
		if got := fmt.Sprint(st.latest()); got != step.want {
			t.Errorf("after page %d says %q: %s, want %s", step.page, step.text, got, step.want)
		}
	}
}

// TestSeriesSpelledAnotherWay: a series ends with its source, not with one of its
// spellings.
func TestSeriesSpelledAnotherWay(t *testing.T) {
	st, in, p := newStore(Limits{100, 100}), selecting("a"), &page{}
	at := int64(1000)
	for _, step := range []struct{ text, want string }{
		{"a{x=\"1\",y=\"2\"} 1\n", `map[{__name__="a", x="1", y="2"}:1]`},
		{"a{y=\"2\",x=\"1\"} 2\n", `map[{__name__="a", x="1", y="2"}:2]`},
		{"", `map[]`},
	} {
		at += 1000
		p.observe(st, in, at, [][]byte{[]byte(step.text)})
		if got := fmt.Sprint(st.latest()); got != step.want {
			t.Errorf("after %q: %s, want %s", step.text, got, step.want)
		}
	}
}

// TestSteadyPageAllocatesNothing: once the ranges of the series are full, neither lines nor
// samples allocate.
func TestSteadyPageAllocatesNothing(t *testing.T) {
	st, p := newStore(Limits{1 << 20, 1 << 20}), &page{}
	in := selecting(`rate({__name__=~"DCGM_FI_(DEV_GPU_UTIL|PROF_.*)"}[1m]) or DCGM_FI_DEV_POWER_USAGE`)
	parts := [][]byte{rawtest.Body(112, 60, 1)}
	at := int64(0)
	observe := func() {
		at += 1000
		p.observe(st, in, at, parts)
	}
	for range 300 {
		observe()
	}
	if got := st.series.Load(); got < 500 || got%112 != 0 {
		t.Errorf("%d series are kept, want some families of 112", got)
	}
	if n := testing.AllocsPerRun(50, observe); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestLimits: excess series and samples are refused and counted, and never hide new ones.
func TestLimits(t *testing.T) {
	st, in, p := newStore(Limits{Series: 2, Samples: 5}), selecting("rate(a[1m])"), &page{}
	for at := range int64(4) {
		p.observe(st, in, 1000*at, [][]byte{fmt.Appendf(nil, "a{x=\"1\"} %d\na{x=\"2\"} %d\na{x=\"3\"} %d\n", at, at, at)})
	}
	if got := fmt.Sprint(st.latest()); got != `map[{__name__="a", x="1"}:3 {__name__="a", x="2"}:3]` {
		t.Errorf("the latest samples are %s", got)
	}
	if st.series.Load() != 2 || st.samples.Load() != 5 || st.refusedSeries.Load() == 0 || st.refusedSamples.Load() != 3 {
		t.Errorf("%d series with %d samples, %d and %d refused", st.series.Load(), st.samples.Load(), st.refusedSeries.Load(), st.refusedSamples.Load())
	}
}

// TestStoreForgets: the store forgets what no rule can see any more.
func TestStoreForgets(t *testing.T) {
	st, in, p := newStore(Limits{100, 1000}), newInterest(group15([2]string{"r", "rate(a[10m])"}, [2]string{"s", "b"}), nil), &page{}
	for at := int64(0); at <= 1_200_000; at += 60_000 {
		p.observe(st, in, at, [][]byte{[]byte("a 1\nb 1\n")})
	}
	if got := st.samples.Load(); got != 12 { // one is older than the range, and b's only one
		t.Errorf("%d samples are kept, want 12", got)
	}
	p.observe(st, in, 1_260_000, nil)
	st.sweep(1_260_000 + 301_000)
	if got := st.series.Load(); got != 1 {
		t.Errorf("%d series are kept after 5 minutes, want 1", got)
	}
	st.sweep(1_260_000 + 901_000)
	if got := st.series.Load() + st.samples.Load(); got != 0 || len(st.names) != 0 {
		t.Errorf("%d series and samples are kept after 15 minutes, want none", got)
	}
	p.observe(st, in, 3_000_000, [][]byte{[]byte("a 1\n")})
	if got := st.series.Load() + st.samples.Load(); got != 2 {
		t.Errorf("%d series and samples are kept for a series that came back, want 2", got)
	}
}

// FuzzPage compares page, for selected families of pages that Prometheus accepts, with
// Prometheus' own parser. Each page is read twice, since the second time most is
// remembered.
func FuzzPage(f *testing.F) {
	f.Add("# HELP a b\n# TYPE a gauge\na{x=\"1\",y=\"}\"} 5\nb{x=\"\na 3\n\"} 2 1000\na 3\n", "a 4\n")
	f.Add("b{x=\"\\\\\"} 1\na 2\n", "b{x=\"} 5\\\"\"} 1\na 2\n")
	f.Add("b{x=\"\"} 1\na{} 2\n", "b 1\na{x=\"2\"} 1e9 5\n")
	f.Add("a+1\nab-2\n", "a +1\n")
	f.Add("a 1\n", "a {x=\"1\"} 2\n")
	f.Add("a\t{x=\"1\"} 3\n", "a 4\n")
	f.Add("a {x=\"1\"} 1\n", "a 2\n")
	in := selecting(`{__name__=~"a.*"}`)
	f.Fuzz(func(t *testing.T, first, second string) {
		st, p := newStore(Limits{1 << 20, 1 << 20}), &page{}
		for i, body := range []string{first, second, first, second} {
			want, ok := ended(body)
			if !ok {
				return
			}
			p.observe(st, in, int64(1000*(i+1)), [][]byte{[]byte(body)})
			got := st.latest()
			for series, v := range want {
				if g, ok := got[series]; !ok || g != v && !(math.IsNaN(g) && math.IsNaN(v)) {
					t.Fatalf("from %q: %s is %v (%v), Prometheus reads %v", body, series, g, ok, v)
				}
			}
			for series := range got {
				if _, ok := want[series]; !ok {
					t.Fatalf("from %q: %s is alive, Prometheus reads none", body, series)
				}
			}
		}
	})
}

// ended returns the selected series of a page as Prometheus reads them, not ok if it
// rejects the page, or the page has names in quotes, which rules do not see, or timestamps.
func ended(body string) (map[string]float64, bool) {
	samples := map[string]float64{}
	if strings.ContainsAny(body, "\x00\r") || !strings.HasSuffix(body, "\n") {
		return nil, false
	}
	p := textparse.NewPromParser([]byte(body), labels.NewSymbolTable(), false)
	for {
		kind, err := p.Next()
		if errors.Is(err, io.EOF) {
			return samples, true
		}
		if err != nil {
			return nil, false
		}
		if kind != textparse.EntrySeries {
			continue
		}
		text, stamp, v := p.Series()
		var l labels.Labels
		p.Labels(&l)
		_, twice := l.HasDuplicateLabelNames()
		if stamp != nil || text[0] == '{' || text[0] == ' ' || text[0] == '\t' || twice || value.IsStaleNaN(v) || strings.Contains(string(text), `{"`) {
			return nil, false
		}
		key := l.WithoutEmpty().String()
		if _, known := samples[key]; !known && strings.HasPrefix(l.Get(model.MetricNameLabel), "a") {
			samples[key] = v
		}
	}
}
