package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/kube/kubelettest"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgmi/dcgmitest"
)

// examination is what doctor prints as JSON.
type examination struct {
	Checks []struct {
		Check, State, Found, Remedy string
		Flags                       []string
	}
	Command string
	text    string
}

// state returns that of a check.
func (x *examination) state(t *testing.T, check string) (state, text string) {
	t.Helper()
	for _, c := range x.Checks {
		if c.Check == check {
			return c.State, c.Found + "; " + c.Remedy
		}
	}
	t.Fatalf("no check %q:\n%s", check, x.text)
	return "", ""
}

// wants fails unless a check has a state and says something.
func (x *examination) wants(t *testing.T, check, state, says string) {
	t.Helper()
	if got, text := x.state(t, check); got != state || !strings.Contains(text, says) {
		t.Errorf("%s is %s: %s; want %s, and %q", check, got, text, state, says)
	}
}

// nowhere are flags that keep doctor from what the machine of the test has.
func nowhere(t *testing.T) []string {
	missing := filepath.Join(t.TempDir(), "missing")
	return []string{"--kernel-log=" + missing, "--kube.pod-resources=" + missing, "--hpc-job-mapping-dir=" + missing, "--hpc-job-info-dir=" + missing,
		"--web.listen-address=127.0.0.1:0", "--dcgm.host=" + closedAddress}
}

// examine runs doctor, whose later flags win, and returns what it found and its exit code.
func examine(t *testing.T, env []string, flags ...string) (x examination, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, itself(t), append([]string{"doctor", "--json"}, lastOfEach(flags)...)...)
	cmd.Env = append([]string{"HOME=" + t.TempDir(), "PATH=/nowhere"}, env...)
	out, err := cmd.Output()
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	x.text = string(out)
	if err := json.Unmarshal(out, &x); err != nil {
		t.Fatalf("%v in:\n%s", err, out)
	}
	return x, code
}

// lastOfEach returns flags without those that come again later.
func lastOfEach(flags []string) (last []string) {
	for i, flag := range flags {
		name, _, _ := strings.Cut(flag, "=")
		if !slices.ContainsFunc(flags[i+1:], func(later string) bool { return strings.HasPrefix(later, name+"=") }) {
			last = append(last, flag)
		}
	}
	return last
}

// TestDoctorWhereNothingWorks: it says of each way what to type, and exits with 1.
func TestDoctorWhereNothingWorks(t *testing.T) {
	t.Parallel()
	x, code := examine(t, []string{"KPULSE_SOURC=secret"}, append(nowhere(t), "--source=http://"+closedAddress+"/metrics")...)
	if code != 1 || x.Command != "kpulse-proxy --backend=replay" {
		t.Errorf("exit %d, %s", code, x.Command)
	}
	x.wants(t, "exporter", "missing", "curl http://127.0.0.1:")
	x.wants(t, "host engine", "missing", "install DCGM")
	x.wants(t, "kernel log", "missing", "no such file")
	x.wants(t, "kubelet", "missing", "mount its directory")
	x.wants(t, "Kubernetes API", "missing", "--kube.config=FILE")
	x.wants(t, "job mapping", "missing", "deploy/slurm/README.md")
	x.wants(t, "port", "works", "is free")
	x.wants(t, "environment", "refused", "write KPULSE_SOURCE for KPULSE_SOURC")
	if strings.Contains(x.text, "secret") {
		t.Errorf("the value of a variable is shown:\n%s", x.text)
	}

	cmd := exec.Command(itself(t), append([]string{"doctor", "--source=" + closedAddress}, nowhere(t)...)...)
	cmd.Env = []string{"PATH=/nowhere"}
	out, _ := cmd.Output()
	for _, want := range []string{"CHECK ", "host engine ", "→ install DCGM", "\nNo backend works here.", "\n  kpulse-proxy --backend=replay\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the table lacks %q:\n%s", want, out)
		}
	}
}

// TestDoctorOfExporter: the command names what works, and never the credentials.
func TestDoctorOfExporter(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password == "" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		io.WriteString(w, oneGPU)
	}))
	defer up.Close()
	flags := append(nowhere(t), "--hpc-job-info-dir="+t.TempDir(), "--hpc-job-mapping-dir="+t.TempDir())
	x, code := examine(t, nil, append(flags, "--source="+strings.Replace(up.URL, "//", "//me:hush@", 1)+"/metrics")...)
	x.wants(t, "exporter", "works", "1 device")
	x.wants(t, "exporter", "works", "gpu_sm_active_ratio")
	if code != 0 || !strings.HasPrefix(x.Command, "kpulse-proxy --source="+up.URL+"/metrics ") || !strings.Contains(x.Command, " --hpc-job-info-dir=") || strings.Contains(x.Command, "mapping") {
		t.Errorf("exit %d, %s", code, x.Command)
	}
	if strings.Contains(x.text, "hush") {
		t.Errorf("the password is shown:\n%s", x.text)
	}
	x, code = examine(t, nil, append(nowhere(t), "--source="+up.URL+"/metrics")...)
	if x.wants(t, "exporter", "refused", "401"); code != 1 {
		t.Errorf("exit %d without a backend", code)
	}

	file := filepath.Join(t.TempDir(), "config.yml")
	writeFile(t, file, "sources:\n- {source: '"+up.URL+"/metrics', http_config: {basic_auth: {username: me, password: hush}}}\n- {source: 'http://"+closedAddress+"/metrics'}\n")
	x, code = examine(t, nil, append(nowhere(t), "--source="+up.URL+"/other", "--config.file="+file)...)
	x.wants(t, "config file", "works", "connection refused")
	if code != 0 || !strings.HasPrefix(x.Command, "kpulse-proxy --config.file="+file) {
		t.Errorf("exit %d, %s", code, x.Command)
	}
	writeFile(t, file, "presett: ai\n")
	x, _ = examine(t, nil, append(nowhere(t), "--config.file="+file)...)
	x.wants(t, "config file", "refused", "did you mean preset")
}

// TestDoctorIsNotHeldUp: a dcgmi and an exporter that hang are silent, and all else is
// found. What was started ends.
func TestDoctorIsNotHeldUp(t *testing.T) {
	t.Parallel()
	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer hang.Close()
	dir := t.TempDir()
	pid := filepath.Join(dir, "pid")
	writeFile(t, filepath.Join(dir, "dcgmi"), "#!/bin/sh\necho $$ >> "+pid+"\nexec /bin/sleep 1000\n")
	if err := os.Chmod(filepath.Join(dir, "dcgmi"), 0o700); err != nil {
		t.Fatal(err)
	}
	kubelet := kubelettest.New(t)
	flags := append(nowhere(t), "--timeout=3s", "--source="+hang.URL+"/metrics", "--kube.pod-resources="+kubelet.Socket)
	x, code := examine(t, []string{"PATH=" + dir}, flags...)
	if code != 1 {
		t.Errorf("exit %d", code)
	}
	x.wants(t, "exporter", "silent", "")
	x.wants(t, "host engine", "silent", "")
	x.wants(t, "kubelet", "works", "answers")
	text, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range strings.Fields(string(text)) {
		awaitTrue(t, "dcgmi to be ended", func() bool {
			_, err := os.Stat("/proc/" + id)
			return err != nil
		})
	}
}

// TestDoctorOfHostEngine: with it, the kubelet, and the directory of jobs the command has
// them all, and nothing runs on.
func TestDoctorOfHostEngine(t *testing.T) {
	t.Parallel()
	exe := dcgmitest.Install(t, dcgmitest.Scenario{GPUs: dcgmitest.Boards(2)})
	kubelet, jobs := kubelettest.New(t), t.TempDir()
	x, code := examine(t, []string{"PATH=" + filepath.Dir(exe)},
		append(nowhere(t), "--source=http://"+closedAddress, "--hpc-job-mapping-dir="+jobs, "--kube.pod-resources="+kubelet.Socket)...)
	x.wants(t, "host engine", "works", "2 devices")
	for _, flag := range []string{" --backend=dcgm --dcgm.host=127.0.0.1:", " --hpc-job-mapping-dir=" + jobs, " --kube.pod-resources=" + kubelet.Socket} {
		if code != 0 || !strings.Contains(x.Command, flag) {
			t.Errorf("exit %d, %s; want %s", code, x.Command, flag)
		}
	}
	exe = dcgmitest.Install(t, dcgmitest.Scenario{GPUs: dcgmitest.Boards(2), Failures: []dcgmitest.Failure{{Kind: dcgmitest.HostEngineDown}}})
	x, _ = examine(t, []string{"PATH=" + filepath.Dir(exe)}, append(nowhere(t), "--source=http://"+closedAddress)...)
	x.wants(t, "host engine", "missing", "systemctl start nvidia-dcgm")
	exe = dcgmitest.Install(t, dcgmitest.Scenario{GPUs: dcgmitest.Boards(2), Failures: []dcgmitest.Failure{{Kind: dcgmitest.WatchRefused, Profiling: true, Code: -37}}})
	x, _ = examine(t, []string{"PATH=" + filepath.Dir(exe)}, append(nowhere(t), "--source=http://"+closedAddress)...)
	x.wants(t, "host engine", "works", "2 devices; profiling: ")
	x.wants(t, "host engine", "works", "without gpu_sm_active_ratio")
}

// TestDoctorAsksForRights: of the API server, and names the one that lacks.
func TestDoctorAsksForRights(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || r.URL.Path != "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		answer := `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":` + map[bool]string{true: "true", false: "false"}[!strings.Contains(string(body), `"list"`)] + `}}`
		io.WriteString(w, answer)
	}))
	defer api.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	writeFile(t, file, "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: '"+api.URL+"'}}]\nusers: [{name: u, user: {token: hush}}]\n")
	x, _ := examine(t, nil, append(nowhere(t), "--source=http://"+closedAddress, "--kube.config="+file)...)
	x.wants(t, "Kubernetes API", "works", "rights for --kube.workloads; --kube.discover lacks the right to list pods")
	x.wants(t, "Kubernetes API", "works", "kubectl apply -f deploy/kubernetes/rbac.yaml")
}
