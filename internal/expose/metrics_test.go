package expose

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// transport does not ask for gzip on its own.
var transport = &http.Transport{DisableCompression: true}

// ask sends a request with headers "Name: value" and returns the answer and its
// body as sent.
func ask(t testing.TB, method, url string, headers ...string) (*http.Response, []byte) {
	t.Helper()
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		if name, value, found := strings.Cut(h, ": "); found {
			req.Header.Add(name, value)
		}
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, body
}

// The parts of an upstream: lines that Prometheus accepts, between lines that it rejects or
// that are named kpulse_. The last line has no line end.
const (
	accepted1 = "# HELP a b\na{x=\"1\"} 1\n"
	rejected1 = "garbage {\n"
	accepted2 = "\nb 2 1395066363000\n"
	rejected2 = "kpulse_old 1\r\n\xff\n"
	accepted3 = "last 3"
	upstream  = accepted1 + rejected1 + accepted2 + rejected2 + accepted3
	accepted  = accepted1 + accepted2 + accepted3
)

// passed returns a snapshot of that upstream.
func passed() *canonical.Snapshot {
	s := snapshotOf("first", board())
	s.Body = []byte(upstream)
	s.Valid = [][]byte{[]byte(accepted1), []byte(accepted2), []byte(accepted3)}
	return s
}

// text is an exposition that is rendered for its source.
type text string

func (t text) AppendText(dst []byte) []byte { return append(dst, t...) }

// TestPassthroughOfText: an exposition rendered for a source is passed through like an
// upstream's, and the memory of a huge one is not kept.
func TestPassthroughOfText(t *testing.T) {
	const begin = "# HELP kpulse_gpu_info"
	for _, test := range []struct {
		mode Passthrough
		text string
		kept int
	}{
		{PassValid, accepted1, 1},
		{PassVerbatim, accepted1, 1},
		{PassOff, accepted1, 1},
		{PassValid, strings.Repeat(accepted1, maxKept/len(accepted1)+1), 0},
	} {
		snap := snapshotOf("first", board())
		snap.Text = text(test.text)
		want := test.text
		if test.mode == PassOff {
			want = ""
		}
		m := newMetrics(&Options{Sources: NewSet(sourceOf(snap)), Timeout: patience, Passthrough: test.mode, Form: Form{Full: true}})
		rec := httptest.NewRecorder()
		m.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
		if got, _, _ := strings.Cut(rec.Body.String(), begin); got != want {
			t.Errorf("mode %v: %d bytes before our series, want %d", test.mode, len(got), len(want))
		}
		if n := len(m.outputs.idle); n != test.kept {
			t.Errorf("a text of %d bytes: %d outputs are kept, want %d", len(test.text), n, test.kept)
		}
	}
}

func TestPassthroughIsByteForByte(t *testing.T) {
	const begin = "# HELP kpulse_gpu_info"
	long := snapshotOf("first", board())
	for range 3 {
		long.Valid = append(long.Valid, []byte(strings.Repeat("long{} 1\n", 20_000)), []byte("short 1\n"))
	}
	long.Body = bytes.Join(long.Valid, nil)
	empty := snapshotOf("first", board())
	second := snapshotOf("second", unread())
	second.Body = []byte("c 1\n")
	second.Valid = [][]byte{second.Body}
	for _, row := range []struct {
		name  string
		mode  Passthrough
		snaps []*canonical.Snapshot
		want  string
	}{
		{"valid", PassValid, []*canonical.Snapshot{passed()}, accepted + "\n"},
		{"verbatim", PassVerbatim, []*canonical.Snapshot{passed()}, upstream + "\n"},
		{"off", PassOff, []*canonical.Snapshot{passed()}, ""},
		{"two", PassValid, []*canonical.Snapshot{passed(), second}, accepted + "\nc 1\n"},
		{"long", PassValid, []*canonical.Snapshot{long}, string(long.Body)},
		{"long verbatim", PassVerbatim, []*canonical.Snapshot{long}, string(long.Body)},
		{"empty", PassValid, []*canonical.Snapshot{empty}, ""},
		{"empty verbatim", PassVerbatim, []*canonical.Snapshot{empty}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			opts := Options{Passthrough: row.mode}
			var sources []Source
			var readings []outcome
			for _, s := range row.snaps {
				sources = append(sources, sourceOf(s))
				readings = append(readings, good(s))
			}
			opts.Sources = NewSet(sources...)
			server := serve(t, opts)
			want := row.want + string(render(readings...))
			if !strings.HasPrefix(want[len(row.want):], begin) {
				t.Fatal("our part does not begin as expected")
			}
			for _, coding := range []string{"", "Accept-Encoding: gzip"} {
				for range 2 { // with new memory and with reused memory
					res, body := ask(t, "GET", server.URL+"/metrics", coding)
					if res.Header.Get("Content-Encoding") == "gzip" {
						body = gunzip(t, body)
					} else if coding != "" {
						t.Error("gzip was not spoken")
					}
					if string(body) != want {
						t.Errorf("with %q: got\n%.300q…, want\n%.300q…", coding, body, want)
					}
				}
			}
		})
	}
}

func gunzip(t testing.TB, b []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func TestHeadersOfMetrics(t *testing.T) {
	server := serve(t, Options{Sources: NewSet(sourceOf(passed()))})
	for _, method := range []string{"GET", "HEAD"} {
		for _, accept := range []string{"*/*", "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5", "application/vnd.google.protobuf"} {
			for coding, encoded := range map[string]string{"gzip": "gzip", "identity": ""} {
				res, body := ask(t, method, server.URL+"/metrics", "Accept: "+accept, "Accept-Encoding: "+coding)
				if res.StatusCode != 200 || (method == "HEAD") != (len(body) == 0) {
					t.Errorf("%s: status %d, %d bytes", method, res.StatusCode, len(body))
				}
				for name, want := range map[string]string{
					"Content-Type":           "text/plain; version=0.0.4; charset=utf-8",
					"Vary":                   "Accept-Encoding",
					"X-Content-Type-Options": "nosniff",
					"Content-Encoding":       encoded,
				} {
					if got := res.Header.Get(name); got != want {
						t.Errorf("%s, Accept %s, %s: %s is %q, want %q", method, accept, coding, name, got, want)
					}
				}
			}
		}
	}
}

func TestFailures(t *testing.T) {
	source := func() Source { return sourceOf(snapshotOf("works", board())) }
	gone := func() Source { return brokenSource("gone", refused) }
	slow := func() Source { return brokenSource("slow", tooSlow) }
	odd := func() Source {
		f := brokenSource("odd", nil)
		f.failure = errors.New("something else")
		return f
	}
	const goneLine = "source gone: http://node:9400/metrics: connection refused; start the exporter\n"
	const slowLine = "source slow: http://node:9400/metrics did not answer within 1s; raise scrape_timeout\n"
	for _, row := range []struct {
		name    string
		sources []Source
		query   string
		status  int
		body    string // whole, or a part if status is 200
	}{
		{"refused", []Source{gone()}, "", 502, goneLine},
		{"timeout", []Source{slow()}, "", 504, slowLine},
		{"not a Failure", []Source{odd()}, "", 502, "source odd: something else\n"},
		{"all timed out", []Source{slow(), slow()}, "", 504, ""},
		{"one timed out, one refused", []Source{slow(), gone()}, "", 502, slowLine + goneLine},
		{"one works", []Source{gone(), source()}, "", 200, "kpulse_source_up{source=\"gone\",backend=\"prometheus\"} 0\nkpulse_source_up{source=\"works\",backend=\"prometheus\"} 1\n"},
		{"one alone works", []Source{gone(), source()}, "?source=works", 200, "kpulse_source_up{source=\"works\",backend=\"prometheus\"} 1\n"},
		{"one alone fails", []Source{gone(), source()}, "?source=gone", 502, goneLine},
		{"unknown source", []Source{gone(), source()}, "?source=Works", 404, "no source is named \"Works\"; name one of: gone, works\n"},
		{"no name", []Source{source()}, "?source=", 404, "no source is named \"\"; name one of: works\n"},
		{"other query", []Source{source()}, "?collect[]=a", 200, "kpulse_source_up"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.name == "all timed out" {
				row.sources[1].(*fakeSource).name = "slow too"
				row.body = slowLine + strings.Replace(slowLine, "slow", "slow too", 1)
			}
			server := serve(t, Options{Sources: NewSet(row.sources...)})
			res, body := ask(t, "GET", server.URL+"/metrics"+row.query)
			if res.StatusCode != row.status || !strings.Contains(string(body), row.body) || row.status != 200 && string(body) != row.body {
				t.Errorf("%d\n%s\nwant %d\n%s", res.StatusCode, body, row.status, row.body)
			}
			if got := res.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/plain") {
				t.Errorf("content type %q", got)
			}
			if strings.Contains(row.name, "one alone works") && strings.Contains(string(body), `"gone"`) {
				t.Error("the other source shows")
			}
		})
	}
}

// answerOf returns what /metrics answers to a request with these headers.
func answerOf(t *testing.T, opts Options, headers http.Header) *httptest.ResponseRecorder {
	t.Helper()
	h, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", http.NoBody)
	maps.Copy(r.Header, headers)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestSourcesAreReadAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := sourceOf(snapshotOf("one", board())), sourceOf(snapshotOf("two", unread()))
		one.slow, two.slow = true, true
		begun := time.Now()
		if w := answerOf(t, Options{Sources: NewSet(one, two), MaxRequests: 1, Timeout: 300 * time.Millisecond}, nil); w.Code != 504 {
			t.Errorf("status %d", w.Code)
		}
		if took := time.Since(begun); took != 300*time.Millisecond {
			t.Errorf("two sources that take 300ms each took %s", took)
		}
	})
}

// countingWriter counts what a connection would get.
type countingWriter struct {
	httptest.ResponseRecorder
	writes, bytes int
}

func (w *countingWriter) Write(b []byte) (int, error) {
	w.writes++
	w.bytes += len(b)
	return len(b), nil
}

// TestShortAnswerTellsItsLength: without a length, net/http would send chunks.
func TestShortAnswerTellsItsLength(t *testing.T) {
	for _, c := range []struct {
		name    string
		devices int
		coding  string
		told    bool
	}{
		{"eight devices", 8, "identity", true},
		{"eight devices, gzip", 8, "gzip", true},
		{"more than fits", 500, "identity", false},
		{"more than fits, gzip", 500, "gzip", false},
	} {
		snap := fleet(c.devices)
		upstream := bytes.Repeat([]byte("a_metric{with=\"labels\"} 1\n"), 10_000) // passed through without a copy
		snap.Valid = [][]byte{upstream, []byte("last 1\n")}
		server := serve(t, Options{Sources: NewSet(sourceOf(snap)), MaxRequests: 1})
		res, body := ask(t, "GET", server.URL+"/metrics", "Accept-Encoding: "+c.coding)
		if told := res.ContentLength >= 0; told != c.told || told && int(res.ContentLength) != len(body) {
			t.Errorf("%s: length %d told for a body of %d", c.name, res.ContentLength, len(body))
		}
		if c.coding == "gzip" {
			body = gunzip(t, body)
		}
		if want := string(upstream) + "last 1\n# HELP kpulse_"; !strings.HasPrefix(string(body), want) {
			t.Errorf("%s: the upstream's lines are out of order", c.name)
		}
	}
}

func TestWritesAreLarge(t *testing.T) {
	snap := fleet(500)
	// An upstream with every second line left out.
	for range 20_000 {
		snap.Valid = append(snap.Valid, []byte("a_metric{with=\"labels\"} 1\n"))
	}
	for _, coding := range []string{"identity", "gzip"} {
		h, err := New(Options{Sources: NewSet(sourceOf(snap)), MaxRequests: 1, Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		w := &countingWriter{ResponseRecorder: *httptest.NewRecorder()}
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", http.NoBody)
		r.Header.Set("Accept-Encoding", coding)
		h.ServeHTTP(w, r)
		if w.writes > 1+w.bytes/(30<<10) {
			t.Errorf("%s: %d writes for %d bytes", coding, w.writes, w.bytes)
		}
	}
}

// TestDeadlineReachesTheSource: the source also learns the timeout, which its failure names.
func TestDeadlineReachesTheSource(t *testing.T) {
	for header, want := range map[string]time.Duration{"": 20 * time.Second, "4": 3500 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			f := sourceOf(snapshotOf("s", board()))
			f.slow = true
			headers := http.Header{}
			if header != "" {
				headers.Set(timeoutHeader, header)
			}
			w := answerOf(t, Options{Sources: NewSet(f), MaxRequests: 1, Timeout: 20 * time.Second}, headers)
			if got := time.Duration(f.deadline.Load()); got != want || !strings.Contains(w.Body.String(), "no answer within "+want.String()) {
				t.Errorf("with %q the source had %s, want %s: %s", header, got, want, w.Body)
			}
		})
	}
}

// TestOneAnswerTooMany: an answer that does not fit into memory is refused, before or while it is merged, and says why.
func TestOneAnswerTooMany(t *testing.T) {
	lines := strings.Repeat("a{b=\"c\"} 1\nd{e=\"f\"} 2\n", askFrom) // as many parts of each family
	for _, most := range []int64{0, outputBytes} {
		first, second := snapshotOf("s1"), snapshotOf("s2")
		first.Valid, second.Valid = [][]byte{[]byte(lines)}, [][]byte{[]byte(lines)}
		h, err := New(Options{
			Sources: NewSet(sourceOf(first), sourceOf(second)), MaxRequests: 1, Timeout: time.Second,
			Fits: func(bytes int64) bool { return bytes == most },
		})
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if w.Code != http.StatusServiceUnavailable || w.Body.String() != noRoom+"\n" || w.Header().Get("Content-Encoding") != "" {
			t.Errorf("with room for %d bytes: %d, %v: %.200s", most, w.Code, w.Header(), w.Body)
		}
	}
}
