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

func node(version string, gpus ...dcgmtest.GPU) dcgmtest.Scenario {
	return dcgmtest.Scenario{Version: version, GPUs: gpus}
}

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
	for _, test := range []struct {
		version, args, want string
	}{
		{"4.6.0", "-i 0,i:7", text(
			"#Entity·········POWER·············GRACT········",
			"ID···············W·····························",
			"GPU·0···········412.337···········0.987········",
			"GPU-I·7·········412.337···········N/A··········")},
		{"4.5.3", "-i 0", text(
			"#Entity·········POWER·············GRACT········",
			"ID···············W·····························",
			"GPU·0···········412.337···········0.987········")},
		{"4.4.2", "-i 0", text(
			"#Entity····POWER·············GRACT········",
			"ID··········W·····························",
			"GPU·0······412.337···········0.987········")},
		{"4.2.3", "", text(
			"#Entity····POWER·············GRACT········",
			"ID··········W·····························",
			"GPU·0······412.337···········0.987········")},
		{"3.3.9", "-i i:7", text(
			"#Entity···POWER·············GRACT········",
			"ID·········W·····························",
			"GPU-I·7···412.337···········N/A··········")},
		{"3.3.9", "-i i:14000", text( // the id fills the column
			"#Entity···POWER·············GRACT········",
			"ID·········W·····························",
			"GPU-I·14000412.337···········0.987········")},
	} {
		s := node(test.version, cut)
		s.Readings = readings
		got := run(t, s, "dmon -e 155,1001 -c 1 "+test.args)
		if got.code != 0 || got.stderr != "" {
			t.Errorf("%s %s: %+v", test.version, test.args, got)
		}
		equal(t, got.stdout, test.want)
	}
}

// TestRealCapture has the output of a real 3.3.5, without blanks at the ends of
// lines.
func TestRealCapture(t *testing.T) {
	s := node("3.3.5", dcgmtest.Boards(1)...)
	s.Readings = []dcgmtest.Reading{
		{}, {Field: 155, Value: 20.891}, {Field: 150, Value: 22},
	}
	var got strings.Builder
	for line := range strings.Lines(run(t, s, "dmon -e 203,204,155,150,310,311,252 -c 3 -d 1").stdout) {
		got.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	equal(t, got.String(), text(
		"#Entity   GPUTL             MCUTL             POWER             TMPTR        ESVTL        EDVTL        FBUSD",
		"ID                                             W                 C",
		"GPU 0     0                 0                 20.891            22           0            0            0",
		"GPU 0     0                 0                 20.891            22           0            0            0",
		"GPU 0     0                 0                 20.891            22           0            0            0"))
}

func TestHeaderCadence(t *testing.T) {
	s := node("4.6.0", dcgmtest.Boards(2)...)
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
