package app

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v2"
	"golang.org/x/time/rate"
)

// FuzzWebFiles: a web config file that is accepted lets the toolkit validate it without waiting for a
// pipe, and its rate limit lets a request pass but not all; one that is refused for its rate limit
// does not. The limiter and the reader of the file are the toolkit's.
func FuzzWebFiles(f *testing.F) {
	for _, text := range []string{
		"tls_server_config: {cert_file: cert.pem, key_file: pipe}\n",
		"tls_server_config:\n  cert_file: ./pipe\n  client_ca_file: none.pem\n",
		"tls_server_config: &t {cert_file: cert.pem, key_file: cert.pem, client_ca_file: ../web/pipe}\n",
		"tls_server_config: {<<: {cert_file: pipe}, key_file: cert.pem}\n",
		"rate_limit: {interval: 1s}\n",
		"rate_limit: {burst: 20}\n",
		"rate_limit: {burst: 1, interval: 1h}\nhttp_server_config: {http2: false}\n",
		"rate_limit: {burst: -1, interval: -1ns}\n",
		"rate_limit: {burst: 0x10, interval: 5}\n",
		"basic_auth_users: {scraper: $2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi}\n",
		"rate_limit: {}\n---\nrate_limit: {burst: 1}\n",
		"{}\n\x00",
	} {
		f.Add([]byte(text))
	}
	dir := filepath.Join(f.TempDir(), "web")
	if err := os.Mkdir(dir, 0o700); err != nil {
		f.Fatal(err)
	}
	pipe, path := filepath.Join(dir, "pipe"), filepath.Join(dir, "web.yml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cert.pem"), []byte("none"), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		refused := checkWebFiles(path)
		if refused == nil {
			validated := make(chan struct{})
			go func() { _ = web.Validate(path); close(validated) }()
			select {
			case <-validated:
			case <-time.After(5 * time.Second):
				t.Fatalf("the toolkit waits for a file of %q", text)
			}
		}
		var c web.Config
		if yaml.UnmarshalStrict(text, &c) != nil {
			return // the toolkit refuses it
		}
		limit := c.RateLimiterConfig
		limiter := rate.NewLimiter(rate.Every(limit.Interval), limit.Burst)
		sound := limit == web.RateLimiterConfig{} || limit.Interval != 0 && limiter.Allow() && limiter.Limit() != rate.Inf
		if named := refused != nil && strings.Contains(refused.Error(), ": rate_limit: "); named == sound {
			t.Errorf("%q has the limit %+v: %v", text, limit, refused)
		}
	})
}
