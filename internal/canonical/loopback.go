package canonical

import (
	"net"
	"net/netip"
	"strings"
)

// NamesLoopback reports whether host, with or without a port, is a loopback name or address.
// Every machine has these, so they identify none.
func NamesLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	for _, name := range []string{"localhost", "localhost.localdomain"} {
		if strings.EqualFold(strings.TrimSuffix(host, "."), name) {
			return true
		}
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
