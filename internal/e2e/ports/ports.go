// Package ports finds free ports on this machine for the servers of tests.
package ports

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
)

// Closed is an address without a listener, now and later.
const Closed = "127.0.0.1:1"

// first and all are the range of Free. It has no ephemeral ports, which the system could give to
// another program before the server listens.
const first, all = 10_000, 20_000

// next counts the ports that were tried. It begins at a random port, as other programs may test at
// the same time.
var next atomic.Int64

func init() { next.Store(rand.Int64N(all)) }

// Free returns a port of 127.0.0.1 without a listener, a different one each time. It fails if there
// is none.
func Free() (string, error) {
	for range all {
		port := first + int(next.Add(1)%all)
		if l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}); err == nil {
			return strconv.Itoa(port), l.Close()
		}
	}
	return "", errors.New("no port of 127.0.0.1 is free")
}
