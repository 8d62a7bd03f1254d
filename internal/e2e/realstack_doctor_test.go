package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRealStackDoctor: on a node where everything works, and where only the driver does; doctor
// leaves no dcgmi behind.
func TestRealStackDoctor(t *testing.T) {
	t.Parallel()
	n := newRealNode(t, dcgm4, "h100")
	n.startEngineTCP(t, "127.0.0.1")
	exporter := n.startExporter(t, "", nil)
	flags := append(nowhere(), "--dcgm.host="+n.address, "--source="+exporter.URL+"/metrics")
	x, code := examine(t, n.env(), flags...)
	x.wants(t, "exporter", "works", "8 devices\nwithout gpu_sm_active_ratio")
	x.wants(t, "host engine", "works", "8 devices")
	x.wants(t, "NVML", "works", "8 devices")
	if code != 0 || !strings.HasPrefix(x.Command, "kpulse-proxy --source="+exporter.URL) {
		t.Errorf("exit %d, %s", code, x.Command)
	}
	awaitTrue(t, "no dcgmi of doctor's to be left", func() bool {
		lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, file := range lines {
			text, _ := os.ReadFile(file)
			if strings.Contains(string(text), "dmon\x00") && strings.Contains(string(text), n.address) {
				return false
			}
		}
		return true
	})

	exporter.Stop()
	n.engine.stop(t)
	x, code = examine(t, n.env(), flags...)
	x.wants(t, "exporter", "missing", "connection refused")
	x.wants(t, "host engine", "missing", "systemctl start nvidia-dcgm")
	if code != 0 || !strings.HasPrefix(x.Command, "kpulse-proxy --backend=nvml") {
		t.Errorf("exit %d, %s", code, x.Command)
	}
}
