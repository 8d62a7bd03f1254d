package checks

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/expose"
)

// Attach finds the proxy that listens at a URL, over TLS if it serves TLS and client, which may
// be nil, trusts it. It returns the proxy's URL, or "". If a server may be a proxy but refuses
// the request, wants is what it asks for. Each of two requests, for the landing page, which costs no
// exporter a scrape, may take as long as patience.
func Attach(ctx context.Context, client *http.Client, url string, patience time.Duration) (at, wants string) {
	for {
		bounded, cancel := context.WithTimeout(ctx, patience)
		status, ours, _ := ask(bounded, client, strings.TrimSuffix(url, "/metrics")+"/")
		cancel()
		switch {
		case ours && status == http.StatusOK:
			return url, ""
		case status == http.StatusUnauthorized:
			return url, "credentials"
		case strings.HasPrefix(url, "https"):
			return url, "TLS"
		case status != http.StatusBadRequest: // the answer of Go's TLS server to plain HTTP
			return "", ""
		}
		url = "https" + strings.TrimPrefix(url, "http")
	}
}

// RefusedUs returns a message that a server that may be the proxy wants credentials or TLS.
// remedy ends before its address, as in: show it with --tui.url=.
func RefusedUs(url, wants, remedy string) string {
	address := strings.TrimSuffix(url, "/metrics")
	return fmt.Sprintf("what listens at %s wants %s; if that is the proxy, %s%s --tui.http-config=FILE", address, wants, remedy, address)
}

// ask requests a URL by client, which may be nil. It returns the status, or 0, and whether the server is a
// kpulse-proxy.
func ask(ctx context.Context, client *http.Client, url string) (status int, ours bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, false, err
	}
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, false, err
	}
	resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("Server") == expose.ServerName, nil
}
