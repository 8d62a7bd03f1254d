// Package checks answers what a person asks of the program: doctor, check config, rules, counters,
// health and alive, and explain.
package checks

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/settings"
)

// checkAlive is the mode `check alive`, the health check of a container. It returns the exit
// code. It checks whether the process serves, not the state of its GPUs or sources.
func checkAlive(args []string, stdout, stderr io.Writer) int {
	url, patience, err := aliveTarget(args, stdout)
	if errors.Is(err, settings.ErrAnswered) {
		return settings.ExitDone
	}
	if err != nil {
		fmt.Fprintf(stderr, "kpulse-proxy: %v\n(kpulse-proxy --help-all explains every flag)\n", err)
		return settings.ExitUsage
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := alive(ctx, url); err != nil {
		fmt.Fprintf(stderr, "kpulse-proxy: %v\n", err)
		return settings.ExitFailed
	}
	fmt.Fprintf(stdout, "%s: alive\n", url)
	return settings.ExitDone
}

// aliveTarget returns the proxy to ask, as http://HOST:PORT, and the timeout.
func aliveTarget(args []string, stdout io.Writer) (proxy string, patience time.Duration, err error) {
	_, o, err := flagsFor("check alive", args, stdout, "url", "timeout")
	if err == nil && o.CheckURL == "" {
		var g settings.Given
		if g, err = settings.ReadFlags(flagsOfContainer(), stdout); err == nil {
			err = g.Flag("web.listen-address").Apply(o)
		}
	}
	if err != nil {
		return "", 0, err
	}
	proxy = o.CheckURL
	if proxy == "" {
		proxy = settings.LocalProxy(o.Listen)
	}
	if proxy, err = settings.WithPath(proxy); err != nil {
		return "", 0, fmt.Errorf("--url=%w; give a kpulse-proxy, such as NODE, NODE:9401 or http://NODE:9401", err)
	}
	return settings.Bare(proxy), time.Duration(o.CheckTimeout), nil
}

// flagsOfContainer returns the command line of the container, if it runs this program: a health
// check does not get it, and it may name the port.
func flagsOfContainer() []string {
	us, err := os.Stat("/proc/self/exe")
	first, err2 := os.Stat("/proc/1/exe")
	line, err3 := os.ReadFile("/proc/1/cmdline")
	if errors.Join(err, err2, err3) != nil || !os.SameFile(us, first) {
		return nil
	}
	words := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	return words[1:]
}

// alive returns the reason why no proxy serves at a URL, over TLS if the URL or the server asks
// for it. A server that asks for a password or a certificate is alive.
func alive(ctx context.Context, url string) error {
	client := &http.Client{
		// No proxy of the environment is used. The certificate is the node's, not that of
		// localhost, and no secret is sent that it would have to protect.
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	url, status, ours, err := ask(ctx, client, url, "/-/healthy")
	refused, isNetwork := errors.AsType[*net.OpError](err)
	switch {
	case status == http.StatusOK && ours, status == http.StatusUnauthorized:
		return nil
	case isNetwork && refused.Op == "remote error": // a TLS alert: it asks for a client certificate
		return nil
	case err != nil:
		return fmt.Errorf("no kpulse-proxy answers at %s: %w; start it there, or name another with --url=NODE", url, err)
	case status == http.StatusOK:
		return fmt.Errorf("%s answers, but is not kpulse-proxy; name the proxy with --url=NODE", url)
	}
	return fmt.Errorf("%s/-/healthy answers %d %s; look at its log", url, status, http.StatusText(status))
}
