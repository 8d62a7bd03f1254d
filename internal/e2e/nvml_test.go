package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source/nvml/nvmltest"
)

// startNVML runs a proxy on a machine whose driver library is a fake that follows the scenario
// file.
func startNVML(t *testing.T, library, scenario string, flags ...string) *child {
	t.Helper()
	cmd := exec.Command(itself(t), append([]string{"--web.listen-address=127.0.0.1:0", "--backend=nvml", "--node-name=n"}, flags...)...)
	cmd.Env = []string{"LD_LIBRARY_PATH=" + filepath.Dir(library), nvmltest.ScenarioEnv + "=" + scenario}
	c, err := startChild(cmd, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop() })
	return c
}

func TestNVMLCannotStart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, itself(t), "--web.listen-address=127.0.0.1:0", "--backend=nvml")
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+t.TempDir())
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(out), "--backend=") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}
