package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source/nvml/nvmltest"
)

// linger starts a process with these arguments on its command line, which runs until the test ends.
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

// processAnswer is the answer of /api/v1/processes.
type processAnswer struct {
	Incomplete string
	Processes  []struct {
		PID                        int
		User, Group, Command, Kind string
		GPU, UUID, Hostname        string
		Memory                     uint64 `json:"used_memory_bytes"`
	}
}

// TestProcesses lists real processes that a driver reports on a GPU: by name, or by command line if
// the operator enables it.
func TestProcesses(t *testing.T) {
	t.Parallel()
	library, scenario := nvmltest.Build(t), filepath.Join(t.TempDir(), "scenario")
	world := nvmltest.H100(2)
	pid := linger(t, []string{"train.py", "--token=Zq81kfPd0aXmT4"})
	const gone = 1<<22 + 1 // above every pid
	world.GPUs[1]["compute_pid"], world.GPUs[1]["compute_bytes"] = float64(pid), 1<<30
	world.GPUs[0]["graphics_pid"], world.GPUs[0]["graphics_bytes"] = gone, 1
	world.Write(t, scenario)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for command, flags := range map[string][]string{
		"sh": {"--collector.processes"},
		"sh -c read x train.py --token=Zq81kfPd0aXmT4": {"--collector.processes", "--collector.processes.cmdline"},
	} {
		c := startNVML(t, library, scenario, flags...)
		metrics := awaitPage(t, c, "/metrics", 200, `kpulse_gpu_info`)
		body := awaitPage(t, c, "/api/v1/processes", 200, `"sh\b`) // a busy machine may take longer than is waited for
		var answer processAnswer
		if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Incomplete != "" || len(answer.Processes) != 2 {
			t.Fatalf("%v\n%s", err, body)
		}
		if p := answer.Processes[0]; p.PID != gone || p.Command != "" || p.User != "" || p.Kind != "graphics" || p.GPU != "0" {
			t.Errorf("of a process that is gone: %+v", p)
		}
		p := answer.Processes[1]
		if p.PID != pid || p.Command != command || p.User != me.Username && p.User != me.Uid || p.Group == "" ||
			p.Kind != "compute" || p.GPU != "1" || p.UUID != nvmltest.UUID(1) || p.Hostname != "n" || p.Memory != 1<<30 {
			t.Errorf("%+v, want %s", p, command)
		}
		if strings.Contains(metrics, "pid=") || strings.Contains(metrics, "train.py") {
			t.Error("processes are series")
		}
		if code := forwarded(t, c); code != http.StatusForbidden {
			t.Errorf("for another machine the status is %d", code)
		}
	}
}

// forwarded asks for the processes on behalf of another machine.
func forwarded(t *testing.T, c *child) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.URL+"/api/v1/processes", nil)
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

// TestProcessesAreOptIn: without the flag no process is listed; exposed, they are listed for all
// clients.
func TestProcessesAreOptIn(t *testing.T) {
	t.Parallel()
	library, scenario := nvmltest.Build(t), filepath.Join(t.TempDir(), "scenario")
	nvmltest.H100(1).Write(t, scenario)
	c := startNVML(t, library, scenario)
	if code, body := page(t, c, "/api/v1/processes"); code != 404 || !strings.Contains(body, "--collector.processes") {
		t.Errorf("%d %s", code, body)
	}
	exposed := startNVML(t, library, scenario, "--collector.processes", "--web.expose-processes")
	if code := forwarded(t, exposed); code != 200 {
		t.Errorf("exposed, the status is %d", code)
	}
}

// TestProcessesOnTheTerminal: a terminal that reads the driver itself shows a GPU in focus with its processes, by user, memory and command
// line, without a flag.
func TestProcessesOnTheTerminal(t *testing.T) {
	t.Parallel()
	library, scenario := nvmltest.Build(t), filepath.Join(t.TempDir(), "scenario")
	world := nvmltest.H100(1)
	pid := linger(t, []string{"train.py", "--epochs=9"})
	world.GPUs[0]["compute_pid"], world.GPUs[0]["compute_bytes"] = float64(pid), 3<<30
	world.Write(t, scenario)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	tm := newTerminal(t, [2]string{"100", "30"}, []string{"LD_LIBRARY_PATH=" + filepath.Dir(library), nvmltest.ScenarioEnv + "=" + scenario, "TERM=xterm-256color"},
		itself(t), "--tui", "--backend=nvml", "--node-name=n", "--tui.focus=0")
	tm.until("COMMAND", strconv.Itoa(pid)+" "+me.Username, " 3.0 sh -c read x train.py --epochs=9")
}
