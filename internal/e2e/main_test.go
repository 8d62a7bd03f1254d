package e2e

import (
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/e2e/e2etest"
	"github.com/kpulse/kpulse-proxy/internal/e2e/ports"
)

// patience is how long a test waits for an event.
const patience = e2etest.Patience

// child is a running kpulse-proxy, or another program that logs its address.
type child = e2etest.Child

// Short names of common helpers.
var (
	itself     = e2etest.Path
	startChild = e2etest.Start
)

// freeAddress returns an address of 127.0.0.1 without a listener.
func freeAddress(t *testing.T) string {
	t.Helper()
	port, err := ports.Free()
	if err != nil {
		t.Fatal(err)
	}
	return "127.0.0.1:" + port
}

// TestMain puts kpulse-proxy, and the programs that tests compare it with, into the PATH.
func TestMain(m *testing.M) {
	e2etest.Main(suite{m}, map[string]func(){
		"reverse-proxy": reverseProxyMain,
	})
}

// suite is all tests, and the teardown of what they share.
type suite struct{ *testing.M }

// Run implements testscript.TestingM.
func (s suite) Run() int {
	defer stopCluster()
	return s.M.Run()
}
