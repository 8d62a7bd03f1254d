package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/e2e/e2etest"
)

// fill writes to the pipe of w until the pipe is full.
func fill(t *testing.T, w *os.File) {
	t.Helper()
	// A separate file description: the child shares the flags of w.
	fd, err := syscall.Open(fmt.Sprintf("/proc/self/fd/%d", w.Fd()), syscall.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Skip("cannot reopen the pipe: ", err)
	}
	defer syscall.Close(fd)
	for _, size := range []int{4096, 1} {
		for err = nil; err == nil; {
			_, err = syscall.Write(fd, []byte(strings.Repeat("\n", size)))
		}
	}
}

// TestLogThatNobodyReads: while stderr is not read, scrapes that log are still answered. The log
// continues when it is read again.
func TestLogThatNobodyReads(t *testing.T) {
	t.Parallel()
	var status atomic.Int32
	status.Store(http.StatusOK)
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if code := int(status.Load()); code != http.StatusOK {
			http.Error(w, "no", code)
			return
		}
		io.WriteString(w, oneGPU)
	}))
	defer exporter.Close()
	log, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(itself(t), "--web.listen-address=127.0.0.1:0", "--source="+exporter.URL, "--poll=0", "--source.min-interval=0s")
	cmd.Stderr = end
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	lines := bufio.NewReader(log)
	c := &child{Cmd: cmd}
	for c.URL == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if address := e2etest.ListensAt(line); address != "" {
			c.URL = "http://" + address
		}
	}
	fill(t, end)
	for n, want := range []int{200, 502, 200, 502, 200} {
		status.Store(int32(want)) // the exporter's 502 becomes ours
		if code, body := scrapeFor(t, c, 20); code != want {
			t.Fatalf("scrape %d: %d %s, want %d", n, code, body, want)
		}
	}
	end.Close()
	want := []string{"source cannot be read", "source can be read again", "source cannot be read", "source can be read again"}
	for len(want) > 0 {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%v; the log lacks %q", err, want)
		}
		if strings.Contains(line, want[0]) {
			want = want[1:]
		}
	}
}
