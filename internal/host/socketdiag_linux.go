package host

import (
	"encoding/binary"
	"net/netip"
	"syscall"
)

// sockDiagByFamily is a message of the kernel's include/uapi/linux/sock_diag.h.
const sockDiagByFamily = 20

// Sizes of netlink's header, and of struct inet_diag_req_v2 behind it, of include/uapi/linux/inet_diag.h.
const (
	netlinkHeader = 16
	diagRequest   = 56
)

// diagnosis is a netlink socket over which the kernel tells of one TCP socket at a time, in microseconds.
type diagnosis int

// diagnose opens a diagnosis. The caller closes it.
func diagnose() (diagnosis, error) {
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.NETLINK_INET_DIAG)
	return diagnosis(fd), err
}

func (d diagnosis) close() { syscall.Close(int(d)) }

// find is a finder. It finds no socket that is bound to an interface, and none if the kernel lacks the module tcp_diag.
func (d diagnosis) find(at netip.AddrPort, to *netip.AddrPort) *socket {
	peer := netip.AddrPort{}
	if to != nil {
		peer = *to
	}
	if syscall.Sendto(int(d), request(at, peer), 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}) != nil {
		return nil
	}
	reply := make([]byte, 4096)
	n, _, err := syscall.Recvfrom(int(d), reply, 0)
	if err != nil || n < netlinkHeader+72 || binary.NativeEndian.Uint16(reply[4:]) != sockDiagByFamily {
		return nil
	}
	message := reply[netlinkHeader:n] // struct inet_diag_msg
	found := &socket{uint64(message[1]), uint64(binary.NativeEndian.Uint32(message[64:])), uint64(binary.NativeEndian.Uint32(message[68:]))}
	if (found.state == listening) != (to == nil) { // the kernel answers with what listens where a connection is unknown
		return nil
	}
	return found
}

// request returns a message that asks for the socket from an address to another; zero is any other.
func request(at, to netip.AddrPort) []byte {
	m := make([]byte, 0, netlinkHeader+diagRequest)
	m = binary.NativeEndian.AppendUint32(m, netlinkHeader+diagRequest)
	m = binary.NativeEndian.AppendUint16(m, sockDiagByFamily)
	m = binary.NativeEndian.AppendUint16(m, syscall.NLM_F_REQUEST)
	m = append(m, 0, 0, 0, 0, 0, 0, 0, 0) // sequence and port: one answer, to us
	family := byte(syscall.AF_INET6)
	if at.Addr().Unmap().Is4() {
		family = syscall.AF_INET
	}
	m = append(m, family, syscall.IPPROTO_TCP, 0, 0)
	m = binary.NativeEndian.AppendUint32(m, ^uint32(0)) // in any state
	m = binary.BigEndian.AppendUint16(m, at.Port())
	m = binary.BigEndian.AppendUint16(m, to.Port())
	for _, a := range []netip.Addr{at.Addr(), to.Addr()} {
		var address [16]byte
		copy(address[:], a.Unmap().AsSlice())
		m = append(m, address[:]...)
	}
	m = append(m, 0, 0, 0, 0)                              // on any interface
	return binary.NativeEndian.AppendUint64(m, ^uint64(0)) // without a cookie
}
