package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// hostnamesOf returns the values of hostname in our GPU series.
func hostnamesOf(t *testing.T, body string) map[string]bool {
	t.Helper()
	s, err := parseExposition([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for name := range s {
		if ls := labelsOf(name); strings.HasPrefix(ls["__name__"], "kpulse_gpu_") {
			all[ls["hostname"]] = true
		}
	}
	return all
}

// TestLoopbackIsNoHostname: a name that every machine has is no hostname, whatever its origin.
func TestLoopbackIsNoHostname(t *testing.T) {
	t.Parallel()
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	row := "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-1\"%s} 40\n"
	for _, test := range []struct {
		label, nodeName, want string
	}{
		{`,Hostname="localhost"`, "", machine},
		{`,hostname="localhost"`, "node7", "node7"},
		{`,hostname="LOCALHOST.localdomain"`, "node7", "node7"},
		{`,hostname="127.0.1.1"`, "", machine},
		{`,hostname="::1"`, "node7", "node7"},
		{`,hostname="gpu-3"`, "", "gpu-3"},
		{``, "", machine}, // the exporter's URL says 127.0.0.1
		{``, "node7", "node7"},
	} {
		t.Run(test.label+test.nodeName, func(t *testing.T) {
			t.Parallel()
			up := startUpstream(func() ([]byte, error) { return fmt.Appendf(nil, row, test.label), nil })
			defer up.stop()
			cmd := exec.Command(itself(t), "--web.listen-address=127.0.0.1:0", "--source="+up.url+"/metrics")
			cmd.Env = []string{"NODE_NAME=" + test.nodeName}
			c, err := startChild(cmd, filepath.Join(t.TempDir(), "log"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Stop()
			_, body := page(t, c, "/metrics")
			if got := hostnamesOf(t, body); len(got) != 1 || !got[test.want] {
				t.Errorf("hostnames %v, want %s", got, test.want)
			}
		})
	}
}

func TestLoopbackEngineIsNoHostname(t *testing.T) {
	t.Parallel()
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	exe := dcgmtest.Install(t, dcgmtest.Scenario{GPUs: dcgmtest.Boards(1)})
	for host, want := range map[string]string{"localhost:5555": machine, "127.0.0.1": machine, "[::1]:5555": machine, "node3:5555": "node3"} {
		cmd := exec.Command(itself(t), "--web.listen-address=127.0.0.1:0", "--backend=dcgm", "--dcgm.host="+host)
		cmd.Env = []string{"PATH=" + filepath.Dir(exe)}
		c, err := startChild(cmd, filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Stop()
		body := awaitPage(t, c, "/metrics", 200, `\nkpulse_gpu_temperature_celsius\{`)
		if got := hostnamesOf(t, body); len(got) != 1 || !got[want] {
			t.Errorf("--dcgm.host=%s: hostnames %v, want %s", host, got, want)
		}
	}
}
