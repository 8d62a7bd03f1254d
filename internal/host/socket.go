package host

import (
	"errors"
	"net"
	"net/netip"
	"path/filepath"

	"github.com/prometheus/procfs"
)

// States of a TCP socket (the kernel's include/net/tcp_states.h).
const (
	established = 1
	synReceived = 3
	listening   = 10
)

// errUnowned means that it cannot be said who owns the other end of a connection, as if that end has closed it.
var errUnowned = errors.New("the owner of the connection cannot be found")

// PeerOwner returns the user id that owns the other end of a connection over loopback, given by the addresses of
// our end and of theirs, while the connection is open. If nobody has accepted it yet, that is the owner of the socket that listens.
// here is false if that end is not in this network namespace, as behind a forwarded port.
func PeerOwner(proc, our, their string) (uid uint64, here bool, err error) {
	ours, wrong := netip.ParseAddrPort(our)
	theirs, err := netip.ParseAddrPort(their)
	if err := errors.Join(wrong, err); err != nil {
		return 0, false, err
	}
	if d, err := diagnose(); err == nil {
		defer d.close()
		// It only confirms: it lacks sockets that are bound to an interface, and all of them without the kernel's module tcp_diag.
		if uid, here, _ := peerOwner(func() finder { return d.find }, ours, theirs); here {
			return uid, true, nil
		}
	}
	return peerOwner(func() finder { return (&tables{proc: proc}).find }, ours, theirs)
}

// finder returns the socket from an address to another or, without that, the one that listens there, on that
// address before all; nil if there is none.
type finder func(at netip.AddrPort, to *netip.AddrPort) *socket

// peerOwner is PeerOwner, by finders that look at the sockets anew.
func peerOwner(look func() finder, ours, theirs netip.AddrPort) (uid uint64, here bool, err error) {
	// A socket that is accepted between two looks is in neither as it should be.
	for range 3 {
		find := look()
		listener := find(theirs, nil) // before the end: it stays while a connection waits for it
		end := find(theirs, &ours)
		switch {
		case end == nil:
			// If it was closed before that look, our end knows by now.
			if our := look()(ours, &theirs); our == nil || our.state != established {
				return 0, false, errUnowned
			}
			return 0, false, nil
		case end.state == established && end.inode != 0: // without an inode it has no owner yet, and the kernel gives 0
			return end.uid, true, nil
		case end.inode != 0 || end.state != established && end.state != synReceived: // it closes, and another may listen there
			return 0, false, errUnowned
		case listener != nil:
			return listener.uid, true, nil
		}
	}
	return 0, false, errUnowned
}

// socket is a TCP socket of this network namespace.
type socket struct{ state, uid, inode uint64 }

// tables are one look at all TCP sockets, over IPv4 and then IPv6, where the kernel does not tell of one. Each is read
// when first needed: the kernel takes milliseconds to write one.
type tables struct {
	proc string
	read [2]procfs.NetTCP
	have int
}

// lines returns one of the tables; none if it is missing.
func (t *tables) lines(i int) procfs.NetTCP {
	if fs, err := procfs.NewFS(filepath.Clean(t.proc)); i == t.have && err == nil {
		//lint:ignore SA1019 What is deprecated for netlink is needed where netlink is missing.
		read := [2]func() (procfs.NetTCP, error){fs.NetTCP, fs.NetTCP6}
		t.read[i], _ = read[i]() // either may be missing
		t.have++
	}
	return t.read[i]
}

// find is a finder.
func (t *tables) find(at netip.AddrPort, to *netip.AddrPort) (found *socket) {
	for i := range t.read {
		for _, line := range t.lines(i) {
			one, is := &socket{line.St, line.UID, line.Inode}, isSame(line.LocalAddr, line.LocalPort, at)
			switch ip := net.IP(line.LocalAddr); {
			case to != nil && is && isSame(line.RemAddr, line.RemPort, *to), to == nil && is && line.St == listening:
				return one
			case to == nil && line.St == listening && ip.IsUnspecified() && line.LocalPort == uint64(at.Port()):
				if at.Addr().Unmap().Is4() || ip.To4() == nil { // that of IPv6 takes IPv4 too
					found = one
				}
			}
		}
	}
	return found
}

// isSame reports whether an end of a socket is an address. One of IPv6 may hold one of IPv4.
func isSame(ip net.IP, port uint64, a netip.AddrPort) bool {
	return port == uint64(a.Port()) && ip.Equal(a.Addr().Unmap().AsSlice())
}
