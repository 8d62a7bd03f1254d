package e2e

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
)

// closedAddress is an address without a listener, now and later.
const closedAddress = "127.0.0.1:1"

// firstPort and ports are the range of freePort. It has no ephemeral ports, which the system could
// give to another program while tests run in parallel.
const firstPort, ports = 10_000, 20_000

// nextPort counts the ports that were tried. It begins at a random port, as other programs may test
// at the same time.
var nextPort atomic.Int64

func init() { nextPort.Store(rand.Int64N(ports)) }

// freePort returns a port of 127.0.0.1 without a listener, a different one each time.
func freePort() (string, error) {
	for range ports {
		port := strconv.FormatInt(firstPort+nextPort.Add(1)%ports, 10)
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			return port, l.Close()
		}
	}
	return "", errors.New("no port is free")
}

// freeAddress returns an address of 127.0.0.1 with a port of freePort.
func freeAddress(t *testing.T) string {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	return "127.0.0.1:" + port
}
