package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
)

// entry is an entry of Prometheus' parser: usually a line, but a quoted label value may contain
// newlines. On a blank line kind is EntryInvalid.
type entry struct {
	start, end int // in the body
	kind       textparse.Entry
	name, help string
	labels     labels.Labels
	value      float64
}

// split reads a body as a Prometheus server does, with its parser, restarted at each line. It
// rejects lines where the parser fails, and entries whose names the server refuses.
func split(body []byte) (accepted []entry, rejected int) {
	for at := 0; at < len(body); {
		e, ok := readEntry(body, at)
		switch {
		case !ok:
			rejected++
			e.end = lineEnd(body, at)
		case e.refused(body):
			rejected++
		default:
			accepted = append(accepted, e)
		}
		at = e.end
	}
	return accepted, rejected
}

// readEntry reads the entry at a line start: the fewest lines that the parser accepts, provided
// that it accepts the rest of the body.
func readEntry(body []byte, at int) (entry, bool) {
	end := lineEnd(body, at)
	e, ok := parseEntry(body[at:end:end])
	if !ok {
		if _, ok = parseEntry(body[at:len(body):len(body)]); !ok {
			return entry{}, false
		}
		for ok = false; !ok; {
			end = lineEnd(body, end)
			e, ok = parseEntry(body[at:end:end])
		}
	}
	e.start, e.end = at, end
	return e, true
}

func lineEnd(body []byte, at int) int {
	if n := bytes.IndexByte(body[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(body)
}

// parseEntry reads the first entry of text, which must have no spare capacity: the parser appends
// to it.
func parseEntry(text []byte) (entry, bool) {
	p := textparse.NewPromParser(text, labels.NewSymbolTable(), false)
	kind, err := p.Next()
	e := entry{kind: kind}
	switch {
	case errors.Is(err, io.EOF):
		// The parser also treats a NUL as the end.
		return e, strings.Trim(string(text), " \t\n") == ""
	case err != nil:
		return e, false
	case kind == textparse.EntryHelp:
		name, help := p.Help()
		e.name, e.help = string(name), string(help)
	case kind == textparse.EntryType:
		name, _ := p.Type()
		e.name = string(name)
	case kind == textparse.EntrySeries:
		p.Labels(&e.labels)
		_, _, e.value = p.Series()
		e.name = e.labels.Get(model.MetricNameLabel)
	}
	return e, true
}

// quotedValue matches the value of a label, with = and blanks before it.
var quotedValue = regexp.MustCompile(`(?s)=[ \t\x00]*"(?:[^"\\]|\\\x00*.)*"`)

// refused reports whether a server refuses the names of e, which its parser accepts. A server first
// adds labels of its own, which drops those with an empty value. Names must be those of version
// 0.0.4, without quotes and blanks, because older servers accept no others.
func (e *entry) refused(body []byte) bool {
	if e.own() {
		return false
	}
	text := bytes.TrimLeft(body[e.start:e.end], " \t")
	if e.kind == textparse.EntryHelp || e.kind == textparse.EntryType {
		words := bytes.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' || r == 0 })
		return bytes.HasPrefix(words[2], []byte(`"`))
	}
	if e.kind != textparse.EntrySeries {
		return false
	}
	b := labels.NewBuilder(e.labels)
	ls := b.Set("\xff", "added").Labels()
	_, twice := ls.HasDuplicateLabelNames()
	return twice || !model.LegacyValidation.IsValidMetricName(ls.Get(model.MetricNameLabel)) || bytes.IndexByte(quotedValue.ReplaceAll(text, nil), '"') >= 0
}

// own reports whether e belongs to a family with our prefix.
func (e *entry) own() bool { return strings.HasPrefix(e.name, "kpulse_") }

// passed returns the part of a body that must arrive, whether any line has content, and how many
// lines the parser rejects.
func passed(body []byte) (kept []byte, meaningful bool, rejected int) {
	entries, rejected := split(body)
	for _, e := range entries {
		if !e.own() {
			kept = append(kept, body[e.start:e.end]...)
		}
		meaningful = meaningful || e.name != ""
	}
	return kept, meaningful, rejected
}

// checkPassed scrapes body and checks the answer.
func checkPassed(t *testing.T, p *program, body []byte, verbatim bool) error {
	t.Helper()
	kept, meaningful, rejected := passed(body)
	answer, status := p.scrape(t, body)
	switch {
	case !meaningful && rejected > 0:
		if status != http.StatusBadGateway {
			return fmt.Errorf("no line parses, but the status is %d, not 502", status)
		}
		return nil
	case !meaningful && status == http.StatusBadGateway:
		return nil // only comments: either answer will do
	case status != http.StatusOK:
		return fmt.Errorf("status %d: %s", status, answer)
	}
	if verbatim {
		kept = body
	}
	ours, ok := bytes.CutPrefix(answer, kept)
	if !ok {
		return fmt.Errorf("the answer does not begin with %q:\n%q", kept, answer[:min(len(answer), len(kept)+100)])
	}
	if len(kept) > 0 && kept[len(kept)-1] != '\n' {
		if ours, ok = bytes.CutPrefix(ours, []byte("\n")); !ok {
			return errors.New("our part begins in the last line of the upstream")
		}
	}
	if !bytes.HasPrefix(ours, []byte("# HELP kpulse_")) {
		return fmt.Errorf("ours begins with %q", ours[:min(len(ours), 60)])
	}
	if _, err := parseExposition(ours); err != nil {
		return fmt.Errorf("ours: %w", err)
	}
	if verbatim {
		return nil
	}
	return checkWhole(answer, kept)
}

// checkWhole parses the whole answer at once. The parser must reach the end, after as many series
// of the upstream as were kept.
func checkWhole(answer, kept []byte) error {
	want := 0
	entries, _ := split(kept)
	for _, e := range entries {
		if e.kind == textparse.EntrySeries {
			want++
		}
	}
	p := textparse.NewPromParser(bytes.Clone(answer), labels.NewSymbolTable(), false)
	got, ours := 0, 0
	for {
		kind, err := p.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("the answer does not parse: %w", err)
		}
		if kind != textparse.EntrySeries {
			continue
		}
		if series, _, _ := p.Series(); bytes.HasPrefix(series, []byte("kpulse_")) {
			ours++
		} else {
			got++
		}
	}
	if got != want || ours == 0 {
		return fmt.Errorf("the parser finds %d series of the upstream and %d of ours, want %d and some", got, ours, want)
	}
	return nil
}

func TestPassthroughOfCaptures(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"valid", "verbatim"} {
		p := startProgram(t, "--passthrough="+mode)
		for _, c := range captures(t) {
			if err := checkPassed(t, p, c.body, mode == "verbatim"); err != nil {
				t.Errorf("%s, %s: %v", mode, c.name, err)
			}
		}
	}
}

func TestPassthroughOfDamagedBodies(t *testing.T) {
	slow.Test(t, "1,400 scrapes of random bodies, held to Prometheus' parser")
	t.Parallel()
	const rounds, life = 700, 50
	rng := rand.New(rand.NewPCG(4, 8))
	from := captures(t)
	var valid, verbatim *program
	damaged, failed := 0, 0
	for i := range rounds {
		if i%life == 0 { // remembered broken GPUs make each answer longer
			valid, verbatim = startProgram(t, "--passthrough=valid"), startProgram(t, "--passthrough=verbatim")
		}
		body := from[rng.IntN(len(from))].body
		if rng.IntN(3) == 0 { // short bodies, where a single line decides
			body = body[:min(len(body), rng.IntN(700))]
		}
		body = damage(rng, body)
		if _, _, rejected := passed(body); rejected > 0 {
			damaged++
		}
		for _, p := range []*program{valid, verbatim} {
			if err := checkPassed(t, p, body, p == verbatim); err != nil {
				t.Errorf("round %d, verbatim %t: %v\nbody: %q", i, p == verbatim, err, body)
				failed++
			}
		}
		if failed >= 3 {
			return
		}
	}
	if damaged < rounds/3 {
		t.Errorf("the parser rejects lines in only %d of %d damaged bodies", damaged, rounds)
	}
}

func TestPassthroughOfNothingThatParses(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"valid", "verbatim", "off"} {
		p := startProgram(t, "--passthrough="+mode)
		for _, body := range []string{
			"<html>\n<body>no such page</body>\n</html>\n", "{\"status\":\"error\"}\n", "KO", "\x00", "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\"\n\n# \x00\n",
		} {
			if answer, status := p.scrape(t, []byte(body)); status != http.StatusBadGateway {
				t.Errorf("%s: %q gives status %d, want 502:\n%s", mode, body, status, answer)
			}
		}
	}
}

// damage returns a damaged copy of body.
func damage(rng *rand.Rand, body []byte) []byte {
	b := bytes.Clone(body)
	for range 1 + rng.IntN(6) {
		if len(b) == 0 {
			return b
		}
		i := rng.IntN(len(b))
		start := bytes.LastIndexByte(b[:i], '\n') + 1
		end := lineEnd(b, i)
		switch rng.IntN(9) {
		case 0: // a byte flipped
			b[i] ^= 1 << rng.IntN(8)
		case 1: // a line cut
			b = slices.Delete(b, i, end)
		case 2: // a line doubled
			b = slices.Insert(b, end, bytes.Clone(b[start:end])...)
		case 3: // a piece of the body spliced in
			from := rng.IntN(len(b))
			to := min(len(b), from+rng.IntN(300))
			b = slices.Insert(b, i, bytes.Clone(b[from:to])...)
		case 4, 5: // syntax
			mark := pick(rng, `"`, `{`, `}`, `\`, "\x00", "\r\n", "\n", "#", ",", " ", "\t", "=", "\xff", "é", "# HELP ", "# TYPE ")
			b = slices.Insert(b, i, []byte(mark)...)
		case 6: // Windows line endings
			b = bytes.ReplaceAll(b, []byte("\n"), []byte(pick(rng, "\r\n", "\n\n", "\n", "\n")))
		case 7: // no final newline
			b = bytes.TrimRight(b, "\n")
		case 8: // a proxy behind a proxy
			b = slices.Insert(b, start, []byte(pick(rng, "kpulse_up 1\n", "# HELP kpulse_up x\n", "# TYPE kpulse_up gauge\n", "{\"kpulse_up\",a=\"b\"} 1\n", " kpulse_up 1\n", "kpulse_up{a=\"\n\"} 1\n"))...)
		}
	}
	return b
}

func pick(rng *rand.Rand, from ...string) string { return from[rng.IntN(len(from))] }
