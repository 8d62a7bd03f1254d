package app

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// attachTimeout bounds how long a proxy on this machine may take to say that it is
// there; it delays the first frame.
const attachTimeout = 500 * time.Millisecond

// attach returns the URL of the proxy that listens at one, which may want TLS that
// client has. Where there is one perhaps, and it lets us not in, why says so and what
// to do.
func attach(ctx context.Context, client *http.Client, url string) (attached, why string) {
	switch greet(ctx, client, url) {
	case isProxy:
		return url, ""
	case wantsTLS:
		secure := "https" + strings.TrimPrefix(url, "http")
		if client != nil {
			if attached, why = attach(ctx, client, secure); attached != "" || why != "" {
				return attached, why
			}
		}
		return "", notAttached(secure, "TLS")
	case wantsPassword:
		return "", notAttached(url, "credentials")
	}
	return "", ""
}

// notAttached says that we read by ourselves beside a proxy that may have been meant.
func notAttached(url, wants string) string {
	address := strings.TrimSuffix(url, "/metrics")
	return fmt.Sprintf("read by ourselves: what listens at %s wants %s; if that is the proxy, show it with --tui.url=%s --tui.http-config=FILE", address, wants, address)
}

// localProxy returns the URL of a proxy on this machine that listens at the first
// of these addresses.
func localProxy(listen []string) string {
	address := defaultListen
	if len(listen) > 0 {
		address = listen[0]
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port) + "/metrics"
}

// greeting is what an address answered.
type greeting uint8

const (
	isNothing     greeting = iota // that we know
	isProxy                       // a kpulse-proxy
	wantsTLS                      // something that speaks HTTPS alone
	wantsPassword                 // something that wants to know who we are
)

// greet asks for the landing page at a URL, which costs no exporter a scrape.
func greet(ctx context.Context, client *http.Client, url string) greeting {
	if client == nil {
		client = http.DefaultClient
	}
	ctx, cancel := context.WithTimeout(ctx, attachTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(url, "/metrics")+"/", nil)
	if err != nil {
		return isNothing
	}
	resp, err := client.Do(r)
	if err != nil {
		return isNothing
	}
	defer resp.Body.Close()
	const enough = 4 << 10
	page, _ := io.ReadAll(io.LimitReader(resp.Body, enough))
	switch text := string(page); {
	case resp.StatusCode == http.StatusOK && strings.Contains(text, "kpulse-proxy"):
		return isProxy
	case resp.StatusCode == http.StatusBadRequest && strings.Contains(text, "HTTP request to an HTTPS server"): // Go's net/http says so
		return wantsTLS
	case resp.StatusCode == http.StatusUnauthorized:
		return wantsPassword
	}
	return isNothing
}

// ofReading are the flags that say what to read, how, and how to judge it. Where the
// dashboard shows what another proxy says, that one has been told.
var ofReading = []string{
	"backend", "source", "replay", "record", "poll", "source.min-interval", "source.timeout", "source.max-body", "node-name",
	"dcgm.host", "hpc-job-mapping-dir", "collector.processes", "collector.processes.cmdline",
	"config.file", "preset", "weights", "missing-inputs", "min-coverage", "expected-gpus", "series-limit",
}

// without says which flags of the command line mean nothing to the proxies that are
// shown, and what to do; "" if none does. What the environment says, it says to the
// proxy beside us too: in its container, all of its settings may stand there.
func (o *options) without(proxies, remedy string) string {
	var given []string
	for _, flag := range ofReading {
		if o.origin(flag) == fromCommandLine {
			given = append(given, "--"+flag)
		}
	}
	switch last := len(given) - 1; last {
	case -1:
		return ""
	case 0:
		return fmt.Sprintf("%s has no effect: these are the numbers of %s; start it with that, or %s", given[0], proxies, remedy)
	default:
		return fmt.Sprintf("%s and %s have no effect: these are the numbers of %s; start it with them, or %s",
			strings.Join(given[:last], ", "), given[last], proxies, remedy)
	}
}
