package app

import (
	"context"
	"io"
	"os"
	"os/signal"
	"reflect"
	"syscall"
	"time"

	metric "github.com/prometheus/client_golang/prometheus"

	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// reloads tells on the proxy's own page how the last reload went.
type reloads struct{ successful, at metric.Gauge }

func newReloads() *reloads {
	r := &reloads{
		successful: metric.NewGauge(metric.GaugeOpts{
			Name: "kpulse_proxy_config_last_reload_successful",
			Help: "1 if config file and rules were taken over when they were last read, else 0.",
		}),
		at: metric.NewGauge(metric.GaugeOpts{
			Name: "kpulse_proxy_config_last_reload_success_timestamp_seconds",
			Help: "When config file and rules were last taken over, in Unix time.",
		}),
	}
	r.note(nil)
	return r
}

func (r *reloads) collectors() []metric.Collector {
	return []metric.Collector{r.successful, r.at}
}

func (r *reloads) note(err error) {
	if err != nil {
		r.successful.Set(0)
		return
	}
	r.successful.Set(1)
	r.at.Set(float64(time.Now().UnixMilli()) / 1e3)
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
				_ = p.reload() // is logged
			}
		}
	}()
}

// reload reads config file and rules again and takes them over. After an error,
// which it logs, all stays as it was.
func (p *service) reload() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.tryReload()
	if err != nil {
		p.logger.Error("nothing was reloaded; all stays as it was", "cause", err)
	} else {
		p.logger.Info("config file and rules are reloaded", "config", p.opts.configFile, "rules", p.opts.ruleFiles)
	}
	p.reloads.note(err) // last: who sees it there finds the reason in the log
	return err
}

// tryReload is reload without telling of it.
func (p *service) tryReload() error {
	fresh, err := parse(p.opts.args, io.Discard)
	if err != nil {
		return err
	}
	p.keepFixed(fresh)
	changes, err := p.changes(fresh)
	if err != nil {
		return err
	}
	groups, err := loadRules(fresh, p.logger) // says that they are evaluated: last
	if err != nil {
		return err
	}
	for _, change := range changes {
		change()
	}
	if p.rules != nil {
		p.rules.Replace(groups, time.Now())
		p.rules.Limit(fresh.ruleSamples)
	}
	p.opts = fresh
	return nil
}

// changes returns what makes the pipelines go by fresh: nothing where readings would
// come to the same.
func (p *service) changes(fresh *options) ([]func(), error) {
	newRows := !reflect.DeepEqual(fresh.rows, p.opts.rows)
	if !newRows && reflect.DeepEqual(fresh.judge, p.opts.judge) {
		return nil, nil
	}
	var changes []func()
	for i, opts := range fresh.each() {
		r := p.readers[i]
		judge, err := newJudge(opts)
		if err != nil {
			return nil, err
		}
		var translator *translate.Translator
		if newRows {
			if translator, err = newTranslator(opts, r.hostname); err != nil {
				return nil, err
			}
		}
		changes = append(changes, func() { r.pipeline.Change(judge, translator) })
	}
	return changes, nil
}

// keepFixed leaves in fresh what cannot change while we run as it is, and says so.
func (p *service) keepFixed(fresh *options) {
	for _, s := range []struct {
		key     string
		differs bool
	}{
		{"sources", !reflect.DeepEqual(fresh.feed, p.opts.feed) || !reflect.DeepEqual(fresh.feeds, p.opts.feeds)},
		{"limits.series_limit", fresh.seriesLimit != p.opts.seriesLimit},
		{"limits.max_body", fresh.maxBody != p.opts.maxBody},
		{"limits.max_requests", fresh.maxRequests != p.opts.maxRequests},
		{"rules", p.rules == nil && len(fresh.ruleFiles) > 0},
	} {
		if s.differs {
			p.logger.Warn("restart to apply a setting that cannot change at run time", "setting", s.key)
		}
	}
	fresh.feed, fresh.feeds = p.opts.feed, p.opts.feeds
	fresh.seriesLimit, fresh.maxBody, fresh.maxRequests = p.opts.seriesLimit, p.opts.maxBody, p.opts.maxRequests
	if p.rules == nil {
		fresh.ruleFiles = nil
	}
}
