package e2e

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/e2e/ports"
)

// TestAlive runs the health check of a container: a proxy that demands a certificate or a password
// is alive.
func TestAlive(t *testing.T) {
	t.Parallel()
	for name, web := range map[string]string{
		"plain":              "",
		"password":           "basic_auth_users: {scraper: $2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi}\n",
		"TLS":                "tls_server_config: {cert_file: node.pem, key_file: node.pem}\n",
		"client certificate": "tls_server_config: {cert_file: node.pem, key_file: node.pem, client_auth_type: RequireAndVerifyClientCert, client_ca_file: node.pem}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			writeCertificate(t, filepath.Join(dir, "node.pem"))
			config := filepath.Join(dir, "web.yml")
			if err := os.WriteFile(config, []byte(web), 0o600); err != nil {
				t.Fatal(err)
			}
			// The source is unreachable; check alive does not ask it.
			proxy := startProxy(t, itself(t), "--web.config.file="+config, "--source=http://"+ports.Closed+"/metrics")
			checkAlive(t, 0, proxy.URL, "--url="+strings.TrimPrefix(proxy.URL, "http://"))
			if err := proxy.Stop(); err != nil {
				t.Fatal(err)
			}
			checkAlive(t, 1, "connection refused; start it there, or name another with --url=NODE", "--url="+proxy.URL)
		})
	}
}

// TestAliveRefuses asks servers that are not a proxy, and passes wrong flags.
func TestAliveRefuses(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/broken") {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	t.Cleanup(other.Close)
	checkAlive(t, 1, "is not kpulse-proxy; name the proxy with --url=NODE", "--url="+other.URL)
	checkAlive(t, 1, "answers 502 Bad Gateway; look at its log", "--url="+other.URL+"/broken/metrics")
	checkAlive(t, 2, "--backend is not for check alive, which takes --url, --timeout; leave it out", "--backend=replay")
	checkAlive(t, 2, "is out of range", "--timeout=0s")
}

// checkAlive runs check alive and checks its exit code and its output.
func checkAlive(t *testing.T, exit int, says string, flags ...string) {
	t.Helper()
	cmd := exec.Command(itself(t), append([]string{"check", "alive"}, flags...)...)
	// check alive must not use an HTTP proxy.
	cmd.Env = append(os.Environ(), "http_proxy=http://"+ports.Closed, "https_proxy=http://"+ports.Closed)
	out, err := cmd.CombinedOutput()
	code := 0
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		code = failed.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if code != exit || !strings.Contains(string(out), says) {
		t.Errorf("check alive %v: exit %d, want %d with %q:\n%s", flags, code, exit, says, out)
	}
}

// writeCertificate writes a node's key and self-signed certificate.
func writeCertificate(t *testing.T, file string) {
	t.Helper()
	if err := os.WriteFile(file, certificate(t, nil), 0o600); err != nil {
		t.Fatal(err)
	}
}
