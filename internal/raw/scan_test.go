package raw

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
)

// quirks are bodies that show the oddities of Prometheus' parser, and what
// fuzzing found. They are also the seeds of fuzzing.
var quirks = []string{
	"",
	"\n\n \t\n",
	"a 1",
	"a 1\n\n  \nb 2\n",
	"a{gpu=\"0\"} 1\na{gpu=\"1\"} 2\nb{gpu=\"0\"} 3\nb{gpu=\"1\"} 4\na{gpu=\"0\"} 5\n",
	// A quoted name may be empty, before any other name too.
	"# TYPE \"\" gauge\na 1\n",
	"# HELP \"\" a\n# TYPE \"\" gauge\n{\"\"} 1\na 1\n",
	// Values.
	"a 1\na -1\na +1\na -0\na .5\na 5.\na .\na -\na --1\na 1.5e3\na 1E-3\na 1e400\na 1e-400\na 1e\n",
	"a NaN\na nan\na +Inf\na -inf\na infinity\na infinities\na 0x1p-2\na 0x10\na 1_000\na 1P3\na 1d\n",
	"a 9007199254740991\na 9007199254740992\na 9007199254740993\na 18446744073709551616\na 9223372036854775794\n",
	"a 0.1\na 0.000001\na 123456.789012\na 0.1234567890123456789\na 0.00000000000000000000001\na 00000000000000000000001.5\n",
	"a Tesla T4\na ERROR - FAILED TO CONVERT TO STRING\na\na \na{x=\"y\"}\na{x=\"y\"} \nb 1\n",
	// The value needs no blank in front of it.
	"a-1\na.5\na+Inf\na\"1\"\na{x=\"y\"}5\na{x=\"y\"}-5 7\nab{c=\"d\"}NaN\n",
	// Timestamps.
	"a 1 123\na 1 123 \na 1\t 00000000000000000000000000001\na 1 -1\na 1 1.5\na 1 1 1\na 1 12a\n",
	"a 1 9223372036854775807\na 1 9223372036854775808\na 1 99999999999999999999\na 1 {\na 1{x=\"y\"}\n",
	// Blanks in front of a name are a part of it, in front of a brace they are not.
	"  a 1\n\ta{x=\"y\"} 1\n a {x=\"y\"} 1\n  {\"a\"} 1\na{x=\"y\"} 1\na\t {x=\"y\"}\t 1\t \n  kpulse_a 1\n",
	// Commas and equals signs.
	"a{} 1\na{,} 1\na{x=\"y\",} 1\na{x=\"y\",,} 1\na{,x=\"y\"} 1\na{x=\"y\" z=\"w\"} 1\na{x=\"y\"z=\"w\"} 1\n",
	"a{ x = \"y\" , z\t=\t\"w\" , } 1\na{x==\"y\"} 1\na{x\"y\"} 1\na{x} 1\na{=\"y\"} 1\na{x=y} 1\na{x=\"y\"\n",
	"a{x=\"y\"}} 1\na{{x=\"y\"} 1\na{x=\"y\"}{x=\"y\"} 1\na{x:y=\"z\"} 1\na{1x=\"z\"} 1\na:b{x1=\"z\"} 1\n:a 1\n1a 1\na.b 1\n",
	"a{x=\"}\"} 1\na{x=\"{}\",y=\"}\"} 1\na{x=\"} 1\"} 2\na{x=\"y\",x=\"z\"} 1\na{__name__=\"b\"} 1\na{A=\"b\"} 1\n",
	// Escapes.
	"a{x=\"\\\"\"} 1\na{x=\"\\\\\"} 1\na{x=\"\\n\"} 1\na{x=\"\\x\\\\n\\\\\\n\"} 1\na{x=\"\\\"} 1\na{x=\"y\\\\\\\"z\"} 1\n",
	// Newlines in quotes, and what is left when such an entry fails.
	"a{x=\"one\ntwo\"} 1\nb 2\n",
	"a{x=\"one\n# HELP b c\nb 1\ntwo\"} x\nc 3\n",
	"a{x=\"\nb{x=\"\nc{x=\"\nd 1\n",
	"a{x=\"\\\ny\"} 1\na{\"\\\ny\"=\"z\"} 1\n{\"a\nb\"} 1\n{\"a\nb\",\"c\nd\"=\"e\nf\"} 1\n",
	"kpulse_a{x=\"one\ntwo\"} 1\nb 2\n",
	"a{x=\"y",
	"a{x=\"y\\",
	"a{x",
	"a{x=",
	"a{",
	"a{x=\"y\"} 1 2",
	"{\"a",
	// Quoted names.
	"{\"a.b\",x=\"y\"} 1\n{\"a.b\"} 2\n{x=\"y\",\"a.b\"} 3\n{x=\"y\" \"a.b\"} 4\n{\"a.b\" x=\"y\"} 5\n{\"a.b\",} 6\n{\"a.b\",,} 7\n",
	"{\"a\",\"b\"} 1\na{\"b\"} 1\na{\"b\",x=\"y\"} 1\na{\"b\"=\"c\"} 1\n{\"a\"=\"b\"} 1\n{x=\"y\"} 1\n{} 1\n{\"\"} 1\n{\"\",\"\"=\"\"} 1\n",
	"{\"a\\\"b\\\\c\\nd\\e\"} 1\n{\"a\",\"x\\\"y\"=\"z\"} 1\n{\"a\\",
	// A block that is right without a name is wrong behind one, and the reverse.
	"{\"foo\"} 1\nbar{\"foo\"} 1\n{\"foo\"} 1\nfoo{x=\"y\"} 1\n{x=\"y\"} 1\nfoo{x=\"y\"} 1\n",
	"# HELP a.b c\n# HELP \"a.b\" c\na.b{x=\"y\"} 1\n{\"a.b\"} 1\na.b{x=\"y\"} 1\n{\"\"} 1\n{x=\"y\"} 1\n",
	// HELP, TYPE and comments.
	"# HELP a text\n# TYPE a gauge\na 1\n#HELP a\n# HELPa b\n# HELP\n# HELP \n# HELP a\n# HELP a \n# HELP a  b \n#\n# \n#a\n",
	"# HELP a one\n# HELP a two\n# HELP b \\\\ \\n\n  # HELP c d\n#\tHELP\td\te\n# help a b\n# HELP 1 b\n# HELP a-b\n# HELP \"a\"b\n# HELP ab\"c\n",
	"# TYPE a counter\n# TYPE a gauge\n# TYPE a histogram\n# TYPE a summary\n# TYPE a untyped\n# TYPE a unknown\n# TYPE a\n# TYPE a  gauge\n# TYPE a gauge \n# TYPE a-gauge\n# TYPE\n# TYPE \n# TYPE a gaugehistogram\n",
	"# HELP \"a.b\" c\n# TYPE \"a.b\" gauge\n# HELP \"a\nb\" c\n# HELP \"a\\\"b\" c\n# HELP \"a\\\nb\" c\n# HELP \"a c\n# HELP \"\" c\n# TYPE \"a\"gauge\n# TYPE \"a\" gauge\n",
	"# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"1.0\"} 2\nx x\nh_bucket{le=\"1\"} 3\n# TYPE s summary\ns{quantile=\"0.50\"} 1\n",
	"# EOF\n# UNIT a b\na 1 # {x=\"y\"} 1\n",
	// Bytes that are no UTF-8.
	"a{x=\"\xff\"} 1\n{\"a\xff\"} 1\na{\"x\xff\"=\"y\"} 1\n# HELP a \xff\n# HELP \"\xff\" a\n# TYPE \"\xff\" gauge\n# \xff\n\xff 1\na \xff\na\xff 1\n",
	"a{x=\"\xe2\x82\xac\"} 1\n# HELP a \xe2\x82\xac\n# HELP a \xe2\x82\n",
	// CRLF.
	"# HELP a b\r\n# TYPE a gauge\r\na 1\r\na{x=\"y\"} 1\r\n\r\n# c\r\na 1 2\r\na 1 \r\n",
	// NUL bytes.
	"\x00\na 1\n",
	" \x00\na 1\n",
	"#\x00\n# \x00\n#a\x00\n# a\x00\n# \x00HELP a b\na 1\n",
	"# HE\x00LP a b\n# HELP\x00 \x00a b\n# HELP \x00 a b\n# HELP a\x00 b\n# HELP a \x00\n# HELP a \x00b\n# HELP a b\x00\n# HELP \"a\x00\" b\n# H\x00\n# HELP \"a\"\x00b\n",
	"# TYPE a gau\x00ge\n# TYPE\x00 a gauge\n# TYPE a \x00gauge\n# HELP a \x00 \x00\n# HELP a x\x00\n",
	"a{x=\"\x00\"} 1\na{x=\"y\"\x00} 1\na{x=\"y\"\x00\x00,z=\"w\"\x00\x00\x00} 1\na{x=\x00\"y\"} 1\na{x= \x00 \x00\"y\"} 1\na{x\x00=\"y\"} 1\n",
	"a{x=\"\\\x00n\"} 1\na{x=\"\\\x00\"\"} 1\na{x=\"\\\x00\n\"} 1\na{\"x\x00\"=\"y\"} 1\na{\"x\\\x00\"=\"y\"} 1\na\x00 1\na 1\x00\na 1 2\x00\na{x=\"y\"}\x00 1\n{\x00\"a\"} 1\n",
	// Our own families.
	"# HELP kpulse_a b\n# TYPE kpulse_a gauge\nkpulse_a 1\nkpulse_a{x=\"y\"} 2\nkpulse_b 1\nkpulse_c x\n{\"kpulse_d\"} 1\n# HELP \"kpulse_e\\\"\" f\n{\"kpulse_e\\\"\"} 1\nkpulsea 1\nkpulse_ 1\n",
	"a 1\nkpulse_a 1\na 2\nkpulse_a 1\nkpulse_a 1\na x\na 3\n",
}

func TestScanAgreesWithPrometheus(t *testing.T) {
	for _, body := range quirks {
		b := Batch{Body: []byte(body), Dict: NewDict()}
		var s Scanner
		s.Scan(&b)
		compare(t, &b)
		s.Scan(&b)
		compare(t, &b)
	}
}

// TestScan has values that were worked out by hand, lest the referee and the
// scanner be wrong together.
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
			body:       "{\"a.b\",x=\"y\"} 1\n  c 2\n",
			samples:    []string{`a.b {"a.b",x="y"} 1`, "  c  2"},
			meaningful: 2,
		},
	}
	for _, c := range cases {
		b := Batch{Body: []byte(c.body)}
		new(Scanner).Scan(&b)
		var samples []string
		for _, s := range b.Samples {
			samples = append(samples, fmt.Sprint(b.Dict.Family(s.Family).Name, " ", b.Dict.Block(s.Labels), " ", s.Value))
		}
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
	// What the first scan said of b is not said of the second.
	for name, want := range map[string]string{"a": "two", "b": ""} {
		if got := b.Dict.Family(b.Dict.FamilyID([]byte(name))).Help; got != want {
			t.Errorf("help of %s: got %q, want %q", name, got, want)
		}
	}
}

// TestScanKeepsNothingOfBody writes over a Body after its scan.
func TestScanKeepsNothingOfBody(t *testing.T) {
	body := "# HELP a help\na{x=\"y\"} 1\n{\"b.c\"} 2\nkpulse_d 3\nd{e=\"f\"} 4\n"
	b := Batch{Body: []byte(body), Dict: NewDict()}
	var s Scanner
	s.Scan(&b)
	want := ours(&b)
	for i := range b.Body {
		b.Body[i] = '!'
	}
	if got := ours(&b); !slices.Equal(got, want) || b.Dict.Family(0).Help != "help" {
		t.Errorf("after the body changed: got %v, want %v", got, want)
	}
	b.Body = []byte(body)
	s.Scan(&b)
	if got := ours(&b); !slices.Equal(got, want) || b.Dict.Families() != 3 || b.OwnFamilies != 1 {
		t.Errorf("scanned again: got %v, want %v", got, want)
	}
}

// TestScanRange reads the ends of the plain form, which does not go through
// strconv, next to values of other forms.
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

// TestPlainDecimalRounds compares the plain form, in which most numbers of many
// digits would come out wrong if they were not left to strconv, with strconv.
func TestPlainDecimalRounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	taken := 0
	for range 20_000 {
		text := strconv.FormatUint(rng.Uint64()>>rng.IntN(64), 10)
		point := rng.IntN(len(text) + 1)
		text = text[:point] + "." + text[point:]
		want, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		got, end := plainDecimal(text, 0)
		if end == 0 {
			continue
		}
		if taken++; got != want || end != len(text) {
			t.Errorf("%s: got %v up to %d, want %v", text, got, end, want)
		}
	}
	if taken < 10_000 {
		t.Errorf("only %d of 20000 numbers were taken for plain", taken)
	}
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
		t.Errorf("got %v, skipped %d", ours(&b), b.Skipped)
	}
}

// TestScanDoesNotAllocate scans bodies with new values, in a new order of
// families, and with lines of every kind.
func TestScanDoesNotAllocate(t *testing.T) {
	odd := []byte("# HELP \"a.b\\\\c\" d\n{\"a.b\\\\c\"} 1\nkpulse_x{a=\"b\"} 1\nc Tesla T4\nc NaN\nc 1e+18\r\nd{\n# TYPE e f\n#\x00\nf 1e-7\n")
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
	if len(b.Samples) != 16*40+4-1 || b.Skipped != 5 || b.OwnFamilies != 1 {
		t.Errorf("%d samples, skipped %d, own families %d", len(b.Samples), b.Skipped, b.OwnFamilies)
	}
}

// TestScanIsLinear scans hostile bodies of 1 to 3 MB, each of which is quadratic
// work, and takes from half a minute to hours, for a scanner that looks ahead
// without a bound. A linear one needs milliseconds.
func TestScanIsLinear(t *testing.T) {
	long := "a{x=\"" + strings.Repeat("\n{\n", 100_000) + "\"} 1\n"
	for name, body := range map[string]string{
		"no closing brace":    strings.Repeat("a{\n", 500_000),
		"no closing quote":    strings.Repeat("a{x=\"\n", 300_000),
		"escaped quotes":      strings.Repeat("a{x=\"\\\"\n", 300_000),
		"quoted HELP":         strings.Repeat("# HELP \"\n", 300_000),
		"prefix of a block":   long + long[:len(long)-2] + "x\n",
		"beside a long block": long + strings.Repeat("a{x=\"\n", 300_000),
		"NUL bytes":           "a{x=\"" + strings.Repeat("\x00\n", 500_000) + "\\",
		"NULs behind a value": strings.Repeat("a{x=\"y\"\x00\x00\n", 300_000),
	} {
		b := Batch{Body: []byte(body)}
		var s Scanner
		start := time.Now()
		s.Scan(&b)
		s.Scan(&b)
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s: two scans of %d bytes took %v", name, len(body), took)
		}
	}
}

// TestScanStopsAtExcess: a body of ever new families, label sets or samples must
// not grow tables without bound, and does not spoil the next one.
func TestScanStopsAtExcess(t *testing.T) {
	line := map[string]func(i int) string{
		"families": func(i int) string { return fmt.Sprintf("a%d 1\n", i) },
		"blocks":   func(i int) string { return fmt.Sprintf("a{b=\"%d\"} 1\n", i) },
		"samples":  func(int) string { return "a 1\n" },
	}
	for name, most := range map[string]int{"families": maxFamilies, "blocks": maxBlocks, "samples": maxSamples} {
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
			t.Errorf("%s: the next body is spoilt: %+v", name, b.Excess)
		}
	}
}
