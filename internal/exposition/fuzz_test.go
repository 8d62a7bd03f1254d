package exposition_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
)

func TestScanAgreesWithPrometheus(t *testing.T) {
	for _, body := range quirks {
		b := raw.Batch{Body: []byte(body), Dict: raw.NewDict()}
		var s raw.Scanner
		s.Scan(&b)
		compare(t, &b)
		s.Scan(&b)
		compare(t, &b)
	}
}

// FuzzScan compares this package and raw.Scanner with Prometheus' parser: on a body, on the same
// body with all hints in place, and on its lines in another order.
func FuzzScan(f *testing.F) {
	for _, body := range quirks {
		f.Add([]byte(body))
	}
	f.Add(rawtest.Body(2, 5, 1))
	paths, _ := filepath.Glob("../../testdata/captures/*.prom")
	for _, path := range paths {
		if body, err := os.ReadFile(path); err == nil {
			f.Add(body)
		}
	}
	f.Fuzz(compareScans)
}

// TestScanTokenSoup does what FuzzScan does, with bodies of the grammar's tokens,
// which mutations of bytes rarely produce.
func TestScanTokenSoup(t *testing.T) {
	tokens := []string{"a", "b1", ":", "{", "}", "\"", "\"", "\\", "\x00", "\n", "\n", " ", "\t", ",", "=", "1", "-2.50",
		"NaN", "e5", ".", "# ", "#", "HELP ", "TYPE ", "gauge", "kpulse_", "\xff", "\r", "é", "n", "a{x=\"", "\"} 1\n",
		"a{x=\"y\"} 1\n", "a{x=\"z\"} 2\n", "\nb{x=\"y\"} 3", "\n{\"", "\n# HELP a ", "\n# TYPE \"a\" ", "\n# TYPE \"\" gauge\n", "# HELP \"\" ", "\nkpulse_a 1\n"}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		var body []byte
		for range 1 + rng.IntN(40) {
			body = append(body, tokens[rng.IntN(len(tokens))]...)
		}
		if compareScans(t, body); t.Failed() {
			return
		}
	}
}

// compareScans compares the scanner with Prometheus' parser on a body, fresh and
// with hints from that body and another.
func compareScans(t *testing.T, body []byte) {
	var s raw.Scanner
	b := raw.Batch{Body: body, Dict: raw.NewDict()}
	before := slices.Clone(body)
	s.Scan(&b)
	compare(t, &b)
	first := ours(&b)
	s.Scan(&b)
	compare(t, &b)
	if !slices.Equal(ours(&b), first) || !bytes.Equal(body, before) {
		t.Errorf("a second scan of %q: got %v, want %v", body, ours(&b), first)
	}

	lines := bytes.SplitAfter(body, []byte("\n"))
	slices.Reverse(lines)
	b.Body = bytes.Join(lines, nil)
	s.Scan(&b)
	fresh := raw.Batch{Body: b.Body, Dict: raw.NewDict()}
	new(raw.Scanner).Scan(&fresh)
	compare(t, &fresh)
	if !slices.Equal(ours(&b), ours(&fresh)) || !slices.Equal(b.Omit, fresh.Omit) {
		t.Errorf("hints change the reading of %q:\n got %v\nwant %v", b.Body, ours(&b), ours(&fresh))
	}
}

// FuzzParseLabels compares the labels of a block with what Prometheus' parser
// makes of it, if it accepts the block at all.
func FuzzParseLabels(f *testing.F) {
	for _, body := range quirks {
		for line := range strings.Lines(body) {
			i, end := strings.IndexByte(line, '{'), strings.LastIndexByte(line, '}')
			if 0 <= i && i < end {
				f.Add(line[i : end+1])
			}
		}
	}
	f.Fuzz(func(t *testing.T, block string) {
		got := exposition.ParseLabels(block, nil)
		if !strings.HasPrefix(block, "{") {
			return // it would continue a name
		}
		for _, name := range []string{"x", ""} {
			p := textparse.NewPromParser([]byte(name+block+" 1"), labels.NewSymbolTable(), false)
			entry, err := p.Next()
			series, _, _ := p.Series()
			if err != nil || entry != textparse.EntrySeries || len(series) != len(name+block) {
				continue
			}
			var ls labels.Labels
			p.Labels(&ls)
			metric := exposition.Unescape(string(metricName(p, []byte(name+block))))
			want := sampleKey(promLabels(ls), 0)
			if got := sampleKey(append([]exposition.Label{{"__name__", metric}}, got...), 0); got != want {
				t.Errorf("labels of %q: got %s, want %s", block, got, want)
			}
		}
	})
}
