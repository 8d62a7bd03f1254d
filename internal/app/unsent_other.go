//go:build !linux

package app

import (
	"context"
	"net"
)

// boundUnsent does nothing where the kernel has no such bound.
func boundUnsent(ctx context.Context, _ net.Conn) context.Context { return ctx }
