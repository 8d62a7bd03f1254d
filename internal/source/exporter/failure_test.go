package exporter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// listen runs talk on every connection to the address that it returns.
func listen(t testing.TB, talk func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				talk(c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

// skipRequest reads one request's header.
func skipRequest(c net.Conn) error {
	var head []byte
	one := make([]byte, 1024)
	for !strings.HasSuffix(string(head), "\r\n\r\n") {
		n, err := c.Read(one)
		if err != nil {
			return err
		}
		head = append(head, one[:n]...)
	}
	return nil
}

// reply answers one request with wire and closes.
func reply(t *testing.T, wire string) string {
	return "http://" + listen(t, func(c net.Conn) {
		if skipRequest(c) == nil {
			io.WriteString(c, wire)
		}
	})
}

// readError reads target once, checks what all errors have in common, and
// returns the error.
func readError(t *testing.T, target string, opts Options) *source.Error {
	t.Helper()
	s := open(t, target, opts)
	b := raw.Batch{Body: []byte("old"), Lines: raw.Lines{Skipped: 7}}
	err := s.Read(t.Context(), &b)
	e, ok := errors.AsType[*source.Error](err)
	if !ok {
		t.Fatalf("got %v, want a *source.Error", err)
	}
	if !b.At.IsZero() || b.Took != 0 || len(b.Body)+len(b.Samples)+len(b.Omit)+b.Skipped+b.Meaningful != 0 {
		t.Errorf("batch is not empty: %+v", b)
	}
	if !strings.HasPrefix(e.Cause, s.Name()) {
		t.Errorf("cause %q does not name %q", e.Cause, s.Name())
	}
	if e.Remedy == "" || strings.ContainsAny(err.Error(), "\n\r") {
		t.Errorf("no remedy or not one line: %q", err)
	}
	return e
}

const ok200 = "HTTP/1.1 200 OK\r\n"

// failureCase is an upstream that cannot be read, and the expected error.
type failureCase struct {
	name, target  string
	opts          Options
	failure       source.Failure
	cause, remedy string
}

func checkFailures(t *testing.T, cases []failureCase) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) { tt.check(t) })
	}
}

func (tt *failureCase) check(t *testing.T) {
	t.Helper()
	e := readError(t, tt.target, tt.opts)
	if e.Failure != tt.failure || !strings.Contains(e.Cause, tt.cause) || !strings.Contains(e.Remedy, tt.remedy) {
		t.Errorf("got %s %q\nwant %s, %q and %q", e.Failure, e, tt.failure, tt.cause, tt.remedy)
	}
}

// status answers with code and body.
func status(t *testing.T, code int, body string) string {
	return serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		io.WriteString(w, body)
	}).URL
}

// encoded answers with body, and encoding as its Content-Encoding.
func encoded(t *testing.T, encoding, body string) string {
	return serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", encoding)
		io.WriteString(w, body)
	}).URL
}

// redirect redirects /metrics to another place; on the same server, that is a
// login page.
func redirect(t *testing.T, to string) string {
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
			return
		}
		io.WriteString(w, "<html>log in</html>")
	}).URL
}

func TestConnectionFailures(t *testing.T) {
	tlsServer := httptest.NewUnstartedServer(http.NotFoundHandler())
	tlsServer.Config.ErrorLog = log.New(io.Discard, "", 0)
	tlsServer.StartTLS()
	t.Cleanup(tlsServer.Close)
	const dead = "127.0.0.1:1"
	opts := Options{Timeout: time.Minute}
	checkFailures(t, []failureCase{
		{"refused", "http://" + dead, opts, source.Unreachable, ": connection refused", "curl http://"},
		{"proxy refused", "http://n", Options{Timeout: opts.Timeout, Client: proxied("http://user:hunter22@" + dead)}, source.Unreachable, "connection refused", "check proxy_url"},
		{"closed after the request", reply(t, ""), opts, source.Truncated, "closed before an answer", "curl -v"},
		{"unknown authority", tlsServer.URL, opts, source.Unreachable, "certificate", "SSL_CERT_FILE"},
		{"plain to TLS", strings.Replace(tlsServer.URL, "https", "http", 1), opts, source.BadStatus, "HTTP 400 Bad Request", "write https://"},
		{"TLS to plain", strings.Replace(status(t, 200, page), "http", "https", 1), opts, source.Unreachable, "plain HTTP", "write http://"},
		{"not HTTP", reply(t, "SSH-2.0-OpenSSH_9.9\r\n"), opts, source.Broken, "SSH-2.0", "curl -v"},
	})
}

func TestStatusFailures(t *testing.T) {
	opts := Options{}
	checkFailures(t, []failureCase{
		{"500", status(t, 500, "internal server error\nand more\n"), opts, source.BadStatus,
			": HTTP 500 Internal Server Error", "journalctl -u dcgm-exporter"},
		{"500 with nothing", status(t, 500, ""), opts, source.BadStatus, ": HTTP 500 Internal Server Error", "log"},
		{"503", status(t, 503, "busy"), opts, source.BadStatus, "HTTP 503 Service Unavailable", "scrapers"},
		{"401", status(t, 401, ""), opts, source.BadStatus, "HTTP 401 Unauthorized", "USER:PASSWORD"},
		{"404", status(t, 404, "404 page not found\n"), opts, source.BadStatus, "HTTP 404 Not Found", "/metrics"},
		{"204", status(t, 204, ""), opts, source.BadStatus, "HTTP 204 No Content", "curl -i"},
		{"599 escaped", reply(t, "HTTP/1.1 599 \x1b[31m\r\nContent-Length: 3\r\n\r\na\x1bb"), opts, source.BadStatus, "HTTP 599", "log"},
	})
}

func TestNotMetrics(t *testing.T) {
	opts := Options{}
	checkFailures(t, []failureCase{
		{"HTML", status(t, 200, "\n<!DOCTYPE html>\n<html>"), opts, source.NotMetrics, "its Content-Type is text/html; charset=utf-8", "exporter's /metrics"},
		{"JSON", status(t, 200, `{"status": "ok"}`), opts, source.NotMetrics, "its Content-Type is text/plain", "exporter's /metrics"},
		{"brotli", encoded(t, "br", "xx"), opts, source.NotMetrics, "encoded as br", "gzip or plain"},
		{"login page", redirect(t, "/login?next=x"), opts, source.NotMetrics, "(redirected to http://127.0.0.1:", "exporter's /metrics"},
		{"redirect to ftp", redirect(t, "ftp://u:pw@node/x?q"), opts, source.BadStatus, "redirects to ftp://node/x, another server", "curl -iL"},
		{"redirect to file", redirect(t, "file:///etc/passwd"), opts, source.BadStatus, "another server", "curl -iL"},
		{"redirect in a circle", redirect(t, "/metrics"), opts, source.BadStatus, "endless redirects", "curl -iL"},
		{"redirect nowhere", redirect(t, ""), opts, source.BadStatus, "HTTP 302 Found", "curl -i"},
	})
}

func TestTruncated(t *testing.T) {
	z := string(gzipped(t, lines(50<<10)))
	flipped := []byte(z)
	flipped[len(z)-6] ^= 1 // in the checksum
	opts := Options{}
	checkFailures(t, []failureCase{
		{"short of its length", reply(t, ok200+"Content-Length: 999\r\n\r\n"+page), opts, source.Truncated,
			fmt.Sprintf("cut short after %d bytes", len(page)), "curl"},
		{"chunk cut", reply(t, ok200+"Transfer-Encoding: chunked\r\n\r\nff\r\n"+page), opts, source.Truncated, "cut short", "curl"},
		{"last chunk missing", reply(t, ok200+"Transfer-Encoding: chunked\r\n\r\n5\r\nup 1\n\r\n"), opts, source.Truncated, "after 5 bytes", "curl"},
		{"bad chunk", reply(t, ok200+"Transfer-Encoding: chunked\r\n\r\n5\r\nup 1\n\r\nzz\r\n"), opts, source.Truncated, "after 5 bytes", "curl"},
		{"gzip cut", encoded(t, "gzip", z[:len(z)/2]), opts, source.Truncated, "closed too early", "--compressed"},
		{"gzip header cut", encoded(t, "gzip", z[:5]), opts, source.Truncated, "after 0 bytes", "--compressed"},
		{"gzip without its checksum", encoded(t, "gzip", z[:len(z)-8]), opts, source.Truncated, "cut short", "--compressed"},
		{"gzip with a wrong checksum", encoded(t, "gzip", string(flipped)), opts, source.Truncated, "checksum", "--compressed"},
		{"not gzip", encoded(t, "gzip", page), opts, source.Truncated, "Content-Encoding is gzip, and its body is not", "--compressed"},
	})
}

func TestTooLarge(t *testing.T) {
	bomb := string(gzipped(t, []byte(strings.Repeat("u 1\n", 1<<20))))
	opts := Options{MaxBody: 1 << 10}
	checkFailures(t, []failureCase{
		{"length over the limit", status(t, 200, strings.Repeat("u 1\n", 300)), opts, source.TooLarge, "1200 bytes, over the limit of 1KiB", "--source.max-body=1MiB"},
		{"chunks over the limit", status(t, 200, strings.Repeat("u 1\n", 3000)), opts, source.TooLarge, "over the limit of 1KiB", "--source.max-body=2KiB"},
		{"gzip bomb", encoded(t, "gzip", bomb), opts, source.TooLarge, "over the limit of 1KiB", "--source.max-body=2KiB"},
		{"gzip of nothing, long", encoded(t, "gzip", strings.Repeat(string(gzipped(t, nil)), 999)), opts, source.TooLarge, "over the limit", "max-body"},
	})
}

// TestRedirectIsForgotten: an error names the redirect of its own read only.
func TestRedirectIsForgotten(t *testing.T) {
	var moved atomic.Bool
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if moved.Load() && r.URL.Path == "/metrics" {
			http.Redirect(w, r, "/login", http.StatusFound)
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
	})
	s := open(t, srv.URL, Options{})
	for _, redirects := range []bool{false, true, false} {
		moved.Store(redirects)
		err := s.Read(t.Context(), &raw.Batch{})
		if err == nil || strings.Contains(err.Error(), "(redirected to "+srv.URL+"/login)") != redirects {
			t.Errorf("redirects %v: got %v", redirects, err)
		}
	}
}

// TestNetworkFailures fakes the failures that a test cannot cause for real.
func TestNetworkFailures(t *testing.T) {
	for _, tt := range []struct {
		err           error
		failure       source.Failure
		cause, remedy string
	}{
		{&net.DNSError{Err: "no such host", Name: "node", IsNotFound: true}, source.Unreachable, "the name node does not resolve", "getent hosts node"},
		{&net.DNSError{Err: "server misbehaving", Name: "node"}, source.Unreachable, "server misbehaving", "curl http://node"},
		{errors.New("no route to host"), source.Unreachable, "no route to host", "firewalls"},
		{&net.DNSError{Err: "i/o timeout", IsTimeout: true}, source.Timeout, "no answer within", "curl"},
	} {
		client := &http.Client{Transport: &http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: tt.err}
			},
		}}
		e := readError(t, "http://node:9400?t=hunter22", Options{Client: client})
		if e.Failure != tt.failure || !strings.Contains(e.Cause, tt.cause) || !strings.Contains(e.Remedy, tt.remedy) {
			t.Errorf("%v: got %s %q", tt.err, e.Failure, e)
		}
		if !errors.Is(e, tt.err) || strings.Contains(fmt.Sprint(e.Err), "hunter22") {
			t.Errorf("%v: underlying error is %v", tt.err, e.Err)
		}
	}
}

// TestSecretsStayInside: if an upstream echoes the request, errors show none of its secrets.
func TestSecretsStayInside(t *testing.T) {
	echo := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(code)
			user, password, _ := r.BasicAuth()
			fmt.Fprintf(w, "<%s %s %s %s>", r.Header.Get("Authorization"), r.URL, user, password)
		}
	}
	away := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "ftp://node/"+r.URL.Query().Get("token"), http.StatusFound)
	}
	page := func(w http.ResponseWriter, r *http.Request) {
		if token := r.URL.Query().Get("token"); token != "" {
			http.Redirect(w, r, "/"+token, http.StatusFound)
			return
		}
		http.Error(w, "", http.StatusForbidden)
	}
	raw := func(w http.ResponseWriter, before, after string, r *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		fmt.Fprintf(c, "%s%s %s%s", before, r.URL, r.Header.Get("Authorization"), after)
	}
	wire := func(w http.ResponseWriter, r *http.Request) { raw(w, "", "\r\n\r\n", r) }
	trailer := func(w http.ResponseWriter, r *http.Request) {
		raw(w, ok200+"Transfer-Encoding: chunked\r\nTrailer: A\r\n\r\n5\r\nup 1\n\r\n0\r\n", "\r\n\r\n", r)
	}
	for name, h := range map[string]http.HandlerFunc{"body": echo(200), "status": echo(500), "redirect": away, "page": page, "wire": wire, "trailer": trailer} {
		t.Run(name, func(t *testing.T) {
			url := strings.Replace(serve(t, h).URL, "http://", "http://user:hunter22@", 1)
			e := readError(t, url+"/?token=s%2Fcret99", Options{})
			said := e.Error() + fmt.Sprint(e.Err)
			// dXNlcj begins the base64 of user:hunter22, which the header contains.
			for _, secret := range []string{"hunter22", "s%2Fcret99", "s/cret99", "dXNlcj", "Basic"} {
				if strings.Contains(said, secret) {
					t.Errorf("%q contains %q", said, secret)
				}
			}
		})
	}
}

// proxied returns a client that uses a proxy.
func proxied(proxy string) *http.Client {
	return &http.Client{Transport: &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return url.Parse(proxy) }}}
}
