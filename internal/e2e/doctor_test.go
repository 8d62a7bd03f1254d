package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/e2e/ports"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// examination is doctor's JSON output.
type examination struct {
	Checks []struct {
		Check, State, Found, Remedy string
		Flags                       []string
	}
	Command string
	text    string
}

// state returns the state of a check.
func (x *examination) state(t *testing.T, check string) (state, text string) {
	t.Helper()
	for _, c := range x.Checks {
		if c.Check == check {
			return c.State, c.Found + "; " + c.Remedy
		}
	}
	t.Fatalf("no check %q:\n%s", check, x.text)
	return "", ""
}

// wants fails unless a check has a state and a text.
func (x *examination) wants(t *testing.T, check, state, says string) {
	t.Helper()
	if got, text := x.state(t, check); got != state || !strings.Contains(text, says) {
		t.Errorf("%s is %s: %s; want %s, and %q", check, got, text, state, says)
	}
}

// noExporter keeps doctor from the ports of this machine on which exporters listen.
const noExporter = "--source=http://" + ports.Closed + "/metrics"

// nowhere returns flags that hide the test machine from doctor.
func nowhere() []string { return []string{"--dcgm.host=" + ports.Closed, noExporter} }

// examine runs doctor, where later flags win, and returns what it found and its exit code.
func examine(t *testing.T, env []string, flags ...string) (x examination, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, itself(t), append([]string{"doctor", "--json"}, lastOfEach(flags)...)...)
	cmd.Env = append([]string{"HOME=" + t.TempDir(), "PATH=/nowhere"}, env...)
	out, err := cmd.Output()
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	x.text = string(out)
	if err := json.Unmarshal(out, &x); err != nil {
		t.Fatalf("%v in:\n%s", err, out)
	}
	return x, code
}

// lastOfEach drops flags that a later one repeats.
func lastOfEach(flags []string) (last []string) {
	for i, flag := range flags {
		name, _, _ := strings.Cut(flag, "=")
		if !slices.ContainsFunc(flags[i+1:], func(later string) bool { return strings.HasPrefix(later, name+"=") }) {
			last = append(last, flag)
		}
	}
	return last
}

// TestDoctorWhereNothingWorks: doctor gives a remedy for each backend and exits with 1.
func TestDoctorWhereNothingWorks(t *testing.T) {
	t.Parallel()
	x, code := examine(t, nil, nowhere()...)
	if code != 1 || x.Command != "kpulse-proxy --backend=replay" {
		t.Errorf("exit %d, %s", code, x.Command)
	}
	x.wants(t, "exporter", "missing", "curl http://127.0.0.1:")
	x.wants(t, "host engine", "missing", "install DCGM")

	cmd := exec.Command(itself(t), append([]string{"doctor"}, nowhere()...)...)
	cmd.Env = []string{"PATH=/nowhere"}
	out, _ := cmd.Output()
	for _, want := range []string{"CHECK ", "host engine ", "→ install DCGM", "\nNo backend works here: ", "\n  kpulse-proxy --backend=replay\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the table lacks %q:\n%s", want, out)
		}
	}
}

// TestDoctorOfExporter: the command names what works, never the credentials.
func TestDoctorOfExporter(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password == "" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		io.WriteString(w, oneGPU)
	}))
	defer up.Close()
	x, code := examine(t, nil, append(nowhere(), "--source="+strings.Replace(up.URL, "//", "//me:hush@", 1)+"/metrics")...)
	x.wants(t, "exporter", "works", "1 device")
	x.wants(t, "exporter", "works", "gpu_sm_active_ratio")
	if code != 0 || x.Command != "kpulse-proxy --source="+up.URL+"/metrics" {
		t.Errorf("exit %d, %s", code, x.Command)
	}
	if strings.Contains(x.text, "hush") {
		t.Errorf("the password is shown:\n%s", x.text)
	}
	x, code = examine(t, nil, append(nowhere(), "--source="+up.URL+"/metrics")...)
	if x.wants(t, "exporter", "refused", "401"); code != 1 {
		t.Errorf("exit %d without a backend", code)
	}

	file := filepath.Join(t.TempDir(), "config.yml")
	writeFile(t, file, "sources:\n- {source: '"+up.URL+"/metrics', http_config: {basic_auth: {username: me, password: hush}}}\n- {source: 'http://"+ports.Closed+"/metrics'}\n")
	x, code = examine(t, nil, append(nowhere(), "--source="+up.URL+"/other", "--config.file="+file)...)
	x.wants(t, "config file", "works", "1 device")
	if code != 0 || x.Command != "kpulse-proxy --config.file="+file || !strings.Contains(x.text, "connection refused") {
		t.Errorf("exit %d, %s", code, x.Command)
	}
	writeFile(t, file, "presett: ai\n")
	x, _ = examine(t, nil, append(nowhere(), "--config.file="+file)...)
	x.wants(t, "config file", "refused", "did you mean preset")
}

// TestDoctorOfHostEngine: the command names the host engine.
func TestDoctorOfHostEngine(t *testing.T) {
	t.Parallel()
	exe := dcgmtest.Install(t, dcgmtest.Scenario{GPUs: dcgmtest.Boards(2)})
	x, code := examine(t, []string{"PATH=" + filepath.Dir(exe)}, nowhere()...)
	x.wants(t, "host engine", "works", "2 devices")
	if code != 0 || x.Command != "kpulse-proxy --backend=dcgm --dcgm.host="+ports.Closed {
		t.Errorf("exit %d, %s", code, x.Command)
	}
	exe = dcgmtest.Install(t, dcgmtest.Scenario{GPUs: dcgmtest.Boards(2), Failures: []dcgmtest.Failure{{Kind: dcgmtest.HostEngineDown}}})
	x, _ = examine(t, []string{"PATH=" + filepath.Dir(exe)}, nowhere()...)
	x.wants(t, "host engine", "missing", "systemctl start nvidia-dcgm")
	exe = dcgmtest.Install(t, dcgmtest.Scenario{GPUs: dcgmtest.Boards(2), Failures: []dcgmtest.Failure{{Kind: dcgmtest.WatchRefused, Profiling: true, Code: -37}}})
	x, _ = examine(t, []string{"PATH=" + filepath.Dir(exe)}, nowhere()...)
	x.wants(t, "host engine", "works", "2 devices; profiling: ")
	x.wants(t, "host engine", "works", "without gpu_sm_active_ratio")
}
