package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
)

// TestNewcomer follows README.md in a fresh clone: it runs the demo, builds the program, and puts it
// in front of an exporter. Only addresses are changed, to those of the test.
func TestNewcomer(t *testing.T) {
	slow.Test(t, "git, make: follows README.md in a fresh clone, with two builds of the program")
	t.Parallel()
	clone := freshClone(t)
	readme, err := os.ReadFile(filepath.Join(clone, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands := map[string]string{}
	for _, block := range fenced.FindAllStringSubmatch(string(readme), -1) {
		for _, command := range commandsOf(block[1], block[2]) {
			for _, begin := range []string{"go run ./cmd/kpulse-proxy --backend=replay", "make build", "./kpulse-proxy --source=http"} {
				if strings.HasPrefix(command, begin) {
					commands[begin] = command
				}
			}
		}
	}
	if len(commands) != 3 {
		t.Fatalf("README.md has only %q", commands)
	}

	built := func(command string) {
		t.Helper()
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir = clone
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	built("go build -o /dev/null ./cmd/kpulse-proxy") // however long it takes: the demo must listen within patience
	demo := inClone(t, clone, commands["go run ./cmd/kpulse-proxy --backend=replay"])
	awaitPage(t, demo, "/metrics", http.StatusOK, `(?m)^kpulse_gpu_real_utilization_ratio\{.*gpu="2".*\} 0\.\d+$`)
	if !strings.Contains(demo.Logged(), "open=http://") {
		t.Errorf("the demo logs no address to open:\n%s", demo.Logged())
	}

	built(commands["make build"])
	const line = `DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1",Hostname="n"} 41`
	up := startUpstream(func() ([]byte, error) { return []byte(line + "\n"), nil })
	t.Cleanup(up.stop)
	address := regexp.MustCompile(`http://localhost:\d+`)
	proxy := inClone(t, clone, address.ReplaceAllString(commands["./kpulse-proxy --source=http"], up.url))
	awaitPage(t, proxy, "/metrics", http.StatusOK, `(?s)^`+regexp.QuoteMeta(line)+`\n.*kpulse_gpu_temperature_celsius\{hostname="n",gpu="0",uuid="GPU-1"\} 41\n`)
}

// freshClone clones the commit that is checked out.
func freshClone(t *testing.T) string {
	t.Helper()
	top, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		t.Skipf("not in a checkout of git: %v", err)
	}
	clone := filepath.Join(t.TempDir(), "kpulse-proxy")
	if out, err := exec.Command("git", "clone", "--quiet", "--depth=1", "file://"+strings.TrimSpace(string(top)), clone).CombinedOutput(); err != nil {
		t.Fatalf("git clone: %v\n%s", err, out)
	}
	return clone
}

// inClone runs a command that serves, on a free port of this machine, until the test ends.
func inClone(t *testing.T, dir, command string) *child {
	t.Helper()
	cmd := exec.Command("sh", "-c", "exec "+command+" --web.listen-address=127.0.0.1:0")
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // go run does not pass signals on
	c, err := startChild(cmd, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		_ = c.Wait()
	})
	return c
}
