package translate

import (
	"testing"

	c "github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestBlankRow: a GPU of which every sign of life that is given, at least two, is 0 has no readings
// in that page. The other GPU has them always.
func TestBlankRow(t *testing.T) {
	line := func(family, value string) string { return family + `{gpu="0",UUID="A"} ` + value + "\n" }
	const other = `DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="B"} 40` + "\n" + `DCGM_FI_DEV_POWER_USAGE{gpu="1",UUID="B"} 0` + "\n"
	r := newReader(t, Options{})
	for _, s := range []struct {
		name, body string
		blank      bool
	}{
		{"all 0", line("DCGM_FI_DEV_GPU_TEMP", "0") + line("DCGM_FI_DEV_SM_CLOCK", "0") + line("DCGM_FI_DEV_POWER_USAGE", "0") + line("DCGM_FI_DEV_GPU_UTIL", "0"), true},
		{"it draws power", line("DCGM_FI_DEV_GPU_TEMP", "0") + line("DCGM_FI_DEV_SM_CLOCK", "0") + line("DCGM_FI_DEV_POWER_USAGE", "60") + line("DCGM_FI_DEV_GPU_UTIL", "0"), false},
		{"one sign alone", line("DCGM_FI_DEV_GPU_TEMP", "0") + line("DCGM_FI_DEV_GPU_UTIL", "0"), false},
		{"two", line("DCGM_FI_DEV_GPU_TEMP", "0") + line("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "0") + line("DCGM_FI_DEV_GPU_UTIL", "0"), true},
		{"the other two are blank", line("DCGM_FI_DEV_GPU_TEMP", "0") + line("DCGM_FI_DEV_SM_CLOCK", "2147483632") + line("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "0") + line("DCGM_FI_DEV_GPU_UTIL", "0"), true},
	} {
		r.read(s.body + other)
		utilization := r.frame.Row(0)[c.NVMLUtilization]
		if c.Given(utilization) == s.blank || r.frame.Len() != 2 || r.frame.Row(1)[c.Temperature] != 40 {
			t.Errorf("%s: utilization %v, %d GPUs", s.name, utilization, r.frame.Len())
		}
	}
}

// TestHeldOnly: a page in which every row has the label vgpu, even an empty one, lists held GPUs only.
func TestHeldOnly(t *testing.T) {
	r := newReader(t, Options{})
	for _, s := range []struct {
		body string
		want bool
	}{
		{temp(`gpu="0",UUID="A",pod="p",vgpu=""`, 40) + temp(`gpu="1",UUID="B",pod="q",vgpu=""`, 40), true},
		{temp(`gpu="0",UUID="A",pod="p",vgpu=""`, 40), true},
		{temp(`gpu="0",UUID="A",pod="p",vgpu=""`, 40) + temp(`gpu="0",UUID="A"`, 40), false},
		{temp(`gpu="0",UUID="A",pod="p"`, 40), false},
		{temp(`gpu="0",UUID="A",pod="p",vgpu="3"`, 40), true},
	} {
		if r.read(s.body); r.frame.Topology.HeldOnly != s.want {
			t.Errorf("%s: held only %t", s.body, !s.want)
		}
	}
}
