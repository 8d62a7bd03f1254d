package host

import (
	"net"
	"os"
	"syscall"
	"testing"
)

// TestPeerOwnerBoundToAnInterface: the kernel does not tell of a listener that is bound to an interface, as any
// user can bind one, but it is there.
func TestPeerOwnerBoundToAnInterface(t *testing.T) {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if wrong := c.Control(func(fd uintptr) { err = syscall.BindToDevice(int(fd), "lo") }); wrong != nil {
			return wrong
		}
		return err
	}}
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip(err) // before Linux 5.7 it needs a capability
	}
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if uid, here, err := PeerOwner("/proc", conn.LocalAddr().String(), conn.RemoteAddr().String()); !here || uid != uint64(os.Getuid()) || err != nil {
		t.Errorf("uid %d, here %t, %v", uid, here, err)
	}
}
