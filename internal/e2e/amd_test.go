package e2e

import (
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTwoVendors: one proxy reads dcgm-exporter and AMD's exporter. Both have the same series, told apart by the model; the page says what AMD's
// config file lacks, and `check health` judges both.
func TestTwoVendors(t *testing.T) {
	t.Parallel()
	capture := func(name string) string {
		body, err := os.ReadFile(filepath.Join("../../testdata/captures", name))
		if err != nil {
			t.Fatal(err)
		}
		return exporterOf(t, string(body))
	}
	sources := "sources:\n"
	for _, name := range []string{"h200-tensor.prom", "amd-mi300x-spx.prom", "amd-mi300x-cpx.prom", "amd-mi210.prom"} {
		sources += "- source: http://" + capture(name) + "/metrics\n"
	}
	config := filepath.Join(t.TempDir(), "kpulse.yml")
	writeFile(t, config, sources)
	c := startProxy(t, itself(t), "--config.file="+config)
	body := awaitPage(t, c, "/metrics", http.StatusOK, `(?s)model="NVIDIA H200.*model="AMD Instinct MI300X.*model="AMD Instinct MI210`)
	for _, want := range []string{
		`kpulse_gpu_workload_class{hostname="mi300-b",gpu="0",uuid="692341000201",class="tensor_heavy_compute",bottleneck="compute"} 1`,
		`kpulse_gpu_workload_class{hostname="mi300-b",gpu="1",uuid="692341000202",class="idle",bottleneck="idle"} 1`,
		`kpulse_gpu_workload_class{hostname="mi210-a",gpu="0",uuid="692227000101",class="unknown",bottleneck="unknown"} 1`,
		`kpulse_gpu_real_utilization_coverage_ratio{hostname="mi210-a",gpu="0",uuid="692227000101"} 0.3`, // DRAM .2 and GPU-Util for the engine's .1
		`kpulse_gpu_health{hostname="mi210-a",gpu="0",uuid="692227000101",state="ok"} 1`,
		`uuid="692341000201",workload_namespace="",workload_pod="",workload_container="",workload_kind="",workload_name="",hpc_job="4711",hpc_user="ada"`,
		"\namd_gpu_edge_temperature{",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	landing := awaitPage(t, c, "/", http.StatusOK, `mi210-a`)
	_, ofMI210, _ := strings.Cut(landing, "692227000101")
	lines := `"GPUConfig": {"ProfilerMetrics": {"all": true}}
only if GPUConfig has a list "Fields", which leaves out what it does not name, there: ` +
		`"GPU_PROF_SM_ACTIVE", "GPU_PROF_TENSOR_ACTIVE_PERCENT", "GPU_PROF_GUI_UTIL_PERCENT", "PCIE_REPLAY_COUNT"
`
	if !strings.Contains(html.UnescapeString(landing), lines) || strings.Contains(landing, "GPU_UMC_ACTIVITY") { // which partitions do not have
		t.Errorf("the page does not say what to switch on:\n%s", ofMI210)
	}
	if out, err := exec.Command(itself(t), "check", "health", "--url="+c.URL).CombinedOutput(); err != nil || !strings.Contains(string(out), "692341000201") {
		t.Errorf("check health: %v\n%s", err, out)
	}
}
