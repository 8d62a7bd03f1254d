package translate

import (
	"slices"
	"testing"

	c "github.com/kpulse/kpulse-proxy/internal/canonical"
)

func TestMissing(t *testing.T) {
	inputs := []c.Field{c.SMActive, c.TensorActive, c.DRAMActive, c.NVMLUtilization}
	tests := []struct {
		name string
		body string
		want []c.Field
	}{
		{"no devices", "", inputs},
		{"some on one device, some on another", "GRACT{gpu=\"0\",entity=\"GPU 0\"} 1\nSMACT{gpu=\"0\",entity=\"GPU 0\"} 0\nDRAMA{gpu=\"1\",entity=\"GPU 1\"} 1\n", []c.Field{c.TensorActive, c.NVMLUtilization}},
		{"a blank is missing", "SMACT{gpu=\"0\",entity=\"GPU 0\"} 140737488355328\nTENSO{gpu=\"0\",entity=\"GPU 0\"} 0\nDRAMA{gpu=\"0\",entity=\"GPU 0\"} 0\nGPUTL{gpu=\"0\",entity=\"GPU 0\"} 0\n", []c.Field{c.SMActive}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := translated(t, Options{}, test.body)
			before := []c.Field{c.Power}
			if got := Missing(&r.frame, inputs, before); !slices.Equal(got, append(before, test.want...)) {
				t.Errorf("%v, want %v behind what was there", got, test.want)
			}
		})
	}
}
