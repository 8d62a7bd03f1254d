package exporter

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

const page = "# HELP DCGM_FI_DEV_GPU_TEMP Temperature.\n# TYPE DCGM_FI_DEV_GPU_TEMP gauge\n" +
	"DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-1\"} 41\nDCGM_FI_DEV_GPU_TEMP{gpu=\"1\",UUID=\"GPU-2\"} 43\n"

// lines returns an exposition of about n bytes.
func lines(n int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "DCGM_FI_%d{gpu=\"%d\",UUID=\"GPU-00000000-0000-0000-0000-000000000000\",Hostname=\"node\"} %d\n", i%60, i/60, i)
	}
	return b.Bytes()
}

func gzipped(t testing.TB, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func serve(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv
}

// serveCounting is serve with a count of the connections.
func serveCounting(t *testing.T, h http.HandlerFunc) (url string, conns *atomic.Int32) {
	conns = new(atomic.Int32)
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL, conns
}

func open(t testing.TB, target string, opts Options) *Source {
	t.Helper()
	s, err := New(target, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestReadFillsTheBatch(t *testing.T) {
	got := make(chan *http.Request, 1)
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got <- r
		time.Sleep(5 * time.Millisecond)
		io.WriteString(w, page)
	})
	s := open(t, srv.URL, Options{UserAgent: "test/1"})
	b := raw.Batch{Body: []byte("old"), Lines: raw.Lines{Skipped: 7}}
	before := time.Now()
	if err := s.Read(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if string(b.Body) != page || cap(b.Body) == len(b.Body) {
		t.Errorf("body %q (cap %d), want the page and a spare byte", b.Body, cap(b.Body))
	}
	if b.At.Before(before) || b.Took < 5*time.Millisecond || b.At.Add(b.Took).After(time.Now()) {
		t.Errorf("at %v took %v", b.At, b.Took)
	}
	if len(b.Samples) != 2 || b.Skipped != 0 || b.Dict == nil || b.Samples[1].Value != 43 {
		t.Errorf("batch %+v", b)
	}
	r := <-got
	if r.Method != http.MethodGet || r.URL.String() != "/metrics" || r.Host != strings.TrimPrefix(srv.URL, "http://") {
		t.Errorf("request %s %s of %s", r.Method, r.URL, r.Host)
	}
	want := map[string]string{"Accept": "text/plain;version=0.0.4", "Accept-Encoding": "gzip", "User-Agent": "test/1"}
	for k, v := range want {
		if !slices.Equal(r.Header[k], []string{v}) {
			t.Errorf("header %s: %q, want %q", k, r.Header[k], v)
		}
	}
	if len(r.Header) != len(want) {
		t.Errorf("headers %v", r.Header)
	}

	other := raw.Batch{}
	if err := s.Read(t.Context(), &other); err != nil || other.Dict != b.Dict {
		t.Errorf("second batch: %v, dict %p, want the first one's %p", err, other.Dict, b.Dict)
	}
}

// TestReadBodies reads bodies that are good readings.
func TestReadBodies(t *testing.T) {
	big := string(lines(300 << 10))
	plain := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }
	}
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"content length", plain(page), page},
		{"one chunk", plain(big), big},
		{"many chunks", func(w http.ResponseWriter, _ *http.Request) {
			for chunk := range slices.Chunk([]byte(big), 999) {
				w.Write(chunk)
				w.(http.Flusher).Flush()
			}
		}, big},
		{"gzip", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(gzipped(t, []byte(big)))
		}, big},
		{"two gzip members", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "x-gzip")
			w.Write(gzipped(t, []byte(page)))
			w.Write(gzipped(t, []byte("up 1\n")))
		}, page + "up 1\n"},
		{"empty", func(http.ResponseWriter, *http.Request) {}, ""},
		{"empty gzip", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(gzipped(t, nil))
		}, ""},
		{"empty, said to be gzip", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.(http.Flusher).Flush()
		}, ""},
		{"blank lines", plain("\n\n"), "\n\n"},
		{"one bad line", plain("<html>\n" + page), "<html>\n" + page},
		{"at the limit", plain(strings.Repeat("u 1\n", 1<<18)), strings.Repeat("u 1\n", 1<<18)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url, conns := serveCounting(t, tt.handler)
			s := open(t, url, Options{MaxBody: 1 << 20})
			var b raw.Batch
			for range 3 {
				if err := s.Read(t.Context(), &b); err != nil {
					t.Fatal(err)
				}
				if string(b.Body) != tt.want {
					t.Fatalf("got %d bytes %.80q, want %d", len(b.Body), b.Body, len(tt.want))
				}
			}
			if n := conns.Load(); n != 1 {
				t.Errorf("%d connections for 3 reads, want 1", n)
			}
		})
	}
}

// TestRedirect follows a redirect on the same server, which still gets the password.
func TestRedirect(t *testing.T) {
	seen := make(chan http.Header, 1)
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/metrics", http.StatusPermanentRedirect)
			return
		}
		seen <- r.Header
		io.WriteString(w, page)
	})
	var b raw.Batch
	s := open(t, strings.Replace(srv.URL, "http://", "http://user:p%40ss@", 1)+"/moved?token=hunter22", Options{})
	if err := s.Read(t.Context(), &b); err != nil || string(b.Body) != page {
		t.Fatalf("%v, body %q", err, b.Body)
	}
	// echo -n user:p@ss | base64
	if h := <-seen; h.Get("Authorization") != "Basic dXNlcjpwQHNz" || h.Get("Referer") != "" {
		t.Errorf("headers %v, want authorization and no referer", h)
	}
}

// headerAdder adds a header to each request, as the client of an http_config does.
type headerAdder struct{ name, value string }

func (a headerAdder) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(a.name, a.value)
	return http.DefaultTransport.RoundTrip(r)
}

// TestRedirectOfGivenClient: headers that a client adds are sent to no other place,
// not even another port of the same host, but along redirects on the same server.
func TestRedirectOfGivenClient(t *testing.T) {
	other := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked for %s with %v", r.URL, r.Header) })
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, other.URL+"/m", http.StatusFound)
		case "/moved":
			http.Redirect(w, r, "/metrics", http.StatusFound)
		default:
			if r.Header.Get("X-Key") != "hunter2" {
				t.Errorf("headers %v", r.Header)
			}
			io.WriteString(w, page)
		}
	})
	opts := Options{Client: &http.Client{Transport: headerAdder{"X-Key", "hunter2"}}}
	var b raw.Batch
	if err := open(t, srv.URL+"/moved", opts).Read(t.Context(), &b); err != nil {
		t.Error(err)
	}
	e := readError(t, srv.URL+"/away", opts)
	if !strings.Contains(e.Cause, "redirects to "+other.URL+", another server") {
		t.Errorf("got %v", e)
	}
}

// TestClientIsCopied: a given client is used, but not changed.
func TestClientIsCopied(t *testing.T) {
	cookies := make(chan string, 9)
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		cookies <- r.Header.Get("Cookie")
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		if r.URL.Path == "/metrics" {
			http.Redirect(w, r, "/m", http.StatusFound)
		}
	})
	jar, _ := cookiejar.New(nil)
	asked := 0
	client := &http.Client{
		Transport:     &http.Transport{},
		Jar:           jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { asked++; return nil },
	}
	s := open(t, srv.URL, Options{Client: client})
	var b raw.Batch
	for range 2 {
		if err := s.Read(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
	}
	if client.Jar != jar || asked != 2 {
		t.Errorf("jar kept: %v, CheckRedirect asked %d times, want 2", client.Jar == jar, asked)
	}
	for range 4 {
		if c := <-cookies; c != "" {
			t.Errorf("sent cookie %q", c)
		}
	}
}
