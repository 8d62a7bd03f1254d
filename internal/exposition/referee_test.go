package exposition_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// ownPrefix starts the names of our own families, which raw.Scanner leaves out.
const ownPrefix = "kpulse_"

// reading is what an exposition says, in a form that can be compared.
type reading struct {
	samples     []string   // series as seriesKey writes it, and the bits of the value
	accepted    []string   // those of them whose lines the parser accepts
	rejected    []raw.Span // the lines that the parser rejects, each by itself
	refused     []raw.Span // the entries that a server refuses after its parser
	own         []raw.Span // the accepted entries of families with ownPrefix
	ownFamilies map[string]bool
	meaningful  int
	help        map[string]string // by name
	types       []string          // names as written, with their type
}

// entries returns what package exposition reads in body.
func entries(body []byte) reading {
	r := reading{ownFamilies: map[string]bool{}, help: map[string]string{}}
	for e := range exposition.Entries(string(body)) {
		own := strings.HasPrefix(e.Name, ownPrefix)
		if (e.Kind == exposition.Help || e.Kind == exposition.Type) && !own && e.Refused(nil) {
			r.refused = append(r.refused, raw.Span{Start: e.Start, End: e.End})
			continue
		}
		switch name := e.MetricName(); e.Kind {
		case exposition.Malformed:
			r.rejected = append(r.rejected, raw.Span{Start: e.Start, End: e.End})
			r.unescaped(body[e.Start:e.End])
			continue
		case exposition.Comment:
			continue
		case exposition.Help:
			if !own && !has(r.help, name) {
				r.help[name] = unescapeHelp(e.Text)
			}
		case exposition.Type:
			r.types = append(r.types, e.Name+" "+e.Text)
		case exposition.Series:
			if !own && e.Refused(exposition.ParseLabels(e.Labels, nil)) {
				r.refused = append(r.refused, raw.Span{Start: e.Start, End: e.End})
				continue
			}
			if !own {
				key := sampleKey(exposition.ParseLabels(e.Labels, []exposition.Label{{Name: "__name__", Value: name}}), e.Value)
				if e.Millis != exposition.NoTimestamp {
					key += stampKey(&e.Millis)
				}
				r.samples, r.accepted = append(r.samples, key), append(r.accepted, key)
			}
		}
		r.meaningful++
		if own {
			r.own = append(r.own, raw.Span{Start: e.Start, End: e.End})
			r.ownFamilies[exposition.Unescape(e.Name)] = true
		}
	}
	return r
}

// referee reads body with Prometheus' parser, which it restarts after each line
// that the parser rejects.
func referee(body []byte) reading {
	r := reading{ownFamilies: map[string]bool{}, help: map[string]string{}}
	for start := 0; start < len(body); {
		p := textparse.NewPromParser(slices.Clone(body[start:]), labels.NewSymbolTable(), false)
		rejectedAt, ok := r.run(p, body, start)
		if !ok {
			return r
		}
		next := len(body)
		if n := bytes.IndexByte(body[rejectedAt:], '\n'); n >= 0 {
			next = rejectedAt + n + 1
		}
		r.rejected = append(r.rejected, raw.Span{Start: rejectedAt, End: next})
		r.unescaped(body[rejectedAt:next])
		start = next
	}
	return r
}

// run adds what p reads, whose input starts at offset of body, up to an entry
// that it rejects; ok is false if there is none.
func (r *reading) run(p textparse.Parser, body []byte, offset int) (rejectedAt int, ok bool) {
	for {
		entry, err := p.Next()
		start, end := position(p)
		start, end = start+offset, min(end+offset, len(body))
		// The parser treats a NUL at the start of an entry as the end of the input.
		if err != nil {
			return start, start < len(body)
		}
		var name []byte
		switch entry {
		case textparse.EntryHelp:
			var text []byte
			name, text = p.Help()
			if r.refuseHeader(name, body, start, end) {
				continue
			}
			if !bytes.HasPrefix(name, []byte(ownPrefix)) && !has(r.help, string(name)) {
				r.help[string(name)] = string(text)
			}
		case textparse.EntryType:
			var kind model.MetricType
			if name, kind = p.Type(); kind == model.MetricTypeUnknown {
				kind = "untyped"
			}
			if r.refuseHeader(name, body, start, end) {
				continue
			}
			r.types = append(r.types, fmt.Sprint(string(name), " ", kind))
		case textparse.EntrySeries:
			var ls labels.Labels
			p.Labels(&ls)
			_, stamp, v := p.Series()
			name = metricName(p, body[offset:])
			if own := bytes.HasPrefix(name, []byte(ownPrefix)); !own && refusedByServer(ls, string(name), body[start:end]) {
				r.refused = append(r.refused, raw.Span{Start: start, End: end})
				continue
			} else if !own {
				key := sampleKey(promLabels(ls), v) + stampKey(stamp)
				r.samples, r.accepted = append(r.samples, key), append(r.accepted, key)
			}
		default:
			continue
		}
		r.meaningful++
		if bytes.HasPrefix(name, []byte(ownPrefix)) {
			r.own = append(r.own, raw.Span{Start: start, End: end})
			r.ownFamilies[exposition.Unescape(string(name))] = true
		}
	}
}

// quotedHeader matches a HELP or TYPE whose name is in quotes, with the NULs that the
// parser skips. labelValue matches the value of a label, from its equals sign on.
var (
	quotedHeader = regexp.MustCompile(`^[ \t]*#[ \t\x00]+[A-Z\x00]+[ \t\x00]+"`)
	labelValue   = regexp.MustCompile(`(?s)=[ \t\x00]*"(?:[^"\\]|\\\x00*.)*"`)
)

// refuseHeader adds a header to what is refused if its name is in quotes.
func (r *reading) refuseHeader(name, body []byte, start, end int) bool {
	if bytes.HasPrefix(name, []byte(ownPrefix)) || !quotedHeader.Match(body[start:end]) {
		return false
	}
	r.refused = append(r.refused, raw.Span{Start: start, End: end})
	return true
}

// unescaped adds the sample of a rejected line in which only values of labels are wrong.
func (r *reading) unescaped(line []byte) {
	name, block, v, millis, ok := exposition.ReadUnescaped(nil, string(line))
	if !ok || strings.HasPrefix(name, ownPrefix) {
		return
	}
	key := sampleKey(exposition.ParseLabels(string(block), []exposition.Label{{Name: "__name__", Value: name}}), v)
	if millis != exposition.NoTimestamp {
		key += stampKey(&millis)
	}
	r.samples = append(r.samples, key)
}

// refusedByServer does what scrape.go and the head of the database do with the labels of
// a sample. Names must be those of format 0.0.4, the only one that servers before 3 know:
// only values are in quotes.
func refusedByServer(ls labels.Labels, name string, line []byte) bool {
	b := labels.NewBuilder(ls)
	b.Set("\xfftarget", "x") // as job and instance are set
	b.Labels()
	ls = b.Del("\xfftarget").Labels()
	if !ls.Has(model.MetricNameLabel) || !model.LegacyValidation.IsValidMetricName(name) || bytes.IndexByte(labelValue.ReplaceAll(line, nil), '"') >= 0 {
		return true
	}
	_, twice := ls.WithoutEmpty().HasDuplicateLabelNames()
	return twice
}

// position returns where the parser's current entry starts, and the position of its
// lexer. The parser does not export them.
func position(p textparse.Parser) (start, end int) {
	v := reflect.ValueOf(p).Elem()
	return int(v.FieldByName("start").Int()), int(v.FieldByName("l").Elem().FieldByName("i").Int())
}

// metricName returns the name of the parser's current sample as it is written.
// Its Labels do not tell if another label is called __name__.
func metricName(p textparse.Parser, input []byte) []byte {
	offsets := reflect.ValueOf(p).Elem().FieldByName("offsets")
	return input[offsets.Index(0).Int():offsets.Index(1).Int()]
}

func promLabels(ls labels.Labels) []exposition.Label {
	var out []exposition.Label
	ls.Range(func(l labels.Label) { out = append(out, exposition.Label{l.Name, l.Value}) })
	return out
}

// sampleKey writes a sample with its labels, including the metric name, in order.
// It always rewrites numbers in le and quantile, which the parser does depending on
// earlier TYPE lines.
func sampleKey(ls []exposition.Label, v float64) string {
	for i, l := range ls {
		if f, err := strconv.ParseFloat(l.Value, 64); err == nil && (l.Name == "le" || l.Name == "quantile") {
			ls[i].Value = labels.FormatOpenMetricsFloat(f)
		}
	}
	slices.SortFunc(ls, func(a, b exposition.Label) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Value, b.Value))
	})
	return fmt.Sprintf("%q %016x", ls, math.Float64bits(v))
}

// ours returns the samples of a raw.Batch as a reading has them.
func ours(b *raw.Batch) []string {
	var out []string
	stamps := map[int]*int64{}
	for i := range b.Stamps {
		stamps[b.Stamps[i].Sample] = &b.Stamps[i].Millis
	}
	for i, s := range b.Samples {
		ls := []exposition.Label{{"__name__", b.Dict.Family(s.Family).Name}}
		out = append(out, sampleKey(exposition.ParseLabels(b.Dict.Block(s.Labels), ls), s.Value)+stampKey(stamps[i]))
	}
	return out
}

// stampKey makes a sample's timestamp, if it has one, a part of its key.
func stampKey(ms *int64) string {
	if ms == nil {
		return ""
	}
	return fmt.Sprint(" @", *ms)
}

// passed returns the Body without Omit.
func passed(b *raw.Batch) []byte {
	var out []byte
	at := 0
	for _, o := range b.Omit {
		out = append(out, b.Body[at:o.Start]...)
		at = o.End
	}
	return append(out, b.Body[at:]...)
}

// merged returns spans in ascending order, with adjacent ones merged.
func merged(spans ...[]raw.Span) []raw.Span {
	all := slices.Concat(spans...)
	slices.SortFunc(all, func(a, b raw.Span) int { return a.Start - b.Start })
	var out []raw.Span
	for _, s := range all {
		if n := len(out); n > 0 && out[n-1].End == s.Start {
			out[n-1].End = s.End
			continue
		}
		out = append(out, s)
	}
	return out
}

// compare fails t unless b, scanned with a Dict that has seen no other Body, agrees
// with Prometheus' parser.
func compare(t *testing.T, b *raw.Batch) {
	t.Helper()
	want := referee(b.Body)
	if got := entries(b.Body); !reflect.DeepEqual(got, want) {
		t.Errorf("entries of %q:\n got %+v\nwant %+v", b.Body, got, want)
	}
	if got := ours(b); !slices.Equal(got, want.samples) {
		t.Errorf("samples of %q:\n got %v\nwant %v", b.Body, got, want.samples)
	}
	if omit := merged(want.rejected, want.refused, want.own); !slices.Equal(b.Omit, omit) {
		t.Errorf("Omit of %q: got %v, want %v", b.Body, b.Omit, omit)
	}
	got := [3]int{b.Skipped, b.OwnFamilies, b.Meaningful}
	if w := [3]int{len(want.rejected) + len(want.refused), len(want.ownFamilies), want.meaningful}; got != w {
		t.Errorf("Skipped, OwnFamilies, Meaningful of %q: got %v, want %v", b.Body, got, w)
	}
	comparePassed(t, b, want.accepted)
	compareDict(t, b, want)
}

// comparePassed checks that one run of the parser accepts what is passed on.
func comparePassed(t *testing.T, b *raw.Batch, want []string) {
	t.Helper()
	rest := passed(b)
	whole := reading{ownFamilies: map[string]bool{}, help: map[string]string{}}
	p := textparse.NewPromParser(slices.Clone(rest), labels.NewSymbolTable(), false)
	if at, rejected := whole.run(p, rest, 0); rejected {
		t.Errorf("of %q, %q is passed on, which the parser rejects at %d", b.Body, rest, at)
	}
	if len(whole.own)+len(whole.refused) > 0 || !slices.Equal(whole.samples, want) {
		t.Errorf("of %q, %q is passed on:\n got %v\nwant %v", b.Body, rest, whole.samples, want)
	}
}

// compareDict checks that the Dict, with which only b was scanned, has all HELP
// texts, and nothing that no accepted line mentions.
func compareDict(t *testing.T, b *raw.Batch, want reading) {
	t.Helper()
	families, blocks := map[uint32]bool{}, map[uint32]bool{}
	for _, s := range b.Samples {
		families[s.Family], blocks[s.Labels] = true, true
	}
	for name, text := range want.help {
		id := b.Dict.FamilyID([]byte(name))
		families[id] = true
		if got := unescapeHelp(b.Dict.Family(id).Help); got != text {
			t.Errorf("HELP of %q in %q: got %q, want %q", name, b.Body, got, text)
		}
	}
	if b.Dict.Families() != len(families) || b.Dict.Blocks() != len(blocks) {
		t.Errorf("the Dict holds %d families and %d blocks after %q, want %d and %d",
			b.Dict.Families(), b.Dict.Blocks(), b.Body, len(families), len(blocks))
	}
}

func has(m map[string]string, key string) bool {
	_, ok := m[key]
	return ok
}

// unescapeHelp undoes the two escapes of a HELP text.
func unescapeHelp(s string) string {
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n").Replace(s)
}
