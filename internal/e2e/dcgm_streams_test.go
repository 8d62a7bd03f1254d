package e2e

import (
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// theValue returns the only sample of family with those labels.
func theValue(t *testing.T, body, family string, labels map[string]string) float64 {
	t.Helper()
	s, err := parseExposition([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	got := samplesOf(s, family, labels)
	if len(got) != 1 {
		t.Fatalf("%d samples of %s%v:\n%.2000s", len(got), family, labels, body)
	}
	return got[0]
}

// TestDCGMFieldsOfTheGPU: fields that some GPUs multiplex are served as the exporter's rows and as
// our series, from each GPU that counts them, unless they are left out.
func TestDCGMFieldsOfTheGPU(t *testing.T) {
	t.Parallel()
	rounds := dcgmtest.Boards(2)
	for i := range rounds {
		rounds[i].Name = "NVIDIA A100-SXM4-80GB"
	}
	fields := map[int]string{1007: "fp32", 1008: "fp16", 1013: "tensor_imma", 1014: "tensor_hmma", 1015: "tensor_dfma", 1016: "int"}
	var readings []dcgmtest.Reading
	for id := range fields {
		readings = append(readings, dcgmtest.Reading{Field: id, Value: float64(id-1000) / 100})
	}
	for _, test := range []struct {
		name  string
		gpus  []dcgmtest.GPU
		flags []string
		last  int // last field that is served, by id
	}{
		{"H100", dcgmtest.Boards(2), nil, 1016},
		{"H100, core", dcgmtest.Boards(2), []string{"--dcgm.fields=core"}, 0},
		{"A100", rounds, []string{"--dcgm.host=" + dcgmtest.FarHost}, 1014},
		{"A100, core", rounds, []string{"--dcgm.host=" + dcgmtest.FarHost, "--dcgm.fields=core"}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := startDCGM(t, dcgmtest.Install(t, dcgmtest.Scenario{GPUs: test.gpus, Readings: readings}), test.flags...)
			body := awaitPage(t, c, "/metrics", 200, `kpulse_gpu_sm_active_ratio`)
			s, err := parseExposition([]byte(body))
			if err != nil {
				t.Fatal(err)
			}
			for id, field := range fields {
				theirs := "DCGM_FI_PROF_PIPE_" + strings.ToUpper(field) + "_ACTIVE"
				for _, family := range []string{theirs, "kpulse_gpu_" + field + "_active_ratio"} {
					got := samplesOf(s, family, map[string]string{"gpu": "1"})
					if id > test.last && len(got) != 0 || id <= test.last && (len(got) != 1 || got[0] != float64(id-1000)/100) {
						t.Errorf("%s reads %v", family, got)
					}
				}
			}
			if n := theValue(t, body, "kpulse_source_restarts_total", map[string]string{"stream": "profiling"}); n != 0 {
				t.Errorf("started again %v times", n)
			}
		})
	}
}
