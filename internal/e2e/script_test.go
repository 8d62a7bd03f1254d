// Package e2e holds the tests of the whole program. They run it as its users do: as a
// child process in front of an exporter, a fake dcgmi or a fake driver, behind a real
// Prometheus, or in a terminal.
package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// The scripts in testdata/script run the program as an operator would: as a
// child process, in front of a real HTTP server. Beside testscript's own
// commands they have those of scriptCommands.

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                scriptCommands,
		Setup: func(env *testscript.Env) error {
			env.Values[stateKey{}] = &state{}
			deploy, err := filepath.Abs("../../deploy")
			env.Setenv("DEPLOY", deploy)
			return err
		},
	})
}

// state is what a script has running.
type state struct {
	upstream *upstream
	proxy    *child
}

type stateKey struct{}

func stateOf(ts *testscript.TestScript) *state { return ts.Value(stateKey{}).(*state) }

// scriptCommands are what our scripts can do beyond testscript's own.
var scriptCommands = map[string]func(*testscript.TestScript, bool, []string){
	"upstream":   cmdUpstream,
	"downstream": cmdDownstream,
	"proxy":      cmdProxy,
	"terminate":  cmdTerminate,
	"get":        cmdGet,
	"post":       cmdPost,
	"hangup":     cmdHangup,
	"until":      cmdUntil,
	"exposition": cmdExposition,
	"exits":      cmdExits,
}

// cmdUpstream starts an exporter that serves the script's file upstream.prom at
// /metrics and misbehaves at the paths of misbehaviours; $UPSTREAM is its URL.
func cmdUpstream(ts *testscript.TestScript, _ bool, _ []string) {
	u := startUpstream(func() ([]byte, error) { return os.ReadFile(ts.MkAbs("upstream.prom")) })
	ts.Defer(u.stop)
	ts.Setenv("UPSTREAM", u.url)
	stateOf(ts).upstream = u
}

// cmdDownstream kills the upstream.
func cmdDownstream(ts *testscript.TestScript, _ bool, _ []string) {
	stateOf(ts).upstream.stop()
}

var listening = regexp.MustCompile(`msg(?:="|":")Listening on"(?: address=|,"address":")([^"\s]+)["\n]`)

// child is a running kpulse-proxy.
type child struct {
	cmd  *exec.Cmd
	url  string
	log  string // the file that it logs to
	done chan error
}

// startChild starts a program that logs where it listens, and waits until it
// does. It logs to a new file by itself: what it did is there once it shows.
func startChild(cmd *exec.Cmd, log string) (*child, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	cmd.Stderr = file
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd: cmd, log: log, done: make(chan error, 1)}
	go func() { c.done <- cmd.Wait() }()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if m := listening.FindStringSubmatch(c.logged()); m != nil {
			c.url = "http://" + m[1]
			return c, nil
		}
		select {
		case err := <-c.done:
			return nil, fmt.Errorf("%s ended before it listened: %w\n%s", cmd, err, c.logged())
		case <-time.After(5 * time.Millisecond):
		}
	}
	cmd.Process.Kill()
	return nil, fmt.Errorf("%s does not listen\n%s", cmd, c.logged())
}

// logged returns what the child has logged.
func (c *child) logged() string {
	text, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// awaitLog waits until the child has logged a text.
func awaitLog(t *testing.T, c *child, text string) {
	t.Helper()
	for end := time.Now().Add(patience); !strings.Contains(c.logged(), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %q in the log:\n%s", text, c.logged())
		}
	}
}

// stop asks the child to end and waits for it.
func (c *child) stop() error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return c.wait()
}

// fate says how the child ended, if it did, and what it has logged.
func (c *child) fate() string {
	select {
	case err := <-c.done:
		c.done <- err // for who waits
		return fmt.Sprintf("the program ended (%v) and logged:\n%s", err, c.logged())
	case <-time.After(time.Second): // one that was killed is not reaped at once
		return "the program runs and logged:\n" + c.logged()
	}
}

// wait waits until the child has ended.
func (c *child) wait() error {
	select {
	case err := <-c.done:
		return err
	case <-time.After(patience):
		c.cmd.Process.Kill()
		return fmt.Errorf("%s does not end", c.cmd)
	}
}

// cmdProxy starts kpulse-proxy with the flags given on a free port; $PROXY is
// its URL, and $ADDRESS what it listens at. Its log goes to the file proxy.log.
func cmdProxy(ts *testscript.TestScript, _ bool, args []string) {
	if running := stateOf(ts).proxy; running != nil {
		ts.Check(running.stop())
	}
	cmd := exec.Command("kpulse-proxy", append([]string{"--web.listen-address=127.0.0.1:0"}, args...)...)
	cmd.Dir = ts.MkAbs(".")
	var err error
	cmd.Path, err = exec.LookPath("kpulse-proxy")
	ts.Check(err)
	cmd.Err = nil
	c, err := startChild(cmd, ts.MkAbs("proxy.log"))
	ts.Check(err)
	stateOf(ts).proxy = c
	ts.Setenv("PROXY", c.url)
	ts.Setenv("ADDRESS", strings.TrimPrefix(c.url, "http://"))
	ts.Defer(func() { c.cmd.Process.Kill() })
}

// cmdTerminate sends SIGTERM to the proxy, which must end well.
func cmdTerminate(ts *testscript.TestScript, _ bool, _ []string) {
	if err := stateOf(ts).proxy.stop(); err != nil {
		ts.Fatalf("after SIGTERM: %v", err)
	}
}

// cmdHangup sends SIGHUP to the proxy.
func cmdHangup(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(stateOf(ts).proxy.cmd.Process.Signal(syscall.SIGHUP))
}

// cmdGet is `get [-H 'Name: value'] STATUS URL`: the answer must have the status
// and becomes the command's stdout, its headers its stderr.
func cmdGet(ts *testscript.TestScript, _ bool, args []string) { ask(ts, http.MethodGet, args) }

// cmdPost is get with a POST.
func cmdPost(ts *testscript.TestScript, _ bool, args []string) { ask(ts, http.MethodPost, args) }

func ask(ts *testscript.TestScript, method string, args []string) {
	req, err := http.NewRequestWithContext(context.Background(), method, args[len(args)-1], http.NoBody)
	ts.Check(err)
	for i := 0; args[i] == "-H"; i += 2 {
		name, value, _ := strings.Cut(args[i+1], ": ")
		req.Header.Set(name, value)
	}
	client := http.Client{Timeout: patience}
	res, err := client.Do(req)
	ts.Check(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	ts.Check(err)
	ts.Stdout().Write(body)
	res.Header.Write(ts.Stderr())
	if want := args[len(args)-2]; fmt.Sprint(res.StatusCode) != want {
		ts.Fatalf("%s answered %d, want %s:\n%.500s", req.URL, res.StatusCode, want, body)
	}
}

// cmdUntil is `until URL REGEXP`: asks until the answer matches.
func cmdUntil(ts *testscript.TestScript, _ bool, args []string) {
	re := regexp.MustCompile(args[1])
	var last string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		res, err := http.Get(args[0])
		if err != nil {
			last = err.Error()
			continue
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if last = res.Status + "\n" + string(body); re.MatchString(last) {
			return
		}
	}
	ts.Fatalf("no answer of %s matches %s; the last one:\n%.2000s", args[0], args[1], last)
}

// cmdExits is `exits CODE ARGS…`: kpulse-proxy with these arguments must end
// with the code; its output becomes stdout and stderr.
func cmdExits(ts *testscript.TestScript, _ bool, args []string) {
	path, err := exec.LookPath("kpulse-proxy")
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), ts.Stdout(), ts.Stderr()
	cmd.Env = os.Environ()
	for _, name := range []string{"KPULSE_PRESET", "KPULSE_ONCE", "KPULSE_SOURCE", "KPULSE_WEB_LISTEN_ADDRESS", "CUDA_VISIBLE_DEVICES", "SLURM_JOB_GPUS"} { // those that scripts set
		if value := ts.Getenv(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Run()
	if code := cmd.ProcessState.ExitCode(); fmt.Sprint(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// cmdExposition is `exposition FILE`: Prometheus' parser must accept all of it,
// no series may occur twice, and our families must please promlint.
func cmdExposition(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(checkExposition([]byte(ts.ReadFile(args[0]))))
}
