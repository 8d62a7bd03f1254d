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

// attachTimeout bounds how long we wait for a proxy on this machine to answer; it delays
// the first frame.
const attachTimeout = 500 * time.Millisecond

// attach returns the URL of the proxy that listens at one, over TLS where that is what
// it speaks and client, which may be nil, trusts it. Where something listens that may
// be one but refuses us, why is the reason and what to do.
func attach(ctx context.Context, client *http.Client, url string) (attached, why string) {
	switch status, ours := greet(ctx, client, url); {
	case ours:
		return url, ""
	case status == http.StatusUnauthorized:
		return "", notAttached(url, "credentials")
	case status != http.StatusBadRequest: // Go's server answers so where it speaks TLS
		return "", ""
	}
	url = "https" + strings.TrimPrefix(url, "http")
	switch status, ours := greet(ctx, client, url); {
	case ours:
		return url, ""
	case status == http.StatusUnauthorized:
		return "", notAttached(url, "credentials")
	}
	return "", notAttached(url, "TLS")
}

// notAttached reports that we read by ourselves beside a proxy that may have been meant.
func notAttached(url, wants string) string {
	address := strings.TrimSuffix(url, "/metrics")
	return fmt.Sprintf("read by ourselves: what listens at %s wants %s; if that is the proxy, show it with --tui.url=%s --tui.http-config=FILE", address, wants, address)
}

// greet asks for the landing page at a URL, which costs no exporter a scrape. It returns
// the status, 0 for no answer, and whether a kpulse-proxy gave it.
func greet(ctx context.Context, client *http.Client, url string) (status int, ours bool) {
	if client == nil {
		client = http.DefaultClient
	}
	ctx, cancel := context.WithTimeout(ctx, attachTimeout)
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

// localProxy returns the URL of a proxy on this machine that listens at the first of
// these addresses.
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

// withoutEffect names the flags of the command line that mean nothing to the proxies
// that are shown, and what to do; "" if there is none. What the environment sets
// may be set for the proxy beside us: in its container, all of its settings may be
// there.
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
