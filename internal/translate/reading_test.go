package translate

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// readings are all that a row of a frame is expected to have.
type readings map[canonical.Field]float64

// reader reads expositions one after the other, as a source would.
type reader struct {
	t       testing.TB
	scanner raw.Scanner
	batch   raw.Batch
	tr      *Translator
	frame   canonical.Frame
	report  Report
}

func newReader(t testing.TB, opts Options) *reader {
	t.Helper()
	tr, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return &reader{t: t, tr: tr, batch: raw.Batch{Dict: raw.NewDict()}}
}

func (r *reader) read(body string) {
	r.batch.Reset()
	r.batch.Body = append(r.batch.Body, body...)
	r.scanner.Scan(&r.batch)
	r.tr.Translate(&r.frame, &r.batch, &r.report)
}

// translated reads one body with a Translator of its own.
func translated(t testing.TB, opts Options, body string) *reader {
	t.Helper()
	r := newReader(t, opts)
	r.read(body)
	return r
}

func testdata(t testing.TB, name string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("../../testdata/captures", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// checkRow compares all of a row; values may differ by rounding.
func (r *reader) checkRow(device int, want readings) {
	r.t.Helper()
	row := r.frame.Row(device)
	for f, got := range row {
		field := canonical.Field(f)
		w, given := want[field]
		name := canonical.Fields[field].Name + canonical.Fields[field].Labels
		switch {
		case !given && canonical.Given(got):
			r.t.Errorf("device %d: %s = %v, want absent", device, name, got)
		case given && !(math.Abs(got-w) <= 1e-12*math.Abs(w)):
			r.t.Errorf("device %d: %s = %v, want %v", device, name, got, w)
		}
	}
}

// checkDevices compares the whole topology.
func (r *reader) checkDevices(want ...canonical.Device) {
	r.t.Helper()
	got := r.frame.Topology.Devices
	if len(got) != len(want) {
		r.t.Fatalf("%d devices, want %d: %+v", len(got), len(want), got)
	}
	for i := range got {
		if got[i] != want[i] {
			r.t.Errorf("device %d:\n got %+v\nwant %+v", i, got[i], want[i])
		}
	}
}

// checkHolds compares the whole list of allocations, and the numbers of holders that follow
// from it.
func (r *reader) checkHolds(want ...canonical.Allocation) {
	r.t.Helper()
	if got := r.frame.AllocationSet.Allocations; !slices.Equal(got, want) {
		r.t.Errorf("allocations\n got %+v\nwant %+v", got, want)
	}
	holders := make([]int, r.frame.Len())
	for i := range want {
		holders[want[i].Device]++
	}
	if got := r.frame.AllocationSet.Holders; !slices.Equal(got, holders) {
		r.t.Errorf("holders %v, want %v", got, holders)
	}
}

// checkDropped compares the counts of the report.
func (r *reader) checkDropped(want Report) {
	r.t.Helper()
	if r.report.Dropped != want.Dropped || r.report.Clamped != want.Clamped || r.report.DroppedSeries != want.DroppedSeries {
		r.t.Errorf("dropped %v, clamped %d, series %d; want %v, %d, %d", r.report.Dropped, r.report.Clamped,
			r.report.DroppedSeries, want.Dropped, want.Clamped, want.DroppedSeries)
	}
}

// dropped returns counts, in the order blank, not finite, out of range, unit unknown.
func dropped(blank, notFinite, outOfRange, unitUnknown uint64) [canonical.NumDropReasons]uint64 {
	var d [canonical.NumDropReasons]uint64
	d[canonical.DropBlank], d[canonical.DropNotFinite] = blank, notFinite
	d[canonical.DropOutOfRange], d[canonical.DropUnitUnknown] = outOfRange, unitUnknown
	return d
}

// TestClockEventsOfInstancesAddUp: the largest of two masks would lack the bits of the other.
func TestClockEventsOfInstancesAddUp(t *testing.T) {
	r := translated(t, Options{}, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS{gpu=\"0\",UUID=\"GPU-a\",GPU_I_ID=\"1\"} 36\n"+
		"DCGM_FI_DEV_CLOCKS_EVENT_REASONS{gpu=\"0\",UUID=\"GPU-a\",GPU_I_ID=\"2\"} 128\n")
	r.checkRow(0, readings{canonical.ClockEvents: 36 + 128})
}

// TestStaleSamplesAreAbsent: a sample further from the reading than Prometheus' lookback is
// absent; one exactly that far is not.
func TestStaleSamplesAreAbsent(t *testing.T) {
	at := time.UnixMilli(1_000_000_000_000)
	for stamp, fresh := range map[string]bool{
		"": true, " 1000000000000": true, " 999999700000": true, " 1000000300000": true,
		" 999999699999": false, " 1000000300001": false, " 1000": false,
	} {
		r := newReader(t, Options{})
		r.batch.At = at
		r.batch.Body = []byte("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\"} 50\nDCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-a\"} 99" + stamp + "\n")
		r.scanner.Scan(&r.batch)
		r.tr.Translate(&r.frame, &r.batch, &r.report)
		want, dropped := readings{canonical.NVMLUtilization: 0.5}, uint64(1)
		if fresh {
			want[canonical.Temperature], dropped = 99, 0
		}
		r.checkRow(0, want)
		if got := r.report.Dropped[canonical.DropStale]; got != dropped {
			t.Errorf("stamp %q: %d dropped as stale, want %d", stamp, got, dropped)
		}
		if got := len(Unusable(&r.frame, []canonical.Field{canonical.Temperature}, nil)) == 0; got != fresh {
			t.Errorf("stamp %q: usable %t, want %t", stamp, got, fresh)
		}
	}
	// Each sample is as old as its own timestamp says.
	several := newReader(t, Options{})
	several.batch.At = at
	several.batch.Body = []byte("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\"} 50 1000\nDCGM_FI_DEV_SM_CLOCK{gpu=\"0\",UUID=\"GPU-a\"} 100 1000000000000\n" +
		"DCGM_FI_DEV_MEM_CLOCK{gpu=\"0\",UUID=\"GPU-a\"} 200\nDCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-a\"} 99 1000\n")
	several.scanner.Scan(&several.batch)
	several.tr.Translate(&several.frame, &several.batch, &several.report)
	several.checkRow(0, readings{canonical.SMClock: 100e6, canonical.MemoryClock: 200e6})
	if got := several.report.Dropped[canonical.DropStale]; got != 2 {
		t.Errorf("%d samples are dropped as stale, want 2", got)
	}
	// Without a time of the reading, no sample is stale.
	translated(t, Options{}, "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-a\"} 99 1000\n").checkRow(0, readings{canonical.Temperature: 99})
	// Of pods that share the device, one is stale: its row counts once, the other is the reading.
	r := newReader(t, Options{})
	r.batch.At = at
	r.batch.Body = []byte("DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-a\",pod=\"p\"} 99 1000\nDCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-a\",pod=\"q\"} 50\n")
	r.scanner.Scan(&r.batch)
	r.tr.Translate(&r.frame, &r.batch, &r.report)
	r.checkRow(0, readings{canonical.Temperature: 50})
	if got := r.report.Dropped[canonical.DropStale]; got != 1 {
		t.Errorf("%d rows of pods are dropped as stale, want 1", got)
	}
}
