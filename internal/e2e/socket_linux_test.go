package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSocketActivation listens with systemd's own tool, which hands over the socket with the first
// connection, as systemd does with kpulse-proxy.socket and socket.conf.
func TestSocketActivation(t *testing.T) {
	t.Parallel()
	activate, err := exec.LookPath("systemd-socket-activate")
	if err != nil {
		t.Skip("no systemd-socket-activate in the PATH; apt-get install systemd")
	}
	address := freeAddress(t)
	cmd := exec.Command(activate, "--listen="+address, "--setenv=PATH", "--setenv=KPULSE_WEB_SYSTEMD_SOCKET=true", "--setenv=KPULSE_BACKEND=replay", itself(t))
	program, asked := itself(t), make(chan struct{})
	go func() {
		defer close(asked)
		// The first accepted connection starts the program.
		for exec.Command(program, "check", "alive", "--url="+address).Run() != nil && t.Context().Err() == nil {
			time.Sleep(50 * time.Millisecond)
		}
	}()
	proxy, err := startChild(cmd, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { proxy.Stop() })
	<-asked
	if proxy.URL != "http://"+address || !strings.Contains(proxy.Logged(), "systemd activated listeners") {
		t.Errorf("it listens at %s, want %s of systemd:\n%s", proxy.URL, address, proxy.Logged())
	}
}
