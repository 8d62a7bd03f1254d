package holders

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// kubeconfig writes a kubeconfig whose cluster is at url and returns its path.
func kubeconfig(t testing.TB, url string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: secret}}]
`, url)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNewClientNeedsACluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBERNETES_SERVICE_PORT", "")
	t.Setenv("KUBECONFIG", kubeconfig(t, "http://127.0.0.1:1")) // must not be read
	if _, err := NewClient("", "us"); !errors.Is(err, ErrNoCluster) || !strings.HasSuffix(err.Error(), "--kube.config=FILE") {
		t.Errorf("in no pod: %v; want %v", err, ErrNoCluster)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1") // a pod whose service account is not mounted
	t.Setenv("KUBERNETES_SERVICE_PORT", "1")
	if _, err := os.Stat("/var/run/secrets/kubernetes.io/serviceaccount/token"); err != nil {
		if _, err := NewClient("", "us"); err == nil || !strings.Contains(err.Error(), "automountServiceAccountToken") {
			t.Errorf("without a token: %v; want an error that names automountServiceAccountToken", err)
		}
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{empty, "/none/such"} {
		if _, err := NewClient(path, "us"); err == nil || !strings.HasPrefix(err.Error(), "the kubeconfig "+path) {
			t.Errorf("%s: %v; want an error that names it", path, err)
		}
	}
}

// TestClientOfAPlainServer: a client that has nothing to add to a request leaves Go's own client as it is, and works.
func TestClientOfAPlainServer(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }))
	defer api.Close()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := "clusters: [{name: c, cluster: {server: '" + api.URL + "'}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := NewClient(path, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := client.get(t.Context(), "/api/v1/namespaces/a/pods/b", nil, asJSON, &podObject{}); err != nil || http.DefaultClient.Transport != nil {
		t.Errorf("%v, and Go's client has the transport %v", err, http.DefaultClient.Transport)
	}
}

// TestClientKeepsItsToken: the credentials do not follow a redirect to another server.
func TestClientKeepsItsToken(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	var agent, authorization atomic.Value
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agent.Store(r.UserAgent())
		authorization.Store(r.Header.Get("Authorization"))
		http.Redirect(w, r, other.URL, http.StatusFound)
	}))
	defer api.Close()
	client, err := NewClient(kubeconfig(t, api.URL), "kpulse-proxy/test")
	if err != nil {
		t.Fatal(err)
	}
	if err := client.get(t.Context(), "/api/v1/namespaces/a/pods/b", nil, asJSON, &podObject{}); err == nil {
		t.Error("a redirect is not an error")
	}
	if elsewhere.Load() != 0 || authorization.Load() != "Bearer secret" || agent.Load() != "kpulse-proxy/test" {
		t.Errorf("%d requests went elsewhere, authorization %v, user agent %v", elsewhere.Load(), authorization.Load(), agent.Load())
	}
}
