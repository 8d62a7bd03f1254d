package expose

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// render returns the exposition of readings.
func render(readings ...outcome) []byte { return renderWith(nil, readings...) }

// renderWith renders readings on a machine with NVSwitch errors.
func renderWith(switches []canonical.SXIDCount, readings ...outcome) []byte {
	var out bytes.Buffer
	s := output{buffer: buffer{w: &out}, switches: switches}
	for _, c := range switches {
		s.faults = append(s.faults, canonical.SwitchFault{Hostname: c.Hostname, PCIBusID: c.PCIBusID, Code: c.Code})
	}
	newRenderer(Form{Full: true}).write(&s, &atomic.Pointer[layout]{}, readings)
	s.flush()
	return out.Bytes()
}

// good returns a successful reading.
func good(s *canonical.Snapshot) outcome { return outcome{snapshot: s, source: &s.Source} }

// failed returns a failed reading of a source that worked before.
func failed(name string) outcome {
	return outcome{
		failure: &canonical.Failure{Kind: "unreachable", Cause: "connection refused"},
		source:  &canonical.Source{Name: name, Backend: "prometheus", At: readAt, Content: canonical.Content{Samples: 99}, Totals: canonical.Totals{SkippedLines: 3}},
	}
}

// parse reads an exposition with Prometheus' parser, expfmt and promlint, which must find no
// fault, and returns its series.
func parse(t *testing.T, body []byte) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	p := textparse.NewPromParser(body, labels.NewSymbolTable(), false)
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("textparse: %v", err)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var ls labels.Labels
		p.Labels(&ls)
		_, _, v := p.Series()
		if _, dup := all[ls.String()]; dup {
			t.Errorf("%s is there twice", ls)
		}
		all[ls.String()] = v
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	if _, err := parser.TextToMetricFamilies(bytes.NewReader(body)); err != nil {
		t.Errorf("expfmt: %v", err)
	}
	problems, err := promlint.New(bytes.NewReader(body)).Lint()
	if err != nil {
		t.Errorf("promlint: %v", err)
	}
	for _, problem := range problems {
		t.Errorf("promlint: %s: %s", problem.Metric, problem.Text)
	}
	return all
}

var buildLine = regexp.MustCompile(`(?m)^kpulse_build_info\{version="[^"]*",revision="[^"]*",branch="[^"]*",goversion="go1[^"]*",goos="[^"]+",goarch="[^"]+",tags="[^"]*"\} 1$`)

func TestGolden(t *testing.T) {
	stream := snapshotOf("demo", split()...)
	stream.Source.Backend, stream.Source.Aggregation, stream.Source.Period = "replay", "window", time.Second
	busy := snapshotOf("http://node-a:9400/metrics", board(), unread())
	busy.Source.Missing = []canonical.Field{canonical.TensorActive, canonical.RemappedRowsUncorrectable, canonical.RemappedRowsCorrectable}
	busy.Source.UnknownFamilies = []string{"a", "b"}
	busy.Source.SkippedLines, busy.Source.ClampedValues, busy.Source.DroppedFamilies, busy.Source.DroppedSeries = 1, 2, 3, 4
	busy.Source.DroppedValues[canonical.DropOutOfRange] = 5

	for name, readings := range map[string][]outcome{
		"lean":     {good(lived())},
		"board":    {good(busy)},
		"mig":      {good(stream)},
		"nothing":  {good(snapshotOf("http://node-c:9400/metrics"))},
		"two":      {good(busy), good(stream)},
		"one-down": {failed("http://node-z:9400/metrics"), good(stream)},
	} {
		t.Run(name, func(t *testing.T) {
			body := renderIn(Form{Full: name != "lean"}, readings...)
			parse(t, body)
			if !buildLine.Match(body) {
				t.Error("no build_info")
			}
			got := buildLine.ReplaceAll(body, []byte("kpulse_build_info{} 1"))
			file := filepath.Join("testdata", name+".prom")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s differs; look at it, and run with -update if it is right:\n%s", file, diff(string(got), string(want)))
			}
		})
	}
}

// diff returns the lines that only one of the texts has.
func diff(got, want string) string {
	var b strings.Builder
	for _, side := range []struct{ sign, a, b string }{{"-", want, got}, {"+", got, want}} {
		has := map[string]bool{}
		for line := range strings.Lines(side.b) {
			has[line] = true
		}
		for line := range strings.Lines(side.a) {
			if !has[line] {
				b.WriteString(side.sign + line)
			}
		}
	}
	return b.String()
}

// TestSeries checks by rule what golden files would miss.
func TestSeries(t *testing.T) {
	series := parse(t, render(good(snapshotOf("s", append(split(), board(), unread())...))))
	count := func(pattern string) (n int, sum float64) {
		re := regexp.MustCompile(pattern)
		for s, v := range series {
			if re.MatchString(s) {
				n, sum = n+1, sum+v
			}
		}
		return n, sum
	}
	for _, row := range []struct {
		pattern string
		n       int
		sum     float64
	}{
		{`__name__="kpulse_gpu_info"`, 5, 5},
		// Every class and state of each device, one of them 1.
		{`__name__="kpulse_gpu_workload_class".*uuid="GPU-a0"`, 13, 1},
		{`__name__="kpulse_gpu_workload_class".*class="tensor_heavy_compute".*uuid="GPU-a0"`, 1, 1},
		{`__name__="kpulse_gpu_workload_class".*class="unknown".*uuid="GPU-a1"`, 1, 1},
		{`__name__="kpulse_gpu_workload_class".*uuid="GPU-b0"`, 2 * 13, 2},
		{`__name__="kpulse_gpu_health",.*uuid="GPU-a0"`, 5, 1},
		{`__name__="kpulse_gpu_health",.*uuid="GPU-b0"`, 5, 1},
		// The health of an instance is its board's.
		{`__name__="kpulse_gpu_health.*mig_instance`, 0, 0},
		{`__name__="kpulse_gpu_health_condition".*uuid="GPU-a0"`, 3, 1},
		{`condition="gpu_temperature".*state="hot".*uuid="GPU-a0"`, 1, 1},
		// Unknown values have no series.
		{`__name__="kpulse_gpu_real_utilization_ratio".*uuid="GPU-a1"`, 0, 0},
		{`__name__="kpulse_gpu_real_utilization_coverage_ratio".*uuid="GPU-a1"`, 1, 0},
		{`__name__="kpulse_gpu_sm_active_ratio"`, 1, 0.812345},
		// An implied board has no utilization and no coverage; its instances do.
		{`__name__="kpulse_gpu_real_utilization.*uuid="GPU-b0"`, 4, 0.25 + 2*0.65},
		// 0x20 | 0x4
		{`__name__="kpulse_gpu_clock_event_active"`, len(canonical.ClockEventReasons), 2},
		{`__name__="kpulse_gpu_clock_event_active".*reason="sw_(thermal|power_cap)"`, 2, 2},
		{`__name__="kpulse_real_utilization_weight"`, 4, 1},
		{`__name__="kpulse_source_dropped_values_total"`, int(canonical.NumDropReasons), 0},
		{`__name__="kpulse_source_period_seconds"`, 0, 0},
	} {
		if n, sum := count(row.pattern); n != row.n || math.Abs(sum-row.sum) > 1e-12 {
			t.Errorf("%d series match %s, sum %v; want %d, sum %v", n, row.pattern, sum, row.n, row.sum)
		}
	}
}

func TestConditionTurnedOff(t *testing.T) {
	s := snapshotOf("s", board())
	s.Judgement.States[canonical.CondGPUTemperature] = 0
	s.Judgement.States[canonical.CondPCIeReplay] = canonical.RaisesCrit
	s.Judgement.States[canonical.CondRowRemapFailure] = 1 << canonical.HealthUnknown // no condition can be configured so
	body := string(render(good(s)))
	if strings.Contains(body, `condition="gpu_temperature"`) {
		t.Error("a condition that is off has series")
	}
	if !strings.Contains(body, `condition="pcie_replay",state="crit"} 0`) {
		t.Error("a condition does not show the state it is configured to raise")
	}
	if n := strings.Count(body, "kpulse_gpu_health_condition{"); n != 1 {
		t.Errorf("%d conditions, want the one that is on", n)
	}
}

// TestLabelsSurvive gives devices and sources labels with every byte.
func TestLabelsSurvive(t *testing.T) {
	for _, row := range []struct{ value, want string }{
		{`back\slash "quoted"`, `back\slash "quoted"`},
		{"two\nlines", "two\nlines"},
		{`{a="b"} 1 # c, d`, `{a="b"} 1 # c, d`},
		{"größe 𝛴 \ufffd", "größe 𝛴 \ufffd"},
		{"\xff\xfe cut \xc3", "\ufffd\ufffd cut \ufffd"},
		{"nul \x00 tab \t cr \r", "nul \ufffd tab \t cr \r"},
	} {
		d := board()
		d.Model, d.Hostname, d.Instance = row.value, row.value, row.value
		s := snapshotOf(row.value, d)
		s.Judgement.Preset = row.value
		series := parse(t, render(good(s)))
		found := 0
		for text := range series {
			quoted := fmt.Sprintf("%q", row.want)
			if strings.Contains(text, "hostname="+quoted) || strings.Contains(text, "source="+quoted) || strings.Contains(text, "preset="+quoted) {
				found++
			}
		}
		if found != len(series)-1 { // all but build_info
			t.Errorf("%q: %d of %d series have it as %q", row.value, found, len(series), row.want)
		}
	}
}

func TestDeviceOfTwoSources(t *testing.T) {
	first := snapshotOf("first", board())
	again := board()
	again.Hostname = "another-name"
	second := snapshotOf("second", again, unread())
	series := parse(t, render(good(first), good(second)))
	for text := range series {
		if strings.Contains(text, "another-name") {
			t.Errorf("%s is of a device that the first source has", text)
		}
	}
	if body := render(good(second), good(first)); !bytes.Contains(body, []byte("another-name")) {
		t.Error("the first source does not win")
	}
	// With the first source down, the device comes from the second.
	if body := render(failed("first"), good(second)); !bytes.Contains(body, []byte("another-name")) {
		t.Error("a device is gone with one of its two sources")
	}
}

// TestNewTopologyShows goes from one topology to another and back with one
// Writer.
func TestNewTopologyShows(t *testing.T) {
	w := NewWriter(Form{Full: true})
	for i, s := range []*canonical.Snapshot{
		snapshotOf("s", board()), snapshotOf("s", board(), unread()), snapshotOf("s", split()...), snapshotOf("s", board()),
	} {
		var got bytes.Buffer
		if err := w.Write(&got, s); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), render(good(s))) {
			t.Errorf("exposition %d is not that of its own topology", i)
		}
	}
}

type brokenWriter struct{ writes int }

func (w *brokenWriter) Write([]byte) (int, error) { w.writes++; return 0, io.ErrClosedPipe }

func TestWriteStopsAtError(t *testing.T) {
	w, out := NewWriter(Form{Full: true}), &brokenWriter{}
	if err := w.Write(out, fleet(300)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error %v", err)
	}
	if out.writes != 1 {
		t.Errorf("%d writes after an error", out.writes-1)
	}
	if err := w.Write(io.Discard, fleet(3)); err != nil {
		t.Errorf("the error stays: %v", err)
	}
}

func TestSteadyWriteAllocatesNothing(t *testing.T) {
	w, snap, other := NewWriter(Form{Full: true}), allocated(fleet(16), 40), snapshotOf("other", split()...)
	snap.Source.Missing = []canonical.Field{canonical.SMActive}
	write := func() {
		if err := w.Write(io.Discard, snap, other); err != nil {
			t.Fatal(err)
		}
	}
	write()
	if n := testing.AllocsPerRun(20, write); n != 0 {
		t.Errorf("%v allocations per exposition", n)
	}
}
