package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRealStackKernelLog: the kernel log's PCI address identifies the GPU, although NVIDIA's
// exporter, dcgmi and library each write it in another form.
func TestRealStackKernelLog(t *testing.T) {
	t.Parallel()
	n := startRealNode(t, dcgm4, "h100")
	path := filepath.Join(t.TempDir(), "kmsg")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ways := n.threeWays(t, "--kernel-log="+path)
	awaitAll(t, ways, readingsOfGPU("gpu_present", 4, `.*\} 1$`), readingsOfGPU("gpu_present", 5, `.*\} 1$`))
	address := func(gpu int) string {
		t.Helper()
		_, body := page(t, ways["nvml"], "/metrics")
		found := regexp.MustCompile(readingsOfGPU("gpu_info", gpu, `.*pci_bus_id="0*(\w{4}:\w{2}:\w{2})\.0"`)).FindStringSubmatch(body)
		if found == nil {
			t.Fatalf("GPU %d has no PCI address in\n%s", gpu, family(body, "kpulse_gpu_info"))
		}
		return strings.ToLower(found[1])
	}
	log, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for _, text := range []string{
		"NVRM: Xid (PCI:" + address(4) + "): 95, pid=4711, name=python, Uncontained: FBHUB",
		"NVRM: Xid (PCI:" + address(5) + "): 31, pid=4711, name=python, Ch 00000010, MMU Fault",
	} {
		if _, err := log.WriteString(kmsg(text)); err != nil {
			t.Fatal(err)
		}
	}
	awaitAll(t, ways,
		readingsOfGPU("gpu_health_condition", 4, `.*condition="xid_fatal",state="crit"\} 1$`),
		readingsOfGPU("gpu_recommended_action", 4, `.*action="reset_gpu"\} 1$`),
		readingsOfGPU("gpu_xid_errors_total", 5, `.*xid="31"\} [01]$`))
	for way, c := range ways {
		if e := awaitEvent(t, c, func(e event) bool { return e.XID == 95 }); e.Severity != "fatal" || e.Process != "python" || e.Count != 1 {
			t.Errorf("%s: %+v", way, e)
		}
		_, body := page(t, c, "/metrics")
		if regexp.MustCompile(readingsOfGPU("gpu_health_condition", 5, `.*condition="xid_fatal",state="crit"\} 1$`)).MatchString(body) {
			t.Errorf("%s takes an application's fault for the board's:\n%s", way, family(body, "kpulse_gpu_health_condition"))
		}
	}
}
