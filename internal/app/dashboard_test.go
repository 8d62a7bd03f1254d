package app

import (
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"

	"github.com/kpulse/kpulse-proxy/internal/config"
	"github.com/kpulse/kpulse-proxy/internal/tui"
)

// shownNode is a kpulse-proxy as the dashboard sees one: it serves two GPUs, nothing
// at all, or hangs.
type shownNode struct {
	*httptest.Server
	mode atomic.Int32
}

const (
	serves int32 = iota
	breaks
	hangs
)

func startNode(t *testing.T) *shownNode {
	n := &shownNode{}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n.mode.Load() {
		case breaks:
			panic(http.ErrAbortHandler)
		case hangs:
			<-r.Context().Done()
		case serves:
			fmt.Fprintf(w, `DCGM_FI_DEV_GPU_TEMP{gpu="0"} 17
kpulse_gpu_info{hostname="dgx-7",gpu="0",uuid="GPU-aa",model="NVIDIA H200"} 1
kpulse_gpu_info{hostname="dgx-7",gpu="1",uuid="GPU-bb",model="NVIDIA H200"} 1
kpulse_gpu_real_utilization_ratio{hostname="dgx-7",gpu="0",uuid="GPU-aa"} 0.423
kpulse_gpu_health{hostname="dgx-7",gpu="1",uuid="GPU-bb",state="crit"} 1
kpulse_allocation_info{hostname="dgx-7",gpu="0",uuid="GPU-aa",workload_namespace="ml",workload_pod="train-7",hpc_job=""} 1
kpulse_source_up{source="s",backend="dcgm"} 1
kpulse_source_period_seconds{source="s",backend="dcgm"} 0.2
kpulse_source_last_read_timestamp_seconds{source="s",backend="dcgm"} %.3f
`, float64(time.Now().UnixMilli())/1e3)
		}
	}))
	t.Cleanup(func() { n.CloseClientConnections(); n.Close() })
	return n
}

func TestDashboard(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	tm := newTerminal(t, [2]string{"120", "40"}, nil, itself(t), "--tui", "--tui.url="+n.URL+"/metrics")
	tm.until("dgx-7", "42.3%", "CRIT")

	for _, view := range []struct{ key, shows string }{
		{"4", "train-7"}, {"5", "REMARK"}, {"?", "Keys"}, {"i", "Readings"}, {"e", "TIME"}, {"1", "NVIDIA H200"},
	} {
		tm.keys(view.key)
		tm.until(view.shows)
	}
	// A burst is one write: each of its letters counts.
	tm.keys(":focus 1", "Enter")
	tm.until("GPU-bb")
	tm.keys(":focus 0", "Enter")
	tm.until("GPU-aa", "train-7")
	tm.keys(":focus 99", "Enter")
	tm.until("GPU 99 is not visible")
	tm.keys("1", "/real>40", "Enter")
	tm.until("42.3%", "1 of 2")
	tm.keys("Escape")
	tm.until("CRIT")
	// Shifted, an arrow would be the letters behind its escape.
	tm.keys("Down", "Up", "Right", "Left", ":nodes", "Enter")
	tm.until("REMARK")

	for _, size := range [][2]int{{40, 10}, {20, 5}, {200, 50}, {60, 12}, {120, 40}} {
		tm.tmux("resize-window", "-x", strconv.Itoa(size[0]), "-y", strconv.Itoa(size[1]))
	}
	tm.until("REMARK")
	tm.tmux("resize-window", "-x", "20", "-y", "5")
	tm.until("need 40×10")
	tm.tmux("resize-window", "-x", "120", "-y", "40")
	tm.until("REMARK", "● up")

	// A node that hangs blocks no key, and is not taken for one that is up.
	n.mode.Store(hangs)
	tm.keys("1")
	tm.until("NVIDIA H200")
	tm.await("stale badge", func() bool { return strings.Contains(tm.screen(), "▲") && !strings.Contains(tm.screen(), "live") })
	tm.await("end of the old readings", func() bool { return !strings.Contains(tm.screen(), "42.3%") })
	n.mode.Store(breaks)
	n.CloseClientConnections()
	tm.keys("5")
	tm.until("EOF")
	n.mode.Store(serves)
	tm.until("● up")
	tm.keys("1")
	tm.until("42.3%", "live")

	tm.suspend()
	tm.until("42.3%", "live")
	tm.terminate()
}

// suspend presses Ctrl-Z, looks that the terminal is the shell's, and goes on.
func (tm *terminal) suspend() {
	tm.t.Helper()
	pid, err := strconv.Atoi(tm.is("pane_pid"))
	if err != nil {
		tm.t.Fatal(err)
	}
	tm.keys("C-z")
	tm.await("shell", func() bool { return tm.is("alternate_on") == "0" && tm.is("cursor_flag") == "1" })
	// It gives the terminal back before it listens for the signal to go on: one that
	// comes in between is lost.
	tm.await("dashboard", func() bool {
		if err := syscall.Kill(-pid, syscall.SIGCONT); err != nil {
			tm.t.Fatal(err)
		}
		return tm.is("alternate_on") == "1"
	})
}

// terminate ends the program by SIGTERM, and looks that it leaves the terminal as
// it was.
func (tm *terminal) terminate() {
	tm.t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(tm.tmux("display-message", "-p", "#{pane_pid}")))
	if err != nil {
		tm.t.Fatal(err)
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		tm.t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.Fields(string(children))[0])
	if err != nil {
		tm.t.Fatal(err)
	}
	if err := syscall.Kill(child, syscall.SIGTERM); err != nil {
		tm.t.Fatal(err)
	}
	tm.until("EXIT 0")
	if tm.is("alternate_on") != "0" || tm.is("cursor_flag") != "1" || tm.is("mouse_any_flag") != "0" {
		tm.t.Errorf("left behind: alternate screen %s, cursor %s, mouse %s", tm.is("alternate_on"), tm.is("cursor_flag"), tm.is("mouse_any_flag"))
	}
}

// coloured finds the codes of foregrounds and backgrounds, but for the terminal's
// own.
var coloured = regexp.MustCompile(`\x1b\[([0-9]+;)*(3[0-8]|4[0-8]|9[0-7]|10[0-7])(;|m)`)

func TestDashboardColors(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	for _, test := range []struct {
		env  string
		want bool
	}{{"NO_COLOR=1", false}, {"NO_COLOR=yes", false}, {"NO_COLOR=", true}} {
		tm := newTerminal(t, [2]string{"80", "24"}, []string{test.env, "COLORTERM=truecolor"}, itself(t), "--tui", "--tui.url="+n.URL+"/metrics")
		tm.until("dgx-7", "42.3%")
		if got := coloured.MatchString(tm.tmux("capture-pane", "-pe")); got != test.want {
			t.Errorf("with %s colours are %v, want %v", test.env, got, test.want)
		}
		for _, line := range strings.Split(tm.screen(), "\n") {
			if utf8.RuneCountInString(line) > 80 {
				t.Errorf("with %s a line of %d cells: %q", test.env, utf8.RuneCountInString(line), line)
			}
		}
	}
}

// TestDashboardOnADumbTerminal holds that codes are not written where they would be
// seen as such.
func TestDashboardOnADumbTerminal(t *testing.T) {
	t.Parallel()
	tm := newTerminal(t, [2]string{"80", "24"}, []string{"TERM=dumb"}, itself(t), "--tui", "--backend=replay")
	tm.until("TERM=dumb", "--once", "EXIT 1")
}

// TestDashboardEvaluatesNoRules: nobody sees what they give, and what is wrong in them
// must not keep the dashboard from showing.
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
	if len(targets) != 1 || targets[0].URL != tui.InProcess {
		t.Errorf("shows %+v", targets)
	}
}

// TestDashboardAttaches starts the dashboard beside a proxy that listens, which it
// must show, and beside none, where it must read for itself.
func TestDashboardAttaches(t *testing.T) {
	t.Parallel()
	proxy := startProxy(t, itself(t), "--backend=replay", "--node-name=attached-here")
	address := strings.TrimPrefix(proxy.url, "http://")
	tm := newTerminal(t, [2]string{"100", "30"}, nil, itself(t), "--tui", "--web.listen-address="+address)
	tm.until("attached-here", "live")
	if err := proxy.stop(); err != nil {
		t.Error(err)
	}
	tm.until("refused")

	alone := newTerminal(t, [2]string{"100", "30"}, nil, itself(t), "--tui", "--backend=replay", "--node-name=alone", "--web.listen-address="+address)
	alone.until("alone", "▶")
	alone.keys("q")
	alone.until("EXIT 0")
	if alone.is("alternate_on") != "0" {
		t.Error("the alternate screen stays")
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
	if got, err := withPath("http://localhost"); got == tui.InProcess || err != nil {
		t.Errorf("a proxy at port 80 passes for ourselves: %s, %v", got, err)
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
	if got := localProxy(nil); got != "http://localhost:9401/metrics" {
		t.Error(got)
	}
}

func TestOnlyProxiesAreAttachedTo(t *testing.T) {
	server := func(start func(http.Handler) *httptest.Server, status int, body string) *httptest.Server {
		s := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/" {
				t.Errorf("%s was asked for: it may cost a scrape", r.URL.Path)
			}
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}))
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		t.Cleanup(s.Close)
		return s
	}
	page := func(status int, body string) string { return server(httptest.NewServer, status, body).URL + "/metrics" }
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // accepts, and says nothing
	secret := server(httptest.NewTLSServer, 200, "kpulse-proxy")
	locked := server(httptest.NewTLSServer, 401, "Unauthorized")
	plain := func(s *httptest.Server) string { return "http" + strings.TrimPrefix(s.URL, "https") + "/metrics" }
	for _, test := range []struct {
		name, url string
		client    *http.Client
		attached  string
		why       string
	}{
		{name: "a proxy", url: page(200, "<title>kpulse-proxy</title>"), attached: "http://127."},
		{name: "an exporter", url: page(200, "<title>GPU exporter</title>")},
		{name: "a locked proxy", url: page(401, "kpulse-proxy"), why: "wants credentials; if that is the proxy, show it with --tui.url=http://127."},
		{name: "one that wants TLS", url: plain(secret), why: "wants TLS; if that is the proxy, show it with --tui.url=https://127."},
		{name: "one with TLS that we have", url: plain(secret), client: secret.Client(), attached: "https://127."},
		{name: "one with TLS that we have, and a password that we have not", url: plain(locked), client: locked.Client(), why: "wants credentials; if that is the proxy, show it with --tui.url=https://127."},
		{name: "one whose certificate we do not trust", url: plain(secret), client: &http.Client{}, why: "wants TLS"},
		{name: "a hanging one", url: "http://" + l.Addr().String() + "/metrics"},
		{name: "none"},
	} {
		attached, why := attach(t.Context(), test.client, test.url)
		if !strings.HasPrefix(attached, test.attached) || (attached == "") != (test.attached == "") {
			t.Errorf("%s: attached to %q, want %q", test.name, attached, test.attached)
		}
		if !strings.Contains(why, test.why) || (why == "") != (test.why == "") {
			t.Errorf("%s: says %q, want %q", test.name, why, test.why)
		}
	}
}

// TestDashboardTellsWhatHasNoEffect: what is shown is what another proxy reads and
// computes, so flags that say how are told of by name, if they were given, and no
// others. Who reads by himself is told nothing.
func TestDashboardTellsWhatHasNoEffect(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<title>kpulse-proxy</title>") }))
	defer s.Close()
	here := "--web.listen-address=" + strings.TrimPrefix(s.URL, "http://")
	file := filepath.Join(t.TempDir(), "config.yml")
	if err := os.WriteFile(file, []byte("preset: hpc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	named := filepath.Join(t.TempDir(), "sources.yml")
	writeFile(t, named, "sources: [{backend: replay}]\n")
	remedy := ", or give --backend too to read by ourselves"
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
			"--node-name, --config.file, --weights and --expected-gpus have no effect: these are the numbers of the proxy at " + s.URL + "; start it with them" + remedy},
		{"a named proxy", nil, []string{"--tui.url=" + s.URL, "--tui.url=http://u:secret@node", "--preset=hpc", "--replay=x"},
			"--replay and --preset have no effect: these are the numbers of the proxy of --tui.url; start it with them, or leave --tui.url out and give --backend to read by ourselves"},
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

// TestDashboardShowsWhatHasNoEffect: at once, later in the events, and behind the end
// on stderr.
func TestDashboardShowsWhatHasNoEffect(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	tm := newTerminal(t, [2]string{"200", "30"}, nil, itself(t), "--tui", "--tui.url="+n.URL+"/metrics", "--preset=hpc")
	tm.until("42.3%", "--preset has no effect")
	tm.keys("e")
	tm.until("TIME", "--preset has no effect: these are the numbers of the proxy of --tui.url; start it with that")
	tm.keys("C-c")
	tm.until("EXIT 0", "--preset has no effect", "give --backend to read")
}

// TestFlagsOfReadingAreKnown: a flag that is new has to be one of those that mean
// nothing to another proxy, or one of these.
func TestFlagsOfReadingAreKnown(t *testing.T) {
	app := kingpin.New("", "")
	register(app, &options{log: &promslog.Config{}}, config.Default())
	ours := strings.Fields("help gpus show-all once json export tui tui.url tui.http-config passthrough rules.file rules.window rules.max-samples")
	for _, f := range app.Model().Flags {
		if f.Hidden {
			continue
		}
		other := slices.Contains(ours, f.Name) || strings.HasPrefix(f.Name, "web.") || strings.HasPrefix(f.Name, "log.")
		if slices.Contains(ofReading, f.Name) == other {
			t.Errorf("--%s: does it say how to read or to compute? Then name it in ofReading, else here", f.Name)
		}
	}
	for _, name := range ofReading {
		if app.GetFlag(name) == nil {
			t.Errorf("--%s is no flag", name)
		}
	}
}

// TestDashboardTellsOfALockedProxy beside which it reads by itself: at once, later in
// the events, and behind the end on stderr.
func TestDashboardTellsOfALockedProxy(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "Unauthorized", http.StatusUnauthorized) }))
	t.Cleanup(s.Close)
	tm := newTerminal(t, [2]string{"200", "30"}, nil, itself(t), "--tui", "--web.listen-address="+strings.TrimPrefix(s.URL, "http://"))
	tm.until("wants credentials")
	tm.keys("e")
	tm.until("TIME", "wants credentials; if that is the proxy, show it with --tui.url="+s.URL)
	tm.keys("C-c")
	tm.until("EXIT 0", "wants credentials")
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
	for _, bad := range []string{file("bad.yml", "basic_atuh: {}\n"), filepath.Join(dir, "none.yml")} {
		if _, err := (&options{tuiHTTP: bad}).tuiClient(); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestDashboardRings the bell of the terminal.
func TestDashboardRings(t *testing.T) {
	t.Parallel()
	n, dir := startNode(t), t.TempDir()
	n.mode.Store(breaks)
	settings := filepath.Join(dir, "kpulse", "tui.json")
	if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(settings, []byte(`{"bell": true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	tm := newTerminal(t, [2]string{"80", "24"}, []string{"XDG_CONFIG_HOME=" + dir}, itself(t), "--tui", "--tui.url="+n.URL+"/metrics")
	tm.until("EOF")
	written := filepath.Join(dir, "written")
	tm.tmux("pipe-pane", "cat > "+written)
	n.mode.Store(serves)
	tm.until("CRIT")
	tm.await("bell", func() bool {
		text, _ := os.ReadFile(written)
		// An OSC ends in one too, as the one that sets the title.
		rest := regexp.MustCompile(`\x1b\][^\a\x1b]*\a`).ReplaceAllString(string(text), "")
		return strings.Contains(rest, "\a")
	})
}
