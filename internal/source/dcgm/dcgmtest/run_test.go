package dcgmtest_test

import (
	"bufio"
	"bytes"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// output is the complete output of a fake.
type output struct {
	stdout, stderr string
	code           int // -1 after a signal
}

// run runs a fake of s to its end, with arguments separated by blanks.
func run(t *testing.T, s dcgmtest.Scenario, args string) output {
	t.Helper()
	return runExe(t, dcgmtest.Install(t, s), args)
}

func runExe(t *testing.T, exe, args string) output {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), exe, strings.Fields(args)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return output{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// child is a running fake.
type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
	out   io.Reader
}

// start starts the fake at exe. The caller must read its output.
func start(t *testing.T, exe, args string) child {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), exe, strings.Fields(args)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return child{t, cmd, bufio.NewScanner(out), out}
}

// until reads lines until one contains text.
func (c child) until(text string) {
	c.t.Helper()
	for range 5000 {
		if !c.lines.Scan() {
			break
		}
		if strings.Contains(c.lines.Text(), text) {
			return
		}
	}
	c.t.Fatalf("no line of the output contains %q", text)
}

// rest reads the remaining lines and waits for the end.
func (c child) rest() (lines []string, status syscall.WaitStatus) {
	c.t.Helper()
	for c.lines.Scan() {
		lines = append(lines, c.lines.Text())
	}
	_ = c.cmd.Wait()
	return lines, c.cmd.ProcessState.Sys().(syscall.WaitStatus)
}

func (c child) signal(sig syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(sig); err != nil {
		c.t.Fatal(err)
	}
}

func equal(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", strings.ReplaceAll(got, " ", "·"), strings.ReplaceAll(want, " ", "·"))
	}
}
