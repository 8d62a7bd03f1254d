package translate

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	c "github.com/kpulse/kpulse-proxy/internal/canonical"
)

// The fates of a value.
const (
	blank      = "blank"
	notFinite  = "not_finite"
	outOfRange = "out_of_range"
	clamped    = "clamped"
	fine       = ""
)

var valueTests = []struct {
	family string
	value  string
	want   float64
	fate   string
}{
	// A ratio, stored as a float.
	{"DCGM_FI_PROF_SM_ACTIVE", "0.000000", 0, fine},
	{"DCGM_FI_PROF_SM_ACTIVE", "-0.000000", 0, fine},
	{"DCGM_FI_PROF_SM_ACTIVE", "1", 1, fine},
	{"DCGM_FI_PROF_SM_ACTIVE", "1.000001", 1, clamped},
	{"DCGM_FI_PROF_SM_ACTIVE", "1.1", 1, clamped},
	{"DCGM_FI_PROF_SM_ACTIVE", "1.100001", 0, outOfRange},
	{"DCGM_FI_PROF_SM_ACTIVE", "57", 0, outOfRange},
	{"DCGM_FI_PROF_SM_ACTIVE", "-0.001", 0, outOfRange},
	{"DCGM_FI_PROF_SM_ACTIVE", "140737488355328.000000", 0, blank},
	{"DCGM_FI_PROF_SM_ACTIVE", "1.4073748835533e+14", 0, blank},
	{"DCGM_FI_PROF_SM_ACTIVE", "140737488355343", 0, blank},
	{"DCGM_FI_PROF_SM_ACTIVE", "140737488355344", 0, outOfRange},
	{"DCGM_FI_PROF_SM_ACTIVE", "9.223372036854776e+18", 0, blank},
	{"DCGM_FI_PROF_SM_ACTIVE", "2147483632", 0, outOfRange},
	{"DCGM_FI_PROF_SM_ACTIVE", "NaN", 0, notFinite},
	{"DCGM_FI_PROF_SM_ACTIVE", "-Inf", 0, notFinite},

	// A percentage, stored as a whole number.
	{"DCGM_FI_DEV_GPU_UTIL", "100", 1, fine},
	{"DCGM_FI_DEV_GPU_UTIL", "57", 0.57, fine},
	{"DCGM_FI_DEV_GPU_UTIL", "101", 0, outOfRange},
	{"DCGM_FI_DEV_GPU_UTIL", "4294967295", 0, outOfRange},
	{"DCGM_FI_DEV_GPU_UTIL", "-1", 0, outOfRange},
	{"DCGM_FI_DEV_GPU_UTIL", "2147483631", 0, outOfRange},
	{"DCGM_FI_DEV_GPU_UTIL", "2147483632", 0, blank},
	{"DCGM_FI_DEV_GPU_UTIL", "2147483633", 0, blank},
	{"DCGM_FI_DEV_GPU_UTIL", "2147483634", 0, blank},
	{"DCGM_FI_DEV_GPU_UTIL", "2147483635", 0, blank},
	{"DCGM_FI_DEV_GPU_UTIL", "2147483636", 0, outOfRange},
	{"DCGM_FI_DEV_GPU_UTIL", "9223372036854775792", 0, blank},
	{"DCGM_FI_DEV_GPU_UTIL", "9223372036854775795", 0, blank},
	{"DCGM_FI_DEV_GPU_UTIL", "+Inf", 0, notFinite},

	// A temperature.
	{"DCGM_FI_DEV_GPU_TEMP", "200", 200, fine},
	{"DCGM_FI_DEV_GPU_TEMP", "201", 0, outOfRange},
	{"DCGM_FI_DEV_GPU_TEMP", "-50", -50, fine},
	{"DCGM_FI_DEV_GPU_TEMP", "-51", 0, outOfRange},
	{"DCGM_FI_DEV_GPU_TEMP", "2147483632", 0, blank},

	// A temperature whose sensor some boards lack: 0 means no sensor.
	{"DCGM_FI_DEV_GPU_TEMP", "0", 0, fine},
	{"DCGM_FI_DEV_MEMORY_TEMP", "0", 0, blank},
	{"DCGM_FI_DEV_MEMORY_TEMP", "-0.0", 0, blank},
	{"DCGM_FI_DEV_MEMORY_TEMP_CELSIUS", "0", 0, blank},
	{"dcgm_memory_temp", "0", 0, blank},
	{"MMTMP", "0", 0, blank},
	{"DCGM_FI_DEV_MEMORY_TEMP", "1", 1, fine},
	{"DCGM_FI_DEV_MEMORY_TEMP", "-1", -1, fine},
	{"DCGM_FI_DEV_MEMORY_TEMP", "201", 0, outOfRange},
	{"DCGM_FI_DEV_MEMORY_TEMP", "2147483634", 0, blank},
	{"DCGM_FI_DEV_MEMORY_TEMP", "9223372036854775794", 0, blank},

	// Wide counters pass the smaller blanks.
	{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "140737488355328", 140737488355.328, fine},
	{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "2147483632", 2147483.632, fine},
	{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "9223372036854775794", 0, blank},
	{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "-1", 0, outOfRange},
	{"DCGM_FI_DEV_FB_FREE_BYTES", "2147483632", 2147483632, fine},
	{"DCGM_FI_DEV_FB_FREE_BYTES", "140737488355328", 140737488355328, fine},
	{"DCGM_FI_DEV_FB_FREE_BYTES", "9.3e18", 0, blank},
	{"DCGM_FI_DEV_THERMAL_VIOLATION", "140737488355328", 140737.488355328, fine},
	{"DCGM_FI_DEV_THERMAL_VIOLATION", "9223372036854775793", 0, blank},

	// Rates and other floats do not.
	{"DCGM_FI_PROF_PCIE_TX_BYTES", "140737488355327", 140737488355327, fine},
	{"DCGM_FI_PROF_PCIE_TX_BYTES", "140737488355330", 0, blank},
	{"DCGM_FI_PROF_PCIE_TX_BYTES", "2147483632", 2147483632, fine},
	{"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "140737488355328", 0, blank},
	{"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "-5", 0, outOfRange},
	{"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "1", 1024000, fine},
	{"DCGM_FI_DEV_POWER_USAGE", "140737488355331.000000", 0, blank},

	// Counts of events and codes are small.
	{"DCGM_FI_DEV_XID_ERRORS", "2147483631", 2147483631, fine},
	{"DCGM_FI_DEV_XID_ERRORS", "2147483632", 0, blank},
	{"DCGM_FI_DEV_XID_ERRORS", "2147483634", 0, blank},
	{"DCGM_FI_DEV_XID_ERRORS", "2147483636", 2147483636, fine},
	{"DCGM_FI_DEV_XID_ERRORS", "119", 119, fine},
	{"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "2147483634", 0, blank},
	{"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "9223372036854775794", 0, blank},
	{"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "292", 292, fine},
}

// A single value becomes a reading, or is dropped for one reason.
func TestReadValue(t *testing.T) {
	for _, test := range valueTests {
		t.Run(test.family+" "+test.value, func(t *testing.T) {
			r := translated(t, Options{}, fmt.Sprintf("%s{gpu=\"0\",UUID=\"A\"} %s\n", test.family, test.value))
			field := rowOf(test.family).Field
			got := r.frame.Row(0)[field]
			gone := test.fate != fine && test.fate != clamped
			if gone == c.Given(got) || !gone && got != test.want {
				t.Errorf("got %v, want %v (%s)", got, test.want, test.fate)
			}
			if got == 0 && 1/got < 0 {
				t.Error("a negative zero got through")
			}
			var want Report
			for reason, name := range c.DropReasons {
				if name == test.fate {
					want.Dropped[reason] = 1
				}
			}
			if test.fate == clamped {
				want.Clamped = 1
			}
			r.checkDropped(want)
		})
	}
}

// scaledRules are rules of all units that are not SI.
func scaledRules() (rules map[Unit]*rule) {
	rules = map[Unit]*rule{}
	for i := range dialect {
		if r := newRule(dialect[i].Field, dialect[i].Unit, 0); r.times != r.per {
			rules[dialect[i].Unit] = r
		}
	}
	return rules
}

// TestNumbersAreWrittenBack: a number without a short decimal is written as one that reads the
// same. It is the nearest to the exact quotient if that reads the same.
func TestNumbersAreWrittenBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for unit, r := range scaledRules() {
		for range 5000 {
			v := math.Ldexp(1+rng.Float64(), -10-rng.IntN(20)) * r.times / r.per
			exact := new(big.Rat).SetFloat64(v)
			exact.Mul(exact, new(big.Rat).SetFloat64(r.per)).Quo(exact, new(big.Rat).SetFloat64(r.times))
			nearest, _ := exact.Float64()
			got := r.write(v)
			if got*r.times/r.per != v {
				t.Fatalf("%v is written as %v %s, which reads as %v", v, got, unit, got*r.times/r.per)
			}
			if nearest*r.times/r.per == v && got != nearest {
				t.Fatalf("%v is written as %v %s, want %v", v, got, unit, nearest)
			}
		}
	}
}

// TestRulesAreShared: sources without rows of their own have one set of rules, which rows of another do not change.
func TestRulesAreShared(t *testing.T) {
	own := newReader(t, Options{Rows: []Row{{c.Power, Watts, false, "", []string{"my_power"}}}}).tr.rules
	one, other := newReader(t, Options{}).tr.rules, newReader(t, Options{}).tr.rules
	if one != other || own == one || own.byName["my_power"] == nil || one.byName["my_power"] != nil {
		t.Error("rules are not shared, or those of one source are in another")
	}
}
