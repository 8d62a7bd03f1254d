package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// controls are control characters that a terminal may obey: ASCII, DEL and C1, where U+009B begins
// a sequence like ESC [.
const controls = "a\x1b[2Jb\x7fc\u009b31md\u0085e\u0090f"

// TestControlCharactersReachNoTerminal, whether from an exporter or the environment.
func TestControlCharactersReachNoTerminal(t *testing.T) {
	t.Parallel()
	const value = controls
	page := `DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-` + value + `",Hostname="h` + value + `",modelName="M` + value + `",device="d` + value +
		`",namespace="n` + value + `",pod="p` + value + `",container="c` + value + `",DCGM_FI_DRIVER_VERSION="5` + value + "\"} 40\n"
	file := filepath.Join(t.TempDir(), "page.prom")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	const text, asJSON = "a [2Jb c\uFFFD31md\uFFFDe\uFFFDf", `a\u001b[2Jb\u007fc\u009b31md\u0085e\u0090f`
	for _, test := range []struct {
		args string
		want []string
	}{
		{"--once", []string{"h" + text, "M" + text}},
		{"--once --json", []string{`"hostname": "h` + asJSON, `"workload_pod": "p` + asJSON}},
		{"--once --export=all+", []string{",h" + text, ",GPU-" + text, ",d" + text, ",5" + text, ",n" + text + "/p" + text + "/c" + text}},
	} {
		cmd := exec.Command(itself(t), append(strings.Fields(test.args), "--source="+file)...)
		cmd.Env = []string{"SLURM_JOB_ID=4" + controls, "HOME=" + t.TempDir()}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", test.args, err)
		}
		checkPrintable(t, test.args, string(out))
		for _, want := range test.want {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s lacks %q:\n%q", test.args, want, out)
			}
		}
		var doc struct{ Devices []map[string]any }
		if strings.Contains(test.args, "json") && (json.Unmarshal(out, &doc) != nil || doc.Devices[0]["hostname"] != "h"+controls) {
			t.Errorf("JSON does not contain what was read: %q", out)
		}
	}

	// Errors have none either.
	cmd := exec.Command(itself(t), "--once", "--source="+file, "--gpus=7")
	cmd.Env = []string{"HOME=" + t.TempDir()}
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("there is a GPU 7: %s", out)
	} else {
		checkPrintable(t, "stderr", string(out))
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
