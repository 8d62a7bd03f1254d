package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	promconfig "github.com/prometheus/common/config"

	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/source/replay"
	"github.com/kpulse/kpulse-proxy/internal/tui"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// dashboard shows nodes on the terminal until the user quits or ctx ends: those of --tui.url,
// else the proxy on this machine, else the readings of its own pipeline. Afterwards it writes the
// last log lines to stderr.
func dashboard(ctx context.Context, opts *options, stderr io.Writer) error {
	if err := tui.CheckTerminal(os.Stdin, os.Stdout, os.Getenv("TERM")); err != nil {
		return err
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
	if opts.notice != "" {
		logger.Warn(opts.notice)
	}
	return tui.Run(ctx, os.Stdin, os.Stdout, tui.Options{
		Targets:      targets,
		Job:          job(),
		Notice:       opts.notice,
		SettingsFile: tui.SettingsFile(os.LookupEnv),
		Focus:        opts.tuiFocus,
		Environ:      os.Environ(),
	})
}

// targets returns the nodes to show. The caller must call end afterwards.
func (o *options) targets(ctx context.Context, logger *slog.Logger) (targets []client.Target, end func(), err error) {
	httpClient, err := o.tuiClient()
	if err != nil {
		return nil, nil, err
	}
	if len(o.tuiURLs) > 0 {
		for _, url := range o.tuiURLs {
			targets = append(targets, o.target(url, httpClient))
		}
		o.notice = o.withoutEffect("the proxy of --tui.url", "leave --tui.url out and give --backend to read directly")
		return targets, func() {}, nil
	}
	if !o.readsItself(fromEnvironment) {
		switch url, wants := attach(ctx, httpClient, localProxy(o.listen), attachTimeout); {
		case wants != "":
			o.notice = "reading directly: " + refusedUs(url, wants, "show it with --tui.url=")
		case url != "":
			o.notice = o.withoutEffect(theProxyAt(url), "give --backend too to read directly")
			return []client.Target{o.target(url, httpClient)}, func() {}, nil
		}
	}
	target, end, err := o.ownTarget(ctx, logger)
	return []client.Target{target}, end, err
}

// ownTarget begins to read directly, and returns the node to show. The caller must call end.
func (o *options) ownTarget(ctx context.Context, logger *slog.Logger) (target client.Target, end func(), err error) {
	if o.sources[0].backend.name == "replay" {
		o.controls = replay.NewControls()
		if o.isDemo() && o.record == "" {
			o.lead = replay.DemoStory
		}
	}
	o.Rules.Files = nil // the dashboard shows no results of rules, and is not scraped
	p, err := assemble(o, logger)
	if err != nil {
		return target, nil, err
	}
	life, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.run(life) // the handler reports its error
	}()
	target = o.target(client.InProcess, client.ForHandler(p.handler))
	if o.controls != nil {
		target.Playback, target.Lead = playback{o.controls}, o.lead
	}
	return target, func() { cancel(); <-ended }, nil
}

// playback lets the dashboard's keys control a replay.
type playback struct{ *replay.Controls }

// State implements client.Playback.
func (p playback) State() client.PlaybackState { return client.PlaybackState(p.Position()) }

// target returns the node at a URL.
func (o *options) target(url string, httpClient *http.Client) client.Target {
	return client.Target{URL: url, Client: httpClient, Choose: o.chooser(url)}
}

// tuiClient returns the client of --tui.http-config, or nil if it is not set.
func (o *options) tuiClient() (*http.Client, error) {
	if o.tuiHTTP == "" {
		return nil, nil
	}
	text, err := diag.Read(o.tuiHTTP, "http_config", maxNamed)
	if err != nil {
		return nil, fmt.Errorf("--tui.http-config: %w", err)
	}
	conf, err := promconfig.LoadHTTPConfig(string(text))
	if err != nil {
		return nil, fmt.Errorf("--tui.http-config=%s: %w; it is Prometheus' http_config, such as basic_auth and tls_config", o.tuiHTTP, err)
	}
	conf.SetDirectory(filepath.Dir(o.tuiHTTP))
	if err := checkHTTPFiles(conf); err != nil {
		return nil, fmt.Errorf("--tui.http-config=%s: %w", o.tuiHTTP, err)
	}
	client, err := promconfig.NewClientFromConfig(*conf, "kpulse-tui")
	if err != nil {
		return nil, fmt.Errorf("--tui.http-config=%s: %w", o.tuiHTTP, err)
	}
	return client, nil
}

// nodeURLs completes the addresses of --tui.url and removes duplicates.
func nodeURLs(typed []string) ([]string, error) {
	var all []string
	for _, t := range typed {
		u, err := withPath(t)
		if err != nil {
			return nil, fmt.Errorf("--tui.url=%w; give a kpulse-proxy, such as NODE, NODE:9401 or http://NODE:9401/metrics", err)
		}
		if !slices.Contains(all, u) {
			all = append(all, u)
		}
	}
	return all, nil
}

// withPath completes an address as users type it: node, node:9401 or a URL.
func withPath(typed string) (string, error) {
	scheme, rest, ok := strings.Cut(typed, "://")
	if !ok {
		scheme, rest = "http", typed
	}
	host, path, _ := strings.Cut(rest, "/")
	if _, _, err := net.SplitHostPort(host); err != nil && !ok {
		host += defaultListen
	}
	whole := scheme + "://" + host + "/" + cmp.Or(path, "metrics")
	switch u, err := url.Parse(whole); {
	case err != nil, u.User == nil && strings.Contains(host, "@"), strings.Contains(scheme, "@"):
		return "", errors.New("(not shown): this is not a URL") // it may hold a password
	case u.Hostname() == "":
		return "", fmt.Errorf("%s: it has no host", u.Redacted())
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%s: only http and https are supported", u.Redacted())
	}
	return whole, nil
}

// tailLines is the number of lines that a tail keeps.
const tailLines = 20

// tail is a writer that keeps the last lines. Each Write is a line.
type tail struct {
	mu    sync.Mutex
	lines []string
}

// Write implements io.Writer.
func (t *tail) Write(line []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) == tailLines {
		t.lines = append(t.lines[:0], t.lines[1:]...)
	}
	t.lines = append(t.lines, string(line))
	return len(line), nil
}

// String returns the lines.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "")
}
