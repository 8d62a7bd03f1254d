package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/holders/kubelettest"
)

// TestRealStackPodResources queries one kubelet with dcgm-exporter 4.8.2 and with the program: of
// pods that share a board the exporter names one, the program all.
func TestRealStackPodResources(t *testing.T) {
	n := startRealNode(t, dcgm4, "h100")
	kubelet := kubelettest.New(t)
	exporter := n.startExporter(t, "", nil, "-k", "--pod-resources-kubelet-socket", kubelet.Socket)
	body := awaitPage(t, exporter, "/metrics", 200, `DCGM_FI_DEV_GPU_UTIL\{gpu="2"`)
	var uuids []string
	for _, m := range regexp.MustCompile(`DCGM_FI_DEV_GPU_UTIL\{gpu="\d+",UUID="([^"]+)"`).FindAllStringSubmatch(body, 3) {
		uuids = append(uuids, m[1])
	}
	kubelet.Set(
		kubelettest.Pod("ml", "train", "nvidia.com/gpu", uuids[0]),
		kubelettest.Pod("web", "a", "nvidia.com/gpu", uuids[1]+"::0"), kubelettest.Pod("web", "b", "nvidia.com/gpu", uuids[1]+"::1"),
		kubelettest.Pod("web", "renamed", "nvidia.com/h100", uuids[2]),
	)
	awaitPage(t, exporter, "/metrics", 200, `DCGM_FI_DEV_GPU_UTIL\{[^}]*pod="train"`)
	want := []string{"0 train/main", "1 a/main", "1 b/main", "2 renamed/main"}
	alone, with := n.startBehind(t, exporter), n.startBehind(t, exporter, "--kube.pod-resources="+kubelet.Socket)
	awaitHolders(t, with, want...)
	if got := holdersOf(t, alone); len(got) >= len(want) || !slices.Contains(got, want[0]) {
		t.Errorf("the exporter alone reports %q", got)
	}
	awaitHolders(t, n.startDCGM(t, "--kube.pod-resources="+kubelet.Socket), want...)
}

// ResourceSlices and claims as NVIDIA's driver and the scheduler write them. The claim watch has
// adminAccess.
const (
	realSlices = `
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: %[1]s-gpus}
spec:
  driver: gpu.nvidia.com
  nodeName: %[1]s
  pool: {name: %[1]s, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: gpu-1, attributes: {type: {string: gpu}, uuid: {string: GPU-d1000000-0000-0000-0000-000000000000}}}
  - name: gpu-2-mig-1g10gb-0-1
    attributes: {type: {string: mig}, uuid: {string: MIG-1}, parentUUID: {string: GPU-d2000000-0000-0000-0000-000000000000}, profile: {string: 1g.10gb}}
  - name: gpu-2-mig-1g10gb-1-1
    attributes: {type: {string: mig}, uuid: {string: MIG-2}, parentUUID: {string: GPU-d2000000-0000-0000-0000-000000000000}, profile: {string: 1g.10gb}}
`
	realClaim = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: %s}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, adminAccess: %t}}]}}
`
	realAllocation = `{"status": {"allocation": {"devices": {"results": [{"request": "gpu", "driver": "gpu.nvidia.com", "pool": %q, "device": "gpu-1", "adminAccess": %t}]}}}}`
)

// TestKubernetesClaimsOfPods finds the devices of claims with the rights of
// deploy/kubernetes/rbac.yaml on a real API server: none before the rights are granted, all after.
func TestKubernetesClaimsOfPods(t *testing.T) {
	t.Parallel()
	k := kubernetes(t)
	ns, node := k.namespace(t), unique(t)
	k.merge(t, "v1", "Namespace", "", ns, "", `{"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}`)
	k.apply(t, "", fmt.Sprintf(realSlices, node))
	for claim, admin := range map[string]bool{"own": false, "watch": true} {
		k.apply(t, ns, fmt.Sprintf(realClaim, claim, admin))
		k.merge(t, "resource.k8s.io/v1", "ResourceClaim", ns, claim, "status", fmt.Sprintf(realAllocation, node, admin))
	}
	kubelet := kubelettest.New(t)
	kubelet.Set(
		kubelettest.Claimed(ns, "train-0", "own", node, "gpu-1"), kubelettest.Claimed(ns, "watch", "watch", node, "gpu-1"),
		kubelettest.Claimed(ns, "serve-0", "serve", node, "gpu-2-mig-1g10gb-0-1", "gpu-2-mig-1g10gb-1-1"),
	)
	file := filepath.Join(t.TempDir(), "exposition")
	capture, err := os.ReadFile(filepath.Join(captureDir, "dra-mig.prom"))
	if err != nil {
		t.Fatal(err)
	}
	nobody := regexp.MustCompile(`,container="main",dra_[^}]*`).ReplaceAll(capture, nil)
	if err := os.WriteFile(file, nobody, 0o600); err != nil {
		t.Fatal(err)
	}
	a := k.account(t, ns, "proxy")
	cmd := exec.Command(itself(t), "--web.listen-address=127.0.0.1:0", "--poll=0", "--source="+file, "--kube.pod-resources="+kubelet.Socket, "--kube.config="+k.kubeconfig(t, a, k.url))
	cmd.Env = []string{"NODE_NAME=" + node, "HOME=" + t.TempDir()}
	c, err := startChild(cmd, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop() })
	awaitPage(t, c, "/", 200, "ResourceSlices may not be read")
	awaitHolders(t, c)
	k.bind(t, a, "", "kpulse-proxy-dra")
	awaitHolders(t, c, "1 train-0/main")
	if _, body := page(t, c, "/"); strings.Contains(body, "may not be read") {
		t.Errorf("the page still says so:\n%s", body)
	}
}
