package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/kpulse/kpulse-proxy/internal/source/identity"
	"github.com/kpulse/kpulse-proxy/internal/source/replay"
	"github.com/kpulse/kpulse-proxy/internal/tui"
)

// attachTimeout bounds how long a proxy on this machine may take to say that it is
// there; it delays the first frame.
const attachTimeout = 500 * time.Millisecond

// dashboardGC is the garbage that the dashboard lets lie about, in percent of what it
// keeps, which six hours make larger than anything else of us has. It makes little.
const dashboardGC = 15

// dashboard shows nodes on the terminal until the user quits or ctx ends: those of
// --tui.url, else the proxy on this machine, else what a pipeline of our own reads.
// What was logged meanwhile follows on stderr when the terminal is free again.
func dashboard(ctx context.Context, opts *options, stderr io.Writer) error {
	if err := tui.CheckTerminal(os.Stdin, os.Stdout); err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(dashboardGC)
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP) // the terminal is gone
	defer stop()
	var logged tail
	defer func() { _, _ = io.WriteString(stderr, logged.String()) }()
	logger := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelWarn}))

	targets, end, err := opts.targets(ctx, logger)
	if err != nil {
		return err
	}
	defer end()
	return tui.Run(ctx, os.Stdin, os.Stdout, tui.Options{
		Targets:      targets,
		Job:          startedIn(),
		SettingsFile: tui.SettingsFile(os.LookupEnv),
		NoColor:      os.Getenv("NO_COLOR") != "",
	})
}

// targets returns what to show. The caller must call end when it is shown no more.
func (o *options) targets(ctx context.Context, logger *slog.Logger) (targets []tui.Target, end func(), err error) {
	client, err := o.tuiClient()
	if err != nil {
		return nil, nil, err
	}
	if len(o.tuiURLs) > 0 {
		for _, url := range o.tuiURLs {
			targets = append(targets, o.target(withPath(url), client))
		}
		return targets, func() {}, nil
	}
	// Who says what to read does not mean what somebody else reads.
	asked := o.origin("backend") != fromFile || o.origin("source") != fromFile || o.origin("replay") != fromFile || o.record != ""
	if url := localProxy(*o.web.WebListenAddresses); !asked && isProxy(ctx, client, url) {
		return []tui.Target{o.target(url, client)}, func() {}, nil
	}
	if o.backend.name == "replay" {
		o.controls = replay.NewControls()
	}
	p, err := assemble(ctx, o, logger)
	if err != nil {
		return nil, nil, err
	}
	life, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.run(life) // how it ends is in what the handler answers
	}()
	target := o.target(tui.InProcess, tui.Client(p.handler))
	if o.controls != nil {
		target.Playback = playback{o.controls}
	}
	return []tui.Target{target}, func() { cancel(); <-ended }, nil
}

// playback is what the dashboard's keys drive.
type playback struct{ *replay.Controls }

// State implements tui.Playback.
func (p playback) State() tui.PlaybackState { return tui.PlaybackState(p.Position()) }

// startedIn is the batch job that the dashboard runs in.
func startedIn() []tui.Variable {
	var all []tui.Variable
	for _, v := range identity.Job(os.LookupEnv) {
		all = append(all, tui.Variable(v))
	}
	return all
}

// target is the node at a URL.
func (o *options) target(url string, client *http.Client) tui.Target {
	return tui.Target{URL: url, Client: client, Choose: o.chooser(url)}
}

// tuiClient returns the client of --tui.http-config, nil without one.
func (o *options) tuiClient() (*http.Client, error) {
	if o.tuiHTTP == "" {
		return nil, nil
	}
	conf, _, err := promconfig.LoadHTTPConfigFile(o.tuiHTTP)
	if err != nil {
		return nil, fmt.Errorf("--tui.http-config=%s: %w; it is Prometheus' http_config, such as basic_auth and tls_config", o.tuiHTTP, err)
	}
	client, err := promconfig.NewClientFromConfig(*conf, "kpulse-tui")
	if err != nil {
		return nil, fmt.Errorf("--tui.http-config=%s: %w", o.tuiHTTP, err)
	}
	return client, nil
}

// withPath completes an address as people type it: node, node:9401 or a URL.
func withPath(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		scheme, rest = "http", url
	}
	host, path, _ := strings.Cut(rest, "/")
	if _, _, err := net.SplitHostPort(host); err != nil && !ok {
		host += defaultListen
	}
	return scheme + "://" + host + "/" + cmp.Or(path, "metrics")
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

// isProxy tells whether a kpulse-proxy answers at a URL. It costs no exporter a
// scrape.
func isProxy(ctx context.Context, client *http.Client, url string) bool {
	if client == nil {
		client = http.DefaultClient
	}
	ctx, cancel := context.WithTimeout(ctx, attachTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(url, "/metrics")+"/", nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(r)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	const enough = 4 << 10
	page, _ := io.ReadAll(io.LimitReader(resp.Body, enough))
	return resp.StatusCode == http.StatusOK && strings.Contains(string(page), "kpulse-proxy")
}
