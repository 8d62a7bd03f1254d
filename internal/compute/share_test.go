package compute

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestSharesByUse: workloads on one device share its time by use, and equally if the use of any
// of them is unknown or all are 0.
func TestSharesByUse(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name string
		uses []float64
		a, b time.Duration // of 8 s
	}{
		{"by use", []float64{0.3, 0.1}, 6 * sec, 2 * sec},
		{"all of one", []float64{0.3, 0}, 8 * sec, 0},
		{"thirds", []float64{1, 2}, 2666667 * time.Microsecond, 8*sec - 2666667*time.Microsecond},
		{"nobody uses it", []float64{0, 0}, 4 * sec, 4 * sec},
		{"the same", []float64{0.7, 0.7}, 4 * sec, 4 * sec},
		{"less than nothing", []float64{0.7, -0.1}, 4 * sec, 4 * sec},
		{"infinite", []float64{math.Inf(1), 0.5}, 4 * sec, 4 * sec},
		{"infinite in sum", []float64{math.MaxFloat64, math.MaxFloat64 / 3}, 4 * sec, 4 * sec},
		{"next to nothing", []float64{3 * math.SmallestNonzeroFloat64, math.SmallestNonzeroFloat64}, 6 * sec, 2 * sec},
		{"one is not known", []float64{0.3, nan}, 4 * sec, 4 * sec},
		{"none is known", nil, 4 * sec, 4 * sec},
		{"of others", []float64{1}, 4 * sec, 4 * sec},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newAccounts(t, nil)
			b.devices(gpu1)
			b.hold([]string{"a", "b"})
			b.uses = []float64{1, 0} // at the start, which charges nothing
			b.read(0, 0, heavy)
			b.uses = c.uses
			b.read(8*sec, 8*sec, heavy)
			b.want("a", b.pod("a", "GPU-1"), c.a)
			b.want("b", b.pod("b", "GPU-1"), c.b)
		})
	}
}

// TestSharesOfThoseThatLeave: a workload that left before the reading at the end of a span is
// charged by its last use.
func TestSharesOfThoseThatLeave(t *testing.T) {
	b := newAccounts(t, nil)
	b.devices(gpu1)
	b.hold([]string{"a", "b"})
	b.uses = []float64{0.75, 0.25}
	b.read(0, 0, heavy)
	b.hold([]string{"b"})
	b.uses = []float64{1}
	b.read(4*sec, 4*sec, heavy)
	b.want("a", b.pod("a", "GPU-1"), 3*sec)
	b.want("b", b.pod("b", "GPU-1"), sec)
	b.read(sec, sec, heavy)
	b.want("b alone", b.pod("b", "GPU-1"), 2*sec)
}

// TestMeasured: shares are by use once the use of all current holders is known, even if all are
// 0.
func TestMeasured(t *testing.T) {
	b := newAccounts(t, nil)
	b.devices(gpu1)
	check := func(what string, want bool, uses ...float64) {
		t.Helper()
		b.uses = uses
		b.read(sec, sec, heavy)
		for i := range b.ledger.AllocationRoster.Present {
			if b.ledger.Allocations[i].Measured != want {
				t.Errorf("%s: allocation %d is measured: %v", what, i, !want)
			}
		}
	}
	b.hold([]string{"a", "b"})
	check("born", true, 0.5, 0.2)
	check("idle", true, 0, 0)
	check("not known", false)
	check("one of them", false, 0.5, math.NaN())
	check("known again", true, 0.5, 0.5)
	b.hold([]string{"a", "b"})
	b.allocations.Holders[0] = 3
	check("another beyond the limit", false, 0.5, 0.5)
	b.hold([]string{"a"})
	check("alone", true, 0.5)
	check("alone, and not known", false)
}

// timeOnly returns an account without its energy and births.
func timeOnly(a canonical.Account) canonical.Account {
	a.Microjoules, a.Metered, a.Measured, a.Births = 0, false, false, canonical.Births{}
	return a
}

// FuzzShares lets allocations of arbitrary uses share a device: their charges sum exactly to the
// device's, and none is negative. Each eight bytes are a use, and beyond is the number of holders
// that are not listed.
func FuzzShares(f *testing.F) {
	seed := func(dt uint32, score float64, beyond uint8, uses ...float64) {
		var b []byte
		for _, u := range uses {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(u))
		}
		f.Add(b, dt, score, beyond)
	}
	seed(1_000_003, 0.5, 0, 0.4, 0.25, 0)
	seed(7, 1.0/3, 0, 0, 0)
	seed(99_999, 1, 2, 0.1, math.NaN())
	seed(100_000, 0.9999999, 0, math.Inf(1), -1, 2)
	seed(5, 0.3, 0, 1e308, 1e308, 1e-308, 5e-324)
	seed(15_000_000, 0.7, 0, 1e-300, 1e300, 0, 0)
	f.Fuzz(func(t *testing.T, b []byte, dt uint32, score float64, beyond uint8) {
		if !(score >= 0 && score <= 1) {
			score = math.NaN()
		}
		d, v, span := newDevice(), canonical.Verdict{RealUtilization: score}, time.Duration(dt)*time.Microsecond
		for ; len(b) >= 8 && len(d.allocations) < 50; b = b[8:] {
			use := math.Float64frombits(binary.LittleEndian.Uint64(b))
			d.allocations = append(d.allocations, &allocation{device: d, use: canonical.Use{NVMLUtilization: use, Framebuffer: math.NaN()}})
		}
		d.holders = len(d.allocations) + int(beyond)
		d.measure()
		for reading := range 3 {
			before := sumOf(d.allocations)
			charged := d.account
			d.charge(&v, span, time.Time{})
			d.share(int64(dt))
			sum := sumOf(d.allocations)
			whole := canonical.Account{
				Observed: d.account.Observed - charged.Observed, Known: d.account.Known - charged.Known,
				Utilized: d.account.Utilized - charged.Utilized, Microjoules: int64(dt),
			}
			part := canonical.Account{
				Observed: sum.Observed - before.Observed, Known: sum.Known - before.Known,
				Utilized: sum.Utilized - before.Utilized, Microjoules: sum.Microjoules - before.Microjoules,
			}
			if len(d.allocations) > 0 && beyond == 0 && part != whole ||
				part.Observed > whole.Observed || part.Utilized > whole.Utilized || part.Known > whole.Known || part.Microjoules > whole.Microjoules {
				t.Errorf("reading %d: shares sum to\n%+v of\n%+v", reading, part, whole)
			}
		}
		for i, a := range d.allocations {
			if c := &a.account; c.Observed < 0 || c.Microjoules < 0 || c.Utilized < 0 || c.Utilized > c.Known || c.Known > c.Observed || c.Observed > 3*span {
				t.Errorf("allocation %d: %+v", i, c)
			}
		}
	})
}

// sumOf returns the total of what the allocations were charged.
func sumOf(all []*allocation) (total canonical.Account) {
	for _, a := range all {
		total.Observed += a.account.Observed
		total.Known += a.account.Known
		total.Utilized += a.account.Utilized
		total.Microjoules += a.account.Microjoules
	}
	return total
}

// TestNoShareNoClass: a workload without a share of a time was not in its class.
func TestNoShareNoClass(t *testing.T) {
	b := newAccounts(t, nil)
	b.devices(gpu1)
	b.hold([]string{"a", "b"})
	b.uses = []float64{0.3, 0}
	b.read(0, 0, heavy)
	b.read(8*sec, 8*sec, reading{}) // its class is unknown
	b.read(8*sec, 8*sec, reading{})
	for pod, want := range map[string]bool{"a": true, "b": false} {
		if got := b.pod(pod, "GPU-1").Births.Born.Has(uint(canonical.ClassUnknown)); got != want {
			t.Errorf("%s was in a class that is unknown: %t", pod, got)
		}
	}
}
