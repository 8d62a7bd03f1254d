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
}

// TestNativeOfFamilies: a family without a row and one that dmon does not print have no column, nor
// has the one of unknown unit.
func TestNativeOfFamilies(t *testing.T) {
	for _, test := range []struct {
		family, help, beside string
		want                 Native
	}{
		{"DCGM_FI_DEV_WARP_DRIVE", "", "", Native{}},
		{"DCGM_FI_DEV_C2C_LINK_ERROR_REPLAY", "", "", Native{}},
		{"DCGM_FI_DEV_GPU_UTIL", "", "", Native{Column: "GPUTL", Times: 1, Per: 1}},
		{"DCGM_FI_DEV_GPU_UTIL_RATIO", "", "", Native{Ambiguous: true}},
		{"DCGM_FI_DEV_GPU_UTIL_RATIO", "GPU utilization (in %).", "", Native{Column: "GPUTL", Times: 100, Per: 100}},
		{"DCGM_FI_DEV_GPU_UTIL_RATIO", "GPU utilization (ratio).", "", Native{Column: "GPUTL", Times: 1, Per: 100}},
		{"DCGM_FI_DEV_GPU_UTIL_RATIO", "", "DCGM_FI_DEV_MEMORY_UTIL_RATIO", Native{Column: "GPUTL", Times: 1, Per: 100}},
		{"DCGM_FI_DEV_MEMORY_UTIL_RATIO", "", "", Native{Column: "MCUTL", Times: 1, Per: 100}},
	} {
		if got := NativeOf(test.family, test.help, []string{test.beside}); got != test.want {
			t.Errorf("%s, %q, beside %q: %+v, want %+v", test.family, test.help, test.beside, got, test.want)
		}
	}
}
