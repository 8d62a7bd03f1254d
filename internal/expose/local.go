package expose

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// proxyHeaders are what proxies add to a request that they pass on: who sent it is
// not who it comes from.
var proxyHeaders = []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Forwarded", "Via"}

// isLocal tells whether a request was made on this machine, as far as one can see.
// It must also have been addressed to localhost: a proxy here may say nothing of
// itself, and a browser here may ask for a page of somebody else's, who has pointed
// his name at us.
func isLocal(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().IsLoopback() || !namesLoopback(r.Host) {
		return false
	}
	for _, name := range proxyHeaders {
		if len(r.Header.Values(name)) > 0 {
			return false
		}
	}
	return true
}

// namesLoopback tells whether host, with or without a port, is this machine to
// itself.
func namesLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
