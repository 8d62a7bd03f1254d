package app

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/expose"
)

// attachTimeout bounds how long a dashboard waits for a proxy on this machine to answer, which
// delays the first frame.
const attachTimeout = 500 * time.Millisecond

// attach finds the proxy that listens at a URL, over TLS if it serves TLS and client, which may
// be nil, trusts it. It returns the proxy's URL, or "". If a server may be a proxy but refuses
// the request, wants is what it asks for. Each of two requests may take as long as patience.
func attach(ctx context.Context, client *http.Client, url string, patience time.Duration) (at, wants string) {
	switch status, ours := greet(ctx, client, url, patience); {
	case ours:
		return url, ""
	case status == http.StatusUnauthorized:
		return url, "credentials"
	case status != http.StatusBadRequest: // the answer of Go's TLS server to plain HTTP
		return "", ""
	}
	url = "https" + strings.TrimPrefix(url, "http")
	switch status, ours := greet(ctx, client, url, patience); {
	case ours:
		return url, ""
	case status == http.StatusUnauthorized:
		return url, "credentials"
	}
	return url, "TLS"
}

// refusedUs returns a message that a server that may be the proxy wants credentials or TLS.
// remedy ends before its address, as in: show it with --tui.url=.
func refusedUs(url, wants, remedy string) string {
	address := strings.TrimSuffix(url, "/metrics")
	return fmt.Sprintf("what listens at %s wants %s; if that is the proxy, %s%s --tui.http-config=FILE", address, wants, remedy, address)
}

// greet requests the landing page at a URL, which costs no exporter a scrape. It returns the
// status, or 0, and whether a kpulse-proxy answered.
func greet(ctx context.Context, client *http.Client, url string, patience time.Duration) (status int, ours bool) {
	if client == nil {
		client = http.DefaultClient
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(url, "/metrics")+"/", nil)
	if err != nil {
		return 0, false
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, false
	}
	resp.Body.Close()
	return resp.StatusCode, resp.StatusCode == http.StatusOK && resp.Header.Get("Server") == expose.ServerName
}

// readsItself reports whether settings of origin least or higher ask to read a source directly
// rather than through another proxy.
func (o *options) readsItself(least origin) bool {
	given := max(o.origin("backend"), o.origin("source"), o.origin("replay"), o.origin("record"))
	return given >= least || len(o.Sources) > 0 && o.origin("config.file") == fromCommandLine
}

// theProxyAt returns the name of a proxy for a message.
func theProxyAt(url string) string { return "the proxy at " + strings.TrimSuffix(url, "/metrics") }

// localProxy returns the URL of a proxy on this machine that listens at the first of these
// addresses, or "" if it has no URL.
func localProxy(listen []string) string {
	host, port, err := net.SplitHostPort(listen[0])
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port) + "/metrics"
}

// withoutEffect returns a message that names the flags of the command line that have no effect
// on the proxies that are shown, and what to do; "" if there are none. It ignores the
// environment, which may be meant for a proxy beside us, as in its container.
func (o *options) withoutEffect(proxies, remedy string) string {
	var flags []string
	for _, f := range o.given {
		if f.typed && f.setting.modes&modeTUI != 0 && f.setting.modes&modeAttach == 0 {
			flags = append(flags, f.name())
		}
	}
	switch last := len(flags) - 1; last {
	case -1:
		return ""
	case 0:
		return fmt.Sprintf("%s has no effect: these are the numbers of %s; start it with that, or %s", flags[0], proxies, remedy)
	default:
		return fmt.Sprintf("%s and %s have no effect: these are the numbers of %s; start it with them, or %s",
			strings.Join(flags[:last], ", "), flags[last], proxies, remedy)
	}
}
