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
// the request, wants is what it asks for. It requests the landing page, which costs no exporter a
// scrape.
func Attach(ctx context.Context, client *http.Client, url string, patience time.Duration) (at, wants string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	at, status, ours, _ := ask(ctx, client, strings.TrimSuffix(url, "/metrics"), "/")
	at += "/metrics"
	switch {
	case ours && status == http.StatusOK:
		return at, ""
	case status == http.StatusUnauthorized:
		return at, "credentials"
	case strings.HasPrefix(at, "https"):
		return at, "TLS"
	}
	return "", ""
}

// RefusedUs returns a message that a server that may be the proxy wants credentials or TLS.
// remedy ends before its address, as in: show it with --tui.url=.
func RefusedUs(url, wants, remedy string) string {
	address := strings.TrimSuffix(url, "/metrics")
	return fmt.Sprintf("what listens at %s wants %s; if that is the proxy, %s%s --tui.http-config=FILE", address, wants, remedy, address)
}

// ask requests a path of the server at a URL by client, which may be nil, over TLS if the server
// demands it. It returns the URL that it asked, the status, or 0, and whether the server is a
// kpulse-proxy.
func ask(ctx context.Context, client *http.Client, url, path string) (at string, status int, ours bool, err error) {
	if client == nil {
		client = http.DefaultClient
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, nil)
	if err != nil {
		return url, 0, false, err
	}
	resp, err := client.Do(r)
	if err != nil {
		return url, 0, false, err
	}
	resp.Body.Close()
	if plain, is := strings.CutPrefix(url, "http://"); is && resp.StatusCode == http.StatusBadRequest { // the answer of Go's TLS server to plain HTTP
		return ask(ctx, client, "https://"+plain, path)
	}
	return url, resp.StatusCode, resp.Header.Get("Server") == expose.ServerName, nil
}
