package e2e

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// checkMarkup checks that no tag comes from a label.
func checkMarkup(t *testing.T, landing string) {
	t.Helper()
	for _, tag := range []string{"<script", "<img", `href="javascript`} {
		if strings.Contains(landing, tag) {
			t.Errorf("the page holds %s:\n%s", tag, landing)
		}
	}
}

// TestJobFilesLeadNowhereElse: a link in a job directory exposes no other file of the machine, a
// pipe delays no reading, and the page names the mistake.
func TestJobFilesLeadNowhereElse(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir := filepath.Join(top, "jobs")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	const secret = "s3cret-of-another-file"
	writeFile(t, filepath.Join(top, "web.yml"), "user="+secret+"\n")
	writeFile(t, filepath.Join(dir, "real"), "user=ada\n")
	for name, target := range map[string]string{"7": "../web.yml", "8": filepath.Join(top, "web.yml"), "9": "real"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "10"), 0o600); err != nil {
		t.Fatal(err)
	}
	up := startUpstream(func() ([]byte, error) {
		body := ""
		for gpu, job := range []string{"7", "8", "9", "10"} {
			body += fmt.Sprintf("DCGM_FI_DEV_GPU_TEMP{gpu=\"%d\",UUID=\"GPU-%d\",hpc_job=%q} 40\n", gpu, gpu, job)
		}
		return []byte(body), nil
	})
	defer up.stop()
	c := startProxy(t, itself(t), "--source="+up.url+"/metrics", "--hpc-job-info-dir="+dir)
	served := awaitPage(t, c, "/metrics", http.StatusOK, `hpc_job="9",hpc_user="ada"`)
	_, own := page(t, c, "/-/metrics")
	landing := awaitPage(t, c, "/", http.StatusOK, "/7 is a link out of the directory, and is not read; write a file there instead")
	if !strings.Contains(own, "\nkpulse_proxy_job_info_malformed_files 2\n") {
		t.Errorf("the links are not counted:\n%s", grep(own, "kpulse_proxy_job_info"))
	}
	if strings.Contains(served+own+landing+c.Logged(), secret) {
		t.Error("another file of this machine is shown")
	}
}

// TestFormulasInCSV: no cell is a formula for a spreadsheet, and replay reads the exported values.
func TestFormulasInCSV(t *testing.T) {
	t.Parallel()
	texts := map[string]string{"Hostname": "=cmd|' /C calc'!A1", "modelName": "-2+3,\"x\"", "device": "@SUM(A1)", "pci_bus_id": "+1+1", "DCGM_FI_DRIVER_VERSION": "'=1"}
	labels := `gpu="0",UUID="=1+1",pod="@pod"`
	for name, text := range texts {
		labels += fmt.Sprintf(",%s=%q", name, text)
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "page.prom"), "DCGM_FI_DEV_GPU_TEMP{"+labels+"} 40\nDCGM_FI_DEV_GPU_TEMP_LIMIT{"+labels+"} -5\n")
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(itself(t), args...).Output()
		if err != nil {
			t.Fatalf("%q: %v: %s", args, err, out)
		}
		return string(out)
	}
	exported := run("--once", "--export=all+", "--source="+filepath.Join(dir, "page.prom"))
	rows, err := csv.NewReader(strings.NewReader(exported)).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatalf("%v: %s", err, exported)
	}
	for i, cell := range rows[1] {
		if strings.HasPrefix(cell, "-5") && rows[0][i] == "gpu_temperature_margin_celsius" {
			continue // a number is no formula
		}
		if cell != "" && strings.ContainsRune("=+-@", rune(cell[0])) {
			t.Errorf("a spreadsheet would compute %s in the column %s", cell, rows[0][i])
		}
	}
	if !strings.Contains(exported, ",-5,") {
		t.Errorf("a negative number was changed:\n%s", exported)
	}
	writeFile(t, filepath.Join(dir, "exported.csv"), exported)
	var played struct{ Devices []map[string]any }
	if err := json.Unmarshal([]byte(run("--once", "--json", "--replay="+filepath.Join(dir, "exported.csv"))), &played); err != nil || len(played.Devices) != 1 {
		t.Fatalf("%v: %v", err, played)
	}
	for label, key := range map[string]string{"Hostname": "hostname", "modelName": "model", "device": "device", "pci_bus_id": "pci_bus_id", "DCGM_FI_DRIVER_VERSION": "driver_version"} {
		if got := played.Devices[0][key]; got != texts[label] {
			t.Errorf("%s comes back as %q, want %q", key, got, texts[label])
		}
	}
	if got := played.Devices[0]["uuid"]; got != "=1+1" {
		t.Errorf("uuid comes back as %q", got)
	}
}
