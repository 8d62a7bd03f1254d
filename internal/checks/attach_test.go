package checks

import (
	"cmp"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestOnlyProxiesAreAttachedTo(t *testing.T) {
	serve := func(start func(http.Handler) *httptest.Server, status int, server string) *httptest.Server {
		s := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/" {
				t.Errorf("%s was asked for: it may cost a scrape", r.URL.Path)
			}
			if server != "" {
				w.Header().Set("Server", server)
			}
			w.WriteHeader(status)
		}))
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		t.Cleanup(s.Close)
		return s
	}
	page := func(status int, server string) string {
		return serve(httptest.NewServer, status, server).URL + "/metrics"
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // accepts, and says nothing
	secret := serve(httptest.NewTLSServer, 200, "kpulse-proxy")
	locked := serve(httptest.NewTLSServer, 401, "")
	plain := func(s *httptest.Server) string { return "http" + strings.TrimPrefix(s.URL, "https") + "/metrics" }
	for _, test := range []struct {
		name, url string
		client    *http.Client
		attached  string
		why       string
		timeout   time.Duration // a minute if 0
	}{
		{name: "a proxy", url: page(200, "kpulse-proxy"), attached: "http://127."},
		{name: "an exporter", url: page(200, "nginx")},
		{name: "a locked proxy", url: page(401, ""), why: "wants credentials; if that is the proxy, show it with --tui.url=http://127."},
		{name: "one that wants TLS", url: plain(secret), why: "wants TLS; if that is the proxy, show it with --tui.url=https://127."},
		{name: "one with TLS that we have", url: plain(secret), client: secret.Client(), attached: "https://127."},
		{name: "one with TLS that we have, and a password that we have not", url: plain(locked), client: locked.Client(), why: "wants credentials; if that is the proxy, show it with --tui.url=https://127."},
		{name: "one whose certificate we do not trust", url: plain(secret), client: &http.Client{}, why: "wants TLS"},
		{name: "a hanging one", url: "http://" + l.Addr().String() + "/metrics", timeout: 100 * time.Millisecond},
		{name: "none"},
	} {
		attached, wants := Attach(t.Context(), test.client, test.url, cmp.Or(test.timeout, time.Minute))
		why := ""
		if wants != "" {
			attached, why = "", RefusedUs(attached, wants, "show it with --tui.url=")
		}
		if !strings.HasPrefix(attached, test.attached) || (attached == "") != (test.attached == "") {
			t.Errorf("%s: attached to %q, want %q", test.name, attached, test.attached)
		}
		if !strings.Contains(why, test.why) || (why == "") != (test.why == "") {
			t.Errorf("%s: says %q, want %q", test.name, why, test.why)
		}
	}
}
