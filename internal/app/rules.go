package app

import (
	"bytes"
	"log/slog"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/checks"
	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/pipeline"
	"github.com/kpulse/kpulse-proxy/internal/rules"
	"github.com/kpulse/kpulse-proxy/internal/rules/engine"
)

// maxRuleSeries bounds the series that are kept for rules, and the results of all rules: a few
// times the series of a node with 112 MIG instances.
const maxRuleSeries = 100_000

// loadRules reads the rule files of opts, if any. Its error is diag.Problems.
func loadRules(opts *options, logger *slog.Logger) ([]rules.Group, error) {
	if len(opts.Rules.Files) == 0 {
		return nil, nil
	}
	set, problems := rules.Load(rules.Options{Window: time.Duration(opts.Rules.Window), Served: checks.ServedFamilies()}, opts.Rules.Files...)
	if problems.Refuse() {
		return nil, problems
	}
	for _, p := range problems {
		logger.Warn("warning in a rule file", "warning", p.String())
	}
	logger.Info("evaluating rules", "files", len(set.Files), "groups", len(set.Groups), "rules", set.Rules(), "alerts_left_out", set.Alerts)
	return set.Groups, nil
}

// startRules creates the engine of p with the rules of its options, if any.
func (p *service) startRules() error {
	if len(p.opts.Rules.Files) == 0 {
		return nil
	}
	groups, err := loadRules(p.opts, p.logger)
	if err != nil {
		return err
	}
	p.rules = engine.New(engine.Options{
		Logger: p.logger,
		Render: renderer(),
		Rank:   func(source string) int { rank, _ := p.readers.named(source); return rank },
		Serves: p.serves,
		Limits: engine.Limits{Series: maxRuleSeries, Samples: int(p.opts.Rules.MaxSamples)},
	})
	p.rules.Replace(groups, time.Now())
	p.background = append(p.background, p.rules.Run)
	return nil
}

// observer receives the readings of the pipeline; nil without rules.
func (p *service) observer() pipeline.Observer {
	if p.rules == nil {
		return nil
	}
	return p.rules
}

// serves reports whether the latest reading of a source is fit to be served.
func (p *service) serves(source string) bool {
	_, r := p.readers.named(source)
	if r != nil {
		_, err := r.pipeline.Status()
		return err == nil
	}
	return false
}

// renderer returns a function that renders readings as rules see them: the upstream's lines that
// Prometheus accepts, and all of our series, including those that the lean form and --series.exclude
// leave out.
func renderer() func(*canonical.Snapshot) [][]byte {
	writer := expose.NewWriter(expose.Form{Full: true})
	var ours bytes.Buffer
	var parts [][]byte
	return func(s *canonical.Snapshot) [][]byte {
		ours.Reset()
		if s.Text != nil {
			ours.Write(s.Text.AppendText(ours.AvailableBuffer()))
		}
		_ = writer.Write(&ours, s) // a Buffer returns no error
		parts = append(append(parts[:0], s.Valid...), ours.Bytes())
		return parts
	}
}
