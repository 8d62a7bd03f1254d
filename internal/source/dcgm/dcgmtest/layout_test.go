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

func TestHeaderCadence(t *testing.T) {
	s := node(dcgmtest.Boards(2)...)
	var samples []int // before each header
	rows := 0
	for line := range strings.Lines(run(t, s, "dmon -e 155 -c 45 -d 1").stdout) {
		switch {
		case strings.HasPrefix(line, "#Entity"):
			samples = append(samples, rows/2)
		case strings.HasPrefix(line, "GPU"):
			rows++
		}
	}
	if want := []int{0, 15, 29, 43}; len(samples) != len(want) || samples[1] != 15 || samples[2] != 29 || samples[3] != 43 {
		t.Errorf("headers before samples %v, want %v", samples, want)
	}
	if rows != 90 {
		t.Errorf("%d rows, want 90", rows)
	}
	if got := run(t, s, "dmon -e 155 -c 15 -d 1").stdout; strings.Count(got, "#Entity") != 1 {
		t.Error("a header follows the last sample")
	}
}
