package e2e

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// secrets are the credentials that users may configure for an exporter, by place. None may ever
// appear.
var secrets = map[string]string{
	"user":    "u5er-sec",
	"pass":    "pa55-sec",
	"query":   "quer7-sec",
	"bearer":  "bear3r-sec",
	"header":  "head3r-sec",
	"unknown": "unkn0wn-sec",
}

// openly returns the secrets in a text, also in the form of basic authentication.
func openly(text string) (found []string) {
	if strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(secrets["user"]+":"+secrets["pass"]))) {
		found = append(found, "basic authentication")
	}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-", r) }) {
		if strings.HasSuffix(word, "-sec") {
			found = append(found, word)
		}
	}
	return found
}

// tellingExporter is an exporter that works, refuses, hangs up, or redirects to another host, which
// records the secrets that it receives.
type tellingExporter struct {
	url    string
	does   atomic.Pointer[string]
	mu     sync.Mutex
	leaked []string // received by the other host
}

func startTellingExporter(t *testing.T) *tellingExporter {
	e := &tellingExporter{}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.leaked = append(e.leaked, openly(quoted(r))...)
		io.WriteString(w, oneGPU)
	}))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch *e.does.Load() {
		case "works":
			io.WriteString(w, oneGPU)
		case "refuses":
			http.Error(w, "refused", http.StatusUnauthorized)
		case "redirects":
			http.Redirect(w, r, other.URL+"/metrics", http.StatusTemporaryRedirect)
		case "hangs up":
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(func() { server.Close(); other.Close() })
	e.url = server.URL
	return e
}

// quoted returns a request as text.
func quoted(r *http.Request) string {
	var b strings.Builder
	b.WriteString(r.URL.String() + "\n")
	_ = r.Header.Write(&b)
	return b.String()
}

// ways returns commands that give a source secrets by flag, by environment, and by config file.
func ways(t *testing.T, exporter string) map[string]*exec.Cmd {
	u, err := url.Parse(exporter + "/metrics?token=" + secrets["query"])
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(secrets["user"], secrets["pass"])
	program := func(flags ...string) *exec.Cmd {
		return exec.Command(itself(t), append(flags, "--log.level=debug", "--source.min-interval=0s", "--web.enable-lifecycle", "--web.enable-pprof", "--web.listen-address=127.0.0.1:0")...)
	}
	byEnvironment := program()
	byEnvironment.Env = append(os.Environ(), "KPULSE_SOURCE="+u.String(), "KPULSE_NO_SUCH="+secrets["unknown"])
	all := map[string]*exec.Cmd{"flag": program("--source=" + u.String()), "environment": byEnvironment}
	for name, auth := range map[string]string{
		"basic auth":  "basic_auth: {username: " + secrets["user"] + ", password: " + secrets["pass"] + "}",
		"bearer":      "authorization: {credentials: " + secrets["bearer"] + "}",
		"header":      "http_headers: {X-Token: {secrets: [" + secrets["header"] + "]}}",
		"open header": "http_headers: {X-Token: {values: [" + secrets["header"] + "]}}",
	} {
		_, flag := fed(t, "sources:\n- source: "+exporter+"/metrics?token="+secrets["query"]+"\n  http_config:\n    "+auth+"\n")
		all[name] = program(flag)
	}
	return all
}

// TestSecretsAreSeenNowhere configures secrets in each way, and searches all that we serve, log and
// send for them, while the source works, fails and redirects.
func TestSecretsAreSeenNowhere(t *testing.T) {
	t.Parallel()
	for way := range ways(t, "http://127.0.0.1:1") {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			e := startTellingExporter(t)
			works := "works"
			e.does.Store(&works)
			c, err := startChild(ways(t, e.url)[way], filepath.Join(t.TempDir(), "log"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Stop() })
			for _, does := range []string{"works", "refuses", "redirects", "hangs up", "works"} {
				e.does.Store(&does)
				for _, request := range append(everyPath(t), "GET /metrics?source=x", "GET /debug/pprof/goroutine?debug=2") {
					method, path, _ := strings.Cut(request, " ")
					if found := openly(answerOf(t, method, c.URL+path)); found != nil {
						t.Errorf("%s shows %q while the exporter %s", request, found, does)
					}
				}
			}
			if err := c.Stop(); err != nil {
				t.Error(err)
			}
			if found := openly(c.Logged()); found != nil {
				t.Errorf("the log shows %q", found)
			}
			if e.leaked != nil {
				t.Errorf("another host received %q", e.leaked)
			}
		})
	}
}

// TestSecretsAreMasked: --config.show has all settings, and no secret.
func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	all := ways(t, "http://exporter.test:9400")
	_, flag := fed(t, "kube:\n  discover:\n    selector: true\n    path: /metrics?token="+secrets["query"]+"\n    http_config:\n      proxy_url: http://"+secrets["user"]+":"+secrets["pass"]+"@proxy:3128\n"+
		"      oauth2: {client_id: kpulse, client_secret: "+secrets["bearer"]+", token_url: 'https://"+secrets["user"]+":"+secrets["pass"]+"@sso?key="+secrets["query"]+"', endpoint_params: {assertion: "+secrets["unknown"]+"}}\n")
	all["discovery"] = exec.Command(itself(t), flag)
	all["dashboard"] = exec.Command(itself(t), "--tui", "--tui.url=http://"+secrets["user"]+":"+secrets["pass"]+"@exporter.test:9400/metrics?"+secrets["query"])
	all["dashboard"].Env = append(os.Environ(), "KPULSE_TUI_URL="+secrets["unknown"]+"@node\nnode?"+secrets["unknown"], "KPULSE_SOURCE="+secrets["unknown"]+"@exporter.test:9400/metrics?x")
	for way, cmd := range all {
		cmd.Args = append(cmd.Args, "--config.show")
		shown, err := cmd.CombinedOutput() // the warning about an unknown variable too
		out := string(shown)
		if found := openly(out); found != nil || err != nil {
			t.Errorf("%s: %v: shown is %q: %s", way, err, found, out)
		}
		if way != "discovery" && !strings.Contains(out, "@exporter.test:9400/metrics?<secret>") && !strings.Contains(out, "http://exporter.test:9400/metrics?<secret>") || strings.Count(out, "<secret>") < 3 {
			t.Errorf("%s: a setting with a secret is missing or not masked: %s", way, out)
		}
	}
}

// answerOf returns the header and body of an answer.
func answerOf(t *testing.T, method, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var header strings.Builder
	_ = res.Header.Write(&header)
	return header.String() + string(body)
}
