package raw

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
)

// TestScan has values that were worked out by hand, in case the referee and the
// scanner are wrong together.
func TestScan(t *testing.T) {
	cases := []struct {
		body       string
		samples    []string
		omit       []Span
		skipped    int
		own        int
		meaningful int
	}{
		{body: ""},
		{body: "# just a comment\n\n"},
		{body: "<html>\n<body>\n", omit: []Span{{0, 14}}, skipped: 2},
		{
			body:       "# HELP a Help.\n# TYPE a gauge\na{gpu=\"0\"} 1.5\na{gpu=\"1\"} 2 1700000000000\n",
			samples:    []string{`a {gpu="0"} 1.5`, `a {gpu="1"} 2`},
			meaningful: 4,
		},
		{
			body:       "a 1\na Tesla T4\nb 2\nb ERROR",
			samples:    []string{"a  1", "b  2"},
			omit:       []Span{{4, 15}, {19, 26}},
			skipped:    2,
			meaningful: 2,
		},
		{
			body:       "kpulse_a 1\n# TYPE kpulse_b gauge\nkpulse_a 2\nb {x=\"}\n\"} -0.25\nkpulse_c",
			samples:    []string{"b {x=\"}\n\"} -0.25"},
			omit:       []Span{{0, 44}, {61, 69}},
			skipped:    1,
			own:        2,
			meaningful: 4,
		},
		{
			body:       "{\"a.b\",x=\"y\"} 1\n  c 2\n# HELP \"d\" e\nf{\"g\"=\"h\"} 3\nf{g=\"h\"} 4\n",
			samples:    []string{`f {g="h"} 4`},
			omit:       []Span{{0, 48}},
			skipped:    4,
			meaningful: 1,
		},
		{
			body:       "a{x=\"1\",x=\"2\"} 1\na{x=\"1\"} 2\na{__name__=\"b\"} 3\n",
			samples:    []string{`a {x="1"} 2`},
			omit:       []Span{{0, 17}, {28, 46}},
			skipped:    2,
			meaningful: 1,
		},
	}
	for _, c := range cases {
		b := Batch{Body: []byte(c.body)}
		new(Scanner).Scan(&b)
		samples := series(&b)
		if !slices.Equal(samples, c.samples) || !slices.Equal(b.Omit, c.omit) {
			t.Errorf("%q: got %q without %v, want %q without %v", c.body, samples, b.Omit, c.samples, c.omit)
		}
		if b.Skipped != c.skipped || b.OwnFamilies != c.own || b.Meaningful != c.meaningful {
			t.Errorf("%q: Skipped %d, OwnFamilies %d, Meaningful %d; want %d, %d, %d", c.body,
				b.Skipped, b.OwnFamilies, b.Meaningful, c.skipped, c.own, c.meaningful)
		}
	}
}

func TestScanHelp(t *testing.T) {
	b := Batch{Body: []byte("# HELP a one\n# HELP b b\\\\c\n"), Dict: NewDict()}
	var s Scanner
	s.Scan(&b)
	if got := b.Dict.Family(b.Dict.FamilyID([]byte("b"))).Help; got != `b\\c` {
		t.Errorf("help of b: got %q", got)
	}
	b.Body = []byte("# HELP a two\n# HELP a x\xff\n")
	s.Scan(&b)
	// The second scan does not repeat the HELP of b from the first.
	for name, want := range map[string]string{"a": "two", "b": ""} {
		if got := b.Dict.Family(b.Dict.FamilyID([]byte(name))).Help; got != want {
			t.Errorf("help of %s: got %q, want %q", name, got, want)
		}
	}
}

// TestScanKeepsNothingOfBody overwrites a Body after its scan.
func TestScanKeepsNothingOfBody(t *testing.T) {
	body := "# HELP a help\na{x=\"y\"} 1\nb:c 2\nkpulse_d 3\nd{e=\"f\"} 4\n"
	b := Batch{Body: []byte(body), Dict: NewDict()}
	var s Scanner
	s.Scan(&b)
	want := series(&b)
	for i := range b.Body {
		b.Body[i] = '!'
	}
	if got := series(&b); !slices.Equal(got, want) || b.Dict.Family(0).Help != "help" {
		t.Errorf("after the body changed: got %v, want %v", got, want)
	}
	b.Body = []byte(body)
	s.Scan(&b)
	if got := series(&b); !slices.Equal(got, want) || b.Dict.Families() != 3 || b.OwnFamilies != 1 {
		t.Errorf("scanned again: got %v, want %v", got, want)
	}
}

// TestScanRange reads values at the limits of the plain form, which does not go
// through strconv, and values of other forms.
func TestScanRange(t *testing.T) {
	cases := map[string]float64{
		"9007199254740991":         1<<53 - 1,
		"9007199254740993":         1 << 53, // rounds to even
		"-9223372036854775794":     -1 << 63,
		"9.223372036854776e+18":    1 << 63,
		"0.000000":                 0,
		"140737488355328.000000":   1 << 47,
		"0.3":                      0.3,
		"409.692000":               409.692,
		"0.0000000000000000001":    1e-19,
		"0000000000000000000000.5": 0.5,
		"-Inf":                     math.Inf(-1),
	}
	for text, want := range cases {
		b := Batch{Body: []byte("a " + text)}
		new(Scanner).Scan(&b)
		if len(b.Samples) != 1 || b.Samples[0].Value != want {
			t.Errorf("%s: got %v, want %v", text, b.Samples, want)
		}
	}
}

// series returns the samples of a Batch as text.
func series(b *Batch) []string {
	var out []string
	for _, s := range b.Samples {
		out = append(out, fmt.Sprint(b.Dict.Family(s.Family).Name, " ", b.Dict.Block(s.Labels), " ", s.Value))
	}
	return out
}

func TestScanForgetsAnotherDict(t *testing.T) {
	body := []byte("a{x=\"y\"} 1\na{x=\"z\"} 2\n")
	b := Batch{Body: body, Dict: NewDict()}
	var s Scanner
	s.Scan(&b)
	s.Scan(&b)
	b.Dict = NewDict()
	b.Dict.BlockID([]byte("{not valid}"))
	b.Body = slices.Concat(body, []byte("a{not valid} 3\n"))
	s.Scan(&b)
	s.Scan(&b)
	if len(b.Samples) != 2 || b.Skipped != 1 || b.Dict.Block(b.Samples[1].Labels) != `{x="z"}` {
		t.Errorf("got %v, skipped %d", series(&b), b.Skipped)
	}
}

// TestScanDoesNotAllocate scans bodies with new values, in a new order of
// families, and with lines of every kind.
func TestScanDoesNotAllocate(t *testing.T) {
	odd := []byte("# HELP \"a.b\\\\c\" d\n{\"a.b\\\\c\"} 1\nkpulse_x{a=\"b\"} 1\nc Tesla T4\nc NaN\nc 1e+18\r\nd{\nd{x=\"y\",z=\"a\"b\"} 1\n# TYPE e f\n#\x00\nf 1e-7\n")
	bodies := make([][]byte, 4)
	for i := range bodies {
		bodies[i] = append(rawtest.Body(16, 40, uint64(i)), odd...)
	}
	b := Batch{Dict: NewDict()}
	var s Scanner
	i := 0
	scan := func() {
		b.Body = bodies[i%len(bodies)]
		i++
		s.Scan(&b)
	}
	for range bodies {
		scan()
	}
	if n := testing.AllocsPerRun(20, scan); n != 0 {
		t.Errorf("a steady scan allocates %v times", n)
	}
	if len(b.Samples) != 16*40+3 || b.Skipped != 8 || b.OwnFamilies != 1 {
		t.Errorf("%d samples, skipped %d, own families %d", len(b.Samples), b.Skipped, b.OwnFamilies)
	}
}

// TestScanIsLinear scans hostile bodies of 1 to 3 MB. For a scanner that looks ahead
// without a bound, each is quadratic work and takes from half a minute to hours. A
// linear one takes milliseconds, as for a body without faults.
func TestScanIsLinear(t *testing.T) {
	scans := func(body string) time.Duration {
		b := Batch{Body: []byte(body)}
		var s Scanner
		start := time.Now()
		s.Scan(&b)
		s.Scan(&b)
		return time.Since(start)
	}
	bound := max(10*time.Second, 500*scans(strings.Repeat("a{x=\"y\"} 1\n", 250_000)))
	long := "a{x=\"" + strings.Repeat("\n{\n", 100_000) + "\"} 1\n"
	for name, body := range map[string]string{
		"no closing brace":    strings.Repeat("a{\n", 500_000),
		"unescaped quotes":    "a{x=\"" + strings.Repeat("\",y=\"", 200_000) + "\"\"} 1\n",
		"quotes in a value":   strings.Repeat("a{x=\""+strings.Repeat("\",b=", 2_000)+"\"\"} 1\n", 100),
		"many labels":         "a{x=\"\"\"," + strings.Repeat("y=\"\",", 200_000) + "} 1\n",
		"no closing quote":    strings.Repeat("a{x=\"\n", 300_000),
		"escaped quotes":      strings.Repeat("a{x=\"\\\"\n", 300_000),
		"quoted HELP":         strings.Repeat("# HELP \"\n", 300_000),
		"prefix of a block":   long + long[:len(long)-2] + "x\n",
		"beside a long block": long + strings.Repeat("a{x=\"\n", 300_000),
		"NUL bytes":           "a{x=\"" + strings.Repeat("\x00\n", 500_000) + "\\",
		"NULs behind a value": strings.Repeat("a{x=\"y\"\x00\x00\n", 300_000),
	} {
		if took := scans(body); took > bound {
			t.Errorf("%s: two scans of %d bytes took %v, want less than %v", name, len(body), took, bound)
		}
	}
}

// TestScanStopsAtExcess: a body of ever new families, label sets or samples must
// not grow tables without bound, nor affect the next body.
func TestScanStopsAtExcess(t *testing.T) {
	line := map[string]func(i int) string{
		"families": func(i int) string { return fmt.Sprintf("a%d 1\n", i) },
		"blocks":   func(i int) string { return fmt.Sprintf("a{b=\"%d\"} 1\n", i) },
		"samples":  func(int) string { return "a 1\n" },
	}
	for name, most := range map[string]int{"families": maxFamilies, "blocks": maxBlocks, "samples": MaxSamples} {
		var body strings.Builder
		for i := range most + 100 {
			body.WriteString(line[name](i))
		}
		var s Scanner
		b := Batch{Body: []byte(body.String()), Dict: NewDict()}
		if s.Scan(&b); !b.Excess || len(b.Samples) > most+1 {
			t.Errorf("%s: excess %v after %d samples", name, b.Excess, len(b.Samples))
		}
		b.Body = b.Body[:strings.Index(body.String()[100:], "\n")+101]
		if s.Scan(&b); b.Excess || len(b.Samples) == 0 || b.Skipped > 0 {
			t.Errorf("%s: the next body has %d samples, %d skipped, excess %v", name, len(b.Samples), b.Skipped, b.Excess)
		}
	}
}
