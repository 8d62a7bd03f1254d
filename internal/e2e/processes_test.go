package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source/nvml/nvmltest"
)

// commandLines are what people run, the words of them that must be shown, and the
// secrets that must not.
var commandLines = []struct {
	args, shown, secrets []string
}{
	{[]string{"python", "train.py", "--lr=0.1", "--wandb-api-key=Zq81kfPd0aXmT4"}, []string{"train.py", "--lr=0.1"}, []string{"Zq81kfPd0aXmT4"}},
	{[]string{"python", "-m", "vllm.entrypoints.api_server", "--api-key", "sesam-open-1907"}, []string{"vllm.entrypoints.api_server"}, []string{"sesam-open-1907"}},
	{[]string{"env", "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCY", "AWS_SESSION_TOKEN=FwoGZXIvYXdzEBY", "./sync"}, []string{"./sync"}, []string{"wJalrXUtnFEMI", "FwoGZXIvYXdzEBY"}},
	{[]string{"HF_TOKEN=hf_AbCdEfGhIjKlMnOpQr", "python", "finetune.py"}, []string{"finetune.py"}, []string{"hf_AbCdEfGhIjKl"}},
	{[]string{"psql", "postgres://alice:hunter2@db.local:5432/runs"}, []string{"psql", "db.local"}, []string{"hunter2"}},
	{[]string{"mysql", "-uroot", "-pgeheim77", "runs"}, []string{"mysql"}, []string{"geheim77"}},
	{[]string{"curl", "-H", "Authorization: Bearer abc.def.ghi-4711", "https://x.example/v1"}, []string{"x.example"}, []string{"abc.def.ghi-4711"}},
	{[]string{"git", "clone", "https://ghp_0123456789abcdefghij@github.com/x/y"}, []string{"git", "clone"}, []string{"ghp_0123456789"}},
	{[]string{"redis-cli", "-a", "rotwein", "ping"}, []string{"redis-cli"}, []string{"rotwein"}},
	{[]string{"java", "-Djavax.net.ssl.keyStorePassword=changeit9", "-jar", "app.jar"}, []string{"app.jar"}, []string{"changeit9"}},
	{[]string{"app", `{"password": "blumentopf", "epochs": 3}`}, []string{"epochs"}, []string{"blumentopf"}},
	{[]string{"/opt/namd3", "+p8", "run.namd"}, []string{"/opt/namd3", "run.namd"}, nil},
}

// linger starts a process that has these arguments on its command line, and waits
// until the test ends.
func linger(t *testing.T, args []string) (pid int) {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", "read x"}, args...)...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// TestProcessesHoldNoSecrets lists real processes that a driver says are on a GPU.
func TestProcessesHoldNoSecrets(t *testing.T) {
	t.Parallel()
	library, scenario := nvmltest.Build(t), filepath.Join(t.TempDir(), "scenario")
	truths := nvmltest.H100(2)
	world := nvmltest.FromTruth(truths)
	pids := make([]int, len(commandLines))
	for i, line := range commandLines {
		pids[i] = linger(t, line.args)
		world.Processes = append(world.Processes, nvmltest.Process{Of: "1", Kind: nvmltest.Compute, PID: pids[i], Bytes: uint64(i+1) << 30})
	}
	const gone = 1<<22 + 1 // above every pid
	world.Processes = append(world.Processes, nvmltest.Process{Of: "0", Kind: nvmltest.Graphics, PID: gone, Bytes: 1})
	world.Write(t, scenario)
	c := startNVML(t, library, scenario, "--collector.processes")
	metrics := awaitPage(t, c, "/metrics", 200, `kpulse_gpu_info`)

	code, body := page(t, c, "/api/v1/processes")
	var answer struct {
		Incomplete string
		Processes  []struct {
			PID                        int
			User, Group, Command, Kind string
			GPU, UUID, Hostname        string
			Memory                     uint64 `json:"used_memory_bytes"`
		}
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || code != 200 || answer.Incomplete != "" || len(answer.Processes) != len(commandLines)+1 {
		t.Fatalf("%d, %v\n%s", code, err, body)
	}
	if p := answer.Processes[0]; p.PID != gone || p.Command != "" || p.User != "" || p.Kind != "graphics" || p.GPU != "0" {
		t.Errorf("of a process that is gone: %+v", p)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range commandLines {
		found := false
		for _, p := range answer.Processes {
			if p.PID != pids[i] {
				continue
			}
			found = true
			if p.User != me.Username && p.User != me.Uid || p.Kind != "compute" || p.GPU != "1" || p.UUID != truths[1].UUID || p.Hostname != "n" || p.Memory != uint64(i+1)<<30 || p.Group == "" {
				t.Errorf("%v: %+v", line.args, p)
			}
			for _, word := range line.shown {
				if !strings.Contains(p.Command, word) {
					t.Errorf("%v: %s is not shown in %s", line.args, word, p.Command)
				}
			}
		}
		if !found {
			t.Errorf("%v is not listed", line.args)
		}
		for _, secret := range line.secrets {
			if strings.Contains(body, secret) {
				t.Errorf("%s is shown: %s", secret, body)
			}
		}
	}
	if strings.Contains(metrics, "pid=") || strings.Contains(metrics, "train.py") {
		t.Error("processes are series")
	}
	if code := forwarded(t, c); code != http.StatusForbidden {
		t.Errorf("for another machine the status is %d", code)
	}
}

// forwarded asks for the processes on behalf of another machine.
func forwarded(t *testing.T, c *child) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url+"/api/v1/processes", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Forwarded-For", "10.1.2.3")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// TestProcessesAreOptIn: without the flag nothing is listed; exposed, to all.
func TestProcessesAreOptIn(t *testing.T) {
	t.Parallel()
	library, scenario := nvmltest.Build(t), filepath.Join(t.TempDir(), "scenario")
	nvmltest.FromTruth(nvmltest.H100(1)).Write(t, scenario)
	c := startNVML(t, library, scenario)
	if code, body := page(t, c, "/api/v1/processes"); code != 404 || !strings.Contains(body, "--collector.processes") {
		t.Errorf("%d %s", code, body)
	}
	exposed := startNVML(t, library, scenario, "--collector.processes", "--web.expose-processes")
	if code := forwarded(t, exposed); code != 200 {
		t.Errorf("exposed, the status is %d", code)
	}
}
