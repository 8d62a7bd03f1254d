package expose

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// FuzzHeaders: whatever a client sends, the sources are given some time, and gzip goes only to who
// names it, or everything.
func FuzzHeaders(f *testing.F) {
	for _, row := range [][2]string{{"10", "gzip"}, {"1e-300", "gzip;q=0, *;q=0.5"}, {"NaN", "*"}, {"0x1p-40", "x-gzip;Q=1"}, {"-1", ",;q=1"}, {"1_0", "gzip;q=0x1"}} {
		f.Add(row[0], row[1])
	}
	f.Fuzz(func(t *testing.T, timeout, encoding string) {
		const fallback = 9 * time.Second
		r := &http.Request{Header: http.Header{http.CanonicalHeaderKey(timeoutHeader): {timeout}}}
		if d := readTimeout(r, fallback); d <= 0 || d > maxTimeout {
			t.Errorf("%q leaves %s", timeout, d)
		}
		lower := strings.ToLower(encoding)
		accepts := acceptsGzip([]string{encoding})
		if accepts && !strings.Contains(lower, "gzip") && !strings.Contains(lower, "*") {
			t.Errorf("%q accepts gzip", encoding)
		}
		if parts := strings.Split(encoding, ","); acceptsGzip(parts) != accepts {
			t.Errorf("%q, in one header or several, is not the same", encoding)
		}
		if !acceptsGzip([]string{encoding, "gzip"}) {
			t.Errorf("%q takes back that gzip is accepted", encoding)
		}
	})
}
