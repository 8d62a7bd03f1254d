package app

import (
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
	"slices"
	"strings"
	"syscall"
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/kpulse/kpulse-proxy/internal/checks"
	"github.com/kpulse/kpulse-proxy/internal/settings"
	"github.com/kpulse/kpulse-proxy/internal/source/recording"
	"github.com/kpulse/kpulse-proxy/internal/tui"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// dashboard shows nodes on the terminal until the user quits or ctx ends: those of --tui.url, else the proxy on this machine and, in a
// job over several nodes, those on the others, else the readings of its own pipeline. Afterwards it writes the
// last log lines to stderr.
func dashboard(ctx context.Context, opts *options, stderr io.Writer) error {
	if err := tui.CheckTerminal(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP) // the terminal is gone
	defer stop()
	var logged tail
	defer func() { _, _ = io.WriteString(stderr, strings.Join(logged, "")) }()
	logger := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelWarn}))

	targets, end, err := opts.targets(ctx, logger)
	if err != nil {
		return err
	}
	defer end()
	if opts.notice != "" {
		logger.Warn(opts.notice)
	}
	return tui.Run(ctx, tui.Options{
		Targets: targets,
		Job:     job(),
		Notice:  opts.notice,
		Focus:   opts.TUIFocus,
		Explain: opts.explain,
	})
}

// explain returns what the mode explain says of words, with the XIDs of our config file.
func (o *options) explain(words []string) (string, error) {
	var text, problem strings.Builder
	if o.ConfigFile != "" {
		words = append(words, "--config.file="+o.ConfigFile)
	}
	if checks.Explain(words, &text, &problem) != settings.ExitDone {
		first, _, _ := strings.Cut(strings.TrimPrefix(problem.String(), "kpulse-proxy: "), "\n")
		return "", errors.New(first)
	}
	return text.String(), nil
}

// targets returns the nodes to show. The caller must call end afterwards.
func (o *options) targets(ctx context.Context, logger *slog.Logger) (targets []client.Target, end func(), err error) {
	httpClient, err := o.tuiClient()
	if err != nil {
		return nil, nil, err
	}
	if len(o.TUIURLs) > 0 {
		for _, address := range o.TUIURLs {
			targets = append(targets, o.target(address, httpClient))
		}
		o.notice = o.WithoutEffect("the proxy of --tui.url", "leave --tui.url out and give --backend to read directly")
		return targets, func() {}, nil
	}
	if !o.ReadsItself(settings.FromEnvironment) {
		local, refusal := o.localTarget(ctx, httpClient, attachTimeout, "show it with --tui.url=")
		if targets = o.jobTargets(local, httpClient); targets != nil {
			return targets, func() {}, nil
		}
		if refusal != "" {
			o.notice = "reading directly: " + refusal
		}
	}
	target, end, err := o.ownTarget(ctx, logger)
	return []client.Target{target}, end, err
}

// jobTargets returns the proxy on this machine, if there is one, and in a job of Slurm over several nodes those of the others, at the
// same port. On a machine that is none of these it returns theirs.
func (o *options) jobTargets(local *client.Target, httpClient *http.Client) (targets []client.Target) {
	addresses, err := settings.NodeURLs("SLURM_JOB_NODELIST", os.Getenv("SLURM_JOB_NODELIST"))
	here := slices.IndexFunc(addresses, func(address string) bool {
		u, _ := url.Parse(address) // which NodeURLs has parsed
		return u.Hostname() == os.Getenv("SLURMD_NODENAME") || isHere(u.Host)
	})
	if err != nil || len(addresses) < 2 || local == nil && here >= 0 { // no job over several nodes, or none with proxies
		if local != nil {
			targets = []client.Target{*local}
		}
		return targets
	}
	for i, address := range addresses {
		if local != nil {
			u, _ := url.Parse(local.URL)
			if node, _ := url.Parse(address); i != here {
				u.Host = net.JoinHostPort(node.Hostname(), u.Port())
			}
			address = u.String()
		}
		targets = append(targets, o.target(address, httpClient))
	}
	return targets
}

// localTarget returns the proxy on this machine, or nil, and why one that may be there refuses us. remedy
// ends before its address.
func (o *options) localTarget(ctx context.Context, httpClient *http.Client, patience time.Duration, remedy string) (t *client.Target, refusal string) {
	switch url, wants := checks.Attach(ctx, httpClient, settings.LocalProxy(o.Listen), patience); {
	case wants != "":
		return nil, checks.RefusedUs(url, wants, remedy)
	case url != "":
		o.notice = o.WithoutEffect("the proxy at "+strings.TrimSuffix(url, "/metrics"), "give --backend too to read directly")
		return new(o.target(url, httpClient)), ""
	}
	return nil, ""
}

// ownTarget begins to read directly, and returns the node to show. The caller must call end.
func (o *options) ownTarget(ctx context.Context, logger *slog.Logger) (target client.Target, end func(), err error) {
	var ticks chan struct{}
	if o.TUI && o.IsDemo() && o.Record == "" { // which drains it
		ticks = make(chan struct{})
		o.lead = ticks
	}
	o.Rules.Files = nil // the dashboard shows no results of rules, and is not scraped
	p, err := assemble(o, logger)
	if err != nil {
		return target, nil, err
	}
	end = inBackground(ctx, p.run) // the handler reports its error
	target = o.target(client.InProcess, client.ForHandler(p.handler))
	target.Lead, target.Ticks = recording.DemoStory, ticks
	return target, end, nil
}

// target returns the node at a URL.
func (o *options) target(url string, httpClient *http.Client) client.Target {
	return client.Target{URL: url, Client: httpClient, Choose: o.chooser(url)}
}

// tuiClient returns the client of --tui.http-config or, without that, one that reads pageBuffer at a time.
func (o *options) tuiClient() (*http.Client, error) {
	if o.TUIHTTP == "" {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.ReadBufferSize = pageBuffer
		return &http.Client{Transport: transport}, nil
	}
	conf, _, err := promconfig.LoadHTTPConfigFile(o.TUIHTTP)
	if err != nil {
		return nil, fmt.Errorf("--tui.http-config=%s: %w; it is Prometheus' http_config, such as basic_auth and tls_config", o.TUIHTTP, err)
	}
	client, err := promconfig.NewClientFromConfig(*conf, "kpulse-tui")
	if err != nil {
		return nil, fmt.Errorf("--tui.http-config=%s: %w", o.TUIHTTP, err)
	}
	return client, nil
}

// tail is a writer that keeps the last 20 lines, of which each Write is one. A logger calls it one at a time.
type tail []string

// Write implements io.Writer.
func (t *tail) Write(line []byte) (int, error) {
	*t = append(*t, string(line))
	*t = (*t)[max(0, len(*t)-20):]
	return len(line), nil
}

// pageBuffer is how many bytes of a proxy's page are read at a time. With Go's default, 4 KiB, reading them takes a
// tenth of the dashboard's CPU time.
const pageBuffer = 64 << 10

// attachTimeout bounds how long a dashboard waits for a proxy on this machine to answer, which
// delays the first frame if one listens and does not answer.
const attachTimeout = 3 * time.Second
