package dmon

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// tick is one parsed tick: value by label block and family.
type tick struct {
	values  map[string]float64
	skipped int
}

// ticks parses a whole text; a tick counts if it has a row.
func ticks(t testing.TB, text string) []tick {
	t.Helper()
	p, b := Parser{}, &raw.Batch{Dict: raw.NewDict()}
	var all []tick
	flush := func() {
		values := map[string]float64{}
		for _, s := range b.Samples {
			key := b.Dict.Block(s.Labels) + b.Dict.Family(s.Family).Name
			if _, ok := values[key]; ok {
				t.Errorf("%s twice in one tick", key)
			}
			values[key] = s.Value
		}
		all = append(all, tick{values, b.Skipped})
		b.Reset()
	}
	for line := range strings.Lines(text) {
		if !p.Line(b, []byte(line)) {
			flush()
			if !p.Line(b, []byte(line)) {
				t.Fatalf("line %q opens a tick twice", line)
			}
		}
	}
	if p.Rows() > 0 || b.Skipped > 0 {
		flush()
	}
	return all
}

// gpuKey and instanceKey return keys of tick.values.
func gpuKey(id int, family string) string {
	return fmt.Sprintf(`{gpu="%d",entity="GPU %d"}%s`, id, id, family)
}

func instanceKey(parent, id int, family string) string {
	return fmt.Sprintf(`{gpu="%d",entity="GPU-I %d",gpu_instance_entity="%d"}%s`, parent, id, id, family)
}

type values = map[string]float64

func TestDialects(t *testing.T) {
	for _, tt := range dialects {
		t.Run(tt.name, func(t *testing.T) {
			got := ticks(t, tt.text)
			if len(got) != len(tt.want) {
				t.Fatalf("%d ticks, want %d: %v", len(got), len(tt.want), got)
			}
			for i := range got {
				if !maps.Equal(got[i].values, tt.want[i].values) {
					t.Errorf("tick %d:\n got %v\nwant %v", i, got[i].values, tt.want[i].values)
				}
				if got[i].skipped != tt.want[i].skipped {
					t.Errorf("tick %d: %d skipped, want %d", i, got[i].skipped, tt.want[i].skipped)
				}
			}
		})
	}
}

func TestIsHeader(t *testing.T) {
	tests := map[string]bool{
		"#Entity   GRACT": true, "# Entity  GRACT": true, "  # Entity  GRACT": true, "# EntityId GPUTL": true, "#Entity": true,
		"# HELP Entity x": false, "# TYPE Entity gauge": false, "# EOF": false, "#": false, "": false, "Entity": false, "ID": false,
		"#EntityIdentity X": false, "xEntity": false, "  Entity": false,
	}
	for line, want := range tests {
		if got := IsHeader([]byte(line)); got != want {
			t.Errorf("IsHeader(%q) = %v", line, got)
		}
	}
}

func TestNumber(t *testing.T) {
	for _, s := range []string{
		"0", "7", "-7", "0.000", "0.987", "-0.125", "412.337", "22", "0.1", "0.12", "9007199254740993", "9223372036854775807",
		"12345678901234567890", "123456789012.345", "9007199254740993.125", "140737488355327.999", "0.12345678",
		"0.1234", "99999999999999999999", "123456789012345678901", "1844674407370955161.75", "12345678901234567890.125",
	} {
		v, end, ok := number([]byte(s), 0)
		want, err := strconv.ParseFloat(s, 64)
		if err != nil || !ok || end != len(s) || v != want {
			t.Errorf("number(%q) = %v, %d, %v", s, v, end, ok)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		s := strconv.FormatUint(rng.Uint64()>>rng.IntN(64), 10) + "." + strconv.Itoa(rng.IntN(1000))
		if v, _, ok := number([]byte(s), 0); !ok || strconv.FormatFloat(v, 'g', -1, 64) != shortest(t, s) {
			t.Fatalf("number(%q) = %v, %v", s, v, ok)
		}
	}
	for _, s := range []string{"", "-", ".5", "00", "01", "N/A", "+1", "x"} {
		if v, end, ok := number([]byte(s), 0); ok || v != 0 || end != 0 {
			t.Errorf("number(%q) = %v, %d, %v", s, v, end, ok)
		}
	}
	for s, want := range map[string]int{"5.": 1, "5.x": 1, "1e4": 1, "12\t": 2, "12:": 2, "12/": 2, "1.5:": 3, "1.5.5": 3} {
		if _, end, ok := number([]byte(s), 0); !ok || end != want {
			t.Errorf("number(%q) ends at %d, %v, want %d", s, end, ok, want)
		}
	}
}

// shortest rounds s as strconv does.
func shortest(t *testing.T, s string) string {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// A change of Dict voids every id that the parser remembers.
func TestAnotherDict(t *testing.T) {
	var p Parser
	for i := range 2 {
		b := &raw.Batch{Dict: raw.NewDict()}
		for range i {
			b.Dict.FamilyID([]byte("OTHER"))
			b.Dict.BlockID([]byte("{}"))
		}
		p.Reset()
		p.Line(b, []byte("#Entity    SMACT        "))
		p.Line(b, []byte("GPU 0      0.500        "))
		if len(b.Samples) != 1 || b.Dict.Family(b.Samples[0].Family).Name != "SMACT" ||
			b.Dict.Block(b.Samples[0].Labels) != `{gpu="0",entity="GPU 0"}` {
			t.Errorf("dict %d: %v", i, b.Samples)
		}
	}
}

func TestCaptures(t *testing.T) {
	tests := []struct {
		file           string
		ticks, samples int
	}{
		{"dmon-device.dmon", 5, 35},
		{"dmon-indented.dmon", 1, 15},
		{"dmon-mig.dmon", 3, 92},
		{"dmon-profiling.dmon", 4, 36},
		{"h200.dmon", 33, 1238},
		{"dmon-profiling-refused.dmon", 1, 0},
	}
	for _, tt := range tests {
		text, err := os.ReadFile(filepath.Join("../../../../testdata/captures", tt.file))
		if err != nil {
			t.Fatal(err)
		}
		got := ticks(t, string(text))
		n := 0
		for _, tick := range got {
			n += len(tick.values)
		}
		if len(got) != tt.ticks || n != tt.samples {
			t.Errorf("%s: %d ticks and %d samples, want %d and %d", tt.file, len(got), n, tt.ticks, tt.samples)
		}
	}
}

// FuzzDmon: every value that is read occurs in the text.
func FuzzDmon(f *testing.F) {
	f.Add("#Entity   GRACT        SMACT        \nID                                  \nGPU 0     N/A          0.500        \nGPU 0     0.1          7\n")
	f.Add("  # Entity  GRACT\n      Id\n   GPU 0  0.429\n   GPU-I 0  0.000\n")
	f.Add("#Entity   POWER             GRACT        \nGPU-I 10001412.337           0.987        \r\n")
	f.Add("# EntityId A B\nGPU 0 1 2\nGPU 0\t1...\t-INF\nError setting watches. Result: x\nGPU 0 LINK 5 1 2\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 {
			return
		}
		var said []float64
		for _, tick := range ticks(t, text) {
			said = slices.AppendSeq(said, maps.Values(tick.values))
		}
		if len(said) == 0 {
			return
		}
		stands := numbersIn(text)
		for _, v := range said {
			if math.IsNaN(v) || math.IsInf(v, 0) || !stands[v] {
				t.Fatalf("%v does not occur in %q", v, text)
			}
		}
	})
}

// numbersIn finds every number in text, by a method other than the parser's:
// each run of number characters, from each place at which an entity's id may
// end.
func numbersIn(text string) map[float64]bool {
	found := map[float64]bool{}
	for _, run := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' || r == '\r' }) {
		for i := range run {
			if strings.Trim(run[i:], "-.0123456789") != "" {
				continue
			}
			if v, err := strconv.ParseFloat(run[i:], 64); err == nil {
				found[v] = true
			}
		}
	}
	return found
}

// sample returns one sample of dmon 4.5, according to its layout rules.
func sample(gpus, fields int, seed float64) (header, rows string) {
	var h, r strings.Builder
	fmt.Fprintf(&h, "%-16s", "#Entity")
	for f := range fields {
		fmt.Fprintf(&h, "%-*s", width(f), fmt.Sprintf("F%d", f))
	}
	h.WriteByte('\n')
	for g := range gpus {
		fmt.Fprintf(&r, "%-16s", fmt.Sprintf("GPU %d", g))
		for f := range fields {
			text := fmt.Sprintf("%.3f", math.Mod(seed+float64(g*fields+f)*.0137, 1))
			if f%3 == 2 {
				text = strconv.Itoa(f * 7919 * (g + 1))
			}
			fmt.Fprintf(&r, "%-*s", width(f), text)
		}
		r.WriteByte('\n')
	}
	return h.String(), r.String()
}

// width of a cell: field widths of 5, 10 and 20, plus 8.
func width(f int) int { return []int{13, 18, 28}[f%3] }

func TestSteadyTickAllocatesNothing(t *testing.T) {
	tick := steadyTick(t)
	if n := testing.AllocsPerRun(100, tick); n != 0 {
		t.Errorf("%v allocations a tick", n)
	}
}

func BenchmarkTick8x25(b *testing.B) {
	tick := steadyTick(b)
	b.ReportAllocs()
	for b.Loop() {
		tick()
	}
}

// steadyTick returns a function that feeds one more sample of 8 GPUs with 25
// fields, preceded every 14th time by the header, as in dmon.
func steadyTick(t testing.TB) func() {
	header, rows := sample(8, 25, .25)
	head := []byte(header)
	var lines [][]byte
	for line := range strings.Lines(rows) {
		lines = append(lines, []byte(line))
	}
	p, b := Parser{}, &raw.Batch{Dict: raw.NewDict()}
	n := 0
	tick := func() {
		feed := func(line []byte) {
			if !p.Line(b, line) {
				if len(b.Samples) != 8*25 {
					t.Fatalf("%d samples", len(b.Samples))
				}
				b.Reset()
				p.Line(b, line)
			}
		}
		if n%14 == 0 {
			feed(head)
		}
		n++
		for _, line := range lines {
			feed(line)
		}
	}
	tick()
	tick()
	return tick
}
