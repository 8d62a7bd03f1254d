package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/holders/kubelettest"
)

// inGroups moves each process into a control group of that name, below one of this test's. The test is skipped where that
// is impossible.
func inGroups(t *testing.T, pids map[string]int) {
	t.Helper()
	root := "/sys/fs/cgroup/pids"
	if _, err := os.Stat(root); err != nil {
		root = "/sys/fs/cgroup"
	}
	top := filepath.Join(root, fmt.Sprintf("kpulse-slurm-%d", os.Getpid())) // as Slurm calls the one of its jobs
	t.Cleanup(func() { os.Remove(top) })
	for name, pid := range pids {
		group := filepath.Join(top, name)
		if err := os.MkdirAll(group, 0o755); err != nil {
			t.Skipf("no control groups can be made: %v", err)
		}
		move := func(to string) error {
			return os.WriteFile(filepath.Join(to, "cgroup.procs"), fmt.Append(nil, pid), 0o600)
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

// TestRealStackUse: where the driver is read by NVML, jobs that share a board get what its processes use by NVML, and so
// do pods whose UIDs the API server tells; on a board with a process of nobody, all get equal shares.
func TestRealStackUse(t *testing.T) {
	t.Parallel()
	busy, calm, pod, stray := linger(t, []string{"busy"}), linger(t, []string{"calm"}), linger(t, []string{"pod"}), linger(t, []string{"stray"})
	board := func(i int) string { return fmt.Sprintf("  uuid: GPU-01000100-0000-0000-0000-00000000000%d\n", i) }
	process := func(pid, mib, util int) string {
		return fmt.Sprintf("{pid: %d, type: C, used_memory_mib: %d, sm_util: %d}", pid, mib, util)
	}
	n := newRealNode(t, dcgm4, "h100",
		board(0), board(0)+"  processes: ["+process(busy, 3072, 40)+", "+process(calm, 1024, 25)+"]\n",
		board(1), board(1)+"  processes: ["+process(pod, 2048, 30)+"]\n",
		board(2), board(2)+"  processes: ["+process(busy, 3072, 40)+", "+process(stray, 1024, 25)+"]\n")
	inGroups(t, map[string]int{"job_4711": busy, "job_4712": calm, "kubepods-pod" + sharingPods[0].uid: pod, "stray": stray})
	jobs := t.TempDir()
	for file, text := range map[string]string{"0": "4711\n4712\n4713\n", "2": "4711\n4712\n"} {
		writeFile(t, filepath.Join(jobs, file), text)
	}
	kubelet := kubelettest.New(t)
	const shared = "GPU-01000100-0000-0000-0000-000000000001::"
	kubelet.Set(kubelettest.Pod("ns", "busy", "nvidia.com/gpu", shared+"0"), kubelettest.Pod("ns", "calm", "nvidia.com/gpu", shared+"1"))
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for _, p := range sharingPods {
			if r.URL.Path == "/api/v1/namespaces/ns/pods/"+p.name {
				fmt.Fprintf(w, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"namespace":"ns","name":%q,"uid":%q}}`, p.name, p.uid)
				return
			}
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(api.Close)
	config := filepath.Join(t.TempDir(), "kubeconfig")
	writeFile(t, config, fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {}}]\n", api.URL))
	cmd := exec.Command(itself(t), "--web.listen-address=127.0.0.1:0", "--series=full", "--node-name=n", "--backend=nvml", "--hpc-job-mapping-dir="+jobs,
		"--kube.pod-resources="+kubelet.Socket, "--kube.workloads", "--kube.config="+config)
	cmd.Env = n.env()
	c := n.start(t, cmd)
	body := awaitPage(t, c, "/metrics", 200, `(?m)^kpulse_allocation_info\{[^}]*hpc_job="4713"[^}]*share="measured"\} 1$(?s:.*)\nkpulse_allocation_info\{[^}]*workload_pod="calm"[^}]*share="measured"\} 1\n`)
	for labels, want := range map[string][2]string{
		`gpu="0",[^}]*hpc_job="4711"`:      {"0.4", "3221225472"},
		`gpu="0",[^}]*hpc_job="4712"`:      {"0.25", "1073741824"},
		`gpu="0",[^}]*hpc_job="4713"`:      {"0", "0"},
		`gpu="1",[^}]*workload_pod="busy"`: {"0.3", "2147483648"},
		`gpu="1",[^}]*workload_pod="calm"`: {"0", "0"},
		`gpu="2",[^}]*hpc_job="4711"`:      {"", "3221225472"},
	} {
		for i, series := range []string{"nvml_utilization_ratio", "framebuffer_used_bytes"} {
			found := regexp.MustCompile(`(?m)^kpulse_allocation_` + series + `\{[^}]*` + labels + `[^}]*\} (.*)$`).FindStringSubmatch(body)
			if got := append(found, "", "")[min(1, len(found))]; got != want[i] {
				t.Errorf("%s of %s is %q, want %q in\n%s", series, labels, got, want[i], family(body, "kpulse_allocation_"+series))
			}
		}
	}
	if !regexp.MustCompile(`(?m)^kpulse_allocation_info\{[^}]*gpu="2",[^}]*share="equal"\} 1$`).MatchString(body) {
		t.Errorf("a stranger's process is charged to jobs:\n%s", family(body, "kpulse_allocation_info"))
	}
}
