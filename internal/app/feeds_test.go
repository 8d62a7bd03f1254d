package app

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/config"
)

// fed writes a config file and returns the flag that names it.
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

// TestSecuredSource: an exporter behind TLS and a password is read as http_config says,
// with the password that its file holds at the time. Nothing that we say tells it.
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
	var said strings.Builder
	see := func(step string, status int, want string) {
		t.Helper()
		for _, path := range []string{"/", "/-/metrics", "/-/ready", "/metrics"} {
			code, body := page(t, c, path)
			said.WriteString(body)
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
	see("no file of the password", 502, "pw: no such file or directory; let us read the file, or name another one in the source's http_config")
	writeFile(t, filepath.Join(dir, "pw"), password)
	see("the right password again", 200, "\nkpulse_gpu_temperature_celsius{")
	if err := c.stop(); err != nil {
		t.Error(err)
	}
	for _, secret := range []string{"hunter2", "aHVudGVyMi90aWdlc", "Basic "} {
		if strings.Contains(said.String()+c.logged(), secret) {
			t.Errorf("we say %s", secret)
		}
	}
}

// boardOf answers with one GPU.
func boardOf(host, uuid string, celsius int) func() ([]byte, error) {
	return func() ([]byte, error) {
		return fmt.Appendf(nil, "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=%q,Hostname=%q} %d\n", uuid, host, celsius), nil
	}
}

// TestSeveralSources: the sources of a config file are served together and each alone,
// with rules over all of them; one that fails takes nothing of the others with it.
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
		t.Error("GPUs are missed where none are expected")
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
	if err := c.stop(); err != nil {
		t.Error(err)
	}
}

// TestSourceThatCannotWork: beside others it is down, and nothing else; alone, or where
// none can work, it ends the program.
func TestSourceThatCannotWork(t *testing.T) {
	t.Parallel()
	a := startUpstream(boardOf("a", "GPU-a", 40))
	defer a.stop()
	_, flag := fed(t, "sources: [{backend: dcgm}, {source: "+a.url+"/metrics, poll: 0}]")
	without := func(flag string) *exec.Cmd { // DCGM
		cmd := exec.CommandContext(t.Context(), itself(t), flag, "--web.listen-address=127.0.0.1:0", "--source.min-interval=0s")
		cmd.Env = []string{"PATH=/nowhere"}
		return cmd
	}
	c, err := startChild(without(flag), filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	awaitPage(t, c, "/metrics", 200, `(?m)^kpulse_source_up\{source="dcgmi",backend="dcgm"\} 0\nkpulse_source_up\{[^}]*\} 1$`)
	if err := c.stop(); err != nil {
		t.Error(err)
	}
	if n := strings.Count(c.logged(), "a source is read no more"); n != 1 {
		t.Errorf("the log says so %d times:\n%s", n, c.logged())
	}

	_, flag = fed(t, "sources: [{backend: dcgm}, {backend: dcgm, dcgm_host: far}]")
	if said, err := without(flag).CombinedOutput(); err == nil || !strings.Contains(string(said), "kpulse-proxy: dcgmi was not found") {
		t.Errorf("without any source: %v\n%s", err, said)
	}
}

// TestSameDeviceOfSeveralSources: the first source tells of it, to rules too.
func TestSameDeviceOfSeveralSources(t *testing.T) {
	t.Parallel()
	a, b := startUpstream(boardOf("n", "GPU-1", 40)), startUpstream(boardOf("n", "GPU-1", 50))
	defer a.stop()
	defer b.stop()
	dir, flag := fed(t, "sources: [{source: "+a.url+"/metrics, poll: 1}, {source: "+b.url+"/metrics, poll: 1}]\nrules: {files: [r.yml]}\n")
	writeFile(t, filepath.Join(dir, "r.yml"), `groups: [{name: g, interval: 1s, rules: [
  {record: seen_celsius, expr: kpulse_gpu_temperature_celsius},
  {record: seen_times, expr: 'count_over_time(kpulse_gpu_temperature_celsius[1m])'}]}]`)
	c := startProxy(t, itself(t), flag, "--passthrough=off")
	body := awaitPage(t, c, "/metrics", 200, `(?m)^seen_times\{.*\} [3-9]$`)
	if !strings.Contains(body, `seen_celsius{gpu="0",hostname="n",uuid="GPU-1"} 40`+"\n") {
		t.Errorf("rules see the second source:\n%s", body)
	}
	if err := checkExposition([]byte(body)); err != nil {
		t.Error(err)
	}
	if !strings.Contains(body, `kpulse_gpu_temperature_celsius{hostname="n",gpu="0",uuid="GPU-1"} 40`+"\n") || strings.Contains(body, "} 50\n") ||
		!strings.Contains(body, `kpulse_source_shared_devices{source="`+a.url+`/metrics",backend="prometheus"} 0`) ||
		!strings.Contains(body, `kpulse_source_shared_devices{source="`+b.url+`/metrics",backend="prometheus"} 1`) {
		t.Errorf("%.600s", body)
	}
}

// TestServesIsOfEachSource: rules see a source that can be read beside one that cannot.
func TestServesIsOfEachSource(t *testing.T) {
	dir := t.TempDir()
	missing, good := filepath.Join(dir, "missing.prom"), filepath.Join(dir, "good.prom")
	writeFile(t, good, oneGPU)
	p, err := assemble(t.Context(), configured(t, "sources: [{source: "+missing+"}, {source: "+good+"}]", nil), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.run(ctx)
	}()
	defer func() { end(); <-ended }()
	for until := time.Now().Add(20 * time.Second); !p.serves(good) && time.Now().Before(until); {
		time.Sleep(5 * time.Millisecond)
	}
	if !p.serves(good) || p.serves(missing) || p.serves("another") {
		t.Errorf("serves %v, %v, %v; want the good one alone", p.serves(good), p.serves(missing), p.serves("another"))
	}
}

// TestReloadKeepsSources: what is read changes at a restart alone, and how it is judged
// at once, for all sources.
func TestReloadKeepsSources(t *testing.T) {
	t.Parallel()
	// Of the second nothing but its URL tells the host.
	a, b := startUpstream(boardOf("a", "GPU-a", 99)), startUpstream(func() ([]byte, error) {
		return []byte("DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-localhost\"} 99\n"), nil
	})
	defer a.stop()
	defer b.stop()
	file := "sources: [{source: " + a.url + "/metrics, poll: 0}, {source: " + strings.Replace(b.url, "127.0.0.1", "localhost", 1) + "/metrics, poll: 0}]\n"
	dir, flag := fed(t, file)
	c := startProxy(t, itself(t), flag, "--source.min-interval=0s")
	hot := func(host, state string) string {
		return `(?m)^kpulse_gpu_health\{hostname="` + host + `",gpu="0",uuid="GPU-` + host + `",state="` + state + `"\} 1$`
	}
	awaitPage(t, c, "/metrics", 200, hot("a", "hot"))
	for _, step := range []struct{ file, says string }{
		{file + "health: {gpu_temperature: warn}\ndialect: [{names: [X], field: gpu_power_watts, unit: watts}]\n", ""},
		{"sources: [{source: " + a.url + "/metrics, poll: 0}]\nhealth: {gpu_temperature: crit}\n", "setting=sources"},
	} {
		writeFile(t, filepath.Join(dir, "config.yml"), step.file)
		if err := c.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		state := "warn"
		if step.says != "" {
			state = "crit"
		}
		awaitPage(t, c, "/metrics", 200, hot("a", state))
		awaitPage(t, c, "/metrics", 200, hot("localhost", state))
		if got := strings.Count(c.logged(), "restart to apply a setting"); got != min(1, len(step.says)) || !strings.Contains(c.logged(), step.says) {
			t.Errorf("the log says so %d times:\n%s", got, c.logged())
		}
	}
}

// TestFeedsOfFlagsAndFile: which of them say what is read.
func TestFeedsOfFlagsAndFile(t *testing.T) {
	const one = "sources: [{source: http://n:1/metrics, poll: 7s, node_name: n7, expected_gpus: 3}]"
	const dcgm = "sources: [{backend: dcgm, dcgm_host: h1}]"
	const two = "sources: [{source: http://n:1/metrics, poll: 7s, node_name: n7}, {backend: nvml}]"
	type want struct {
		source, node string
		poll         time.Duration
		gpus         int
	}
	for _, test := range []struct {
		name, file  string
		environment map[string]string
		args        []string
		want        []want
	}{
		{"no sources", "sources: []", nil, nil, []want{{"http://localhost:9400/metrics", "", 15 * time.Second, 0}}},
		{"one", one, nil, nil, []want{{"http://n:1/metrics", "n7", 7 * time.Second, 3}}},
		{"one and flags", one, nil, []string{"--poll=9", "--node-name=x", "--expected-gpus=5"}, []want{{"http://n:1/metrics", "x", 9 * time.Second, 5}}},
		{"one and the environment", one, map[string]string{"KPULSE_POLL": "8s", "NODE_NAME": "y"}, nil, []want{{"http://n:1/metrics", "n7", 8 * time.Second, 3}}},
		{"set aside by a flag", one, nil, []string{"--source=http://o:2"}, []want{{"http://o:2", "", 15 * time.Second, 0}}},
		{"set aside by the environment", two, map[string]string{"KPULSE_BACKEND": "replay"}, nil, []want{{"", "", 0, 0}}},
		{"poll of another backend", dcgm, nil, []string{"--poll=0.1"}, []want{{"", "", 100 * time.Millisecond, 0}}},
		{"two", two, map[string]string{"NODE_NAME": "y"}, []string{"--gpus=0"}, []want{{"http://n:1/metrics", "n7", 7 * time.Second, 0}, {"", "", time.Second, 0}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			all := configured(t, test.file, test.environment, test.args...).each()
			if len(all) != len(test.want) {
				t.Fatalf("%d sources", len(all))
			}
			for i, o := range all {
				if limit := config.Default().Limits.Series / len(all); o.seriesLimit != limit {
					t.Errorf("source %d may have %d series, want %d", i, o.seriesLimit, limit)
				}
				if got := (want{o.source, o.nodeName, o.poll, o.expectedGPUs}); got != test.want[i] {
					t.Errorf("source %d: got %+v, want %+v", i, got, test.want[i])
				}
			}
		})
	}
}

// TestFlagsThatDoNotFitSources: they are refused, with what to do.
func TestFlagsThatDoNotFitSources(t *testing.T) {
	const two = "sources: [{source: http://n:1/metrics}, {backend: dcgm, dcgm_host: far}]"
	for _, test := range []struct{ file, flag, says string }{
		{two, "--poll=3s", "--poll is for one source, and the config file names 2; give each of them its poll there"},
		{two, "--node-name=x", "--node-name is for one source"},
		{two, "--expected-gpus=8", "--expected-gpus is for one source"},
		{two, "--dcgm.host=h", "--dcgm.host is for one source"},
		{two, "--record=f", "--record is for one source, and the config file names 2; choose one with --backend or --source"},
		{two, "--once", "--once is for one source"},
		{two, "--export", "--export is for one source"},
		{two, "--collector.processes", "--dcgm.host=far are another machine's"},
		{"sources: [{source: http://n:1}, {backend: replay}]", "--collector.processes", "--collector.processes is not for the prometheus or replay backend: it lists"},
		{"sources: [{backend: dcgm}]", "--poll=25h", "--poll: 25h is out of range; the dcgm backend takes 100ms to 24h"},
		{"sources: [{source: http://n:1, poll: 0}]", "--export=all", "--poll=0 reads only when scraped"},
	} {
		_, flag := fed(t, test.file)
		_, err := parse([]string{flag, test.flag}, io.Discard)
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.flag, err)
		}
	}
}

// TestBadSources: what no backend takes is told by line.
func TestBadSources(t *testing.T) {
	const twice = "has the name of one above, http://a:1/metrics: names leave user, password and query out; remove one of the two"
	for _, test := range []struct{ source, says string }{
		{"{backend: dcgmm}", `bad.yml:3: sources[2].backend: "dcgmm" is no backend; use prometheus, replay, dcgm, nvml`},
		{"{backend: nvml, source: http://n:1}", "bad.yml:3: sources[2].source: is not for the nvml backend; remove it, or name another backend"},
		{"{dcgm_host: n}", "bad.yml:3: sources[2].dcgm_host: is not for the prometheus backend; remove it, or name another backend"},
		{"{backend: dcgm, http_config: {follow_redirects: false}}", "bad.yml:3: sources[2].http_config: is not for the dcgm backend; remove it, or name another backend"},
		{"{poll: 1ms}", "bad.yml:3: sources[2].poll: 1ms is out of range; the prometheus backend takes 1s to 24h0m0s"},
		{"{poll: soon}", `bad.yml:3: sources[2].poll: "soon" is no duration; write 15s, 500ms or bare seconds such as 2`},
		{"{expected_gpus: 5000}", "bad.yml:3: sources[2].expected_gpus: is out of range; write at most 1024"},
		{"{source: node7:9400}", `bad.yml:3: sources[2].source: source "node7:9400" has no scheme; write source: http://node7:9400/metrics, or ./node7:9400 for a file of that name`},
		{"{source: f.prom, http_config: {follow_redirects: false}}", `bad.yml:3: sources[2].source: source "f.prom" is a file, and credentials and TLS are for URLs; remove the http_config, or name a URL`},
		{"{source: 'https://u:hunter2@n', http_config: {authorization: {credentials: t}}}", "bad.yml:3: sources[2].http_config: holds credentials beside those of the URL; keep one of the two"},
		{"{source: https://n, http_config: {tls_config: {ca_file: none.pem}}}", "bad.yml:3: sources[2].http_config: unable to read CA cert: unable to read file none.pem: open none.pem: no such file or directory"},
		{"{source: http://a:1/metrics}", "bad.yml:3: sources[2].source: " + twice},
		{"{source: 'http://u:hunter2@a:1?key=hunter3'}", "bad.yml:3: sources[2].source: " + twice},
	} {
		file, err := config.Parse("bad.yml", []byte("sources:\n- source: http://a:1/metrics\n- "+test.source+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		if _, problems := feedsOf(file.Sources); problems.Error() != test.says {
			t.Errorf("got  %v\nwant %s", problems, test.says)
		}
	}
}
