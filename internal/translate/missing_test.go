package translate

import (
	"slices"
	"testing"

	c "github.com/kpulse/kpulse-proxy/internal/canonical"
)

func TestMissing(t *testing.T) {
	inputs := []c.Field{c.SMActive, c.TensorActive, c.DRAMActive, c.NVMLUtilization}
	tests := []struct {
		name     string
		body     string
		want     []c.Field
		unusable []c.Field
	}{
		{"no devices", "", inputs, nil},
		{"some on one device, some on another", "GRACT{gpu=\"0\",entity=\"GPU 0\"} 1\nSMACT{gpu=\"0\",entity=\"GPU 0\"} 0\nDRAMA{gpu=\"1\",entity=\"GPU 1\"} 1\n", []c.Field{c.TensorActive, c.NVMLUtilization}, nil},
		{"a blank is missing", "SMACT{gpu=\"0\",entity=\"GPU 0\"} 140737488355328\nTENSO{gpu=\"0\",entity=\"GPU 0\"} 0\nDRAMA{gpu=\"0\",entity=\"GPU 0\"} 0\nGPUTL{gpu=\"0\",entity=\"GPU 0\"} 0\n", []c.Field{c.SMActive}, []c.Field{c.SMActive}},
		{"a blank beside a value is not", "SMACT{gpu=\"0\",entity=\"GPU 0\"} 140737488355328\nSMACT{gpu=\"1\",entity=\"GPU 1\"} 0\nTENSO{gpu=\"0\",entity=\"GPU 0\"} 2\n", []c.Field{c.TensorActive, c.DRAMActive, c.NVMLUtilization}, []c.Field{c.TensorActive}},
		{"a blank that no substitute replaces", "GPUTL{gpu=\"0\",entity=\"GPU 0\"} 2147483632\n", inputs, []c.Field{c.NVMLUtilization}},
		{"a blank substitute", "DCGM_FI_DEV_GPU_UTIL_RATIO{gpu=\"0\",UUID=\"A\"} 2147483632\n", inputs, []c.Field{c.NVMLUtilization}},
		{"a substitute of unknown unit", "DCGM_FI_DEV_GPU_UTIL_RATIO{gpu=\"0\",UUID=\"A\"} 1\n", inputs, []c.Field{c.NVMLUtilization}},
		{"two blanks", "SMACT{gpu=\"0\",entity=\"GPU 0\"} 140737488355328\nSMACT{gpu=\"1\",entity=\"GPU 1\"} 140737488355328\n", inputs, []c.Field{c.SMActive}},
		{"a blank of an instance", "SMACT{gpu=\"0\",entity=\"GPU-I 1\"} 140737488355328\nTENSO{gpu=\"0\",entity=\"GPU-I 1\"} 1\n", []c.Field{c.SMActive, c.DRAMActive, c.NVMLUtilization}, []c.Field{c.SMActive}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := translated(t, Options{}, test.body)
			before := []c.Field{c.Power}
			if got := Missing(&r.frame, inputs, before); !slices.Equal(got, append(before, test.want...)) {
				t.Errorf("%v, want %v after what was there", got, test.want)
			}
			if got := Unusable(&r.frame, test.want, before); !slices.Equal(got, append(before, test.unusable...)) {
				t.Errorf("unusable are %v, want %v after what was there", got, test.unusable)
			}
		})
	}
}
