package translate

import (
	"fmt"
	"math"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// TestRatiosAtTheOvershoot: a ratio of exactly 1.1 is still 1.
func TestRatiosAtTheOvershoot(t *testing.T) {
	for _, c := range []struct{ used, want float64 }{{10, 1}, {11, 1}, {12, math.NaN()}, {5, .5}} {
		r := translated(t, Options{}, fmt.Sprintf("DCGM_FI_DEV_FB_USED{gpu=\"0\",UUID=\"A\"} %g\nDCGM_FI_DEV_FB_TOTAL{gpu=\"0\",UUID=\"A\"} 10\n", c.used))
		if got := r.frame.Row(0)[canonical.FramebufferUsedRatio]; got != c.want && (canonical.Given(got) || canonical.Given(c.want)) {
			t.Errorf("%g of 10 MiB: %g, want %g", c.used, got, c.want)
		}
	}
	for v, want := range map[float64]evidence{
		0: {}, .5: {fraction: true}, 1: {}, math.Nextafter(1, 2): {overshoot: true}, 1.1: {overshoot: true}, math.Nextafter(1.1, 2): {above: true},
	} {
		var got evidence
		if got.weigh(v); got != want {
			t.Errorf("%g is evidence of %+v, want %+v", v, got, want)
		}
	}
}

// TestBeliefAtTheGigabyte: if 1 GiB is in use, some process must use memory.
func TestBeliefAtTheGigabyte(t *testing.T) {
	for used, believed := range map[float64]bool{1<<30 - 1: true, 1 << 30: false} {
		row := make([]float64, canonical.NumFields)
		row[canonical.FramebufferUsed] = used
		uses := []canonical.Use{{NVMLUtilization: 0, Framebuffer: 0}}
		if believe(uses, row); canonical.Given(uses[0].Framebuffer) != believed {
			t.Errorf("%g bytes are in use: %+v", used, uses)
		}
	}
}

// TestXIDsAtTheirEnds: codes end at 1023, counts at the first whole number that floats skip.
func TestXIDsAtTheirEnds(t *testing.T) {
	for v, want := range map[float64]bool{0: true, 1: true, 1<<53 - 1: true, 1 << 53: false, -1: false, .5: false} {
		if isCount(v) != want {
			t.Errorf("%g is a count: %t", v, !want)
		}
	}
	for _, label := range []bool{false, true} {
		for code, want := range map[uint32]int{1: 1, 1023: 1, 1024: 0} {
			r := newReader(t, Options{})
			body := boardA
			if label {
				body += xidRow("total", "A", fmt.Sprintf(",xid=\"%d\"", code), "1")
			} else {
				r.read(body)
				r.batch.XIDs = []raw.XID{{Labels: r.batch.Samples[0].Labels, Code: code, Count: 1}}
			}
			if label {
				r.read(body)
			} else {
				r.report = Report{}
				r.tr.Translate(&r.frame, &r.batch, &r.report)
			}
			if len(r.frame.XIDs) != want || r.report.Dropped[canonical.DropOutOfRange] != uint64(1-want) {
				t.Errorf("code %d in a label %t: %+v, %d dropped", code, label, r.frame.XIDs, r.report.Dropped[canonical.DropOutOfRange])
			}
		}
	}
}

// TestLinksAtTheirEnd: links are numbered from 0 to 63.
func TestLinksAtTheirEnd(t *testing.T) {
	for link, want := range map[int]float64{0: 1, 63: 1, 64: math.NaN(), 255: math.NaN(), 256: math.NaN()} {
		r := translated(t, Options{}, temp(`gpu="0",UUID="A"`, 40)+rowOfLink(linkFamilies[0], "A", link, "1"))
		if got := r.frame.Row(0)[canonical.NVLinksActive]; got != want && (canonical.Given(got) || canonical.Given(want)) {
			t.Errorf("link %d is up: %g, want %g", link, got, want)
		}
	}
}

// TestBlanksOfUnits: floats have the blanks of floats, small whole numbers those of 32 bits, and
// bytes, joules, hertz and nanoseconds neither.
func TestBlanksOfUnits(t *testing.T) {
	const int32Blank, fp64Blank, int64Blank = 2147483632, 140737488355328, 9223372036854775792
	for list, units := range map[blanks][]Unit{
		int32Blanks: {Percent, MiB, Celsius, Megahertz, Number},
		fp64Blanks:  {Ratio, BytesPerSecond, NVLinkMegabytes, Watts, Seconds},
		0:           {Bytes, Joules, Millijoules, Hertz, Nanoseconds},

		int32Blanks | fp64Blanks: {percentOrRatio},
	} {
		for _, unit := range units {
			b := blanksOf(canonical.SMActive, unit)
			if b.in(int32Blank) != (list&int32Blanks != 0) || b.in(fp64Blank) != (list&fp64Blanks != 0) || !b.in(int64Blank) || b.in(0) {
				t.Errorf("%s: %b", unit, b)
			}
		}
	}
	for v, is := range map[float64]blanks{0: zeroBlank, int32Blank: int32Blanks, fp64Blank: fp64Blanks, int64Blank: int64Blanks} {
		for _, b := range []blanks{zeroBlank, int32Blanks, fp64Blanks, int64Blanks} {
			if b.in(v) != (b == is) {
				t.Errorf("%g is one of the blanks %b: %t", v, b, b.in(v))
			}
		}
	}
}
