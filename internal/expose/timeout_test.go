package expose

import (
	"net/http"
	"testing"
	"time"
)

func TestReadTimeout(t *testing.T) {
	const fallback = 7 * time.Second
	for _, row := range []struct {
		header string
		want   time.Duration
	}{
		{"", fallback},
		{"10", 9500 * time.Millisecond},
		{"10.000000", 9500 * time.Millisecond},
		{"30", 29500 * time.Millisecond},
		{"2", 1500 * time.Millisecond},
		{"1", 750 * time.Millisecond}, // a quarter
		{"0.4", 300 * time.Millisecond},
		{"0.001", 750 * time.Microsecond},
		{"1e300", time.Hour - 500*time.Millisecond},
		{"+Inf", time.Hour - 500*time.Millisecond},
		{"0", fallback},
		{"-5", fallback},
		{"1e-300", fallback},
		{"NaN", fallback},
		{"ten", fallback},
		{"10s", fallback},
		{"10,5", fallback},
	} {
		r := &http.Request{Header: http.Header{}}
		if row.header != "" {
			r.Header.Set(timeoutHeader, row.header)
		}
		if got := readTimeout(r, fallback); (got - row.want).Abs() > time.Microsecond {
			t.Errorf("%q leaves %s, want %s", row.header, got, row.want)
		}
	}
}

// TestDeadlineReachesTheSource goes through a server.
func TestDeadlineReachesTheSource(t *testing.T) {
	f := sourceOf(snapshotOf("s", board()))
	server := serve(t, Options{Sources: []Source{f}, Timeout: 20 * time.Second})
	for header, want := range map[string]time.Duration{"": 20 * time.Second, timeoutHeader + ": 4": 3500 * time.Millisecond} {
		ask(t, "GET", server.URL+"/metrics", header)
		if got := time.Duration(f.deadline.Load()); got > want || got < want-time.Second {
			t.Errorf("with %q the source had %s, want %s", header, got, want)
		}
	}
}
