package app

import (
	"context"
	"fmt"
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

// addReloadGauges adds the proxy's own series about the last reload.
func (p *service) addReloadGauges() {
	p.reloaded = metric.NewGauge(metric.GaugeOpts{Name: "kpulse_proxy_config_last_reload_successful",
		Help: "1 if the last reload of config file and rules succeeded, else 0."})
	p.reloadedAt = metric.NewGauge(metric.GaugeOpts{Name: "kpulse_proxy_config_last_reload_success_timestamp_seconds",
		Help: "When a reload of config file and rules last succeeded, in Unix time."})
	p.reloaded.Set(1)
	p.reloadedAt.SetToCurrentTime()
	p.collectors = append(p.collectors, p.reloaded, p.reloadedAt)
}

// reloadOnHangup reloads on each SIGHUP until ctx ends.
func (p *service) reloadOnHangup(ctx context.Context) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	context.AfterFunc(ctx, func() {
		signal.Stop(hangup)
		close(hangup)
	})
	go func() {
		for range hangup {
			_ = p.reload() // reload logs its error
		}
	}()
}

// current returns the current settings, which the next reload replaces.
func (p *service) current() *options {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opts
}

// reload reads config file and rules again and applies them. After an error, which it
// logs, everything stays as it was. What is counted is already in the log.
func (p *service) reload() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed, err := p.apply()
	if err != nil {
		p.logger.Error("nothing was reloaded; the old settings stay in force", "cause", err)
		p.reloaded.Set(0)
		return err
	}
	p.logger.Info("reloaded config file and rules", "config", p.opts.ConfigFile, "rules", p.opts.Rules.Files, "changed", changed)
	p.reloaded.Set(1)
	p.reloadedAt.SetToCurrentTime()
	return nil
}

// apply reads and applies config file and rules, or neither. It returns the settings that changed.
func (p *service) apply() ([]string, error) {
	read, err := p.opts.Given.Options(settings.NewOptions())
	if err != nil {
		return nil, err
	}
	fresh := new(*p.opts)
	fresh.Options = read
	changed, kept := settings.Changes(p.opts.Options, read, func(key string) bool { return p.rules == nil && key == "rules.files" })
	for _, key := range kept { // fresh has the old value
		p.logger.Warn("restart to apply a setting that cannot change at run time", "setting", key)
	}
	if len(changed) > 0 && settings.IsBlank(p.opts.ConfigFile) {
		return nil, fmt.Errorf("--config.file: %s is empty, as a file is that another program is just writing; write it whole, or restart to run without settings", p.opts.ConfigFile)
	}
	var changes []func()
	for i, r := range p.readers.all() {
		if !slices.ContainsFunc(changed, func(key string) bool { return !strings.HasPrefix(key, "rules.") }) {
			break
		}
		var s settings.Upstream
		if r.exporter == nil {
			s = fresh.Upstreams[i]
		} else if s, err = fresh.Found(r.exporter); err != nil {
			return nil, err
		}
		judge, err := fresh.newJudge(&s)
		if err != nil {
			return nil, err
		}
		var translator *translate.Translator // nil keeps the current one
		if slices.Contains(changed, "dialect") || slices.Contains(changed, "compat") {
			if translator, err = fresh.newTranslator(&s, r.source); err != nil {
				return nil, err
			}
		}
		changes = append(changes, func() { r.pipeline.Change(judge, translator) })
	}
	groups, err := loadRules(fresh, p.logger) // last, as it logs that rules are evaluated
	if err != nil {
		return nil, err
	}
	for _, change := range changes {
		change()
	}
	if p.rules != nil {
		p.rules.Replace(groups, time.Now())
		p.rules.Limit(int(fresh.Rules.MaxSamples))
	}
	p.opts = fresh
	return changed, nil
}
