package e2e

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/kpulse/kpulse-proxy/internal/holders/kubelettest"
)

// sharingPods share board 0 of the real exporter. The third has no process.
var sharingPods = []struct{ name, uid string }{
	{"busy", "aaaaaaaa-0000-4000-8000-000000000001"},
	{"calm", "bbbbbbbb-0000-4000-8000-000000000002"},
	{"idle", "cccccccc-0000-4000-8000-000000000003"},
}

// sharedBoard returns a kubelet that gave each of the pods a slice of board 0, and the first two:
// one for each of its containers.
func sharedBoard(t *testing.T) *kubelettest.Kubelet {
	t.Helper()
	const board = "GPU-01000100-0000-0000-0000-000000000000::"
	kubelet := kubelettest.New(t)
	var pods []*podresources.PodResources
	for i, p := range sharingPods {
		pods = append(pods, kubelettest.Pod("ns", p.name, "nvidia.com/gpu", board+strconv.Itoa(i)))
	}
	pods[0].Containers = append(pods[0].Containers, &podresources.ContainerResources{
		Name: "side", Devices: []*podresources.ContainerDevices{kubelettest.Devices("nvidia.com/gpu", board+"3")},
	})
	kubelet.Set(pods...)
	return kubelet
}

// inPods moves each process into a control group like that of a pod, from which the exporter
// derives the pod. The test is skipped where that is impossible.
func inPods(t *testing.T, pids ...int) {
	t.Helper()
	root := "/sys/fs/cgroup/pids"
	if _, err := os.Stat(root); err != nil {
		root = "/sys/fs/cgroup"
	}
	for i, pid := range pids {
		group := filepath.Join(root, fmt.Sprintf("kpulse-test-%d-pod%s", os.Getpid(), sharingPods[i].uid))
		if err := os.Mkdir(group, 0o755); err != nil {
			t.Skipf("no control groups can be made: %v", err)
		}
		move := func(to string) error {
			return os.WriteFile(filepath.Join(to, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600)
		}
		t.Cleanup(func() {
			_ = move(root) // a group with a process cannot be removed
			if err := os.Remove(group); err != nil {
				t.Error(err)
			}
		})
		if err := move(group); err != nil {
			t.Skipf("no process can be put into a control group: %v", err)
		}
	}
}

// podsAPI returns an API server with the pods, and the folder of a service account for it.
func podsAPI(t *testing.T) (address *url.URL, account string) {
	t.Helper()
	var items []any
	for _, p := range sharingPods {
		items = append(items, map[string]any{"metadata": map[string]any{"name": p.name, "namespace": "ns", "uid": p.uid}})
	}
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "PodList", "metadata": map[string]any{"resourceVersion": "1"}, "items": items})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch query := r.URL.Query(); {
		case query.Get("sendInitialEvents") != "": // like an API server without this feature: the client then lists
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Invalid","code":422}`)
			return
		case query.Get("watch") == "":
			w.Write(list)
			return
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done() // the pods do not change
	}))
	t.Cleanup(func() { server.Listener.Close(); server.CloseClientConnections(); server.Close() })
	account = t.TempDir()
	writeFile(t, filepath.Join(account, "ca.crt"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	writeFile(t, filepath.Join(account, "token"), "token")
	address, err = url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return address, account
}

// withAccount runs cmd with a service account where pods have it.
func withAccount(t *testing.T, cmd *exec.Cmd, account string) *exec.Cmd {
	t.Helper()
	const place = "/run/secrets/kubernetes.io/serviceaccount"
	inside := exec.Command("unshare", append([]string{"--mount", "--propagation", "private", "sh", "-c",
		`mount -t tmpfs none /run && mkdir -p ` + place + ` && cp "$0"/* ` + place + ` && exec "$@"`, account}, cmd.Args...)...)
	if err := exec.Command("unshare", "--mount", "true").Run(); err != nil {
		t.Skipf("no mount namespace can be made: %v", err)
	}
	inside.Env = cmd.Env
	return inside
}

// TestRealStackShares: the exporter, with the pods' UIDs from the API server, measures what pods of
// a shared board use; they share its time accordingly.
func TestRealStackShares(t *testing.T) {
	t.Parallel()
	busy, calm := linger(t, []string{"busy"}), linger(t, []string{"calm"})
	const board = "  uuid: GPU-01000100-0000-0000-0000-000000000000\n"
	n := newRealNode(t, dcgm4, "h100", board, board+fmt.Sprintf(
		"  processes: [{pid: %d, type: C, used_memory_mib: 3072, sm_util: 40}, {pid: %d, type: C, used_memory_mib: 1024, sm_util: 25}]\n", busy, calm))
	inPods(t, busy, calm)
	api, account := podsAPI(t)
	n.startEngine(t)
	cmd := n.program("dcgm-exporter", "-r", n.address, "-a", "127.0.0.1:0", "-f", filepath.Join(n.stack, "configs", "default-counters.csv"), "-c", "1000",
		"--kubernetes", "--kubernetes-virtual-gpus", "--kubernetes-enable-pod-uid", "--pod-resources-kubelet-socket", sharedBoard(t).Socket)
	cmd.Env = append(n.env(), "DISABLE_STARTUP_VALIDATE=true", "NODE_NAME=n", "KUBERNETES_SERVICE_HOST="+api.Hostname(), "KUBERNETES_SERVICE_PORT="+api.Port())
	c := n.startBehind(t, n.start(t, withAccount(t, cmd, account)))
	awaitPage(t, c, "/metrics", 200, `(?m)^kpulse_allocation_info\{[^}]*workload_pod="calm"[^}]*share="measured"\} 1$`)
	body := awaitPage(t, c, "/metrics", 200, `(?m)^kpulse_allocation_seconds_total\{[^}]*workload_pod="calm"[^}]*\} [0-9.e-]*[1-9]`)
	for pod, want := range map[string][2]string{`busy",workload_container="main`: {"0.2", "1610612736"}, `busy",workload_container="side`: {"0.2", "1610612736"}, "calm": {"0.25", "1073741824"}, "idle": {"0", "0"}} {
		for i, series := range []string{"nvml_utilization_ratio", "framebuffer_used_bytes"} {
			if !regexp.MustCompile(`(?m)^kpulse_allocation_` + series + `\{[^}]*gpu="0"[^}]*workload_pod="` + pod + `"[^}]*\} ` + want[i] + `$`).MatchString(body) {
				t.Errorf("want %s of %s to be %s in\n%s", series, pod, want[i], family(body, "kpulse_allocation_"+series))
			}
		}
	}
	if !regexp.MustCompile(`(?m)^kpulse_allocation_seconds_total\{[^}]*workload_pod="idle"[^}]*\} 0$`).MatchString(body) {
		t.Errorf("the idle pod has time in\n%s", family(body, "kpulse_allocation_seconds_total"))
	}
}

// TestRealStackUnseenShares: without the API server the exporter reports 0 for each pod, which is
// no reading while the board is busy.
func TestRealStackUnseenShares(t *testing.T) {
	t.Parallel()
	n := startRealNode(t, dcgm4, "h100")
	c := n.startBehind(t, n.startExporter(t, "", n.env(), "--kubernetes", "--kubernetes-virtual-gpus", "--pod-resources-kubelet-socket", sharedBoard(t).Socket))
	body := awaitPage(t, c, "/metrics", 200, `(?m)^kpulse_allocation_info\{[^}]*workload_pod="calm"[^}]*share="equal"\} 1$`)
	if !regexp.MustCompile(`(?m)^DCGM_FI_DEV_GPU_UTIL\{[^}]*pod="calm",pod_uid=""[^}]*\} 0$`).MatchString(body) {
		t.Errorf("the exporter does not report 0 for a pod without a known UID:\n%s", family(body, "DCGM_FI_DEV_GPU_UTIL"))
	}
	if strings.Contains(body, "kpulse_allocation_nvml_utilization_ratio") || strings.Contains(body, "kpulse_allocation_framebuffer_used_bytes") {
		t.Errorf("unmeasured use is served in\n%s", family(body, "kpulse_allocation_nvml_utilization_ratio"))
	}
}
