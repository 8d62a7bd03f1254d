package client

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// FuzzParse compares the parser with that of Prometheus: if Prometheus accepts a body as a
// whole, the last sample of a family is the value of the node. Bodies with NUL are not
// compared: Prometheus treats a NUL outside quotes as the end of the body.
func FuzzParse(f *testing.F) {
	f.Add([]byte(twoAllocations))
	for _, line := range []string{
		`kpulse_host_cpus{b="\n\\\"\t",} NaN 17`, `kpulse_host_cpus{}+Inf`, `kpulse_host_cpus {b="c"} 1e-3`, `kpulse_host_cpus{b="c"`,
		`kpulse_host_cpus{A=""""=""}0`, `kpulse_host_cpus{b="`, `kpulse_host_cpus{b="\`, `{"kpulse_host_cpus"} 4`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := newParser().begin("u")
		r.read(bytes.Clone(body))
		n, err := r.end()
		if err == nil && !strings.Contains(unescaped(body), "kpulse_") {
			t.Fatalf("%q taken for an exposition of ours", body)
		}
		if bytes.IndexByte(body, 0) >= 0 {
			return
		}
		want := math.NaN()
		p := textparse.NewPromParser(append(bytes.Clone(body), '\n'), labels.NewSymbolTable(), false)
		for {
			entry, parseErr := p.Next()
			if parseErr != nil {
				if parseErr.Error() != "EOF" {
					return
				}
				break
			}
			if entry == textparse.EntrySeries {
				var l labels.Labels
				p.Labels(&l)
				if _, _, v := p.Series(); l.Get("__name__") == "kpulse_host_cpus" {
					want = v
				}
			}
		}
		switch {
		case err != nil && !math.IsNaN(want):
			t.Fatalf("%q: %v; Prometheus reads %v", body, err, want)
		case err == nil && n.Host.CPUs != want && !(math.IsNaN(n.Host.CPUs) && math.IsNaN(want)):
			t.Fatalf("%q: %v CPUs; Prometheus reads %v", body, n.Host.CPUs, want)
		}
	})
}

// unescaped returns body without backslashes, which a quoted name may contain.
func unescaped(body []byte) string { return strings.ReplaceAll(string(body), `\`, "") }
