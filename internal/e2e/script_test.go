// Package e2e tests the whole program as its users run it: as a child process in front of an
// exporter, a fake dcgmi or a fake driver, behind a real Prometheus, or in a terminal.
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

// The scripts in testdata/script run the program as an operator would: as a child process, in front
// of a real HTTP server. They use testscript's commands and those of scriptCommands.

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

// state is the running programs of a script.
type state struct {
	upstream *upstream
	proxy    *child
}

type stateKey struct{}

func stateOf(ts *testscript.TestScript) *state { return ts.Value(stateKey{}).(*state) }

// scriptCommands are our additions to testscript's commands.
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

// awaitLog waits until the child has logged a text.
func awaitLog(t *testing.T, c *child, text string) {
	t.Helper()
	for end := time.Now().Add(patience); !strings.Contains(c.Logged(), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %q in the log:\n%s", text, c.Logged())
		}
	}
}

// cmdProxy starts kpulse-proxy with the given flags on a free port; $PROXY is its URL, and $ADDRESS
// its address. Its log is the file proxy.log.
func cmdProxy(ts *testscript.TestScript, _ bool, args []string) {
	if running := stateOf(ts).proxy; running != nil {
		ts.Check(running.Stop())
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
	ts.Setenv("PROXY", c.URL)
	ts.Setenv("ADDRESS", strings.TrimPrefix(c.URL, "http://"))
	ts.Defer(func() { c.Cmd.Process.Kill() })
}

// cmdTerminate sends SIGTERM to the proxy, which must exit with 0.
func cmdTerminate(ts *testscript.TestScript, _ bool, _ []string) {
	if err := stateOf(ts).proxy.Stop(); err != nil {
		ts.Fatalf("after SIGTERM: %v", err)
	}
}

// cmdHangup sends SIGHUP to the proxy.
func cmdHangup(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(stateOf(ts).proxy.Cmd.Process.Signal(syscall.SIGHUP))
}

// cmdGet is `get [-H 'Name: value'] STATUS URL`: the answer must have the status; its body becomes
// stdout, its headers stderr.
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

// cmdUntil is `until URL REGEXP`: it polls until the answer matches.
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

// scriptVariables are the variables that scripts set for the program.
var scriptVariables = []string{
	"KPULSE_PRESET", "KPULSE_ONCE", "KPULSE_SOURCE", "KPULSE_BACKEND", "KPULSE_DCGM_HOST", "KPULSE_WEB_LISTEN_ADDRESS", "KPULSE_KUBE_DISCOVER", "KPULSE_COUNTERS", "KPULSE_HPC_JOB_MAPPING_DIR",
	"KPULSE_COLLECTOR_PROCESSES", "KPULSE_COLLECTOR_PROCESSES_CMDLINE", "CUDA_VISIBLE_DEVICES", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS",
	"SLURM_JOB_ID", "SLURM_JOB_NODELIST",
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
	for _, name := range scriptVariables {
		if value := ts.Getenv(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Run()
	if code := cmd.ProcessState.ExitCode(); fmt.Sprint(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// cmdExposition is `exposition FILE`: Prometheus' parser must accept all of it, without duplicate
// series, and promlint our families.
func cmdExposition(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(checkExposition([]byte(ts.ReadFile(args[0]))))
}
