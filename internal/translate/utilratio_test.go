package translate

import (
	"fmt"
	"os"
	"strings"
	"testing"

	c "github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Lines that may accompany the family.
const (
	percentHelp = "# HELP DCGM_FI_DEV_GPU_UTIL_RATIO GPU utilization (in %).\n"
	ratioHelp   = "# HELP DCGM_FI_DEV_GPU_UTIL_RATIO GPU utilization as a ratio from 0 to 1.\n"
	neitherHelp = "# HELP DCGM_FI_DEV_GPU_UTIL_RATIO GPU utilization over the duration of operation.\n"
	bothHelp    = "# HELP DCGM_FI_DEV_GPU_UTIL_RATIO Ratio of time the GPU was active (in %).\n"

	// Of 4.6.1, where the family is percent: no evidence.
	clock = `DCGM_FI_DEV_SM_CLOCK_HERTZ{gpu="0",UUID="A"} 1.98e+09` + "\n"
	// Of 4.7.
	bytes = `DCGM_FI_DEV_FB_USED_BYTES{gpu="0",UUID="A"} 1024` + "\n"
	label = `DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="A",DCGM_FI_SYSTEM_DRIVER_VERSION="590"} 40` + "\n"
	// Of a link, not of a GPU: no sibling.
	link = `DCGM_FI_DEV_FB_USED_BYTES{nvlink="0",gpu="0",UUID="A"} 1` + "\n"
)

// noReading stands for an absent reading in the table.
const noReading = -1.0

var utilRatioTests = []struct {
	name   string
	beside string
	values []string
	want   []float64
	counts Report
}{
	{"a value above 1 is percent", "", []string{"57", "1", "0"}, []float64{0.57, 0.01, 0}, Report{}},
	{"it is, whatever else is said", bytes + label + ratioHelp, []string{"57", "1"}, []float64{0.57, 0.01}, Report{}},
	{"a fraction is a ratio", "", []string{"0.57", "1", "0"}, []float64{0.57, 1, 0}, Report{}},
	{"it is, whatever else is said, too", percentHelp, []string{"0.57", "1"}, []float64{0.57, 1}, Report{}},
	{"a ratio just above 1 among siblings", bytes, []string{"1.05", "1"}, []float64{1, 1}, Report{Clamped: 1}},
	{"a ratio just above 1 beside a fraction", "", []string{"1.05", "0.5"}, []float64{1, 0.5}, Report{Clamped: 1}},
	{"just above 1 and alone", "", []string{"1.05"}, []float64{0.0105}, Report{}},
	{"2 among siblings", bytes, []string{"2"}, []float64{0.02}, Report{}},
	{"memory in bytes", bytes, []string{"1", "0"}, []float64{1, 0}, Report{}},
	{"memory utilization as a ratio", `DCGM_FI_DEV_MEMORY_UTIL_RATIO{gpu="0",UUID="A"} 0.3` + "\n", []string{"1"}, []float64{1}, Report{}},
	{"the encoder's as a ratio", `DCGM_FI_DEV_GPU_ENC_UTIL_RATIO{gpu="0",UUID="A"} 0` + "\n", []string{"1"}, []float64{1}, Report{}},
	{"throttling in seconds", `DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL{gpu="0",UUID="A"} 3` + "\n", []string{"1"}, []float64{1}, Report{}},
	{"a clock in hertz", clock, []string{"1", "0"}, []float64{noReading, 0}, Report{Dropped: dropped(0, 0, 0, 1)}},
	{"energy in joules", `DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL{gpu="0",UUID="A"} 3` + "\n", []string{"1"}, []float64{noReading}, Report{Dropped: dropped(0, 0, 0, 1)}},
	{"the driver's new label", label, []string{"1"}, []float64{noReading}, Report{Dropped: dropped(0, 0, 0, 1)}},
	{"all of 4.6.1", label + clock, []string{"1", "2"}, []float64{0.01, 0.02}, Report{}},
	{"a link's memory", link, []string{"1"}, []float64{noReading}, Report{Dropped: dropped(0, 0, 0, 1)}},
	{"HELP says percent", percentHelp, []string{"1", "0"}, []float64{0.01, 0}, Report{}},
	{"HELP says ratio", ratioHelp, []string{"1"}, []float64{1}, Report{}},
	{"HELP says neither", neitherHelp, []string{"1", "0"}, []float64{noReading, 0}, Report{Dropped: dropped(0, 0, 0, 1)}},
	{"HELP says both", bothHelp, []string{"1"}, []float64{noReading}, Report{Dropped: dropped(0, 0, 0, 1)}},
	{"HELP and siblings disagree", percentHelp + bytes, []string{"1", "0", "1"}, []float64{noReading, 0, noReading}, Report{Dropped: dropped(0, 0, 0, 2)}},
	{"just above 1 among siblings, against HELP", percentHelp + bytes, []string{"1.05"}, []float64{1}, Report{Clamped: 1}},
	{"siblings that another proxy rendered", "# HELP DCGM_FI_DEV_FB_USED_BYTES Framebuffer memory used (in bytes)" + renderedMark + "\n" + bytes, []string{"1"}, []float64{noReading},
		Report{Dropped: dropped(0, 0, 0, 1)}},
	{"HELP and siblings agree", ratioHelp + bytes, []string{"1"}, []float64{1}, Report{}},
	{"nothing at all", "", []string{"1", "0"}, []float64{noReading, 0}, Report{Dropped: dropped(0, 0, 0, 1)}},
	{"blanks are no evidence", "", []string{"2147483634", "9223372036854775794", "140737488355328", "NaN", "1"}, []float64{noReading, noReading, noReading, noReading, noReading}, Report{Dropped: dropped(3, 1, 0, 1)}},
	{"nor are negative values", "", []string{"-5", "1"}, []float64{noReading, noReading}, Report{Dropped: dropped(0, 0, 1, 1)}},
	{"too many percent", "", []string{"101", "4294967295", "100"}, []float64{noReading, noReading, 1}, Report{Dropped: dropped(0, 0, 2, 0)}},
}

func TestUnitOfUtilRatio(t *testing.T) {
	for _, test := range utilRatioTests {
		t.Run(test.name, func(t *testing.T) {
			var body strings.Builder
			for gpu, v := range test.values {
				fmt.Fprintf(&body, "DCGM_FI_DEV_GPU_UTIL_RATIO{gpu=\"%d\",UUID=\"%c\"} %s\n", gpu, 'A'+gpu, v)
			}
			// The accompanying lines may come first or last.
			for _, text := range []string{test.beside + body.String(), body.String() + test.beside} {
				r := translated(t, Options{}, text)
				for gpu, want := range test.want {
					got := r.frame.Row(gpu)[c.NVMLUtilization]
					if want == noReading && c.Given(got) || want != noReading && got != want {
						t.Errorf("GPU %d: %v, want %v", gpu, got, want)
					}
				}
				r.checkDropped(test.counts)
			}
		})
	}
}

// The family with a known unit takes precedence in either order.
func TestUtilRatioBesideUtil(t *testing.T) {
	const util, ratio = `DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="A"} 40` + "\n", `DCGM_FI_DEV_GPU_UTIL_RATIO{gpu="0",UUID="A"} 0.5` + "\n"
	for _, body := range []string{util + ratio, ratio + util} {
		translated(t, Options{}, body).checkRow(0, readings{c.NVMLUtilization: 0.4})
	}
	blank := strings.Replace(util, " 40", " 2147483632", 1)
	translated(t, Options{}, blank+ratio).checkRow(0, readings{c.NVMLUtilization: 0.5})
}

// Each reading is judged by itself, and HELP texts may change.
func TestUnitOfUtilRatioIsOfOneReading(t *testing.T) {
	r := newReader(t, Options{})
	one := `DCGM_FI_DEV_GPU_UTIL_RATIO{gpu="0",UUID="A"} 1` + "\n"
	two := `DCGM_FI_DEV_GPU_UTIL_RATIO{gpu="1",UUID="B"} 90` + "\n"
	memory := `DCGM_FI_DEV_FB_USED_BYTES{gpu="1",UUID="B"} 1000` + "\n"
	driver := `DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="B",DCGM_FI_SYSTEM_DRIVER_VERSION="590"} 40` + "\n"
	steps := []struct {
		body string
		want readings
	}{
		{one + two, readings{c.NVMLUtilization: 0.01}},
		{one, readings{}},
		{one + memory, readings{c.NVMLUtilization: 1}},
		{one + driver, readings{}},
		{one, readings{}},
		{"# HELP DCGM_FI_DEV_GPU_UTIL_RATIO (in %)\n" + one, readings{c.NVMLUtilization: 0.01}},
		{"# HELP DCGM_FI_DEV_GPU_UTIL_RATIO a ratio\n" + one, readings{c.NVMLUtilization: 1}},
	}
	for i, step := range steps {
		r.read(step.body)
		t.Logf("step %d", i)
		r.checkRow(0, step.want)
	}
}

// No field of DCGM 4.6, in which the family is percent, counts as a sibling of the ratio.
func TestNoSiblingInDCGM46(t *testing.T) {
	table, err := os.ReadFile(renames)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(table)) {
		if isSibling(name) {
			t.Errorf("%s is in DCGM 4.6", name)
		}
	}
}

// TestUnitOfHelp: only whole words name a unit.
func TestUnitOfHelp(t *testing.T) {
	for help, want := range map[string]Unit{
		"in %": Percent, "in percent": Percent, "Percentage of time": Percent, "(pct)": Percent, "as a ratio": Ratio, "Fraction of time": Ratio,
		"duration": "", "fractional": "", "ratio in percent": "", "": "",
	} {
		if got := unitOfHelp(help); got != want {
			t.Errorf("%q is in %q, want %q", help, got, want)
		}
	}
}
