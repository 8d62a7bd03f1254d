package e2e

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/kpulse/kpulse-proxy/internal/holders/kubelettest"
)

const (
	claimedBoard = "GPU-5a000000-0000-4000-8000-000000000000" // whole
	cutBoard     = "GPU-5a000001-0000-4000-8000-000000000001" // partitioned into a 3g.40gb and two 1g.10gb
)

// claimedBoards is the page of an exporter of the two boards that does not report pods.
var claimedBoards = []byte(`DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="` + claimedBoard + `"} 40
DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="` + cutBoard + `",GPU_I_PROFILE="3g.40gb",GPU_I_ID="1"} 41
DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="` + cutBoard + `",GPU_I_PROFILE="1g.10gb",GPU_I_ID="9"} 41
DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="` + cutBoard + `",GPU_I_PROFILE="1g.10gb",GPU_I_ID="10"} 41
`)

var heldBy = regexp.MustCompile(`(?m)^kpulse_allocation_info\{hostname="[^"]*",gpu="(\d)",.*?(?:mig_instance="(\d+)",.*?)?workload_pod="([^"]*)"`)

// awaitHeld waits until pods hold exactly these devices, each "GPU POD" or "GPU/INSTANCE POD".
func awaitHeld(t *testing.T, c *child, want ...string) {
	t.Helper()
	var body string
	defer func() {
		if t.Failed() {
			t.Errorf("want %q\n%s\n%s", want, body, c.Logged())
		}
	}()
	awaitTrue(t, "holders of GPUs", func() bool {
		var held []string
		_, body = page(t, c, "/metrics")
		for _, m := range heldBy.FindAllStringSubmatch(body, -1) {
			held = append(held, strings.TrimSuffix(m[1]+"/"+m[2], "/")+" "+m[3])
		}
		slices.Sort(held)
		return slices.Equal(held, want)
	})
}

// TestKubernetesClaims: according to the kubelet and the driver's ResourceSlice, pods hold the
// devices that the scheduler allocated to their claims: a board that two pods share, a MIG
// instance, and none for a claim that only watches.
func TestKubernetesClaims(t *testing.T) {
	t.Parallel()
	k := kubernetes(t)
	ns, node := k.namespace(t), k.node(t, "")
	k.merge(t, "v1", "Namespace", "", ns, "", `{"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}`)
	k.offer(t, node, 1, draDevice{name: "gpu-0", uuid: claimedBoard},
		draDevice{name: "gpu-1-mig-9-4-4", uuid: "MIG-5a000001-1111-5000-8000-000000000001", parent: cutBoard, profile: "3g.40gb"})
	k.claim(t, ns, "board", "gpu.nvidia.com", 1)
	k.claim(t, ns, "instance", "mig.nvidia.com", 1)
	k.apply(t, ns, "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: watching}, spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu.nvidia.com, allocationMode: All, adminAccess: true}}]}}}")

	kubelet := kubelettest.New(t)
	var pods []*podresources.PodResources
	for _, pod := range [][2]string{{"serve", "instance"}, {"train-a", "board"}, {"train-b", "board"}, {"monitor", "watching"}} {
		pool, devices := k.claimPod(t, ns, pod[0], pod[1], node)
		if pool == "" {
			t.Fatalf("%s is allocated nothing", pod[0])
		}
		pods = append(pods, kubelettest.Claimed(ns, pod[0], pod[1], pool, devices...))
	}
	kubelet.Set(pods...)

	up := startUpstream(func() ([]byte, error) { return claimedBoards, nil })
	t.Cleanup(up.stop)
	a, g := k.account(t, ns, "proxy"), k.gate(t)
	cmd := exec.Command(itself(t), "--web.listen-address=127.0.0.1:0", "--source="+up.url+"/metrics", "--poll=1s", "--kube.pod-resources="+kubelet.Socket, "--kube.config="+k.kubeconfig(t, a, g.url))
	cmd.Env = append(cmd.Environ(), "NODE_NAME="+node)
	c, err := startChild(cmd, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop() })
	awaitTrue(t, "denied request", func() bool { return strings.Contains(fmt.Sprint(k.requests(t, a)), "resourceslices") })
	awaitHeld(t, c)
	awaitLog(t, c, "resourceslices")
	k.bind(t, a, "", "kpulse-proxy-dra")
	awaitHeld(t, c, "0 train-a", "0 train-b", "1/1 serve")

	g.hang() // known holders stay, even if the kubelet reports fewer pods
	kubelet.Set(pods[:2]...)
	awaitHeld(t, c, "0 train-a", "1/1 serve")
	if code, _ := page(t, c, "/metrics"); code != http.StatusOK {
		t.Errorf("a scrape while the API server hangs: %d", code)
	}
}
