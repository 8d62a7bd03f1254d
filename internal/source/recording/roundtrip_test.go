package recording

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
)

// captures returns the expositions of this repository's tests.
func captures(t testing.TB) [][]byte {
	t.Helper()
	var bodies [][]byte
	for _, pattern := range []string{
		"../../../testdata/captures/*", "../../e2e/testdata/golden/*", "../../expose/testdata/*.prom",
	} {
		paths, _ := filepath.Glob(pattern)
		if len(paths) == 0 {
			t.Fatalf("no files match %s", pattern)
		}
		for _, path := range paths {
			bodies = append(bodies, load(t, path))
		}
	}
	return bodies
}

// nasty lines may be mistaken for something else.
var nasty = []string{
	"", " ", "  ", "\r", "+", "+x", `"`, `"x"`, `"x" y`, "@1", "@1 =", "@1 =2 3", "=", "=2", "end 00000000", "end 0123abcd",
	"reading 0.000000000 0.000000000 3 full", "reading 1 2 3", First, "# EOF", "# HELP", "failed 0.000000000 0.000000000 timeout \"x\"",
	"source \"a\"", "x\x00y", "\x00", "\xff\xfe", "é ü", "x{a=\"} \"} 1", "x{a=\"} y\"} 2 3", "x @5", "x =", "x =3", `x "1"`, `x "`, "x 1 1700000000000",
	"x ", "x  1", "x 1 ", "x\t1", "x 1\r", "x\u2028 1", "x \u0085", "x 1\u00a0", "\\", "x \\n", "x{} 1", "x} 1", "} ", "} }  1",
}

// vary returns body with some lines changed, moved, added or removed.
func vary(rng *rand.Rand, body []byte) []byte {
	lines := bytes.SplitAfter(body, []byte("\n"))
	at := func() int { return rng.IntN(len(lines)) }
	for range 1 + rng.IntN(12) {
		i := at()
		switch rng.IntN(9) {
		case 0: // another value
			if n := bytes.LastIndexByte(lines[i], ' '); n >= 0 {
				lines[i] = fmt.Appendf(bytes.Clone(lines[i][:n+1]), "%g\n", rng.Float64())
			}
		case 1:
			lines[i] = nil
		case 2:
			lines[i] = append([]byte(nasty[rng.IntN(len(nasty))]), "\r\n"[rng.IntN(2):]...)
		case 3:
			j := at()
			lines[i], lines[j] = lines[j], lines[i]
		case 4: // twice
			lines[i] = append(bytes.Clone(lines[i]), lines[i]...)
		case 5: // rotate the lines
			lines = append(lines[i:len(lines):len(lines)], lines[:i]...)
		case 6:
			if len(lines[i]) > 0 { // one byte
				lines[i] = bytes.Clone(lines[i])
				lines[i][rng.IntN(len(lines[i]))] = byte(rng.Uint32())
			}
		case 7: // no end of line
			lines[i] = bytes.TrimSuffix(lines[i], []byte("\n"))
		case 8: // a series that ends as another begins
			lines[i] = append(lines[i][:len(lines[i]):len(lines[i])], lines[at()]...)
		}
	}
	return bytes.Join(lines, nil)
}

// checkRoundTrip records bodies in files of at most size bytes and plays the
// newest file.
func checkRoundTrip(t *testing.T, bodies [][]byte, size int64) {
	t.Helper()
	var answers []said
	for _, body := range bodies {
		answers = append(answers, said{body: string(body)})
	}
	text := load(t, record(t, Options{FileSize: size}, answers...))
	rec, all := play(t, text)
	if rec.Torn > 0 || size == 0 && len(all) != len(bodies) || len(all) == 0 {
		t.Fatalf("%d of %d readings, torn at %d", len(all), len(bodies), rec.Torn)
	}
	bodies = bodies[len(bodies)-len(all):]
	for i, r := range all {
		if !bytes.Equal(r.Body, bodies[i]) {
			t.Fatalf("reading %d: got %q, want %q", i, r.Body, bodies[i])
		}
	}
	for _, c := range text {
		if c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			t.Fatalf("the recording is not a text: it contains %q", c)
		}
	}
}

func TestRoundTripOfCaptures(t *testing.T) {
	bodies := captures(t)
	checkRoundTrip(t, append(bodies, bodies...), 0)
}

func TestRoundTripOfNastyLines(t *testing.T) {
	all := strings.Join(nasty, "\n")
	var bodies [][]byte
	for _, body := range []string{"", "\n", "\n\n", all, all + "\n", strings.Join(nasty, "\r\n"), all + all, "x" + all, "x", "x\n", ""} {
		bodies = append(bodies, []byte(body))
	}
	for _, line := range nasty {
		bodies = append(bodies, []byte(line), []byte(line+"\n"), []byte(line+"\nup 1\n"), []byte("x "+line+"\n"), []byte("x "+line))
	}
	checkRoundTrip(t, bodies, 0)
}

func TestRoundTripOfRandomEdits(t *testing.T) {
	seeds := captures(t)
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		body := seeds[rng.IntN(len(seeds))]
		if seed%2 == 0 {
			body = rawtest.Body(1+rng.IntN(8), 1+rng.IntN(12), seed)
		}
		var bodies [][]byte
		for n := range 40 {
			switch {
			case n%7 == 6:
				body = bodies[rng.IntN(len(bodies))]
			case seed%2 == 0 && n%7 == 3:
				body = rawtest.Body(1+rng.IntN(8), 1+rng.IntN(12), uint64(n))
			default:
				body = vary(rng, body)
			}
			bodies = append(bodies, body)
		}
		checkRoundTrip(t, bodies, int64(seed%3)*10_000)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// Two writers write the same recording: nothing in it depends on the seed of the hash.
func TestDeterministic(t *testing.T) {
	var texts [2]string
	for i := range texts {
		rng := rand.New(rand.NewPCG(7, 7))
		var answers []said
		for n := range 60 {
			answers = append(answers, said{body: string(vary(rng, rawtest.Body(5, 9, uint64(n%5))))})
		}
		texts[i] = string(load(t, record(t, Options{}, answers...)))
	}
	if texts[0] != texts[1] {
		t.Error("the recordings differ")
	}
}

// Label sets that come and go do not accumulate in memory.
func TestLitter(t *testing.T) {
	const steady = 20
	s := &endless{}
	for i := range 3000 {
		s.bodies = append(s.bodies, fmt.Appendf(nil, "%sjob{id=\"%d\"} 1\n", strings.Repeat("job{id=\"x\"} 1\n", steady), i))
	}
	w := newWriter(s, "")
	text, most := []byte(nil), 0
	for range s.bodies {
		text = w.reading(text, batch(s), 0)
		most = max(most, len(w.encoder.lines.all), len(w.encoder.index))
	}
	if most > 10*steady {
		t.Errorf("%d lines are remembered", most)
	}
	if _, all := play(t, text); len(all) != 3000 || string(all[2999].Body) != string(s.bodies[2999]) {
		t.Errorf("%d readings", len(all))
	}
}

// Full readings are a ninth of a recording.
func TestFullReadings(t *testing.T) {
	s := shuffled(8, 30)
	w := newWriter(s, "")
	full, text := 0, []byte(nil)
	for range 1000 {
		from := len(text)
		text = w.reading(text, batch(s), 0)
		if bytes.Contains(text[from:], []byte(" full\n")) {
			full += len(text) - from
		}
	}
	if share := float64(full) / float64(len(text)); share < .1 || share > .14 { // the last cycle is incomplete
		t.Errorf("full readings are %.3f of it", share)
	}
	if perReading, body := len(text)/1000, len(s.bodies[0]); perReading > body/15 {
		t.Errorf("%d bytes a reading of %d", perReading, body)
	}
}

// The form of edits where several are possible.
func TestEdits(t *testing.T) {
	long := strings.Repeat("x 1\n", 60)
	for name, tt := range map[string]struct{ full, then, want string }{
		"a series that occurs twice":  {"a{} 1\na{} 2\nb 1\n", "b 1\na{} 3\na{} 4\n", "@3 =\n@1 3 4\n"},
		"a label with a brace":        {"x{a=\"} \"} 1\n", "x{a=\"} \"} 2\n", "@1 2\n"},
		"a timestamp":                 {"x{} 1 1000\ny 1 1000\n", "x{} 2 2000\ny 2 2000\n", "@1 \"2 2000\" \"2 2000\"\n"},
		"a line between":              {"a 1\nb 1\n", "a 1\nc 1\nb 1\n", "@1 =\n+c 1\n@2 =\n"},
		"a line less":                 {"a 1\nb 1\nc 1\n", "a 1\nc 2\n", "@1 =\n@3 2\n"},
		"another comment":             {"# HELP a x\na 1\n", "# HELP a y\na 1\n", "+# HELP a y\n@2 =\n"},
		"a long line is wrapped":      {long, strings.ReplaceAll(long, "1", "2"), "@1" + strings.Repeat(" 2", 50) + "\n@51" + strings.Repeat(" 2", 10) + "\n"},
		"a value that looks like one": {"x 1\ny 1\n", "x =\ny @1\n", "@1 \"=\" \"@1\"\n"},
	} {
		e := newEncoder()
		e.encode(nil, []byte(tt.full), true)
		if got := string(e.encode(nil, []byte(tt.then), false)); got != tt.want {
			t.Errorf("%s: got\n%swant\n%s", name, got, tt.want)
		}
	}
}

// A repetition takes a few bytes, in any order of its lines, and other values
// little more than their own text.
func TestCompact(t *testing.T) {
	body := rawtest.Body(112, 60, 1)
	e := newEncoder()
	e.encode(nil, body, true)
	if n := len(e.encode(nil, body, false)); n > 20 {
		t.Errorf("the same again takes %d bytes", n)
	}
	if n := len(e.encode(nil, body[:len(body)/2], false)); n > 300 { // its last line is cut and thus new
		t.Errorf("half of it takes %d bytes", n)
	}
	if n := len(e.encode(nil, body, false)); n > 20 {
		t.Errorf("the whole after the half takes %d bytes", n)
	}
	values, other := 0, rawtest.Body(112, 60, 2)
	for line := range bytes.Lines(other) {
		if line[0] != '#' {
			values += len(line) - bytes.LastIndexByte(line, ' ')
		}
	}
	if n := len(e.encode(nil, other, false)); n > values*12/10 {
		t.Errorf("another scrape takes %d bytes, its values %d", n, values)
	}
}
