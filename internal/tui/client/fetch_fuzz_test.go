package client

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"testing/iotest"
)

// FuzzFetch: read part by part, as it arrives, a page says the same as if it was read at once,
// unless a value of a label has a line break, which ours never have.
func FuzzFetch(f *testing.F) {
	f.Add([]byte(twoAllocations))
	f.Add([]byte("a{b=\"c\"} 1\nkpulse_host_cpus 3\nkpulse_host_cpus{b=\"d\"} 4\n# x\nkpulse_host_cpus"))
	f.Add([]byte(strings.Repeat("x", maxPart) + "kpulse_host_cpus 7\nkpulse_host_cpus 3"))
	f.Fuzz(func(t *testing.T, body []byte) {
		for line := range bytes.Lines(body) {
			if bytes.Count(line, []byte(`"`))%2 > 0 || bytes.Contains(line, []byte(`\`)) && bytes.Contains(line, []byte(`"`)) {
				return
			}
		}
		want, wantErr := families().parse("u", bytes.Clone(body))
		fetcher := NewFetcher(Target{URL: "http://u"})
		r := fetcher.parser.begin("u")
		read, err := fetcher.readOurs(r, iotest.HalfReader(bytes.NewReader(body)))
		if err != nil || read != int64(len(body)) {
			t.Fatalf("%d of %d bytes are read: %v", read, len(body), err)
		}
		got, gotErr := r.end()
		switch {
		case (gotErr == nil) != (wantErr == nil):
			t.Errorf("%q: %v, at once %v", body, gotErr, wantErr)
		case gotErr == nil && got.Host.CPUs != want.Host.CPUs && !(math.IsNaN(got.Host.CPUs) && math.IsNaN(want.Host.CPUs)):
			t.Errorf("%q: %v CPUs, at once %v", body, got.Host.CPUs, want.Host.CPUs)
		case gotErr == nil && len(got.GPUs) != len(want.GPUs):
			t.Errorf("%q: %d GPUs, at once %d", body, len(got.GPUs), len(want.GPUs))
		}
	})
}
