package expose

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
)

// FuzzMerge: Prometheus' parser reads from the merged lines of two upstreams the samples of both,
// each as often as it is in them, and one HELP and one TYPE of every family that has any.
func FuzzMerge(f *testing.F) {
	f.Add([]byte("# HELP a A.\n# TYPE a gauge\na{x=\"1\"} 1\nb 2 1700000000000\n"), []byte("# HELP a Another.\n# TYPE a counter\na{x=\"2\"} 2\n# TYPE b gauge\nb 2"))
	f.Add([]byte("# TYPE a summary\na{quantile=\"1\"} 1\na_sum 2\na_count 3\nab 4\n"), []byte("# TYPE a_sum gauge\na_sum{x=\"1\"} 5\n# why\n\na_bucket 1\n"))
	f.Add([]byte("# TYPE\ta gauge\r\na\t1\n#\tHELP a  x\n\n# of one\n"), []byte("# a \n# HELP\n# TYPE a\na +Inf\na NaN -1\nc{} 0x1p-2"))
	f.Add([]byte("a{x=\"}\"} 1\nc{x=\"\\\"\\\\\"} 2\n"), []byte("a{x=\"one {\"} 1\nd 3\n"))
	f.Add([]byte("a{x=\"one\nb 1\n# TYPE c gauge\"} 1\n"), []byte("a{x=\"two\"} 2\n#HELP a A.\n"))
	f.Add(rawtest.Body(2, 3, 1), rawtest.Body(3, 4, 2))
	f.Fuzz(func(t *testing.T, one, other []byte) {
		var m merger
		want := page{samples: map[string]int{}, headers: map[string]int{}}
		for _, body := range [][]byte{one, other} {
			parts := validParts(body)
			m.add(&canonical.Snapshot{Valid: parts})
			if err := want.read(bytes.Join(parts, nil)); err != nil {
				t.Fatalf("the valid lines of %q are not valid: %v", body, err)
			}
		}
		var out bytes.Buffer
		b := buffer{w: &out}
		m.write(&b)
		b.flush()
		got := page{samples: map[string]int{}, headers: map[string]int{}}
		if err := got.read(out.Bytes()); err != nil {
			t.Fatalf("%q and %q merge to %q: %v", one, other, out.Bytes(), err)
		}
		if !maps.Equal(got.samples, want.samples) {
			t.Errorf("%q and %q merge to %q, whose samples are %v, want %v", one, other, out.Bytes(), got.samples, want.samples)
		}
		for header := range want.headers {
			want.headers[header] = 1
		}
		if !maps.Equal(got.headers, want.headers) {
			t.Errorf("%q and %q merge to %q, whose headers are %v, want %v", one, other, out.Bytes(), got.headers, want.headers)
		}
	})
}

// validParts returns what the pipeline serves of a body: what a server does not refuse.
func validParts(body []byte) (parts [][]byte) {
	b := raw.Batch{Body: body, Dict: raw.NewDict()}
	new(raw.Scanner).Scan(&b)
	from := 0
	for _, left := range b.Omit {
		parts, from = append(parts, body[from:left.Start]), left.End
	}
	return append(parts, body[from:])
}

// page counts what is on pages.
type page struct{ samples, headers map[string]int }

// read adds the entries of text, as Prometheus' parser reads them.
func (p *page) read(text []byte) error {
	parser := textparse.NewPromParser(bytes.Clone(text), labels.NewSymbolTable(), false)
	for {
		switch entry, err := parser.Next(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case entry == textparse.EntryHelp:
			name, _ := parser.Help()
			p.headers["HELP "+string(name)]++
		case entry == textparse.EntryType:
			name, _ := parser.Type()
			p.headers["TYPE "+string(name)]++
		case entry == textparse.EntrySeries:
			series, at, value := parser.Series() // as it is written: Labels depends on the TYPE before it
			stamp := "now"
			if at != nil {
				stamp = fmt.Sprint(*at)
			}
			p.samples[fmt.Sprintf("%q %x %s", series, math.Float64bits(value), stamp)]++
		}
	}
}
