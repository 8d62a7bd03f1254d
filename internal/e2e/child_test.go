package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"
)

var listening = regexp.MustCompile(`msg(?:="|":")Listening on"(?: address=|,"address":")([^"\s]+)["\n]`)

// listensAt returns the address of the log line that says where the program listens; "" if there is
// none.
func listensAt(log string) string {
	if m := listening.FindStringSubmatch(log); m != nil {
		return m[1]
	}
	return ""
}

// itself returns the tested kpulse-proxy, which Main put into the PATH.
func itself(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("kpulse-proxy")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// child is a running kpulse-proxy.
type child struct {
	Cmd  *exec.Cmd
	URL  string     // without a path
	Done chan error // receives the result of Cmd.Wait
	log  string     // the file that it logs to
}

// startChild starts a program that logs its address, and waits until it listens. The program writes the
// file log directly, so the log is not behind its effects.
func startChild(cmd *exec.Cmd, log string) (*child, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	cmd.Stderr = file
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{Cmd: cmd, log: log, Done: make(chan error, 1)}
	go func() { c.Done <- cmd.Wait() }()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if address := listensAt(c.Logged()); address != "" {
			c.URL = "http://" + address
			return c, nil
		}
		select {
		case err := <-c.Done:
			return nil, fmt.Errorf("%s ended before it listened: %w\n%s", cmd, err, c.Logged())
		case <-time.After(5 * time.Millisecond):
		}
	}
	_ = cmd.Process.Kill()
	return nil, fmt.Errorf("%s does not listen\n%s", cmd, c.Logged())
}

// Logged returns what the child has logged.
func (c *child) Logged() string {
	text, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Get requests a path from the child, with headers given as pairs of name and value, on a
// connection of its own that both sides close.
func (c *child) Get(path string, headers ...string) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, c.URL+path, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	req.Close = true
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

// client times out after patience and follows no redirect.
var client = &http.Client{Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// Stop sends SIGTERM to the child and waits for it.
func (c *child) Stop() error {
	if err := c.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return c.Wait()
}

// Wait waits until the child has ended.
func (c *child) Wait() error {
	select {
	case err := <-c.Done:
		return err
	case <-time.After(patience):
		_ = c.Cmd.Process.Kill()
		return fmt.Errorf("%s does not end", c.Cmd)
	}
}

// Fate reports how the child ended, if it did, and its log.
func (c *child) Fate() string {
	select {
	case err := <-c.Done:
		c.Done <- err // for Wait
		return fmt.Sprintf("the program ended (%v) and logged:\n%s", err, c.Logged())
	case <-time.After(time.Second): // a killed child is not reaped at once
		return "the program runs and logged:\n" + c.Logged()
	}
}
