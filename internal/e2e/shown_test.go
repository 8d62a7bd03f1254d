package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// hostileTexts are texts that others may make us show, by kind of attack. Unicode characters are
// literal: the code under test must not compute the expectation.
var hostileTexts = map[string]string{
	"markup":   `<script>x</script>"><img onerror=x>'&#8238;`,
	"controls": "\x01\x1b[2J\x1b]52;c;eA==\a\x1bPx\x1b\\\x7f\r\n\t",
	"c1":       "\u0080\u0085\u009b31m\u009d52;c;eA==\u009c",
	"bidi":     "\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
	"width":    "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad\U000e0041",
	"lines":    "\u2028\u2029",
	"formula":  "=HYPERLINK(1)",
	"bytes":    "\xff\xc3(\xed\xa0\x80",
}

// checkShown checks that a text for people has no effect but to be read.
func checkShown(t *testing.T, place, text string) {
	t.Helper()
	checkPrintable(t, place, text)
	for _, r := range text {
		if unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co) {
			t.Errorf("%s shows %U:\n%q", place, r, text)
			return
		}
	}
}

// hostilePage returns an exporter's page on which each GPU's labels are hostile in one way.
// Prometheus accepts no line with invalid UTF-8; all other bytes are tested.
func hostilePage() string {
	var page []byte
	for i, name := range slices.Sorted(maps.Keys(hostileTexts)) {
		for _, family := range []string{"DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_XID_ERRORS"} {
			page = append(page, family...)
			page = exposition.AppendLabel(page, "{gpu", fmt.Sprint(i))
			for _, label := range []string{"UUID", "Hostname", "modelName", "device", "pci_bus_id", "namespace", "pod", "container", "hpc_job", "DCGM_FI_DRIVER_VERSION"} {
				page = exposition.AppendLabel(append(page, ','), label, name+"-"+hostileTexts[name])
			}
			page = fmt.Appendf(page, "} %d\n", 40+i)
		}
	}
	return string(page)
}

// shownNames returns the names of the texts whose GPUs are read.
func shownNames() (names []string) {
	for name := range maps.Keys(hostileTexts) {
		if name != "bytes" {
			names = append(names, name+"-")
		}
	}
	return names
}

// TestHostileLabelsByMode: how each mode prints labels.
func TestHostileLabelsByMode(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "page.prom")
	writeFile(t, file, hostilePage())
	up := startUpstream(func() ([]byte, error) { return []byte(hostilePage()), nil })
	t.Cleanup(up.stop)
	c := startProxy(t, itself(t), "--source="+up.url+"/metrics")
	awaitPage(t, c, "/metrics", http.StatusOK, "kpulse_gpu_health{")
	for _, test := range []struct {
		args     string
		lacksAll bool // no names of GPUs, only other texts
	}{
		{"--once --source=" + file, false},
		{"--once --json --source=" + file, false},
		{"--once --export=all+ --source=" + file, false},
		{"--export=all+ --replay=" + file, false},
		{"check health --show-all --url=" + c.URL, false},
		{"check health --show-all --json --url=" + c.URL, false},
		{"check health --show-all --npd=warn --url=" + c.URL, true},
		{"check health --show-all --backend=prometheus --source=" + file, false},
		{"--once --gpus=99 --source=" + file, true},
		{"doctor --json --source=" + up.url + "/metrics", true},
		{"doctor --source=" + up.url + "/metrics", true},
	} {
		t.Run(test.args[:min(len(test.args), 30)], func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(itself(t), strings.Fields(test.args)...)
			cmd.Env = []string{"HOME=" + t.TempDir(), "SLURM_JOB_ID=4" + controls + hostileTexts["bidi"], "SLURM_JOB_NAME=" + hostileTexts["width"]}
			out, _ := cmd.CombinedOutput() // unknown health is an error
			checkShown(t, test.args, string(out))
			for _, name := range shownNames() {
				if !test.lacksAll && !strings.Contains(string(out), name) {
					t.Errorf("there is no GPU %s:\n%s", name, out)
				}
			}
			if strings.Contains(test.args, "json") && !json.Valid(out) {
				t.Errorf("no JSON: %s", out)
			}
		})
	}
}

// TestHostileLabelsByPath: how paths for people show labels; paths for programs leave them
// unchanged.
func TestHostileLabelsByPath(t *testing.T) {
	t.Parallel()
	body := hostilePage()
	up := startUpstream(func() ([]byte, error) { return []byte(body), nil })
	defer up.stop()
	dir := t.TempDir()
	for name, text := range hostileTexts {
		if job := name + "-" + text; !strings.ContainsAny(job, "/\x00") {
			writeFile(t, filepath.Join(dir, job), "user=u-"+text+"\n")
		}
	}
	c := startProxy(t, itself(t), "--source="+up.url+"/metrics", "--hpc-job-info-dir="+dir, "--log.level=debug", "--log.format=json")
	awaitPage(t, c, "/metrics", http.StatusOK, `hpc_user="u-`)
	for _, path := range []string{"/", "/events", "/container/metrics", "/sd", "/-/ready", "/-/metrics"} {
		_, text := page(t, c, path)
		checkShown(t, path, text)
		for _, name := range shownNames() {
			if (path == "/" || path == "/container/metrics") && !strings.Contains(text, name) {
				t.Errorf("%s shows no GPU %s:\n%s", path, name, text)
			}
		}
	}
	_, text := page(t, c, "/")
	checkMarkup(t, text)
	for _, want := range []string{"u-\uFFFD", "u-=HYPERLINK(1)"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not show the user %q:\n%s", want, text)
		}
	}
	_, served := page(t, c, "/metrics")
	for line := range strings.Lines(body) {
		if !strings.Contains(line, "bytes-") && !strings.Contains(served, line) {
			t.Errorf("not passed on unchanged: %q", line)
		}
	}
	if want := `hostname="bidi-` + hostileTexts["bidi"] + `"`; !strings.Contains(served, want) {
		t.Errorf("our series lack %q", want)
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	checkShown(t, "the log", c.Logged())
}

// TestHostileErrors: what an exporter answers instead of readings, wherever it is shown.
func TestHostileErrors(t *testing.T) {
	t.Parallel()
	for name, text := range hostileTexts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/refused-"+strings.Map(func(r rune) rune {
					if r < ' ' || r == 0x7f { // net/http does not send these
						return -1
					}
					return r
				}, text))
				fmt.Fprintf(w, "refused-%s", text)
			}))
			t.Cleanup(server.Close)
			c := startProxy(t, itself(t), "--source="+server.URL+"/metrics", "--log.format=json")
			checkShown(t, "/metrics", awaitPage(t, c, "/metrics", http.StatusBadGateway, "refused-"))
			checkShown(t, "/-/ready", awaitPage(t, c, "/-/ready", http.StatusServiceUnavailable, "refused-"))
			landing := awaitPage(t, c, "/", http.StatusOK, "refused-")
			checkShown(t, "/", landing)
			checkMarkup(t, landing)
			for _, args := range []string{"doctor --source=" + server.URL + "/metrics", "--once --source=" + server.URL + "/metrics", "check health --url=" + c.URL} {
				out, _ := exec.Command(itself(t), strings.Fields(args)...).CombinedOutput()
				if checkShown(t, args, string(out)); !strings.Contains(string(out), "refused-") && !strings.HasPrefix(args, "check") {
					t.Errorf("%s does not give the reason: %s", args, out)
				}
			}
			if err := c.Stop(); err != nil {
				t.Error(err)
			}
			checkShown(t, "the log", c.Logged())
		})
	}
}

// TestHostileTerminal: what the dashboard sends to a terminal, byte by byte, for labels of an
// exporter.
func TestHostileTerminal(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "page.prom")
	writeFile(t, file, hostilePage())
	checkTerminal(t, "--replay="+file)
	up := startUpstream(func() ([]byte, error) { return []byte(hostilePage()), nil })
	t.Cleanup(up.stop)
	c := startProxy(t, itself(t), "--source="+up.url+"/metrics")
	awaitPage(t, c, "/metrics", http.StatusOK, "workload_pod=\"width-")
	checkTerminal(t, "--tui.url="+c.URL)
}

// checkTerminal checks all views of a dashboard.
func checkTerminal(t *testing.T, of string) {
	t.Helper()
	sent := filepath.Join(t.TempDir(), "sent")
	tm := newTerminal(t, [2]string{"200", "50"}, nil, "sleep", "1;", itself(t), "--tui", of)
	tm.tmux("pipe-pane", "-O", "exec cat > "+sent)
	tm.until("bidi-", "width-", "markup-")
	for _, view := range []string{"2", "3", "4", "5", "e", "i"} {
		before := tm.screen()
		tm.keys(view)
		tm.await("view "+view, func() bool { return tm.screen() != before })
	}
	tm.keys("C-c")
	tm.until("EXIT ")
	tm.await("the end in "+sent, func() bool { raw, _ := os.ReadFile(sent); return strings.Contains(string(raw), "EXIT ") })
	raw, err := os.ReadFile(sent)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range string(raw) {
		if r >= 0x80 && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co) || r == unicode.ReplacementChar {
			t.Fatalf("the terminal receives %U", r)
		}
	}
	if strings.Contains(string(raw), "\x1b]52") || strings.Contains(string(raw), "\x1bP") {
		t.Errorf("the terminal receives an escape sequence of a label")
	}
}

func checkPrintable(t *testing.T, name, out string) {
	t.Helper()
	for _, r := range out {
		if unicode.IsControl(r) && r != '\n' {
			t.Errorf("%s holds %U:\n%q", name, r, out)
			return
		}
	}
	if !utf8.ValidString(out) {
		t.Errorf("%s is not UTF-8: %q", name, out)
	}
}

// controls are control characters that a terminal may obey: ASCII, DEL and C1, where U+009B begins
// a sequence like ESC [.
const controls = "a\x1b[2Jb\x7fc\u009b31md\u0085e\u0090f"
