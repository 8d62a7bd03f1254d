package dcgm

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// stopGrace is how long a child may take to end after SIGTERM, or after its output has ended.
	stopGrace = 2 * time.Second
	// drainTime limits the wait for the rest of stderr after a child's end.
	drainTime = time.Second
)

// child is a running command.
type child struct {
	cmd    *exec.Cmd
	stdout *os.File // the reader's end; closing it wakes the reader
	stderr tail
	gone   chan struct{} // closed when the child is reaped
}

// errNotLinux is returned on systems without DCGM.
var errNotLinux = errors.New("dcgmi runs on Linux only")

// startChild starts a command in a process group of its own, so that we handle a Ctrl-C at our terminal ourselves, and
// a wrapper's children end with it. The child dies with us, however we die.
func startChild(path string, args []string) (*child, error) {
	if runtime.GOOS != "linux" {
		return nil, errNotLinux
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c := &child{stdout: r, gone: make(chan struct{})}
	c.cmd = &exec.Cmd{
		Path: path, Args: append([]string{path}, args...),
		// DCGM warns about this variable in lines between its rows, and we select the GPUs ourselves.
		Env:    slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "CUDA_VISIBLE_DEVICES=") }),
		Stdout: w, Stderr: &c.stderr,
		SysProcAttr: attributes(), WaitDelay: drainTime,
	}
	started := make(chan error)
	go c.live(started)
	err = <-started
	w.Close()
	if err != nil {
		r.Close()
		return nil, err
	}
	return c, nil
}

// live starts the child and reaps it. The kernel sends the death signal when the thread that started the child ends,
// not the process; so this goroutine keeps its thread locked until the child is gone.
func (c *child) live(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := c.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	defer close(c.gone)
	_ = c.cmd.Wait()                    // its status says why
	signalGroup(c.cmd, syscall.SIGKILL) // the children that it left
}

// signal sends sig to the child and all it has started, unless it was reaped.
func (c *child) signal(sig syscall.Signal) {
	if !c.ended(0) {
		signalGroup(c.cmd, sig)
	}
}

// stop ends the child, if c is not nil: with SIGTERM, and with SIGKILL after stopGrace. It returns when the child is
// reaped.
func (c *child) stop() {
	if c == nil {
		return
	}
	c.stdout.Close()
	c.signal(syscall.SIGTERM)
	if !c.ended(stopGrace) {
		c.signal(syscall.SIGKILL)
		<-c.gone
	}
}

// ended waits for the child to end by itself, at most d, and reports whether it did.
func (c *child) ended(d time.Duration) bool {
	select {
	case <-c.gone:
		return true
	default:
	}
	select {
	case <-c.gone:
		return true
	case <-time.After(d):
		return false
	}
}

// status returns how the child, which is gone, ended: its exit status, or the signal that killed it.
func (c *child) status() (code int, sig syscall.Signal) {
	if ws, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return -1, ws.Signal()
	}
	return c.cmd.ProcessState.ExitCode(), 0
}
