package host

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// TestPeerOwner asks the kernel, and the tables of /proc, for the owner of a listener of our own, before and after it
// accepts, over both versions of IP.
func TestPeerOwner(t *testing.T) {
	for _, c := range []struct{ listen, dial string }{{"127.0.0.1:0", "127.0.0.1"}, {":0", "127.0.0.1"}, {":0", "::1"}} {
		l, err := net.Listen("tcp", c.listen)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		conn, err := net.Dial("tcp", net.JoinHostPort(c.dial, strconv.Itoa(l.Addr().(*net.TCPAddr).Port)))
		if err != nil {
			t.Logf("%s: %v", c.dial, err) // a machine without IPv6
			continue
		}
		defer conn.Close()
		for _, when := range []string{"waiting", "accepted"} {
			wantOwner(t, conn, when)
			if when == "waiting" {
				accepted, err := l.Accept()
				if err != nil {
					t.Fatal(err)
				}
				defer accepted.Close()
			}
		}
	}
}

// wantOwner fails if the other end of a connection is not ours, by any way to ask.
func wantOwner(t *testing.T, conn net.Conn, when string) {
	t.Helper()
	ours, theirs := netip.MustParseAddrPort(conn.LocalAddr().String()), netip.MustParseAddrPort(conn.RemoteAddr().String())
	want := func(way string, uid uint64, here bool, err error) {
		if !here || uid != uint64(os.Getuid()) || err != nil {
			t.Errorf("%s, %s, by %s: uid %d, here %t, %v", theirs, when, way, uid, here, err)
		}
	}
	uid, here, err := PeerOwner("/proc", ours.String(), theirs.String())
	want("itself", uid, here, err)
	uid, here, err = peerOwner(func() finder { return (&tables{proc: "/proc"}).find }, ours, theirs)
	want("tables", uid, here, err)
	d, err := diagnose()
	if err != nil {
		return
	}
	defer d.close()
	if d.find(ours, &theirs) == nil {
		t.Log("the kernel does not tell of single sockets")
		return
	}
	uid, here, err = peerOwner(func() finder { return d.find }, ours, theirs)
	want("diagnosis", uid, here, err)
	for _, to := range []*netip.AddrPort{&ours, nil} {
		told, listed := d.find(theirs, to), (&tables{proc: "/proc"}).find(theirs, to)
		if told == nil || listed == nil || *told != *listed {
			t.Errorf("%s, %s: the kernel tells of %+v, and lists %+v", theirs, when, told, listed)
		}
	}
	nobody := netip.AddrPortFrom(ours.Addr(), 1)
	if found := d.find(theirs, &nobody); found != nil {
		t.Errorf("%s from %s: %+v, and there is no such connection", theirs, nobody, found)
	}
}

// pair is a conn between two addresses, of which /proc/net/tcp has the lines given.
type pair struct {
	net.Conn
	here, there net.Addr
}

func (p pair) LocalAddr() net.Addr  { return p.here }
func (p pair) RemoteAddr() net.Addr { return p.there }

// TestPeerOwnerOfTables reads tables that no test can make for real: other users', and none.
func TestPeerOwnerOfTables(t *testing.T) {
	const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	line := func(local, remote string, state, uid, inode int) string {
		return fmt.Sprintf("   0: %s %s %02X 00000000:00000000 00:00000000 00000000 %5d        0 %d 1 0 100 0 0 10 0\n", local, remote, state, uid, inode)
	}
	// 127.0.0.1:9401 is 0100007F:24B9, and our end 127.0.0.1:50000 is 0100007F:C350.
	const server, client, any = "0100007F:24B9", "0100007F:C350", "00000000:24B9"
	conn := pair{here: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 50000}, there: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9401}}
	for _, c := range []struct {
		name, table string
		uid         uint64
		here, fails bool
	}{
		{"accepted by a user", line(any, "00000000:0000", 10, 0, 7) + line(server, client, 1, 1000, 8), 1000, true, false},
		{"waits for a user", line(server, client, 1, 0, 0) + line(any, "00000000:0000", 10, 1000, 7), 1000, true, false},
		{"of systemd, accepted by a dynamic user", line(any, "00000000:0000", 10, 0, 7) + line(server, client, 1, 61184, 8), 61184, true, false},
		{"in another namespace", line(client, server, 1, 1000, 8), 0, false, false},
		{"it has answered and closed", line(client, server, 8, 1000, 8), 0, false, true},
		{"it closes, and no one listens", line(server, client, 6, 0, 0) + line(client, server, 8, 1000, 8), 0, false, true},
		{"half closed, and root listens at its port", line(any, "00000000:0000", 10, 0, 7) + line(server, client, 5, 1000, 8), 0, false, true},
		{"all is closed", "", 0, false, true},
	} {
		proc := t.TempDir()
		if err := os.MkdirAll(filepath.Join(proc, "net"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, "net/tcp"), []byte(head+c.table), 0o600); err != nil {
			t.Fatal(err)
		}
		if uid, here, err := PeerOwner(proc, conn.LocalAddr().String(), conn.RemoteAddr().String()); uid != c.uid || here != c.here || (err != nil) != c.fails {
			t.Errorf("%s: %d, %t, %v, want %d, %t", c.name, uid, here, err, c.uid, c.here)
		}
	}
}
