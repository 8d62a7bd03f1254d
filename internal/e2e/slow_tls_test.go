package e2e

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// gated is a connection that only reads while its gate is open.
type gated struct {
	net.Conn
	shut *atomic.Bool
}

// Read implements net.Conn.
func (g gated) Read(b []byte) (int, error) {
	for g.shut.Load() {
		time.Sleep(10 * time.Millisecond)
	}
	return g.Conn.Read(b)
}

// tlsClient returns a TLS client with a connection of its own, and a switch that stops reading from
// it. It accepts any certificate.
func tlsClient(t *testing.T, version2 bool) (*http.Client, *atomic.Bool) {
	t.Helper()
	shut := &atomic.Bool{}
	transport := &http.Transport{
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
		ForceAttemptHTTP2:  version2,
		DisableCompression: true, // the body compresses too well
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			return gated{conn, shut}, err
		},
	}
	t.Cleanup(func() { shut.Store(false); transport.CloseIdleConnections() })
	return &http.Client{Transport: transport}, shut
}

// startTLS starts a proxy with TLS, for an exporter with a large body.
func startTLS(t *testing.T, flags ...string) (base string, look func(path string) string) {
	t.Helper()
	dir := t.TempDir()
	writeCertificate(t, filepath.Join(dir, "node.pem"))
	config := filepath.Join(dir, "web.yml")
	writeFile(t, config, "tls_server_config: {cert_file: node.pem, key_file: node.pem}\n")
	body := largeBody()
	up := startUpstream(func() ([]byte, error) { return body, nil })
	t.Cleanup(up.stop)
	c := startProxy(t, itself(t), append([]string{"--source=" + up.url + "/metrics", "--web.config.file=" + config, "--poll=0"}, flags...)...)
	base = strings.Replace(c.URL, "http:", "https:", 1)
	client, _ := tlsClient(t, false)
	return base, func(path string) string {
		t.Helper()
		res, err := client.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.Status + "\n" + string(text)
	}
}

// holdTLS requests the metrics and reads only their beginning. With shuts it also stops reading the
// HTTP/2 connection; otherwise the stream's window stops the proxy.
func holdTLS(t *testing.T, base string, version2, shuts bool) {
	t.Helper()
	client, shut := tlsClient(t, version2)
	res, err := client.Get(base + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut.Store(false); res.Body.Close() })
	if (res.ProtoMajor == 2) != version2 {
		t.Fatalf("the answer is %s", res.Proto)
	}
	if _, err := io.ReadFull(res.Body, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	shut.Store(shuts)
}

// slowTLS are the ways in which a TLS client does not read.
var slowTLS = map[string]struct{ version2, shuts bool }{
	"HTTP 1":                       {false, false},
	"HTTP 2, window of the stream": {true, false},
	"HTTP 2, connection":           {true, true},
}

// awaitLook polls until the answer matches.
func awaitLook(t *testing.T, look func(string) string, path, match string) {
	t.Helper()
	re := regexp.MustCompile(match)
	for end := time.Now().Add(patience); !re.MatchString(look(path)); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s still lacks %s:\n%.1000s", path, match, look(path))
		}
	}
}

// TestTLSClientsThatDoNotRead lose their places to one that reads, as without TLS.
func TestTLSClientsThatDoNotRead(t *testing.T) {
	t.Parallel()
	for name, way := range slowTLS {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, look := startTLS(t, "--web.max-requests=2", "--web.min-read-rate=1")
			holdTLS(t, base, way.version2, way.shuts)
			holdTLS(t, base, way.version2, way.shuts)
			awaitLook(t, look, "/metrics", "^200 ")
			awaitLook(t, look, "/-/metrics", `\nkpulse_proxy_http_slow_clients_total\{reason="max_requests"\} [1-9]`)
		})
	}
}
