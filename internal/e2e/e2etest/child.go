package e2etest

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

// ListensAt returns the address at which a line of the log says that the program listens,
// "" if it says nothing of that.
func ListensAt(log string) string {
	if m := listening.FindStringSubmatch(log); m != nil {
		return m[1]
	}
	return ""
}

// Path is the kpulse-proxy that is tested, which Main put into the PATH.
func Path(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("kpulse-proxy")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Child is a running kpulse-proxy.
type Child struct {
	Cmd  *exec.Cmd
	URL  string     // without a path
	Done chan error // has what Cmd.Wait returned once the program has ended
	log  string     // the file that it logs to
}

// Start starts a program that logs where it listens, and waits until it does. It logs to
// a new file by itself: what it did is there once it shows.
func Start(cmd *exec.Cmd, log string) (*Child, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	cmd.Stderr = file
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &Child{Cmd: cmd, log: log, Done: make(chan error, 1)}
	go func() { c.Done <- cmd.Wait() }()
	for end := time.Now().Add(Patience); time.Now().Before(end); {
		if address := ListensAt(c.Logged()); address != "" {
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
func (c *Child) Logged() string {
	text, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Get asks the child for a path, with headers given as pairs of name and value, over a
// connection of its own: none is left open on either side.
func (c *Child) Get(path string, headers ...string) (status int, body string, err error) {
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

// client has the patience of tests, and follows no redirect.
var client = &http.Client{Timeout: Patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// Stop asks the child to end and waits for it.
func (c *Child) Stop() error {
	if err := c.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return c.Wait()
}

// Wait waits until the child has ended.
func (c *Child) Wait() error {
	select {
	case err := <-c.Done:
		return err
	case <-time.After(Patience):
		_ = c.Cmd.Process.Kill()
		return fmt.Errorf("%s does not end", c.Cmd)
	}
}

// Fate says how the child ended, if it did, and what it has logged.
func (c *Child) Fate() string {
	select {
	case err := <-c.Done:
		c.Done <- err // for who waits
		return fmt.Sprintf("the program ended (%v) and logged:\n%s", err, c.Logged())
	case <-time.After(time.Second): // one that was killed is not reaped at once
		return "the program runs and logged:\n" + c.Logged()
	}
}
