package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// hostile is what a label may hold to be taken for something else than text, as the text
// format escapes it.
const hostile = `<script>x</script>\"><img onerror=x>'\njavascript:x` + "\x1b[2J\x1b]52;c;eA==\a\u009b31m\u202e\u200b"

// TestHostileLabelsAreText: on the page and in the JSON, and no line of the log is anything
// but an event.
func TestHostileLabelsAreText(t *testing.T) {
	t.Parallel()
	labels := fmt.Sprintf(`gpu="0",UUID="GPU-1%[1]s",Hostname="%[1]s",modelName="%[1]s",namespace="%[1]s",pod="%[1]s",container="%[1]s",hpc_job="%[1]s",DCGM_FI_DRIVER_VERSION="%[1]s"`, hostile)
	up := startUpstream(func() ([]byte, error) {
		return []byte("DCGM_FI_DEV_GPU_TEMP{" + labels + "} 40\nDCGM_FI_DEV_XID_ERRORS{" + labels + "} 79\n"), nil
	})
	defer up.stop()
	c := startProxy(t, itself(t), "--source="+up.url+"/metrics", "--log.level=debug")
	awaitPage(t, c, "/metrics", http.StatusOK, "kpulse_gpu_health{")
	checkMarkup(t, answerOf(t, http.MethodGet, c.url+"/"))
	for _, path := range []string{"/events", "/container/metrics"} {
		header := answerOf(t, http.MethodGet, c.url+path)
		if _, text := page(t, c, path); !json.Valid([]byte(text)) || !strings.Contains(header, "Content-Type: application/json") {
			t.Errorf("%s is no JSON: %s %q", path, header, text)
		}
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
	checkLog(t, c.logged())
}

// checkMarkup finds tags that only a label can have brought.
func checkMarkup(t *testing.T, landing string) {
	t.Helper()
	for _, tag := range []string{"<script", "<img", `href="javascript`} {
		if strings.Contains(landing, tag) {
			t.Errorf("the page holds %s:\n%s", tag, landing)
		}
	}
}

// logLine begins each line of the log.
var logLine = regexp.MustCompile(`^(time|ts)=`)

// checkLog holds each line to be an event.
func checkLog(t *testing.T, text string) {
	t.Helper()
	checkPrintable(t, "the log", text)
	for line := range strings.Lines(text) {
		if !logLine.MatchString(line) {
			t.Errorf("a line of the log is no event: %q", line)
		}
	}
}

// TestHostileExporterErrors: an error's text and a header without end.
func TestHostileExporterErrors(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"text": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, strings.ReplaceAll(hostile, `\n`, "\n")+"\xff", http.StatusInternalServerError)
		},
		"1 MB of header": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("A", strings.Repeat("a", 1<<20))
			fmt.Fprint(w, oneGPU)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(answer)
			defer server.Close()
			c := startProxy(t, itself(t), "--source="+server.URL+"/metrics", "--log.level=debug")
			_, body := page(t, c, "/metrics?source=x")
			checkPrintable(t, "the answer", body)
			checkPrintable(t, "the answer", awaitPage(t, c, "/metrics", http.StatusBadGateway, ""))
			checkMarkup(t, answerOf(t, http.MethodGet, c.url+"/"))
			if err := c.stop(); err != nil {
				t.Error(err)
			}
			checkLog(t, c.logged())
		})
	}
}

// TestStrangeJobInfoFiles: what is no file holds up no reading.
func TestStrangeJobInfoFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "2"), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "3"), strings.Repeat("a", 8<<20))
	writeFile(t, filepath.Join(dir, "4"), "user=\x1b[2J<script>\n")
	c := startProxy(t, itself(t), "--backend=replay", "--hpc-job-info-dir="+dir)
	awaitPage(t, c, "/-/metrics", http.StatusOK, "kpulse_proxy_job_info_malformed_files 2")
	awaitPage(t, c, "/metrics", http.StatusOK, "kpulse_gpu_temperature_celsius")
	if err := c.stop(); err != nil {
		t.Error(err)
	}
	checkLog(t, c.logged())
}
