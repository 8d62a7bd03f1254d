package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
)

// NVIDIA's host engine, dcgmi and dcgm-exporter over NVIDIA's mock driver, which plays boards from
// a YAML file: the truth for the tests. The stack is not part of this repository. These tests run
// if KPULSE_DCGM_STACK names the folder of the unpacked stack, and are skipped otherwise. Each test
// has its own engine and state, on a domain socket.

// Releases of the host engine and its dcgmi.
const (
	dcgm4 = "4" // 4.6.0
	dcgm3 = "3" // 3.3.9: no NvSwitch module, no fields of 4.x
)

// profiles are the boards that the mock driver plays: 8 of each, but 4 of t4.
var profiles = []string{"a100", "h100", "b200", "gb200", "gb300", "l40s", "t4"}

// stackDir returns the folder of the unpacked stack. In CI, KPULSE_REQUIRE_DCGM_STACK makes its
// absence a failure.
func stackDir(t *testing.T) string {
	t.Helper()
	slow.Test(t, "KPULSE_DCGM_STACK: the vendor's host engine and exporter over its mock driver")
	dir := os.Getenv("KPULSE_DCGM_STACK")
	if dir == "" && os.Getenv("KPULSE_REQUIRE_DCGM_STACK") == "" {
		t.Skip("KPULSE_DCGM_STACK is not set; .ci/run unpacks NVIDIA's stack and sets it: see CONTRIBUTING.md")
	}
	if _, err := os.Stat(filepath.Join(dir, "bin", "nv-hostengine")); err != nil {
		t.Fatalf("KPULSE_DCGM_STACK=%q: %v", dir, err)
	}
	return dir
}

// realNode is a node of the mock driver's boards, with a host engine or without one.
type realNode struct {
	stack   string
	release string // of the host engine and of dcgmi
	profile string
	state   string // folder of the driver's configuration and the engine's socket
	address string // the engine's address for clients, "" until there is an engine
	engine  *process
	// driverless makes the host engine find no driver.
	driverless bool
}

// newRealNode returns a node with the boards of a profile and no host engine. edits are pairs of
// old and new text in the boards' YAML; each old text must occur.
func newRealNode(t *testing.T, release, profile string, edits ...string) *realNode {
	t.Helper()
	n := &realNode{stack: stackDir(t), release: release, profile: profile}
	// The path of a socket must be short; t.TempDir() is not.
	state, err := os.MkdirTemp("", "kp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(state) })
	n.state = state
	yaml, err := os.ReadFile(filepath.Join(n.stack, "configs", "busy-"+profile+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(yaml)
	for i := 0; i+1 < len(edits); i += 2 {
		if !strings.Contains(text, edits[i]) {
			t.Fatalf("busy-%s.yaml lacks %q", profile, edits[i])
		}
		text = strings.ReplaceAll(text, edits[i], edits[i+1])
	}
	n.write(t, "config.yaml", text)
	return n
}

// startRealNode returns a node of a profile with a running host engine; flags are the engine's,
// such as "--denylist-modules", "1".
func startRealNode(t *testing.T, release, profile string, flags ...string) *realNode {
	t.Helper()
	n := newRealNode(t, release, profile)
	n.startEngine(t, flags...)
	return n
}

// write replaces a state file atomically, as the driver expects.
func (n *realNode) write(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join(n.state, name)
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// override changes boards by index while everything runs: YAML as
//
//	devices:
//	  "3": {failure: {mode: lost}}
//
// The driver reads it within a second.
func (n *realNode) override(t *testing.T, yaml string) {
	t.Helper()
	n.write(t, "overrides.yaml", yaml)
}

// program returns a command of the stack, with its own loader and C library.
func (n *realNode) program(name string, args ...string) *exec.Cmd {
	libraries, bin := []string{"driver", "lib"}, "bin"
	if n.release == dcgm3 && name != "dcgm-exporter" {
		libraries, bin = []string{"driver", "lib3", "lib"}, "bin3"
	}
	if n.driverless {
		libraries = libraries[1:]
	}
	for i := range libraries {
		libraries[i] = filepath.Join(n.stack, libraries[i])
	}
	args = append([]string{"--library-path", strings.Join(libraries, ":"), filepath.Join(n.stack, bin, name)}, args...)
	return exec.Command(filepath.Join(n.stack, "lib", "ld-linux-x86-64.so.2"), args...)
}

// startEngine starts the host engine on a socket, and returns once it answers. After stop or kill
// it can be started again, with unchanged boards.
func (n *realNode) startEngine(t *testing.T, flags ...string) {
	t.Helper()
	socket := filepath.Join(n.state, "engine.sock")
	n.launch(t, "unix://"+socket, append([]string{"--domain-socket", socket}, flags...))
}

// startEngineTCP is startEngine on a free port of 127.0.0.1; host is the name that clients
// of the engine use, such as localhost.
func (n *realNode) startEngineTCP(t *testing.T, host string, flags ...string) {
	t.Helper()
	address := freeAddress(t)
	port := address[strings.LastIndex(address, ":")+1:]
	n.launch(t, host+":"+port, append([]string{"-b", "127.0.0.1", "--port", port}, flags...))
}

func (n *realNode) launch(t *testing.T, address string, flags []string) {
	t.Helper()
	n.address = address
	cmd := n.program("nv-hostengine", append([]string{"-n", "-f", filepath.Join(n.state, "engine.log"), "--log-level", "ERROR",
		"--pid", filepath.Join(n.state, "engine.pid")}, flags...)...)
	cmd.Env = []string{"MOCK_NVML_CONFIG=" + filepath.Join(n.state, "config.yaml")}
	n.engine = startProcess(t, cmd, filepath.Join(n.state, "engine.out"))
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		// Without its NvSwitch module the engine answers with 223, after the table.
		if out, _ := n.dcgmi(t, "discovery", "-l"); strings.Contains(out, " found") {
			return
		}
		if !n.engine.runs() {
			break
		}
	}
	t.Fatalf("the host engine does not answer at %s:\n%s", address, n.engine.output())
}

// dcgmi runs the real dcgmi of the node's release and returns its output.
func (n *realNode) dcgmi(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(n.dcgmiDir(), "dcgmi"), append(args, "--host", n.address)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// dcgmiDir returns the folder of dcgmi for PATH.
func (n *realNode) dcgmiDir() string {
	if n.release == dcgm3 {
		return filepath.Join(n.stack, "path3")
	}
	return filepath.Join(n.stack, "path")
}

// startExporter runs the real exporter 4.8.2 on the node's host engine, with a counters file and a
// reading per second. Its URL lacks /metrics. env adds to NODE_NAME=n.
func (n *realNode) startExporter(t *testing.T, counters string, env []string, flags ...string) *child {
	t.Helper()
	if counters == "" {
		counters = filepath.Join(n.stack, "configs", "default-counters.csv")
	}
	cmd := n.program("dcgm-exporter", append([]string{"-r", n.address, "-a", "127.0.0.1:0", "-f", counters, "-c", "1000"}, flags...)...)
	cmd.Env = append([]string{"DISABLE_STARTUP_VALIDATE=true", "NODE_NAME=n"}, env...)
	return n.start(t, cmd)
}

// startBehind runs the program in front of an exporter; each scrape reads the exporter.
func (n *realNode) startBehind(t *testing.T, exporter *child, flags ...string) *child {
	t.Helper()
	cmd := exec.Command(itself(t), append([]string{"--web.listen-address=127.0.0.1:0", "--series=full", "--node-name=n", "--poll=0",
		"--source.min-interval=0s", "--source=" + exporter.URL + "/metrics"}, flags...)...)
	return n.start(t, cmd)
}

// startDCGM runs the program on the node's dcgmi and host engine.
func (n *realNode) startDCGM(t *testing.T, flags ...string) *child {
	t.Helper()
	cmd := exec.Command(itself(t), append([]string{"--web.listen-address=127.0.0.1:0", "--series=full", "--node-name=n", "--backend=dcgm",
		"--dcgm.host=" + n.address}, flags...)...)
	cmd.Env = n.env()
	return n.start(t, cmd)
}

// startNVML runs the program on the node's driver. It needs cgo.
func (n *realNode) startNVML(t *testing.T, flags ...string) *child {
	t.Helper()
	cmd := exec.Command(itself(t), append([]string{"--web.listen-address=127.0.0.1:0", "--series=full", "--node-name=n", "--backend=nvml"}, flags...)...)
	cmd.Env = n.env()
	return n.start(t, cmd)
}

// env returns the environment of a program on the node, with its dcgmi and its driver.
func (n *realNode) env() []string {
	return []string{"PATH=" + n.dcgmiDir() + ":/usr/bin:/bin", "LD_LIBRARY_PATH=" + filepath.Join(n.stack, "driver"),
		"MOCK_NVML_CONFIG=" + filepath.Join(n.state, "config.yaml")}
}

// run runs the program on the node until it exits by itself, as with --once.
func (n *realNode) run(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, itself(t), args...)
	cmd.Env = n.env()
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

func (n *realNode) start(t *testing.T, cmd *exec.Cmd) *child {
	t.Helper()
	c, err := startChild(cmd, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop() })
	return c
}

// process is a running program that does not log its address.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// startProcess starts cmd, with its output in the file log, until the test ends.
func startProcess(t *testing.T, cmd *exec.Cmd, log string) *process {
	t.Helper()
	file, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, file
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, log: log, done: make(chan struct{})}
	go func() {
		cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(p.kill)
	return p
}

func (p *process) output() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (p *process) runs() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// stop ends the process like systemd.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(patience):
		p.kill()
		t.Errorf("%s does not end", p.cmd)
	}
}

// kill ends the process immediately, even if frozen.
func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.done
}

// freeze stops the process until thaw: it keeps its connections, but does not answer.
func (p *process) freeze() { p.cmd.Process.Signal(syscall.SIGSTOP) }

func (p *process) thaw() { p.cmd.Process.Signal(syscall.SIGCONT) }
