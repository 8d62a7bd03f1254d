package recording

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// small returns a recording with records of each kind, and its records.
func small(t testing.TB) ([]byte, []Reading) {
	t.Helper()
	refused := &source.Error{Failure: source.Unreachable, Cause: "nobody answers"}
	text := load(t, record(t, Options{},
		said{body: "# HELP up u\nup{gpu=\"0\"} 1\nup{gpu=\"1\"} 2\n"},
		said{at: time.Second, body: "# HELP up u\nup{gpu=\"0\"} 12345\nup{gpu=\"1\"} 2\n"},
		said{err: refused},
		said{at: 2 * time.Second, body: "\x00\nup{gpu=\"1\"} 3 4\nup{gpu=\"0\"} 12345"},
		said{at: 3 * time.Second, body: "# HELP up u\nup{gpu=\"0\"} 0\n"},
	))
	_, all := play(t, text)
	if len(all) != 5 {
		t.Fatalf("%d records", len(all))
	}
	return text, all
}

func equal(a, b Reading) bool {
	return a.Asked == b.Asked && a.Took == b.Took && a.Missed == b.Missed && a.Failure == b.Failure && a.Cause == b.Cause && bytes.Equal(a.Body, b.Body)
}

// Whenever the writer is killed, the complete records play.
func TestKilledAtEveryByte(t *testing.T) {
	text, all := small(t)
	type place struct{ at, line, records int } // after a comment or a record
	places := []place{{0, 0, -1}}
	p := places[0]
	for line := range strings.Lines(string(text)) {
		p.at += len(line)
		p.line++
		ends := strings.HasPrefix(line, "end ")
		if ends {
			p.records++ // not for the source, which is no Reading
		}
		if ends || line[0] == '#' {
			places = append(places, p)
		}
	}
	if p.records != len(all) {
		t.Fatalf("%d ends, %d records", p.records, len(all))
	}
	for n := range len(text) + 1 {
		for len(places) > 1 && n >= places[1].at {
			places = places[1:]
		}
		want := places[0]
		for _, tail := range []string{"", "\x00\x00\x00", "\x00\x00\x00\n\x00"} { // a power failure may leave these
			rec, err := Parse(append(bytes.Clone(text[:n]), tail...))
			if n < len(First) || n == len(First) && tail != "" {
				if err == nil {
					t.Fatalf("%d bytes: a first line that is cut was accepted", n)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
			got := rest(t, rec.Play())
			if whole := max(want.records, 0); len(got) != whole || !slices.EqualFunc(got, all[:whole], equal) {
				t.Fatalf("%d bytes: %d records, want %d", n, len(got), whole)
			}
			torn := 0
			if n > want.at {
				torn = want.line + 1
			}
			if tail == "" && rec.Torn != torn || tail != "" && rec.Torn <= want.line {
				t.Fatalf("%d bytes: torn at line %d, want %d", n, rec.Torn, torn)
			}
		}
	}
}

// A changed byte is found, or makes its line a comment.
func TestDamageAtEveryByte(t *testing.T) {
	text, all := small(t)
	from := bytes.Index(text, []byte("\nsource ")) + 1
	last := bytes.LastIndex(text, []byte("reading "))
	for n := from; n < last; n++ {
		for _, flip := range []byte{1, 0x20, 0x80} {
			damaged := bytes.Clone(text)
			damaged[n] ^= flip
			rec, err := Parse(damaged)
			line := 1 + bytes.Count(text[:n], []byte("\n"))
			if err == nil {
				got := rest(t, rec.Play())
				if damaged[n] == '#' && slices.EqualFunc(got, all, equal) {
					continue
				}
				t.Fatalf("line %d: %q for %q is not noticed", line, damaged[n], text[n])
			}
			damage, ok := errors.AsType[*Damage](err)
			if !ok || damage.What == "" || strings.Contains(damage.What, "\n") {
				t.Fatalf("%T: %v", err, err)
			}
			// It is found in its record: at the latest at its end, which may be a
			// line off if a line feed was changed.
			end := bytes.Index(text[n:], []byte("\nend "))
			if latest := line + bytes.Count(text[n:n+max(end, 0)], []byte("\n")) + 2; damage.Line < line-1 || damage.Line > latest {
				t.Fatalf("line %d was changed, and %v", line, err)
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	const head = First + "\nsource \"s\" \"b\" \"point\" \"1s\" \"\" \"2026-03-01T12:00:00Z\"\nend 27cbbf33\n"
	const end = "\nend 00000000\n"
	tests := map[string]struct {
		text string
		line int
		says string
	}{
		"another version":          {First + "1\n", 1, `"# kpulse-proxy recording 11" is another version`},
		"no first line":            {"up 1\n", 1, "another version"},
		"no source":                {First + "\nreading 0.000000000 0.000000000 0" + end, 2, "does not describe the source"},
		"a source without a time":  {First + "\nsource \"s\" \"b\" \"point\" \"1s\" \"\" \"\"" + end, 2, "cannot parse"},
		"a source without more":    {First + "\nsource \"s\"" + end, 2, "quotes"},
		"an unknown record":        {head + "fault x" + end, 4, `"fault x" does not begin a record`},
		"an empty line":            {head + "\n" + end, 4, "does not begin a record"},
		"no time":                  {head + "reading x 2 3" + end, 4, `"x" is not a time`},
		"a time too long":          {head + "reading 99999999999999999999.000000000 0.000000000 3" + end, 4, "is not a time"},
		"no length":                {head + "reading 0.000000000 0.000000000 x" + end, 4, `"x" is not a length`},
		"a negative length":        {head + "reading 0.000000000 0.000000000 -1" + end, 4, "is not a length"},
		"a length beyond int":      {head + "reading 0.000000000 0.000000000 9223372036854775807" + end, 4, "is not a length"},
		"none missed":              {head + "reading 0.000000000 0.000000000 0 missed 0" + end, 4, "not a number of readings"},
		"an unknown word":          {head + "reading 0.000000000 0.000000000 0 half" + end, 4, `"half" is not expected`},
		"too short a text":         {head + "reading 0.000000000 0.000000000 5\n+abc" + end, 6, "does not begin an edit"},
		"too long a text":          {head + "reading 0.000000000 0.000000000 3\n+abcd" + end, 5, "more text"},
		"too many lines":           {head + "reading 0.000000000 0.000000000 3\n+abc\n+d" + end, 6, "is not the end of the record of line 4"},
		"a line that is not there": {head + "reading 0.000000000 0.000000000 3\n@1 =" + end, 5, "only 0 lines"},
		"lines that are not there": {head + "reading 0.000000000 0.000000000 9\n+x 1\n@1 =2" + end, 6, "only 1 lines"},
		"very many lines":          {head + "reading 0.000000000 0.000000000 9\n+x 1\n@1 =9223372036854775807" + end, 6, "only 1 lines"},
		"a value for none":         {head + "reading 0.000000000 0.000000000 9\n@1 5" + end, 5, "only 0 lines"},
		"a value for a comment":    {head + "reading 0.000000000 0.000000000 9\n+# x\n@1 5" + end, 6, "cannot have the value"},
		"line 0":                   {head + "reading 0.000000000 0.000000000 9\n@0 =" + end, 5, "not a line number"},
		"no number":                {head + "reading 0.000000000 0.000000000 9\n+x 1\n@1 =x" + end, 6, "not a number of lines"},
		"no copies":                {head + "reading 0.000000000 0.000000000 9\n+x 1\n@1 =0" + end, 6, "not a number of lines"},
		"two blanks":               {head + "reading 0.000000000 0.000000000 9\n+x 1\n@1  =" + end, 6, "not a value"},
		"quotes that do not match": {head + "reading 0.000000000 0.000000000 9\n\"x" + end, 5, "quotes"},
		"more after quotes":        {head + "reading 0.000000000 0.000000000 9\n\"x\"y" + end, 5, "more after"},
		"more after a value":       {head + "reading 0.000000000 0.000000000 9\n+x 1\n@1 \"x\"y" + end, 6, "no blank"},
		"two lines in one":         {head + "reading 0.000000000 0.000000000 4\n\"x\\ny\"" + end, 5, "line feed"},
		"raw quotes":               {head + "reading 0.000000000 0.000000000 4\n`x`" + end, 5, "does not begin an edit"},
		"an unknown failure":       {head + "failed 0.000000000 0.000000000 " + end, 4, "kind of the failure is missing"},
		"a failure without cause":  {head + "failed 0.000000000 0.000000000 timeout" + end, 4, "quotes"},
		"a changed record":         {head + "failed 0.000000000 0.000000000 timeout \"x\"" + end, 5, "the record of line 4 was changed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			rec, err := Parse([]byte(tt.text))
			damage, ok := errors.AsType[*Damage](err)
			if !ok || damage.Line != tt.line || !strings.Contains(damage.What, tt.says) {
				t.Errorf("%+v, %v; want line %d: %s", rec, err, tt.line, tt.says)
			}
		})
	}
	if rec, err := Parse([]byte(head)); err != nil || rec.Torn > 0 || rec.Source != "s" || rec.Spacing() != time.Second {
		t.Errorf("a recording without readings: %+v, %v", rec, err)
	}
}

func TestSpacing(t *testing.T) {
	const s = time.Second
	down := said{err: context.DeadlineExceeded}
	at := func(seconds ...int) (all []said) {
		for _, n := range seconds {
			all = append(all, said{at: time.Duration(n) * s})
		}
		return all
	}
	for name, tt := range map[string]struct {
		answers []said
		want    time.Duration
	}{
		"no reading":               {[]said{down}, 0},
		"one reading":              {at(5), 0},
		"two readings":             {at(0, 7), 7 * s},
		"the clock was set back":   {at(0, 7, 6), 7 * s},
		"two scrapers":             {at(0, 1, 15, 16, 30), 14 * s},
		"a night's sleep":          {at(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1000), s},
		"a failure between":        {slices.Concat(at(0, 1), []said{down}, at(70, 71)), s},
		"failures around each":     {slices.Concat(at(0), []said{down}, at(70), []said{down, down}), 0},
		"a failure before the two": {slices.Concat([]said{down}, at(0, 2)), 2 * s},
	} {
		rec, _ := play(t, load(t, record(t, Options{}, tt.answers...)))
		if got := rec.Spacing(); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	rec, _ := play(t, load(t, record(t, Options{}, at(0, 1)...)))
	if rec.Caps.Period = 100 * time.Millisecond; rec.Spacing() != rec.Caps.Period {
		t.Errorf("a stream's is its period, not %v", rec.Spacing())
	}
}

func TestSeconds(t *testing.T) {
	for text, d := range map[string]time.Duration{
		"0.000000000": 0, "0.000000001": 1, "-0.000000001": -1, "1.000000000": time.Second, "-61.500000000": -61500 * time.Millisecond,
		"9223372036.854775807": 1<<63 - 1, "123456.000000789": 123456*time.Second + 789,
	} {
		if got := string(appendSeconds(nil, d)); got != text {
			t.Errorf("%d is written %s, want %s", d, got, text)
		}
		if got, err := parseSeconds([]byte(text)); err != nil || got != d {
			t.Errorf("%s is read %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-", "1.00000000x", "x.000000000", "--1.000000000", "1,000000000", "9223372036.854775808", "1.-00000000"} {
		if got, err := parseSeconds([]byte(text)); err == nil {
			t.Errorf("%q is read %v", text, got)
		}
	}
}
