package app

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	metric "github.com/prometheus/client_golang/prometheus"

	"github.com/kpulse/kpulse-proxy/internal/settings"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// reloads are the proxy's own series about the last reload.
type reloads struct{ successful, at metric.Gauge }

func newReloads() *reloads {
	r := &reloads{
		successful: metric.NewGauge(metric.GaugeOpts{Name: "kpulse_proxy_config_last_reload_successful",
			Help: "1 if the last reload of config file and rules succeeded, else 0."}),
		at: metric.NewGauge(metric.GaugeOpts{Name: "kpulse_proxy_config_last_reload_success_timestamp_seconds",
			Help: "When a reload of config file and rules last succeeded, in Unix time."}),
	}
	r.count(nil)
	return r
}

func (r *reloads) count(err error) {
	if err != nil {
		r.successful.Set(0)
		return
	}
	r.successful.Set(1)
	r.at.SetToCurrentTime()
}

// reloadOnHangup reloads on each SIGHUP until ctx ends.
func (p *service) reloadOnHangup(ctx context.Context) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	go func() {
		defer signal.Stop(hangup)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangup:
				_ = p.reload() // reload logs its error
			}
		}
	}()
}

// reload reads config file and rules again and applies them. After an error, which it
// logs, everything stays as it was.
func (p *service) reload() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed, err := p.tryReload()
	if err != nil {
		p.logger.Error("nothing was reloaded; the old settings stay in force", "cause", err)
	} else {
		p.logger.Info("reloaded config file and rules", "config", p.opts.ConfigFile, "rules", p.opts.Rules.Files, "changed", changed)
	}
	p.reloads.count(err) // last, so that the reason is already in the log
	return err
}

// current returns the current settings, which the next reload replaces.
func (p *service) current() *options {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opts
}

// tryReload is reload without its report. It returns the settings that changed.
func (p *service) tryReload() ([]string, error) {
	read, err := p.opts.Given.Options(settings.NewOptions())
	if err != nil {
		return nil, err
	}
	fresh := &options{Options: read, visible: p.opts.visible}
	changed, kept := settings.Changes(p.opts.Options, fresh.Options, func(key string) bool { return p.rules == nil && key == "rules.files" })
	for _, key := range kept { // fresh has the old value
		p.logger.Warn("restart to apply a setting that cannot change at run time", "setting", key)
	}
	apply, err := p.prepare(fresh, changed)
	if err != nil {
		return nil, err
	}
	groups, err := loadRules(fresh, p.logger) // last, as it logs that rules are evaluated
	if err != nil {
		return nil, err
	}
	for _, change := range apply {
		change()
	}
	if p.rules != nil {
		p.rules.Replace(groups, time.Now())
		p.rules.Limit(int(fresh.Rules.MaxSamples))
	}
	p.opts = fresh
	return changed, nil
}

// prepare returns functions that apply fresh to the pipelines; none if the changes do not affect
// them.
func (p *service) prepare(fresh *options, changed []string) (apply []func(), err error) {
	if !slices.ContainsFunc(changed, func(key string) bool { return !strings.HasPrefix(key, "rules.") }) {
		return nil, nil
	}
	for i, r := range p.readers.all() {
		s, err := fresh.settingsOf(i, r)
		if err != nil {
			return nil, err
		}
		judge, err := fresh.newJudge(s)
		if err != nil {
			return nil, err
		}
		var translator *translate.Translator // nil keeps the current one
		if slices.Contains(changed, "dialect") || slices.Contains(changed, "compat") {
			if translator, err = fresh.newTranslator(s, r.hostname); err != nil {
				return nil, err
			}
		}
		apply = append(apply, func() { r.pipeline.Change(judge, translator) })
	}
	return apply, nil
}
