package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDashboardReplays: a file plays, begins again at its end, and stands still while the screen is
// frozen.
func TestDashboardReplays(t *testing.T) {
	t.Parallel()
	const board = `DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-aa",modelName="NVIDIA H200",Hostname="dgx-7"} `
	path := filepath.Join(t.TempDir(), "saved.prom")
	if err := os.WriteFile(path, []byte(board+"41\n# EOF\n"+board+"42\n# EOF\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tm := newTerminal(t, [2]string{"120", "40"}, nil, itself(t), "--tui", "--poll=300ms", "--replay="+path)
	tm.until("dgx-7", "live", "42°C")
	tm.until("41°C")
	tm.keys("Space")
	tm.until("frozen")
	still := tm.screen()
	tm.keys("Space")
	tm.until("live")
	tm.await("other reading", func() bool { return strings.Contains(tm.screen(), "41°C") != strings.Contains(still, "41°C") })
	tm.keys("q")
	tm.until("EXIT 0")
}
