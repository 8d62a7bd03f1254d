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

// TestFirstSampleOfProfiling has the output of a real 3.3.9 on an H100.
func TestFirstSampleOfProfiling(t *testing.T) {
	s := dcgmtest.Scenario{Version: "3.3.9", GPUs: dcgmtest.Boards(1)}
	s.Readings = []dcgmtest.Reading{{From: 1}}
	equal(t, run(t, s, "dmon -e 1001,1002,1005 -c 2 -d 1").stdout, text(
		"#Entity···GRACT········SMACT········DRAMA········",
		"ID···············································",
		"GPU·0·····N/A··········N/A··········N/A··········",
		"GPU·0·····0.000········0.000········0.000········"))
}

func TestFirstSampleOfRates(t *testing.T) {
	s := dcgmtest.Scenario{GPUs: dcgmtest.Boards(1)}
	reads := func(tick int) string {
		return strings.Fields(strings.Split(run(t, s, "dmon -e 449 -c 2 -d 1").stdout, "\n")[2+tick])[2]
	}
	if first, second := reads(0), reads(1); first != "0" || second == "0" {
		t.Errorf("reads %s, then %s", first, second)
	}
}

// TestRealCapture has the output of a real 3.3.5, without blanks at the ends of
// lines.
func TestRealCapture(t *testing.T) {
	s := node("3.3.5", dcgmtest.Boards(1)...)
	s.Readings = []dcgmtest.Reading{
		{}, {Field: 155, Value: 20.891}, {Field: 155, From: 3, Value: 20.986}, {Field: 150, Value: 22},
	}
	var got strings.Builder
	for line := range strings.Lines(run(t, s, "dmon -e 203,204,155,150,310,311,252 -c 5 -d 1").stdout) {
		got.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	equal(t, got.String(), text(
		"#Entity   GPUTL             MCUTL             POWER             TMPTR        ESVTL        EDVTL        FBUSD",
		"ID                                             W                 C",
		"GPU 0     0                 0                 20.891            22           0            0            0",
		"GPU 0     0                 0                 20.891            22           0            0            0",
		"GPU 0     0                 0                 20.891            22           0            0            0",
		"GPU 0     0                 0                 20.986            22           0            0            0",
		"GPU 0     0                 0                 20.986            22           0            0            0"))
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

// TestCells checks one field in every state of a cell.
func TestCells(t *testing.T) {
	for _, test := range []struct {
		name, version, entity string
		field                 int
		reading               dcgmtest.Reading
		want                  string // after the entity
	}{
		{"no XID", "4.4.1", "0", 230, dcgmtest.Reading{Field: 1}, "0            "},
		{"no XID", "4.4.2", "0", 230, dcgmtest.Reading{Field: 1}, "N/A          "},
		{"XID", "4.6.0", "0", 230, dcgmtest.Reading{Value: 79}, "79           "},
		{"negative", "4.6.0", "0", 449, dcgmtest.Reading{Value: -5}, "-5                          "},
		{"eleven digits", "4.6.0", "0", 202, dcgmtest.Reading{Value: 12345678901}, "12345678901  "},
		{"twelve digits", "4.6.0", "0", 202, dcgmtest.Reading{Value: 123456789012}, "12345678...  "},
		{"ten to the 16th ns", "4.6.0", "0", 240, dcgmtest.Reading{Value: 12345678901234568}, "1234567890123...  "},
		{"blank integer", "4.6.0", "0", 156, dcgmtest.Reading{Value: 9223372036854775794}, "N/A                     "},
		{"blank float", "4.6.0", "0", 155, dcgmtest.Reading{Value: 140737488355330}, "N/A               "},
		{"not a number", "4.6.0", "0", 155, dcgmtest.Reading{Text: "NAN"}, "NAN               "},
		{"the board's, on an instance", "4.6.0", "i:0", 155, dcgmtest.Reading{Entity: "GPU 0", Value: 99.5}, "99.500            "},
		{"PCIe, on an instance", "4.6.0", "i:0", 1009, dcgmtest.Reading{Field: 1}, "N/A                         "},
		{"retired pages of an H100", "4.6.0", "0", 390, dcgmtest.Reading{Field: 1}, "N/A                     "},
	} {
		s := node(test.version, dcgmtest.Boards(1)[0].Cut(1))
		s.Readings = []dcgmtest.Reading{test.reading}
		got := run(t, s, "dmon -c 1 -i "+test.entity+" -e "+itoa(test.field)).stdout
		row := strings.Split(got, "\n")[2]
		width := map[string]int{"4.4.1": 11, "4.4.2": 11, "4.6.0": 16}[test.version]
		if row[width:] != test.want {
			t.Errorf("%s in %s: %q, want %q", test.name, test.version, row[width:], test.want)
		}
	}
}

func TestRowOrder(t *testing.T) {
	order := func(s dcgmtest.Scenario, args string) string {
		var entities []string
		for line := range strings.Lines(run(t, s, "dmon -c 1 -e 155 "+args).stdout) {
			if fields := strings.Fields(line); strings.HasPrefix(line, "GPU") {
				entities = append(entities, fields[0]+" "+fields[1])
			}
		}
		return strings.Join(entities, " ")
	}
	plain := node("4.2.3", dcgmtest.Boards(4)...)
	equal(t, order(plain, "-i 3,1,0"), "GPU 0 GPU 1 GPU 3")
	equal(t, order(plain, ""), "GPU 0 GPU 1 GPU 2 GPU 3")
	mig := node("3.3.9", dcgmtest.Boards(2)[1].Cut(2), dcgmtest.Boards(1)[0].Cut(1))
	equal(t, order(mig, "-i i:8,i:7,1,i:0,0"), "GPU 0 GPU-I 0 GPU 1 GPU-I 7 GPU-I 8")
	equal(t, order(mig, ""), "GPU 0 GPU 1") // no instances unless requested

	var shuffled bool
	for seed := range uint64(5) {
		old := node("3.3.9", dcgmtest.Boards(4)...)
		old.Seed = seed
		got := order(old, "")
		shuffled = shuffled || got != "GPU 0 GPU 1 GPU 2 GPU 3"
		if len(got) != len("GPU 0 GPU 1 GPU 2 GPU 3") || got != order(old, "") {
			t.Errorf("rows %s", got)
		}
	}
	if !shuffled {
		t.Error("3.3 sorts its rows")
	}
}
