package e2e

import (
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// TestLongLabels: a label longer than the limit arrives only in the upstream's line, and is
// counted; once it is gone, so are its bytes.
func TestLongLabels(t *testing.T) {
	t.Parallel()
	var long atomic.Bool
	long.Store(true)
	line := "DCGM_FI_DEV_GPU_TEMP{gpu=\"1\",UUID=\"" + strings.Repeat("u", 1<<20) + "\"} 41\n"
	up := startUpstream(func() ([]byte, error) {
		if long.Load() {
			return []byte(oneGPU + line), nil
		}
		return []byte(oneGPU), nil
	})
	defer up.stop()
	c := startProxy(t, itself(t), "--source="+up.url+"/metrics", "--source.min-interval=0s", "--poll=0")
	_, first := page(t, c, "/metrics")
	ours, through := strings.CutPrefix(first, oneGPU+line)
	if !through || len(ours) > 64<<10 {
		t.Errorf("the answer passes the line on: %t, and has %d bytes beside it, want at most 64 KiB", through, len(ours))
	}
	if want := `reason="label_too_long"} 1` + "\n"; !strings.Contains(ours, want) {
		t.Errorf("want %s in\n%s", want, family(ours, "kpulse_source_dropped_values_total"))
	}
	if n := strings.Count(ours, "\nkpulse_gpu_info{"); n != 1 {
		t.Errorf("%d devices, want 1", n)
	}
	long.Store(false)
	if _, text := page(t, c, "/metrics"); len(text) > 64<<10 {
		t.Errorf("without the label, an answer still has %d bytes", len(text))
	}
}

// TestBytesAreBudgeted: the size of our series, those of former devices included, stays within the
// budget of the series limit however long labels are.
func TestBytesAreBudgeted(t *testing.T) {
	t.Parallel()
	const limit, gpus = 10_000, 400
	var reading atomic.Int64
	up := startUpstream(func() ([]byte, error) {
		var b strings.Builder
		n := reading.Add(1)
		for i := range gpus {
			long := strings.Repeat("x", 2000)
			fmt.Fprintf(&b, "DCGM_FI_DEV_GPU_TEMP{gpu=\"%d\",UUID=\"GPU-%d-%d-%s\",Hostname=\"%s\"} 40\n", i, n, i, long, long)
		}
		return []byte(b.String()), nil
	})
	defer up.stop()
	c := startProxy(t, itself(t), "--source="+up.url+"/metrics", "--source.min-interval=0s", "--poll=0", "--passthrough=off", fmt.Sprint("--series-limit=", limit))
	for range 4 {
		status, text := page(t, c, "/metrics")
		// 512 bytes of labels per series, and about 100 for name and value.
		if status != http.StatusOK || len(text) > limit*612 {
			t.Errorf("status %d and %d bytes, want at most %d", status, len(text), limit*612)
		}
		if strings.HasSuffix(family(text, "kpulse_source_dropped_series_total{"), " 0\n") || !strings.Contains(text, "\nkpulse_gpu_info{") {
			t.Errorf("want some devices, and some left out and counted:\n%s", family(text, "kpulse_source_"))
		}
	}
}

// TestLongUUIDIsNamed: if a label that is too long hides the only GPU, the proxy reports it and the
// remedy.
func TestLongUUIDIsNamed(t *testing.T) {
	t.Parallel()
	up := startUpstream(func() ([]byte, error) {
		return []byte(`DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="` + strings.Repeat("u", 3000) + "\"} 41\n"), nil
	})
	defer up.stop()
	source := "--source=" + up.url + "/metrics"
	c := startProxy(t, itself(t), source)
	const cause, remedy = "the label UUID has 3000 bytes, more than --source.max-label-value=2048: its GPU is left out", "have the exporter shorten it, or raise --source.max-label-value"
	awaitPage(t, c, "/metrics", http.StatusOK, `label_too_long"} [1-9]`)
	awaitPage(t, c, "/", http.StatusOK, regexp.QuoteMeta(cause+"; "+remedy))
	awaitLog(t, c, cause)
	for args, want := range map[string][]string{
		"--once " + source:                            {cause, remedy},
		"doctor " + source:                            {"the label UUID has 3000 bytes", "raise --source.max-label-value"},
		"check health --url=" + c.URL:                 {"labels that identify GPUs are longer than --source.max-label-value"},
		"check health --backend=prometheus " + source: {"labels that identify GPUs are longer than --source.max-label-value"},
	} {
		out, err := exec.Command(itself(t), strings.Fields(args)...).CombinedOutput()
		if err == nil {
			t.Errorf("%s succeeds: %s", args, out)
		}
		text := strings.Join(strings.Fields(string(out)), " ") // doctor breaks lines
		for _, words := range want {
			if !strings.Contains(text, words) {
				t.Errorf("the output of %s lacks %q:\n%s", args, words, out)
			}
		}
	}
}
