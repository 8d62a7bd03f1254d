package translate

import (
	"math"
	"testing"
)

// TestNativeReadsAlike: a number of dmon, and its conversion for a family, are read as the
// same value.
func TestNativeReadsAlike(t *testing.T) {
	rules, err := newRuleSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	converted := 0
	for i := range dialect {
		for _, name := range dialect[i].Names {
			native := NativeOf(name, "(ratio)", nil)
			if native.Column == "" {
				continue
			}
			if native.Times != native.Per {
				converted++
			}
			column, family := rules.byName[native.Column], rules.byName[name]
			if dialect[i].Unit == percentOrRatio {
				family = newRule(dialect[i].Field, Ratio, 0)
			}
			for _, n := range []float64{0, 1, 7, 29, 57} {
				var rep Report
				if got, want := family.read(n*native.Times/native.Per, &rep), column.read(n, &rep); math.Abs(got-want) > 1e-15*math.Abs(want) {
					t.Errorf("%v of %s is %v, of %s %v", n, native.Column, want, name, got)
				}
			}
		}
	}
	if converted < 25 {
		t.Errorf("%d families in other units", converted)
	}
	if n := NativeOf("DCGM_FI_DEV_WARP_DRIVE", "", nil); n.Column != "" {
		t.Errorf("an unknown family: %+v", n)
	}
}
