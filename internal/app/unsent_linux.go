package app

import (
	"context"
	"net"
	"syscall"
)

const (
	// tcpNotSentLowAt is Linux' TCP_NOTSENT_LOWAT (include/uapi/linux/tcp.h), which is the same
	// on all architectures; package syscall lacks it.
	tcpNotSentLowAt = 25
	// maxUnsent bounds the unsent bytes of a response that the kernel buffers. With 128 KiB a response of 1,024 MIG instances
	// takes 6 % more CPU. Of 40 clients that stop reading, this is 20 MiB in the cgroup.
	maxUnsent = 512 << 10
)

// boundUnsent is a ConnContext that bounds the unsent bytes that the kernel buffers for a client. A
// blocked write wakes as soon as fewer are left. Without the bound it sleeps until a third of the
// send buffer, often a megabyte, is free, and a client that reads steadily but slowly looks like
// one that does not read.
func boundUnsent(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = t.NetConn()
	}
	if s, ok := c.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) {
				_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotSentLowAt, maxUnsent) // fails for a Unix socket
			})
		}
	}
	return ctx
}
