package app

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/settings"
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
		{"one", nil, []string{here, "--preset=ai"}, "without effect: --preset; these are the numbers of the proxy at " + s.URL + ": start that with them" + remedy},
		{"a variable, which the proxy may have too", map[string]string{"KPULSE_MIN_COVERAGE": "0.3"}, []string{here}, ""},
		{"many", map[string]string{"KPULSE_MISSING_INPUTS": "zero"}, []string{here, "--weights=1,1,1,1", "--config.file=" + file, "--expected-gpus=8", "--node-name=n"},
			"without effect: --node-name, --weights, --expected-gpus, --config.file; these are the numbers of the proxy at " + s.URL + ": start that with them" + remedy},
		{"a named proxy", nil, []string{"--tui.url=" + s.URL, "--tui.url=http://u:secret@node", "--preset=hpc", "--replay=x"},
			"without effect: --replay, --preset; these are the numbers of the proxy of --tui.url: start that with them, or leave --tui.url out and give --backend to read directly"},
		{"a named proxy alone", nil, []string{"--tui.url=" + s.URL}, ""},
		{"our own reading", nil, []string{here, "--backend=replay", "--preset=hpc"}, ""},
		{"our own reading of a file's sources", nil, []string{here, "--config.file=" + named, "--preset=hpc"}, ""},
		{"the sources of the proxy's file", map[string]string{"KPULSE_CONFIG_FILE": named}, []string{here, "--preset=hpc"},
			"without effect: --preset; these are the numbers of the proxy at " + s.URL + ": start that with them" + remedy},
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

// TestDashboardOfAJob: in a job over several nodes, the proxies of all of them are shown: at the port of the one on this machine, if this is
// one of them, and at the standard port from elsewhere. Without a proxy here the terminal reads by itself.
func TestDashboardOfAJob(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Server", expose.ServerName) }))
	defer s.Close()
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	here, nobody := "--web.listen-address="+strings.TrimPrefix(s.URL, "http://"), "--web.listen-address=127.0.0.1:1"
	for _, test := range []struct {
		name, nodes, me string
		args            []string
		want            string
	}{
		{"no job", "", "", []string{here}, s.URL + "/metrics"},
		{"one node", "gpu7", "gpu7", []string{here}, s.URL + "/metrics"},
		{"a broken list", "gpu[7-", "gpu7", []string{here}, s.URL + "/metrics"},
		{"several nodes", "gpu[7-8],big1", "gpu8", []string{here}, "http://gpu7" + port + "/metrics " + s.URL + "/metrics http://big1" + port + "/metrics"},
		{"a login node", "gpu[07-08]", "", []string{nobody}, "http://gpu07:9401/metrics http://gpu08:9401/metrics"},
		{"a node without a proxy", "gpu[7-8]", "gpu8", []string{nobody, "--backend=replay"}, client.InProcess},
		{"a choice", "gpu[7-8]", "gpu8", []string{here, "--tui.url=a[1-2],b"}, "http://a1:9401/metrics http://a2:9401/metrics http://b:9401/metrics"},
	} {
		t.Setenv("SLURM_JOB_NODELIST", test.nodes)
		t.Setenv("SLURMD_NODENAME", test.me)
		targets, end, err := configured(t, "", nil, append(test.args, "--tui")...).targets(t.Context(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		end()
		var got []string
		for _, target := range targets {
			got = append(got, target.URL)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: shows %q, want %q", test.name, got, test.want)
		}
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
	good := &options{Options: &settings.Options{Showing: settings.Showing{TUIHTTP: file("good.yml", "basic_auth: {username: u, password: secret}\n")}}}
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
		if _, err := (&options{Options: &settings.Options{Showing: settings.Showing{TUIHTTP: bad}}}).tuiClient(); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestDashboardExplains: as the mode explain does, with the XIDs of the config file, and the error in one line.
func TestDashboardExplains(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("xids: {777: fatal}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	opts := configured(t, "", nil, "--tui", "--config.file="+file)
	for words, want := range map[string]string{
		"xid 79": "XID 79", "xid 777": "the config file", "class idle": "Nothing runs", "what": `"what" is not a kind of word`, "xid": "explain xid: name a code",
	} {
		text, err := opts.explain(strings.Fields(words))
		if err != nil {
			text = err.Error()
		}
		if failed := strings.HasPrefix(want, "explain") || words == "what"; !strings.Contains(text, want) || failed != (err != nil) || failed && strings.Contains(text, "\n") {
			t.Errorf("%s: %q, %v; want %q", words, text, err, want)
		}
	}
}
