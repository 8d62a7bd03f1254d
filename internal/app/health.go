package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/checks"
	"github.com/kpulse/kpulse-proxy/internal/settings"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// exitUnknown is the exit code of `check health` if health is unknown. The codes differ from the
// program's: a check that is used wrongly, or that fails, must not look like a broken GPU.
const exitUnknown = 3

// healthExits are the exit codes by --npd and worst state. A plugin of node-problem-detector exits
// with 0 for no problem, 1 for a problem and 2 for unknown.
var healthExits = map[string][canonical.NumHealth]int{
	"":     {canonical.HealthHot: 1, canonical.HealthWarn: 1, canonical.HealthCrit: 2, canonical.HealthUnknown: exitUnknown},
	"crit": {canonical.HealthCrit: 1, canonical.HealthUnknown: 2},
	"warn": {canonical.HealthHot: 1, canonical.HealthWarn: 1, canonical.HealthCrit: 1, canonical.HealthUnknown: 2},
}

// checkHealth is the mode `check health`. It returns the exit code.
func checkHealth(args []string, stdout, stderr io.Writer) (code int) {
	defer func() {
		// The runtime would exit with 2, as for a GPU that is crit.
		if cause := recover(); cause != nil {
			fmt.Fprintf(stderr, "kpulse-proxy: check health failed: %v; report this\n", cause)
			code = exitUnknown
		}
	}()
	g, err := settings.ReadFlags(args, stdout)
	if errors.Is(err, settings.ErrAnswered) {
		return settings.ExitDone
	}
	read := settings.NewOptions()
	read.Health = true
	if err == nil {
		read, err = g.Options(read)
	}
	opts := newOptions(read)
	if err != nil {
		fmt.Fprintf(stderr, "kpulse-proxy: %v\n(kpulse-proxy --help-all explains every flag)\n", err)
		return exitUnknown
	}
	logger := opts.warningsTo(stderr)
	settings.WarnOfUnknown(os.Environ(), logger.Warn)
	ctx, stop := opts.begin()
	defer stop()
	report := opts.lookAtHealth(ctx, logger)
	for _, text := range []string{opts.notice, report.Note, report.Problem} {
		if text != "" {
			fmt.Fprintf(stderr, "kpulse-proxy: %s\n", text)
		}
	}
	switch {
	case opts.JSON:
		err = report.WriteJSON(stdout)
	case opts.ForNPD != "":
		_, err = fmt.Fprintln(stdout, report.Line())
	default:
		err = report.WriteText(stdout)
	}
	if err != nil {
		fmt.Fprintf(stderr, "kpulse-proxy: %v\n", err)
		return exitUnknown
	}
	return healthExits[opts.ForNPD][report.Worst]
}

// lostPatience is for how many seconds a GPU is read again that is missing from a reading of our own: what the source calls
// lost three times in a row is gone, and of anything else nothing is known.
const lostPatience = 5

// lookAtHealth reads the chosen GPUs once.
func (o *options) lookAtHealth(ctx context.Context, logger *slog.Logger) *checks.HealthReport {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(o.CheckTimeout))
	defer cancel()
	own, whose := o.ReadsItself(settings.FromCommandLine), &trust{}
	if !own {
		ctx, whose = o.trusting(ctx)
	}
	target, end, err := o.healthTarget(ctx, logger)
	if whose.refusal != "" {
		return checks.NewHealthReport(nil, whose.refusal)
	}
	if err != nil {
		return checks.NewHealthReport(nil, err.Error())
	}
	defer end()
	choose := target.Choose
	target.Lean = true
	target.Choose = nil // an instance chosen without its board has the board's health
	n := client.Fetch(ctx, target)
	missing := func(g *client.GPU) bool { return g.Gone && g.Health != canonical.HealthCrit }
	for tries := 0; own && tries < lostPatience && slices.ContainsFunc(n.GPUs, missing); tries++ {
		time.Sleep(time.Second)
		if next := client.Fetch(ctx, target); len(next.GPUs) > 0 {
			n = next
		}
	}
	if whose.refusal != "" {
		return checks.NewHealthReport(nil, whose.refusal)
	}
	report := checks.HealthOf(n, client.ListEvents(ctx, []client.Target{target})[0], choose, time.Now())
	if whose.unchecked != "" {
		report.Note = "who answers at " + whose.unchecked + " is in another network namespace: not checked"
	}
	if slices.ContainsFunc(n.Sources, checks.Replays) && !own {
		report.Note = n.URL + " plays a recording, or the demo: its readings are not live"
	}
	return report
}

// healthTarget returns the proxy to ask, or our own target. The caller must call end.
func (o *options) healthTarget(ctx context.Context, logger *slog.Logger) (target client.Target, end func(), err error) {
	httpClient, err := o.tuiClient()
	if err != nil {
		return target, nil, err
	}
	named, err := o.CheckURL()
	if err != nil {
		return target, nil, err
	}
	// Variables may be meant for the proxy beside us: its container has all of them.
	own := o.ReadsItself(settings.FromCommandLine)
	switch {
	case o.Origin("url") == settings.FromCommandLine && own:
		return target, nil, errors.New("--url asks a proxy that has sources of its own; leave --url out, or --backend, --source, --replay and the sources " +
			"of --config.file")
	case named != "" && !own:
		url, err := settings.WithPath(named)
		if err != nil {
			return target, nil, fmt.Errorf("--url=%w; give a kpulse-proxy, such as NODE, NODE:9401 or http://NODE:9401/metrics", err)
		}
		o.notice = o.WithoutEffect("the proxy of --url", "leave --url out and give --backend to read directly")
		return o.target(url, httpClient), func() {}, nil
	case own:
		return o.ownTarget(ctx, logger)
	}
	local, refusal := o.localTarget(ctx, httpClient, time.Duration(o.CheckTimeout), "ask it with --url=")
	switch {
	case refusal != "":
		return target, nil, errors.New(refusal)
	case local == nil:
		return target, nil, fmt.Errorf("no kpulse-proxy answers at %s; start it there, name another with --url=NODE, or give --backend to take one reading "+
			"directly", settings.LocalProxy(o.Listen))
	}
	return *local, func() {}, nil
}
