package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"github.com/kpulse/kpulse-proxy/internal/e2e/ports"
)

// child is a running program.
type child struct {
	ctx     context.Context
	cmd     *exec.Cmd
	address string
	log     *bytes.Buffer
}

// start starts a program and returns once it answers at path.
func start(ctx context.Context, address, path, binary string, flags ...string) (*child, error) {
	c := &child{ctx: ctx, cmd: exec.CommandContext(ctx, binary, flags...), address: address, log: &bytes.Buffer{}}
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		res, err := get(ctx, http.MethodGet, "http://"+address+path)
		if err != nil {
			continue
		}
		_ = res.Body.Close()
		if res.StatusCode == http.StatusOK {
			return c, nil
		}
	}
	c.stop()
	return nil, fmt.Errorf("%s does not answer:\n%s", binary, c.tail())
}

// stop ends the program. Its data is not needed; Prometheus would go on evaluating rules for
// minutes before it exits.
func (c *child) stop() {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(10*time.Second, func() { _ = c.cmd.Process.Kill() })
	defer kill.Stop()
	_ = c.cmd.Wait()
}

// tail returns the end of the log.
func (c *child) tail() string {
	text := c.log.String()
	return text[max(0, len(text)-2000):]
}

// spent returns the CPU time of programs, in seconds.
func spent(programs ...*child) (seconds float64) {
	for _, c := range programs {
		if p, err := procfs.NewProc(c.cmd.Process.Pid); err == nil {
			if stat, err := p.Stat(); err == nil {
				seconds += stat.CPUTime()
			}
		}
	}
	return seconds
}

// resident returns the resident memory of a program, in bytes.
func resident(c *child) float64 {
	p, err := procfs.NewProc(c.cmd.Process.Pid)
	if err != nil {
		return 0
	}
	stat, err := p.Stat()
	if err != nil {
		return 0
	}
	return float64(stat.ResidentMemory())
}

// leastAvailable is the memory, in bytes, that must stay available on the machine.
const leastAvailable = 3 << 30

var errMemory = errors.New("less than 3 GiB of memory is available; measure a smaller fleet, or on a larger machine")

// guardMemory ends a trial when the machine runs out of memory.
func guardMemory(ctx context.Context, stop context.CancelCauseFunc) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return
	}
	for pause(ctx, time.Second) == nil {
		if m, err := fs.Meminfo(); err == nil && m.MemAvailableBytes != nil && *m.MemAvailableBytes < leastAvailable {
			stop(errMemory)
			return
		}
	}
}

// freeAddress returns an address of 127.0.0.1 without a listener.
func freeAddress() (string, error) {
	port, err := ports.Free()
	return "127.0.0.1:" + port, err
}

// get sends a request without a body.
func get(ctx context.Context, method, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(req)
}
