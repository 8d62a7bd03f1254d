package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/kpulse/kpulse-proxy/internal/holders/kubelettest"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// startScraping runs a proxy that reads an exposition at each scrape, in an empty environment.
func startScraping(t *testing.T, source string, flags ...string) *child {
	t.Helper()
	cmd := exec.Command(itself(t), append([]string{"--web.listen-address=127.0.0.1:0", "--poll=0", "--source.min-interval=0s", "--source=" + source}, flags...)...)
	cmd.Env = []string{"HOME=" + t.TempDir()}
	c, err := startChild(cmd, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop() })
	return c
}

// holdersOf returns the holders of devices, as GPU[/INSTANCE] POD[/CONTAINER], sorted.
func holdersOf(t *testing.T, c *child) (holders []string) {
	t.Helper()
	status, body := page(t, c, "/metrics")
	if status != http.StatusOK {
		return nil
	}
	for line := range strings.Lines(body) {
		labels, is := strings.CutPrefix(line, "kpulse_allocation_info{")
		if !is {
			continue
		}
		of := func(name string) string {
			_, rest, _ := strings.Cut(","+labels, ","+name+`="`)
			value, _, _ := strings.Cut(rest, `"`)
			return value
		}
		device := strings.TrimSuffix(of("gpu")+"/"+of("mig_instance"), "/")
		holders = append(holders, strings.TrimSpace(fmt.Sprintf("%s %s/%s %s", device, of("workload_pod"), of("workload_container"), of("hpc_job"))))
	}
	slices.Sort(holders)
	return holders
}

// awaitHolders scrapes until the devices have these holders.
func awaitHolders(t *testing.T, c *child, want ...string) {
	t.Helper()
	var got []string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if got = holdersOf(t, c); slices.Equal(got, want) {
			return
		}
	}
	_, own := page(t, c, "/-/metrics")
	t.Fatalf("held by %q, want %q\nlog: %s\n%s", got, want, c.Logged(), grep(own, "kpulse_proxy_kube"))
}

// grep returns the lines of text that begin with prefix.
func grep(text, prefix string) string {
	var lines strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

// TestPodResourcesWithoutExporter: on a node whose GPUs the program reads itself, pods come from
// the kubelet, with every spelling of a device, and get counters.
func TestPodResourcesWithoutExporter(t *testing.T) {
	t.Parallel()
	boards := dcgmtest.Boards(3)
	boards[1] = boards[1].Cut(3)
	kubelet := kubelettest.New(t)
	kubelet.Set(
		kubelettest.Pod("ml", "train-0", "nvidia.com/gpu", boards[0].UUID),
		kubelettest.Pod("web", "a", "nvidia.com/mig-1g.10gb.shared", boards[1].Instances[0].UUID+"::0"),
		kubelettest.Pod("web", "b", "nvidia.com/mig-1g.10gb.shared", boards[1].Instances[0].UUID+"::7"),
		kubelettest.Pod("web", "gke", "nvidia.com/gpu", "nvidia1/gi8"),
		kubelettest.Pod("web", "old", "nvidia.com/gpu", "MIG-"+boards[1].UUID+"/9/0"),
		kubelettest.Pod("web", "slice", "nvidia.com/gpu", "nvidia2/vgpu1"),
		kubelettest.Pod("web", "elsewhere", "nvidia.com/gpu", "GPU-none"), kubelettest.Pod("web", "amd", "amd.com/gpu", "0"),
	)
	exe := dcgmtest.Install(t, dcgmtest.Scenario{Seed: 7, GPUs: boards})
	installSMI(t, exe, boards)
	c := startDCGM(t, exe, "--kube.pod-resources="+kubelet.Socket)
	awaitHolders(t, c, "0 train-0/main", "1/7 a/main", "1/7 b/main", "1/8 gke/main", "1/9 old/main", "2 slice/main")
	awaitPage(t, c, "/metrics", 200, `kpulse_allocation_seconds_total\{[^}]*gpu="0",[^}]*workload_pod="train-0",[^}]*\} [0-9.]*[1-9]`)
	awaitPage(t, c, "/container/metrics?pod=gke", 200, `"pod": *"gke"`)
	for _, want := range []string{`devices\{result="matched"\} 6`, `devices\{result="unmatched"\} 1`, `devices\{result="unread"\} 0`, `failures_total 0`} {
		awaitPage(t, c, "/-/metrics", 200, "kpulse_proxy_kubelet_"+want+"\n")
	}
}

// installSMI puts an nvidia-smi that lists MIG devices beside the dcgmi at exe.
func installSMI(t *testing.T, exe string, boards []dcgmtest.GPU) {
	t.Helper()
	var list, report strings.Builder
	for _, b := range boards {
		fmt.Fprintf(&list, "GPU %d: %s (UUID: %s)\n", b.Index, b.Name, b.UUID)
		fmt.Fprintf(&report, "<gpu><uuid>%s</uuid><mig_devices>", b.UUID)
		for i, in := range b.Instances {
			fmt.Fprintf(&list, "  MIG 1g.10gb     Device  %d: (UUID: %s)\n", i, in.UUID)
			fmt.Fprintf(&report, "<mig_device><index>%d</index><gpu_instance_id>%d</gpu_instance_id></mig_device>", i, in.ID)
		}
		report.WriteString("</mig_devices></gpu>")
	}
	script := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in\n-L) echo '%s';;\n*-x*) echo '<nvidia_smi_log>%s</nvidia_smi_log>';;\nesac\n", list.String(), report.String())
	if err := os.WriteFile(filepath.Join(filepath.Dir(exe), "nvidia-smi"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
}

// sharing is the page of an exporter whose GPUs have one pod, a job or no holder.
const sharing = `DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0",Hostname="n",namespace="web",pod="a",container="main"} 50
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-1",Hostname="n",namespace="web",pod="new",container="main"} 50
DCGM_FI_DEV_GPU_UTIL{gpu="2",UUID="GPU-2",Hostname="n"} 50
DCGM_FI_DEV_GPU_UTIL{gpu="3",UUID="GPU-3",Hostname="n",hpc_job="17"} 50
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="4",UUID="GPU-4",GPU_I_ID="7",GPU_I_PROFILE="1g.10gb",Hostname="n"} 0.5
`

// TestPodResourcesBesideExporter: the kubelet completes an exporter's pods and does not contradict
// them; pods over the limit are counted.
func TestPodResourcesBesideExporter(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "exposition")
	if err := os.WriteFile(file, []byte(sharing), 0o600); err != nil {
		t.Fatal(err)
	}
	kubelet := kubelettest.New(t)
	kubelet.Set(
		kubelettest.Pod("web", "a", "nvidia.com/gpu.shared", "GPU-0::0"), kubelettest.Pod("web", "b", "nvidia.com/gpu.shared", "GPU-0::1"),
		kubelettest.Pod("web", "previous", "nvidia.com/gpu", "GPU-1"), kubelettest.Pod("web", "c", "nvidia.com/gpu", "GPU-2"),
		kubelettest.Pod("slurm", "slurmd", "nvidia.com/gpu", "GPU-3"), kubelettest.Pod("web", "m", "nvidia.com/mig-1g.10gb", "MIG-4"),
	)
	c := startScraping(t, file, "--kube.pod-resources="+kubelet.Socket)
	awaitHolders(t, c, "0 a/main", "0 b/main", "1 new/main", "2 c/main", "3 slurmd/main 17")

	var many []*podresources.PodResources
	for i := range 400 {
		many = append(many, kubelettest.Pod("web", fmt.Sprint("p", i), "nvidia.com/gpu.shared", fmt.Sprint("GPU-2::", i)))
	}
	kubelet.Set(many...)
	c = startScraping(t, file, "--kube.pod-resources="+kubelet.Socket, "--series-limit=4000")
	body := awaitPage(t, c, "/metrics?series=full", 200, `kpulse_gpu_allocations\{[^}]*gpu="2"[^}]*\} 400\n`)
	held := strings.Count(body, "\nkpulse_allocation_info{")
	if dropped := fmt.Sprintf(`kpulse_source_dropped_allocations_total\{[^}]*\} %d\n`, 403-held); held < 10 || held > 200 {
		t.Errorf("%d allocations within the limit", held)
	} else {
		awaitPage(t, c, "/metrics?series=full", 200, dropped)
	}
}

// nodeSlices is the ResourceSlices of the node in the capture dra-mig.prom.
const nodeSlices = `{"items":[{"spec":{"driver":"gpu.nvidia.com","nodeName":"node-dra","pool":{"name":"node-dra","generation":1,"resourceSliceCount":1},"devices":[
{"name":"gpu-2-mig-1g10gb-0-1","attributes":{"type":{"string":"mig"},"uuid":{"string":"MIG-d2000000-aaaa-5000-8000-000000000001"},"parentUUID":{"string":"GPU-d2000000-0000-0000-0000-000000000000"},"profile":{"string":"1g.10gb"}}},
{"name":"gpu-2-mig-1g10gb-1-1","attributes":{"type":{"string":"mig"},"uuid":{"string":"MIG-d2000000-aaaa-5000-8000-000000000002"},"parentUUID":{"string":"GPU-d2000000-0000-0000-0000-000000000000"},"profile":{"string":"1g.10gb"}}},
{"name":"gpu-1","attributes":{"type":{"string":"gpu"},"uuid":{"string":"GPU-d1000000-0000-0000-0000-000000000000"}}}]}}]}`

// TestPodResourcesOfClaims: the kubelet and the node's ResourceSlices map claims that an exporter
// cannot. MIG devices are not told apart by an exporter's page.
func TestPodResourcesOfClaims(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/apis/resource.k8s.io/v1/resourceslices" && r.URL.Query().Get("fieldSelector") == "spec.nodeName=node-dra,spec.driver=gpu.nvidia.com":
			fmt.Fprint(w, nodeSlices)
		case strings.HasSuffix(r.URL.Path, "/resourceclaims/watch"):
			fmt.Fprint(w, `{"status":{"allocation":{"devices":{"results":[{"driver":"gpu.nvidia.com","pool":"node-dra","device":"gpu-1","adminAccess":true}]}}}}`)
		case strings.Contains(r.URL.Path, "/resourceclaims/"):
			fmt.Fprint(w, "{}")
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(api.Close)
	config := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(config, fmt.Appendf(nil, "apiVersion: v1\nkind: Config\ncurrent-context: t\ncontexts: [{name: t, context: {cluster: t, user: t}}]\nclusters: [{name: t, cluster: {server: %q}}]\nusers: [{name: t, user: {token: t}}]\n", api.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	kubelet := kubelettest.New(t)
	kubelet.Set(
		kubelettest.Claimed("web", "serve-0", "serve-gpu", "node-dra", "gpu-2-mig-1g10gb-0-1", "gpu-2-mig-1g10gb-1-1"),
		kubelettest.Claimed("ml", "train-0", "train-0-gpu-9qf4m", "node-dra", "gpu-1"),
		kubelettest.Claimed("ops", "watch", "watch", "node-dra", "gpu-1"),
	)
	c := startScraping(t, "../../testdata/captures/dra-mig.prom", "--kube.pod-resources="+kubelet.Socket, "--kube.config="+config)
	awaitHolders(t, c, "0/2 tune-0/main", "1 train-0/main", "3/0 chat-0/main", "3/0 chat-1/main")
}
