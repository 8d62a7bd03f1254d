package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
	"github.com/kpulse/kpulse-proxy/internal/holders/kubelettest"
)

// hostileNames returns the names of hostileTexts that JSON and protobuf, the protocols of
// Kubernetes, can carry: all except invalid UTF-8.
func hostileNames() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(hostileTexts)), func(name string) bool { return name == "bytes" })
}

// bareBoards returns an exporter's page with a GPU, GPU-NAME, for each of hostileNames; extra
// returns its further labels.
func bareBoards(extra func(name string) string) string {
	var page strings.Builder
	for i, name := range hostileNames() {
		fmt.Fprintf(&page, "DCGM_FI_DEV_GPU_TEMP{gpu=\"%d\",UUID=\"GPU-%s\"%s} %d\n", i, name, extra(name), 40+i)
	}
	return page.String()
}

// label returns a label as in /metrics, with its value unchanged.
func label(name, value string) string {
	return strings.TrimPrefix(string(exposition.AppendLabel(nil, ","+name, value)), ",")
}

// checkShownBy checks that all that a proxy shows to people is safe, and that /metrics has labels
// with hostile values unchanged.
func checkShownBy(t *testing.T, c *child, labels ...string) {
	t.Helper()
	for _, name := range hostileNames() {
		for _, l := range labels {
			want := label(l, name+"-"+hostileTexts[name])
			awaitTrue(t, "the label "+want, func() bool { _, body := page(t, c, "/metrics"); return strings.Contains(body, want) })
		}
	}
	for _, path := range []string{"/metrics", "/-/metrics"} { // data, unchanged
		_, text := page(t, c, path)
		if err := checkExposition([]byte(text)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{"/", "/events", "/container/metrics", "/sd", "/-/ready"} {
		_, text := page(t, c, path)
		checkShown(t, path, text)
		switch path {
		case "/":
			checkMarkup(t, text)
		case "/-/ready":
			for line := range strings.Lines(text) {
				if line != "ready\n" && !strings.HasPrefix(line, "source dead-") {
					t.Errorf("%s has the line %q of others", path, line)
				}
			}
		default:
			if !json.Valid([]byte(text)) {
				t.Errorf("%s is not JSON: %s", path, text)
			}
		}
	}
	for _, args := range []string{"check health --url=" + c.URL, "check health --json --url=" + c.URL} {
		out, _ := exec.Command(itself(t), strings.Fields(args)...).CombinedOutput() // unknown health is an error
		checkShown(t, args, string(out))
	}
}

// checkShownLog stops a proxy and checks that its log is safe to print.
func checkShownLog(t *testing.T, c *child) {
	t.Helper()
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	checkShown(t, "the log", c.Logged())
}

// checkDoctor checks that both forms of doctor's output are printable and not empty.
func checkDoctor(t *testing.T, says string, flags ...string) {
	t.Helper()
	for _, form := range []string{"--json", "--timeout=20s"} {
		out, _ := exec.Command(itself(t), append(append([]string{"doctor", form}, nowhere(t)[:1]...), flags...)...).CombinedOutput()
		checkShown(t, "doctor", string(out))
		if !strings.Contains(string(out), says) || form == "--json" && !json.Valid(out) {
			t.Errorf("doctor's output lacks %q:\n%s", says, out)
		}
	}
}

// hostileKubelet starts a kubelet whose pods have hostile names, and an exporter of their GPUs.
func hostileKubelet(t *testing.T) (*upstream, *kubelettest.Kubelet) {
	t.Helper()
	up := startUpstream(func() ([]byte, error) { return []byte(bareBoards(func(string) string { return "" })), nil })
	t.Cleanup(up.stop)
	kubelet := kubelettest.New(t)
	var pods []*podresources.PodResources
	for _, name := range hostileNames() {
		text := name + "-" + hostileTexts[name]
		pod := kubelettest.Pod(text, text, "nvidia.com/gpu", "GPU-"+name)
		pod.Containers[0].Name = text
		pods = append(pods, pod)
	}
	kubelet.Set(pods...)
	return up, kubelet
}

// hostileOwners is an API server whose pods, pod-NAME, belong to owners of hostile kinds and names.
// Requests for the owners get an error that is hostile too.
func hostileOwners(code int, reason string) http.HandlerFunc {
	type m = map[string]any
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		segments := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		last := segments[len(segments)-1]
		_, text, _ := strings.Cut(last, "-")
		switch {
		case strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/gpu/pods/"):
			owner := m{"apiVersion": "example.com/v1", "kind": text + "-" + hostileTexts[text], "name": text + "-" + hostileTexts[text], "uid": "u-" + text, "controller": true}
			json.NewEncoder(w).Encode(m{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": m{"name": last, "namespace": "gpu", "uid": last, "ownerReferences": []any{owner}}})
		case r.URL.Path == "/apis/example.com/v1":
			var all []any
			for _, name := range hostileNames() {
				all = append(all, m{"name": "things-" + name, "kind": name + "-" + hostileTexts[name], "namespaced": true})
			}
			json.NewEncoder(w).Encode(m{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "example.com/v1", "resources": all})
		default:
			w.WriteHeader(code)
			json.NewEncoder(w).Encode(m{"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "refused-" + hostileTexts["markup"] + hostileTexts["controls"] + hostileTexts["bidi"]})
		}
	}
}

// TestHostileOwners: kinds and names of pods' owners, and errors on the way to them.
func TestHostileOwners(t *testing.T) {
	t.Parallel()
	up := startUpstream(func() ([]byte, error) {
		return []byte(bareBoards(func(name string) string { return `,namespace="gpu",pod="pod-` + name + `",container="c"` })), nil
	})
	defer up.stop()
	for code, reason := range map[int]string{http.StatusNotFound: "NotFound", http.StatusForbidden: "Forbidden", http.StatusInternalServerError: "InternalError"} {
		api := httptest.NewServer(hostileOwners(code, reason))
		defer api.Close()
		kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
		writeFile(t, kubeconfig, "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: '"+api.URL+"'}}]\nusers: [{name: u, user: {token: hush}}]\n")
		c := startProxy(t, itself(t), "--source="+up.url+"/metrics", "--source.min-interval=0s", "--kube.workloads", "--kube.config="+kubeconfig, "--log.level=debug", "--log.format=json")
		if code == http.StatusInternalServerError { // the owners are unknown
			awaitPage(t, c, "/", http.StatusOK, "fails for objects of kind .*refused-")
			checkShownBy(t, c)
		} else {
			checkShownBy(t, c, "workload_kind", "workload_name")
		}
		checkDoctor(t, "refused-", "--kube.config="+kubeconfig)
		checkShownLog(t, c)
	}
}
