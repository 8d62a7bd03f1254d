package e2e

import (
	"strings"
	"sync/atomic"
	"testing"
)

// changingUpstream serves the body that was stored last.
func changingUpstream(t *testing.T, first string) (up *upstream, set func(string)) {
	var body atomic.Value
	body.Store(first)
	up = startUpstream(func() ([]byte, error) { return []byte(body.Load().(string)), nil })
	t.Cleanup(up.stop)
	return up, func(s string) { body.Store(s) }
}

// wants checks that each of the lines is in text.
func wants(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+text, "\n"+line+"\n") {
			t.Errorf("want %s in\n%s", line, text)
		}
	}
}

// TestLostBoardThatIsStillCounted: a lost board keeps rows of what the exporter counts by
// itself, as on 4.8.2, and is not present for that.
func TestLostBoardThatIsStillCounted(t *testing.T) {
	t.Parallel()
	const own = `DCGM_EXP_XID_ERRORS_COUNT{gpu="1",UUID="GPU-2",window_size_in_ms="300000"} 0
DCGM_EXP_XID_ERRORS_TOTAL{gpu="1",UUID="GPU-2",xid="79"} 1
DCGM_EXP_GPU_HEALTH_STATUS{gpu="1",UUID="GPU-2",health_watch="ALL",health_error_code="DCGM_FR_OK"} 0
`
	const other = "DCGM_FI_DEV_GPU_TEMP{gpu=\"1\",UUID=\"GPU-2\"} 50\n"
	up, set := changingUpstream(t, oneGPU+other+own)
	c := startProxy(t, itself(t), "--source="+up.url+"/metrics", "--source.min-interval=0s", "--poll=0", "--node-name=n")
	_, text := page(t, c, "/metrics")
	wants(t, text, `kpulse_gpu_present{hostname="n",gpu="0",uuid="GPU-1"} 1`, `kpulse_gpu_present{hostname="n",gpu="1",uuid="GPU-2"} 1`)
	set(oneGPU + own)
	_, text = page(t, c, "/metrics")
	wants(t, text, `kpulse_gpu_present{hostname="n",gpu="0",uuid="GPU-1"} 1`, `kpulse_gpu_present{hostname="n",gpu="1",uuid="GPU-2"} 0`)
	if strings.Contains(text, `kpulse_gpu_health{hostname="n",gpu="1"`) || !strings.Contains(text, "\nkpulse_source_unknown_families{source=\"") ||
		strings.Contains(family(text, "kpulse_source_unknown_families"), "} 1") {
		t.Errorf("the lost board has a state, or its rows are unknown, in\n%s", text)
	}
	wants(t, text, strings.TrimSpace(strings.Split(own, "\n")[1])) // what the exporter says passes through
}
