package client

import (
	"bytes"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// FuzzSample holds our reader to Prometheus' parser: a line of ours that it takes
// for one sample we read alike.
func FuzzSample(f *testing.F) {
	for _, line := range strings.Split(twoAllocations, "\n") {
		f.Add([]byte(line))
	}
	for _, line := range []string{`kpulse_a{b="\n\\\"\t",} NaN 17`, `kpulse_a{}+Inf`, `kpulse_a {b="c"} 1e-3`, `kpulse_a{b="c"`, `kpulse_{A=""""=""}0`, `kpulse_a{b="`, `kpulse_a{b="\`} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if _, err := newParser().parse("u", line); err == nil && !bytes.Contains(line, []byte("kpulse_")) {
			t.Fatalf("%q taken for an exposition of ours", line)
		}
		if bytes.ContainsAny(line, "\n\r\x00") || !bytes.HasPrefix(line, []byte("kpulse_")) {
			return
		}
		p := textparse.NewPromParser(append(bytes.Clone(line), '\n'), labels.NewSymbolTable(), false)
		if entry, err := p.Next(); err != nil || entry != textparse.EntrySeries {
			return
		}
		var want labels.Labels
		p.Labels(&want)
		_, _, v := p.Series()
		var s sample
		if err := s.read(line); err != nil {
			if plain.Match(line) {
				t.Fatalf("%q: %v, and Prometheus reads it", line, err)
			}
			return
		}
		if s.value != v && !(math.IsNaN(s.value) && math.IsNaN(v)) {
			t.Fatalf("%q: %v, want %v", line, s.value, v)
		}
		if _, twice := want.HasDuplicateLabelNames(); twice {
			return
		}
		want.Range(func(l labels.Label) {
			if l.Name != "__name__" && string(s.get(l.Name)) != l.Value {
				t.Fatalf("%q: label %s is %q, want %q", line, l.Name, s.get(l.Name), l.Value)
			}
		})
	})
}

// plain matches what is written as we write it: Prometheus allows quoted names, no comma
// before those, and blanks in more places.
var plain = regexp.MustCompile(`^[\w:]+\{\w+="([^"\\]|\\.)*"(,\w+="([^"\\]|\\.)*")*,?\} ?[^ \t]+$`)
