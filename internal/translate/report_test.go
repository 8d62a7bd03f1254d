package translate

import (
	"slices"
	"testing"
)

func TestUnknownFamilies(t *testing.T) {
	const gpu = `{gpu="0",UUID="A"} 1` + "\n"
	steps := []struct {
		body string
		want []string
	}{
		{"DCGM_FI_DEV_Z" + gpu + "dcgm_a" + gpu + "DCGM_FI_DEV_GPU_TEMP" + gpu, []string{"DCGM_FI_DEV_Z", "dcgm_a"}},
		// The same in another order.
		{"dcgm_a" + gpu + "DCGM_FI_DEV_Z" + gpu, []string{"DCGM_FI_DEV_Z", "dcgm_a"}},
		{"dcgm_a" + gpu, []string{"dcgm_a"}},
		// Known, of others, of no device, without a sample, in another case.
		{"DCGM_FI_DEV_GPU_UTIL_RATIO" + gpu + "nvidia_a" + gpu + "DCGM_FI_DEV_CPU_TEMP_CURRENT{cpu=\"0\"} 1\nDCGM_FI_DEV_COUNT 2\n# HELP DCGM_X x\nDcgm_x" + gpu, nil},
		// What the exporter counts by itself: known ones, and those of versions to come.
		{"DCGM_EXP_XID_ERRORS_COUNT" + gpu + "DCGM_EXP_XID_ERRORS_TOTAL" + gpu + "DCGM_EXP_CLOCK_EVENTS_COUNT" + gpu + "DCGM_EXP_CLOCK_EVENTS_TOTAL" + gpu + "DCGM_EXP_GPU_HEALTH_STATUS" + gpu + "DCGM_EXP_P2P_STATUS" + gpu, nil},
		{"DCGM_EXP_B" + gpu + "DCGM_EXP_A" + gpu, []string{"DCGM_EXP_A", "DCGM_EXP_B"}},
		{"", nil},
	}
	r := newReader(t, Options{})
	var first []string
	for i, step := range steps {
		r.read(step.body)
		got := r.report.UnknownFamilies
		if !slices.Equal(got, step.want) {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
		if i == 0 {
			first = got
		}
		if i == 1 && &got[0] != &first[0] {
			t.Error("the list was made anew without a change")
		}
	}
	if !slices.Equal(first, steps[0].want) {
		t.Errorf("a list changed after it was handed out: %q", first)
	}
}

// A repeated sample is not counted, and the counts are those of one reading.
func TestReportIsOfOneReading(t *testing.T) {
	const body = `DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="A"} 500
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="A"} 500
DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="A"} 1.05
DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="A"} 1.05
DCGM_FI_DEV_SM_CLOCK{nvlink="0",gpu="0",UUID="A"} NaN
DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="A"} NaN
`
	r := newReader(t, Options{})
	for range 3 {
		r.read(body)
		r.checkDropped(Report{Dropped: dropped(0, 1, 1, 0), Clamped: 1})
	}
	r.read("")
	r.checkDropped(Report{})
}
