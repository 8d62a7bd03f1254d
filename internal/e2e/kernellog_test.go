package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// kernelLog returns a FIFO that replaces /dev/kmsg, and its writer.
func kernelLog(t *testing.T) (path string, write func(text string)) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "kmsg")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	both, err := os.OpenFile(path, os.O_RDWR, 0) // does not wait for the reader
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { both.Close() })
	return path, func(text string) {
		t.Helper()
		if _, err := both.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
}

// kmsg returns a record of the kernel log.
func kmsg(text string) string { return "4,2412,8250712,-;" + text + "\n" }

// event is an event of /events.
type event struct {
	Kind, UUID, Severity, Action, Condition, State, Text, Process string
	PCIBusID                                                      string `json:"pci_bus_id"`
	XID, SXID                                                     uint32
	Count                                                         uint64
	PID                                                           int
}

// eventsOf returns the events of /events.
func eventsOf(t *testing.T, c *child) []event {
	t.Helper()
	status, body := page(t, c, "/events")
	var answer struct{ Events []event }
	if err := json.Unmarshal([]byte(body), &answer); status != http.StatusOK || err != nil {
		t.Fatalf("%d %v: %s", status, err, body)
	}
	return answer.Events
}

// awaitEvent waits for an event.
func awaitEvent(t *testing.T, c *child, want func(event) bool) event {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		all := eventsOf(t, c)
		for _, e := range all {
			if want(e) {
				return e
			}
		}
		if time.Now().After(end) {
			t.Fatalf("among %+v\nlog: %s", all, c.Logged())
		}
	}
}

// post sends a POST to a proxy.
func post(t *testing.T, c *child, path string) (int, string) {
	t.Helper()
	res, err := http.Post(c.URL+path, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b := make([]byte, 4096)
	n, _ := res.Body.Read(b)
	return res.StatusCode, string(b[:n])
}

// twoBoards is the page of an exporter on a node.
const twoBoards = `DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a",pci_bus_id="00000000:B5:00.0"} 40
DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-b",pci_bus_id="00000000:C5:00.0"} 41
`

// TestKernelLog: an XID in the kernel log makes the board's health crit, is counted and listed, and
// an operator resolves it.
func TestKernelLog(t *testing.T) {
	t.Parallel()
	up := startUpstream(func() ([]byte, error) { return []byte(twoBoards), nil })
	defer up.stop()
	path, write := kernelLog(t)
	c := startProxy(t, itself(t), "--source="+up.url+"/metrics", "--source.min-interval=0s", "--poll=1s", "--node-name=n", "--kernel-log="+path, "--web.enable-lifecycle")
	awaitPage(t, c, "/metrics", 200, `kpulse_gpu_health{hostname="n",gpu="0",uuid="GPU-a",state="ok"} 1`)
	write(kmsg("NVRM: Xid (PCI:0000:b5:00): 79, pid=4711, name=python, GPU has fallen off the bus.") +
		kmsg("NVRM: Xid (PCI:0000:b5:00): 45, pid=4711, name=python, Ch 00000001") +
		kmsg("nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress"))
	e := awaitEvent(t, c, func(e event) bool { return e.XID == 79 })
	if e.UUID != "GPU-a" || e.Severity != "fatal" || e.Action != "reboot_node" || e.PID != 4711 || e.Process != "python" || !strings.Contains(e.Text, "fallen off") {
		t.Errorf("%+v", e)
	}
	raised := awaitEvent(t, c, func(e event) bool { return e.Kind == "raised" && e.Condition == "xid_fatal" })
	if raised.UUID != "GPU-a" || raised.State != "crit" {
		t.Errorf("%+v", raised)
	}
	if e := awaitEvent(t, c, func(e event) bool { return e.SXID != 0 }); e.SXID != 12028 || e.PCIBusID != "0000:05:00" || e.Severity == "fatal" {
		t.Errorf("%+v", e)
	}
	_, text := page(t, c, "/metrics")
	wants(t, text,
		`kpulse_gpu_health{hostname="n",gpu="0",uuid="GPU-a",state="crit"} 1`,
		`kpulse_gpu_health{hostname="n",gpu="1",uuid="GPU-b",state="ok"} 1`,
		`kpulse_gpu_xid_errors_total{hostname="n",gpu="0",uuid="GPU-a",xid="79"} 0`, // for its first minute
		`kpulse_gpu_xid_errors_total{hostname="n",gpu="0",uuid="GPU-a",xid="45"} 0`,
		`kpulse_nvswitch_sxid_errors_total{hostname="n",pci_bus_id="0000:05:00",sxid="12028",severity="warning"} 0`)
	_, own := page(t, c, "/-/metrics")
	wants(t, own, `kpulse_proxy_kernel_log_records_total{result="xid"} 2`, `kpulse_proxy_kernel_log_records_total{result="sxid"} 1`)

	if status, answer := post(t, c, "/-/resolve?uuid=GPU-x"); status != 404 {
		t.Errorf("%d %s", status, answer)
	}
	if status, answer := post(t, c, "/-/resolve?uuid=GPU-a"); status != 200 || !strings.Contains(answer, "resolved") {
		t.Errorf("%d %s", status, answer)
	}
	awaitEvent(t, c, func(e event) bool { return e.Kind == "resolved" && e.XID == 79 })
	awaitEvent(t, c, func(e event) bool { return e.Kind == "cleared" && e.Condition == "xid_fatal" })
	awaitPage(t, c, "/metrics", 200, `kpulse_gpu_health{hostname="n",gpu="0",uuid="GPU-a",state="ok"} 1`)
}
