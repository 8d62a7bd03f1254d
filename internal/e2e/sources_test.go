package e2e

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// fed writes a config file and returns its directory and the flag that names it.
func fed(t *testing.T, content string) (dir, flag string) {
	t.Helper()
	dir = t.TempDir()
	path := filepath.Join(dir, "config.yml")
	writeFile(t, path, content)
	return dir, "--config.file=" + path
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestSecuredSource: an exporter behind TLS and a password is read according to http_config, with
// the current password in its file, which never appears in answers or logs.
func TestSecuredSource(t *testing.T) {
	t.Parallel()
	const password = "hunter2/tiger"
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, pw, _ := r.BasicAuth(); user != "kpulse" || pw != password {
			http.Error(w, "not with "+pw+" in "+r.Header.Get("Authorization"), http.StatusUnauthorized)
			return
		}
		io.WriteString(w, oneGPU)
	}))
	defer server.Close()
	dir, flag := fed(t, `sources:
- source: `+server.URL+`/metrics
  poll: 0
  http_config:
    basic_auth: {username: kpulse, password_file: pw}
    tls_config: {ca_file: ca.pem}
`)
	writeFile(t, filepath.Join(dir, "pw"), password+"\n")
	writeFile(t, filepath.Join(dir, "ca.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	c := startProxy(t, itself(t), flag, "--source.min-interval=0s")
	var served strings.Builder
	see := func(step string, status int, want string) {
		t.Helper()
		for _, path := range []string{"/", "/-/metrics", "/-/ready", "/metrics"} {
			code, body := page(t, c, path)
			served.WriteString(body)
			if path == "/metrics" && (code != status || !strings.Contains(body, want)) {
				t.Errorf("%s: %d\n%.500s", step, code, body)
			}
		}
	}
	see("as configured", 200, "\nkpulse_gpu_temperature_celsius{")
	writeFile(t, filepath.Join(dir, "pw"), "old"+password)
	see("a wrong password", 502, "HTTP 401 Unauthorized; give credentials that it accepts, in the source's http_config (--config.file) or")
	if err := os.Remove(filepath.Join(dir, "pw")); err != nil {
		t.Fatal(err)
	}
	see("no file of the password", 502, "pw: no such file or directory; let kpulse-proxy read the file, or name another one in the source's http_config")
	writeFile(t, filepath.Join(dir, "pw"), password)
	see("the right password again", 200, "\nkpulse_gpu_temperature_celsius{")
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	for _, secret := range []string{"hunter2", "aHVudGVyMi90aWdlc", "Basic "} {
		if strings.Contains(served.String()+c.Logged(), secret) {
			t.Errorf("%s appears", secret)
		}
	}
}

// boardOf returns an answer with one GPU.
func boardOf(host, uuid string, celsius int) func() ([]byte, error) {
	return func() ([]byte, error) {
		return fmt.Appendf(nil, "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=%q,Hostname=%q} %d\n", uuid, host, celsius), nil
	}
}

// TestSeveralSources: the sources of a config file are served together and each alone, with rules
// over all of them; a failing source does not affect the others.
func TestSeveralSources(t *testing.T) {
	t.Parallel()
	a, b := startUpstream(boardOf("a", "GPU-a", 40)), startUpstream(boardOf("b", "GPU-b", 50))
	defer a.stop()
	defer b.stop()
	dir, flag := fed(t, "sources:\n- {source: "+a.url+"/metrics, poll: 1}\n- {source: "+b.url+"/metrics, poll: 1, expected_gpus: 2}\nrules: {files: [r.yml]}\n")
	writeFile(t, filepath.Join(dir, "r.yml"), "groups: [{name: g, interval: 1s, rules: [{record: 'all_celsius', expr: sum(kpulse_gpu_temperature_celsius)}]}]\n")
	c := startProxy(t, itself(t), flag, "--source.min-interval=0s")

	whole := awaitPage(t, c, "/metrics", 200, `(?m)^all_celsius 90$`)
	if err := checkExposition([]byte(whole)); err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		`DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a",Hostname="a"} 40`,
		`DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-b",Hostname="b"} 50`,
		`kpulse_gpu_temperature_celsius{hostname="a",gpu="0",uuid="GPU-a"} 40`,
		`kpulse_gpu_temperature_celsius{hostname="b",gpu="0",uuid="GPU-b"} 50`,
		`kpulse_gpu_present{hostname="b",gpu="1",uuid=""} 0`,
		`kpulse_source_up{source="` + a.url + `/metrics",backend="prometheus"} 1`,
		`kpulse_source_up{source="` + b.url + `/metrics",backend="prometheus"} 1`,
	} {
		if strings.Count(whole, want+"\n") != 1 {
			t.Errorf("%d times %s", strings.Count(whole, want+"\n"), want)
		}
	}
	if strings.Contains(whole, `kpulse_gpu_present{hostname="a",gpu="1"`) {
		t.Error("GPUs are missing although none are expected")
	}

	var found []struct{ Labels map[string]string }
	if _, list := page(t, c, "/sd"); json.Unmarshal([]byte(list), &found) != nil || len(found) != 2 {
		t.Fatalf("discovered: %s", list)
	}
	code, alone := page(t, c, "/metrics?source="+url.QueryEscape(found[1].Labels["__param_source"]))
	if code != 200 || !strings.Contains(alone, "GPU-b") || strings.Contains(alone, "GPU-a") {
		t.Errorf("the second alone: %d\n%.300s", code, alone)
	}

	a.stop()
	one := awaitPage(t, c, "/metrics", 200, `(?m)^kpulse_source_up\{source="`+a.url+`/metrics",backend="prometheus"\} 0$`)
	if strings.Contains(one, `UUID="GPU-a"`) || strings.Contains(one, `kpulse_gpu_temperature_celsius{hostname="a"`) || !strings.Contains(one, `UUID="GPU-b"`) {
		t.Errorf("with the first dead:\n%.600s", one)
	}
	awaitPage(t, c, "/metrics", 200, `(?m)^all_celsius 50$`)
	if code, body := page(t, c, "/-/ready"); code != 200 {
		t.Errorf("ready: %d %s", code, body)
	}
	b.stop()
	dead := awaitPage(t, c, "/metrics", 502, "connection refused")
	if lines := strings.Split(strings.TrimSpace(dead), "\n"); len(lines) != 2 || !strings.Contains(lines[0], a.url) || !strings.Contains(lines[1], b.url) {
		t.Errorf("with both dead: %q", lines)
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
}

// TestReloadKeepsSources: changed sources need a restart; changed health settings apply
// immediately, to all sources.
func TestReloadKeepsSources(t *testing.T) {
	t.Parallel()
	// No label names the second source's node, so it is this machine.
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	a, b := startUpstream(boardOf("a", "GPU-a", 99)), startUpstream(func() ([]byte, error) {
		return []byte("DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-" + machine + "\"} 99\n"), nil
	})
	defer a.stop()
	defer b.stop()
	file := "sources: [{source: " + a.url + "/metrics, poll: 0}, {source: " + b.url + "/metrics, poll: 0}]\n"
	dir, flag := fed(t, file)
	c := startProxy(t, itself(t), flag, "--source.min-interval=0s")
	hot := func(host, state string) string {
		return `(?m)^kpulse_gpu_health\{hostname="` + host + `",gpu="0",uuid="GPU-` + host + `",state="` + state + `"\} 1$`
	}
	awaitPage(t, c, "/metrics", 200, hot("a", "hot"))
	for _, step := range []struct{ file, log string }{
		{file + "health: {gpu_temperature: warn}\ndialect: [{names: [X], field: gpu_power_watts, unit: watts}]\n", ""},
		{"sources: [{source: " + a.url + "/metrics, poll: 0}]\nhealth: {gpu_temperature: crit}\n", "setting=sources"},
	} {
		writeFile(t, filepath.Join(dir, "config.yml"), step.file)
		if err := c.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		state := "warn"
		if step.log != "" {
			state = "crit"
		}
		awaitPage(t, c, "/metrics", 200, hot("a", state))
		awaitPage(t, c, "/metrics", 200, hot(machine, state))
		if got := strings.Count(c.Logged(), "restart to apply a setting"); got != min(1, len(step.log)) || !strings.Contains(c.Logged(), step.log) {
			t.Errorf("the log says so %d times:\n%s", got, c.Logged())
		}
	}
}
