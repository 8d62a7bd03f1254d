package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
	"github.com/kpulse/kpulse-proxy/internal/expose"
)

// password is the password of hash, for a web configuration.
const (
	password = "fakepassword"
	hash     = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi"
)

// everyPath returns requests, as METHOD PATH, for each path in the table of routes, with those that flags
// enable, and for some that do not exist.
func everyPath(t *testing.T) (all []string) {
	t.Helper()
	table, err := os.ReadFile("../expose/routes.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range regexp.MustCompile(`"([A-Z]+ /[^"]*)"[]:]`).FindAllSubmatch(table, -1) {
		all = append(all, strings.NewReplacer("{$}", "", "profile", "profile?seconds=1", "trace", "trace?seconds=1").Replace(string(pattern[1])))
	}
	if len(all) < 19 {
		t.Fatalf("the table of routes has %q", all)
	}
	return append(all, "GET /nothing", "POST /metrics", "OPTIONS /metrics", "GET /debug/pprof/heap", "GET //metrics")
}

// TestPasswordOnEveryPath requests each path without a password, with a wrong one and with the
// right one.
func TestPasswordOnEveryPath(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "web.yml")
	if err := os.WriteFile(config, []byte("basic_auth_users: {scraper: "+hash+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := startProxy(t, itself(t), "--backend=replay", "--web.config.file="+config, "--web.enable-pprof", "--web.enable-lifecycle")
	for _, request := range everyPath(t) {
		method, path, _ := strings.Cut(request, " ")
		for given, refused := range map[string]bool{"": true, "wrong": true, password: false} {
			req, err := http.NewRequestWithContext(t.Context(), method, c.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if given != "" {
				req.SetBasicAuth("scraper", given)
			}
			res, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if (res.StatusCode == http.StatusUnauthorized) != refused {
				t.Errorf("%s with the password %q: %s", request, given, res.Status)
			}
		}
	}
}

// TestClientCertificates: only clients with a certificate that the proxy trusts are served.
func TestClientCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"node.pem", "other.pem"} {
		writeCertificate(t, filepath.Join(dir, name))
	}
	config := filepath.Join(dir, "web.yml")
	text := "tls_server_config: {cert_file: node.pem, key_file: node.pem, client_auth_type: RequireAndVerifyClientCert, client_ca_file: node.pem}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := startProxy(t, itself(t), "--backend=replay", "--web.config.file="+config)
	if res, err := http.Get(c.URL + "/metrics"); err != nil {
		t.Error(err)
	} else if res.Body.Close(); res.StatusCode != http.StatusBadRequest {
		t.Errorf("without TLS: %s", res.Status)
	}
	for name, passes := range map[string]bool{"": false, "other.pem": false, "node.pem": true} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: clientTLS(t, dir, name)}}
		for _, path := range []string{"/metrics", "/-/healthy"} {
			res, err := client.Get(strings.Replace(c.URL, "http:", "https:", 1) + path)
			if err == nil {
				res.Body.Close()
			}
			if (err == nil && res.StatusCode == http.StatusOK) != passes {
				t.Errorf("%s with the certificate %q: %v", path, name, err)
			}
		}
		client.CloseIdleConnections()
	}
}

// clientTLS returns a config with the certificate of name; "" means none.
func clientTLS(t *testing.T, dir, name string) *tls.Config {
	t.Helper()
	trusted, err := os.ReadFile(filepath.Join(dir, "node.pem"))
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), InsecureSkipVerify: true} // the client is tested, not the server
	config.RootCAs.AppendCertsFromPEM(trusted)
	if name != "" {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, name), filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		// Even if the server does not accept its issuer.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return config
}

// TestOtherSitesChangeNothing: a browser on an operator's machine sends requests on behalf of
// another site's page, and identifies them as such.
func TestOtherSitesChangeNothing(t *testing.T) {
	t.Parallel()
	c := startProxy(t, itself(t), "--backend=replay", "--web.enable-lifecycle")
	for _, test := range []struct {
		name, value string
		refused     bool
	}{
		{"Sec-Fetch-Site", "cross-site", true},
		{"Sec-Fetch-Site", "same-site", true},
		{"Origin", "http://evil.example", true},
		{"Origin", "null", true},
		{"Sec-Fetch-Site", "same-origin", false},
		{"Origin", c.URL, false},
		{"User-Agent", "curl", false},
	} {
		for _, request := range everyPath(t) {
			method, path, _ := strings.Cut(request, " ")
			if !strings.HasPrefix(path, "/-/re") || method == http.MethodGet {
				continue
			}
			req, err := http.NewRequestWithContext(t.Context(), method, c.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set(test.name, test.value)
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if (res.StatusCode == http.StatusForbidden) != test.refused {
				t.Errorf("%s with %s: %s: %s", request, test.name, test.value, res.Status)
			}
		}
	}
}

// answerHeaders are on every answer. pageHeaders are on pages, and on no other answer, except that
// some others must not be cached either.
var (
	answerHeaders = map[string]string{"X-Content-Type-Options": "nosniff", "Server": expose.ServerName}
	pageHeaders   = map[string]string{
		"Content-Type":            "text/html; charset=utf-8",
		"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		"X-Frame-Options":         "deny",
		"Referrer-Policy":         "no-referrer",
		"Cache-Control":           "no-store",
	}
)

// TestAnswersAreNoPages: browsers treat no other answer as a page, and the pages run no script and
// cannot be framed.
func TestAnswersAreNoPages(t *testing.T) {
	t.Parallel()
	c := startProxy(t, itself(t), "--backend=replay")
	for _, request := range append(everyPath(t), "GET /metrics?source=<script>") {
		method, path, _ := strings.Cut(request, " ")
		if strings.HasPrefix(path, "/debug") {
			continue // off
		}
		req, err := http.NewRequestWithContext(t.Context(), method, c.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		for name, want := range answerHeaders {
			if got := res.Header.Get(name); got != want {
				t.Errorf("%s has %s: %q, want %q", request, name, got, want)
			}
		}
		isRedirect := res.StatusCode >= 300 && res.StatusCode < 400 // by net/http, to another path of ours
		for name, want := range pageHeaders {
			got := res.Header.Get(name)
			if path == "/" && got != want || path != "/" && got == want && name != "Cache-Control" && !isRedirect {
				t.Errorf("%s has %s: %q; a page has %q", request, name, got, want)
			}
		}
	}
}

// TestHostsAreNotBelieved: hosts named in a request affect only its own answer to /sd, whose target
// is the requested address.
func TestHostsAreNotBelieved(t *testing.T) {
	t.Parallel()
	c := startProxy(t, itself(t), "--backend=replay", "--web.enable-pprof")
	const evil = "evil.example"
	for _, request := range everyPath(t) {
		method, path, _ := strings.Cut(request, " ")
		req, err := http.NewRequestWithContext(t.Context(), method, c.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Prefix", "X-Original-URL", "X-Rewrite-URL", "X-Real-IP"} {
			req.Header.Set(name, evil)
		}
		req.Header.Set("Forwarded", "host="+evil)
		if path != "/sd" {
			req.Host = evil
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || strings.Contains(string(body)+fmt.Sprint(res.Header), evil) {
			t.Errorf("%s: %v %v: %s", request, err, res.Header, body)
		}
	}
}

// TestUnfinishedRequestsEnd: a client that sends its request a byte at a time is disconnected.
func TestUnfinishedRequestsEnd(t *testing.T) {
	slow.Test(t, "waits half a minute for the end of a request that stalls")
	t.Parallel()
	c := startProxy(t, itself(t), "--backend=replay", "--web.enable-lifecycle")
	for name, begin := range map[string]string{
		"header": "GET /metrics HTTP/1.1\r\nHost: a\r\nA: ",
		"body":   "POST /-/reload HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", strings.TrimPrefix(c.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprint(conn, begin)
			done := make(chan struct{})
			go func() {
				defer close(done)
				io.Copy(io.Discard, conn)
			}()
			for end := time.After(patience); ; {
				select {
				case <-done:
					return
				case <-end:
					t.Fatal("the connection is still open")
				case <-time.After(time.Second):
					fmt.Fprint(conn, "a")
				}
			}
		})
	}
}
