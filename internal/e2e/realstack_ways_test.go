package e2e

import (
	"strings"
	"testing"
)

// TestRealStack: the programs of the stack run, and so do we on them, in all three ways.
func TestRealStack(t *testing.T) {
	t.Parallel()
	for _, release := range []string{dcgm4, dcgm3} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			n := startRealNode(t, release, "h100")
			ways := map[string]*child{"dcgm": n.startDCGM(t), "nvml": n.startNVML(t)}
			if release == dcgm4 { // exporter 4.8.2 gets no reading of a 3.3.9
				ways["exporter"] = n.startBehind(t, n.startExporter(t, "", nil))
			}
			for way, c := range ways {
				body := awaitPage(t, c, "/metrics", 200, `\nkpulse_gpu_temperature_celsius\{`)
				if got := strings.Count(body, "\nkpulse_gpu_temperature_celsius{"); got != 8 {
					t.Errorf("%s: %d GPUs, want 8", way, got)
				}
			}
		})
	}
}
