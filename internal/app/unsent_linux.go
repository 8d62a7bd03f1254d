package app

import (
	"context"
	"net"
	"syscall"
)

const (
	// tcpNotSentLowAt is Linux' TCP_NOTSENT_LOWAT (include/uapi/linux/tcp.h), the same
	// number on every architecture; package syscall lacks it.
	tcpNotSentLowAt = 25
	// maxUnsent is how many bytes the kernel keeps of an answer before they are sent.
	maxUnsent = 128 << 10
)

// boundUnsent is a ConnContext that bounds what the kernel buffers unsent for a client. A
// write that blocks wakes as soon as less is left. Without a bound it sleeps until a third
// of the send buffer is free, often a megabyte, and a client that reads steadily but
// slowly looks like one that does not read.
func boundUnsent(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = t.NetConn()
	}
	if s, ok := c.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) {
				_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotSentLowAt, maxUnsent) // not of a Unix socket
			})
		}
	}
	return ctx
}
