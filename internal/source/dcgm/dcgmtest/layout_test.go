package dcgmtest_test

import (
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// text joins lines, each with a newline, and replaces · with a blank.
func text(lines ...string) string {
	return strings.ReplaceAll(strings.Join(lines, "\n")+"\n", "·", " ")
}

func node(gpus ...dcgmtest.GPU) dcgmtest.Scenario { return dcgmtest.Scenario{GPUs: gpus} }

// TestLayouts checks the layout against what is known of the real program, to the byte.
func TestLayouts(t *testing.T) {
	board := dcgmtest.Boards(1)[0]
	cut := board
	cut.Instances = []dcgmtest.Instance{{ID: 1, Entity: 7}, {ID: 2, Entity: 100}, {ID: 3, Entity: 14000}}
	readings := []dcgmtest.Reading{
		{Field: 155, Value: 412.337},
		{Field: 1001, Value: 0.987},
		{Entity: "GPU-I 7", Field: 1001, Blank: true},
	}
	s := node(cut)
	s.Readings = readings
	got := run(t, s, "dmon -e 155,1001 -c 1 -i 0,i:7")
	if got.code != 0 || got.stderr != "" {
		t.Errorf("%+v", got)
	}
	equal(t, got.stdout, text(
		"#Entity·········POWER·············GRACT········",
		"ID···············W·····························",
		"GPU·0···········412.337···········0.987········",
		"GPU-I·7·········412.337···········N/A··········"))
}
