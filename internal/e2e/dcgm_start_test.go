package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgmi/dcgmitest"
)

// TestDCGMStartHangs: while dcgmi does not answer the program listens, and it ends
// when it is told to. Its stop waits half a minute at most.
func TestDCGMStartHangs(t *testing.T) {
	t.Parallel()
	exe := dcgmitest.Install(t, dcgmitest.Scenario{
		GPUs:     dcgmitest.Boards(1),
		Failures: []dcgmitest.Failure{{Kind: dcgmitest.Hang, Command: "discovery"}},
	})
	c := startDCGM(t, exe)
	if code := get(t, c.url+"/-/healthy"); code != 200 {
		t.Errorf("healthy: %d", code)
	}
	if code, body := page(t, c, "/-/ready"); code != 503 || !strings.Contains(body, "has not been read yet") {
		t.Errorf("%d %s", code, body)
	}
	if err := c.stop(); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, c.logged())
	}
}

// TestDCGMProcesses asks the nvidia-smi of the node.
func TestDCGMProcesses(t *testing.T) {
	t.Parallel()
	world := dcgmitest.Scenario{GPUs: dcgmitest.Boards(2)}
	exe := dcgmitest.Install(t, world)
	pid := linger(t, []string{"python", "infer.py", "--token=Zq81kfPd0aXmT4"})
	script := fmt.Sprintf("#!/bin/sh\ncase \"$1\" in --query-compute-apps=*) echo \"%d, %s, 512\";; esac\n", pid, world.GPUs[1].UUID)
	if err := os.WriteFile(filepath.Join(filepath.Dir(exe), "nvidia-smi"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	c := startDCGM(t, exe, "--collector.processes")
	body := awaitPage(t, c, "/metrics", 200, `(?m)^kpulse_source_info\{source="dcgmi",backend="dcgm",aggregation="point",version="dcgmi [0-9.]+"\} 1$`)
	if strings.Contains(body, "infer.py") {
		t.Error("a process is a series")
	}
	want := fmt.Sprintf(`{"pid":%d,"user":"`, pid)
	code, list := page(t, c, "/api/v1/processes")
	if code != 200 || !strings.Contains(list, want) || !strings.Contains(list, `"gpu":"1"`) || !strings.Contains(list, `"used_memory_bytes":536870912`) ||
		!strings.Contains(list, `"command":"sh"`) || strings.Contains(list, "Zq81kfPd0aXmT4") {
		t.Errorf("%d %s", code, list)
	}
}
