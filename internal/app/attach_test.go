package app

import (
	"cmp"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// TestDashboardEvaluatesNoRules: it does not show their results, and an error in them must not
// keep it from starting.
func TestDashboardEvaluatesNoRules(t *testing.T) {
	t.Setenv("KPULSE_RULES_FILE", filepath.Join(t.TempDir(), "missing.yml"))
	opts, err := parse([]string{"--tui", "--backend=replay"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	targets, end, err := opts.targets(t.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if len(targets) != 1 || targets[0].URL != client.InProcess {
		t.Errorf("shows %+v", targets)
	}
}

func TestAddressesOfNodes(t *testing.T) {
	for _, test := range []struct{ typed, want string }{
		{"dgx-7", "http://dgx-7:9401/metrics"},
		{"dgx-7:9999", "http://dgx-7:9999/metrics"},
		{"[::1]:9401", "http://[::1]:9401/metrics"},
		{"http://dgx-7:9401", "http://dgx-7:9401/metrics"},
		{"https://gpu.example/proxy/metrics?source=a", "https://gpu.example/proxy/metrics?source=a"},
		{"https://gpu.example/", "https://gpu.example/metrics"},
	} {
		if got, err := withPath(test.typed); got != test.want || err != nil {
			t.Errorf("%s: %s, %v; want %s", test.typed, got, err, test.want)
		}
	}
	if got, err := withPath("http://localhost"); got == client.InProcess || err != nil {
		t.Errorf("a proxy at port 80 is taken for our own handler: %s, %v", got, err)
	}
	for _, bad := range []string{"", "::bad", "http://[::1", "ftp://dgx-7/metrics", "dgx-7:port", "http://u:secret@dgx 7/"} {
		if got, err := nodeURLs([]string{"dgx-1", bad}); err == nil || !strings.Contains(err.Error(), "such as NODE") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
	if got, err := nodeURLs([]string{"dgx-1", "http://dgx-1:9401", "dgx-2"}); err != nil || len(got) != 2 {
		t.Errorf("a node given twice: %v, %v", got, err)
	}
	for _, test := range []struct{ listen, want string }{
		{":9401", "http://localhost:9401/metrics"},
		{"0.0.0.0:80", "http://localhost:80/metrics"},
		{"[::]:80", "http://localhost:80/metrics"},
		{"10.1.2.3:80", "http://10.1.2.3:80/metrics"},
		{"vsock://:9", ""},
	} {
		if got := localProxy([]string{test.listen}); got != test.want {
			t.Errorf("%s: %q, want %q", test.listen, got, test.want)
		}
	}
}

func TestOnlyProxiesAreAttachedTo(t *testing.T) {
	serve := func(start func(http.Handler) *httptest.Server, status int, server string) *httptest.Server {
		s := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/" {
				t.Errorf("%s was asked for: it may cost a scrape", r.URL.Path)
			}
			if server != "" {
				w.Header().Set("Server", server)
			}
			w.WriteHeader(status)
		}))
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		t.Cleanup(s.Close)
		return s
	}
	page := func(status int, server string) string {
		return serve(httptest.NewServer, status, server).URL + "/metrics"
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // accepts, and says nothing
	secret := serve(httptest.NewTLSServer, 200, "kpulse-proxy")
	locked := serve(httptest.NewTLSServer, 401, "")
	plain := func(s *httptest.Server) string { return "http" + strings.TrimPrefix(s.URL, "https") + "/metrics" }
	for _, test := range []struct {
		name, url string
		client    *http.Client
		attached  string
		why       string
		timeout   time.Duration // a minute if 0
	}{
		{name: "a proxy", url: page(200, "kpulse-proxy"), attached: "http://127."},
		{name: "an exporter", url: page(200, "nginx")},
		{name: "a locked proxy", url: page(401, ""), why: "wants credentials; if that is the proxy, show it with --tui.url=http://127."},
		{name: "one that wants TLS", url: plain(secret), why: "wants TLS; if that is the proxy, show it with --tui.url=https://127."},
		{name: "one with TLS that we have", url: plain(secret), client: secret.Client(), attached: "https://127."},
		{name: "one with TLS that we have, and a password that we have not", url: plain(locked), client: locked.Client(), why: "wants credentials; if that is the proxy, show it with --tui.url=https://127."},
		{name: "one whose certificate we do not trust", url: plain(secret), client: &http.Client{}, why: "wants TLS"},
		{name: "a hanging one", url: "http://" + l.Addr().String() + "/metrics", timeout: 100 * time.Millisecond},
		{name: "none"},
	} {
		attached, wants := attach(t.Context(), test.client, test.url, cmp.Or(test.timeout, time.Minute))
		why := ""
		if wants != "" {
			attached, why = "", refusedUs(attached, wants, "show it with --tui.url=")
		}
		if !strings.HasPrefix(attached, test.attached) || (attached == "") != (test.attached == "") {
			t.Errorf("%s: attached to %q, want %q", test.name, attached, test.attached)
		}
		if !strings.Contains(why, test.why) || (why == "") != (test.why == "") {
			t.Errorf("%s: says %q, want %q", test.name, why, test.why)
		}
	}
}

// TestDashboardTellsWhatHasNoEffect: another proxy reads and computes what is shown, so the notice
// names the given flags for reading and computing, and no others. There is no notice if the
// dashboard reads directly.
func TestDashboardTellsWhatHasNoEffect(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Server", "kpulse-proxy") }))
	defer s.Close()
	here := "--web.listen-address=" + strings.TrimPrefix(s.URL, "http://")
	file := filepath.Join(t.TempDir(), "config.yml")
	if err := os.WriteFile(file, []byte("preset: hpc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	named := filepath.Join(t.TempDir(), "sources.yml")
	writeFile(t, named, "sources: [{backend: replay}]\n")
	remedy := ", or give --backend too to read directly"
	for _, c := range []struct {
		name        string
		environment map[string]string
		args        []string
		want        string
	}{
		{"nothing", nil, []string{here}, ""},
		{"what counts here too", map[string]string{"KPULSE_GPUS": "1", "NODE_NAME": "n"}, []string{here, "--show-all", "--log.level=debug"}, ""},
		{"one", nil, []string{here, "--preset=ai"}, "--preset has no effect: these are the numbers of the proxy at " + s.URL + "; start it with that" + remedy},
		{"a variable, which the proxy may have too", map[string]string{"KPULSE_MIN_COVERAGE": "0.3"}, []string{here}, ""},
		{"many", map[string]string{"KPULSE_MISSING_INPUTS": "zero"}, []string{here, "--weights=1,1,1,1", "--config.file=" + file, "--expected-gpus=8", "--node-name=n"},
			"--node-name, --weights, --expected-gpus and --config.file have no effect: these are the numbers of the proxy at " + s.URL + "; start it with them" + remedy},
		{"a named proxy", nil, []string{"--tui.url=" + s.URL, "--tui.url=http://u:secret@node", "--preset=hpc", "--replay=x"},
			"--replay and --preset have no effect: these are the numbers of the proxy of --tui.url; start it with them, or leave --tui.url out and give --backend to read directly"},
		{"a named proxy alone", nil, []string{"--tui.url=" + s.URL}, ""},
		{"our own reading", nil, []string{here, "--backend=replay", "--preset=hpc"}, ""},
		{"our own reading of a file's sources", nil, []string{here, "--config.file=" + named, "--preset=hpc"}, ""},
		{"the sources of the proxy's file", map[string]string{"KPULSE_CONFIG_FILE": named}, []string{here, "--preset=hpc"},
			"--preset has no effect: these are the numbers of the proxy at " + s.URL + "; start it with that" + remedy},
	} {
		t.Run(c.name, func(t *testing.T) {
			opts := configured(t, "", c.environment, append(c.args, "--tui")...)
			_, end, err := opts.targets(t.Context(), slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			end()
			if opts.notice != c.want {
				t.Errorf("says %q\nwant %q", opts.notice, c.want)
			}
		})
	}
}

func TestDashboardHTTPConfig(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		fmt.Fprintf(w, "%s:%s", user, password)
	}))
	defer s.Close()
	good := &options{tuiHTTP: file("good.yml", "basic_auth: {username: u, password: secret}\n")}
	client, err := good.tuiClient()
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer [20]byte
	if n, _ := resp.Body.Read(answer[:]); string(answer[:n]) != "u:secret" {
		t.Errorf("sent %q", answer[:n])
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{file("bad.yml", "basic_atuh: {}\n"), filepath.Join(dir, "none.yml"), pipe, file("secret.yml", "authorization: {credentials_file: pipe}\n")} {
		if _, err := (&options{tuiHTTP: bad}).tuiClient(); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
