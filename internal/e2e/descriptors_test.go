package e2e

import (
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOutOfDescriptors: clients that only connect take all descriptors. The log names the remedy,
// and the program continues after they leave.
func TestOutOfDescriptors(t *testing.T) {
	t.Parallel()
	c, err := startChild(exec.Command("sh", "-c", `ulimit -n 32; exec "$0" "$@"`, itself(t), "--backend=replay", "--web.listen-address=127.0.0.1:0"),
		filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop() })
	var conns []net.Conn
	for range 64 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(c.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	awaitLog(t, c, "cannot accept connections")
	for line := range strings.Lines(c.Logged()) {
		if strings.Contains(line, "cannot accept") && (!strings.Contains(line, "level=WARN") || !strings.Contains(line, "too many open files") || !strings.Contains(line, "LimitNOFILE=")) {
			t.Errorf("want a warning with cause and remedy: %s", line)
		}
	}
	for _, conn := range conns {
		conn.Close()
	}
	if _, text := page(t, c, "/-/metrics"); !strings.Contains(text, "\nkpulse_proxy_http_accept_failures_total ") || strings.Contains(text, "\nkpulse_proxy_http_accept_failures_total 0\n") {
		t.Errorf("no failure is counted:\n%s", family(text, "kpulse_proxy_http_accept"))
	}
	if n := strings.Count(c.Logged(), "cannot accept"); n != 1 {
		t.Errorf("%d warnings within a minute, want 1", n)
	}
}
