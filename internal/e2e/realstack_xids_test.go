package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRealStackXIDs: each way shows a fatal XID, even after another one: the exporter counts each,
// the driver reports each, and dmon shows changes of the last code. (The mock driver recounts ECC
// errors with each failure, which looks like a reset. Whether the first XID holds is left to other
// tests.)
func TestRealStackXIDs(t *testing.T) {
	t.Parallel()
	n := startRealNode(t, dcgm4, "h100")
	counters := filepath.Join(t.TempDir(), "counters.csv")
	base, err := os.ReadFile(countersOf(t, legacyNames))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder // the exporter accepts 128 lines
	for i, line := range strings.SplitAfter(string(base), "\n") {
		if i < 100 && !strings.HasPrefix(line, "DCGM_FI_DEV_XID_ERRORS,") {
			text.WriteString(line)
		}
	}
	text.WriteString("DCGM_EXP_XID_ERRORS_COUNT, gauge, XIDs.\n")
	writeFile(t, counters, text.String())
	recorded := filepath.Join(t.TempDir(), "recording")
	ways := map[string]*child{
		"exporter": n.startBehind(t, n.startExporter(t, counters, nil)),
		"dcgm":     n.startDCGM(t),
		"nvml":     n.startNVML(t, "--record="+recorded),
	}
	awaitAll(t, ways, readingsOfGPU("gpu_temperature_celsius", 3, `.*\} 61$`))
	fatal := readingsOfGPU("gpu_health_condition", 3, `.*condition="xid_fatal",state="crit"\} 1$`)
	var seen []string
	for _, code := range []int{48, 45} {
		n.override(t, fmt.Sprintf("devices:\n  \"3\": {failure: {mode: ecc_uncorrectable, xid: {code: %d}}}\n", code))
		seen = append(seen, readingsOfGPU("gpu_xid_errors_total", 3, fmt.Sprintf(`.*xid="%d"\} [01]$`, code)))
		lines := seen
		if code == 48 {
			lines = append(slices.Clone(seen), fatal)
		}
		awaitAll(t, ways, lines...)
	}
	ways["nvml"].Stop()
	played := startProxy(t, itself(t), "--backend=replay", "--source="+recorded, "--node-name=n")
	awaitAll(t, map[string]*child{"a recording of nvml": played}, seen...)
}
