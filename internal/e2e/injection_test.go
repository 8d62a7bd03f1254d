package e2e

import (
	"fmt"
	"net/http"
	"os"
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
