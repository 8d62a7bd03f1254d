package app

import (
	"bytes"
	"log/slog"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/pipeline"
	"github.com/kpulse/kpulse-proxy/internal/rules"
	"github.com/kpulse/kpulse-proxy/internal/rules/engine"
)

// maxRuleSeries is how many series are kept for rules, and how many results all of
// them may have: a few times what a node of 112 MIG instances has in all.
const maxRuleSeries = 100_000

// loadRules reads the rule files that opts name. No file is no rules. Its error is diag.Problems.
func loadRules(opts *options, logger *slog.Logger) ([]rules.Group, error) {
	if len(opts.Rules.Files) == 0 {
		return nil, nil
	}
	set, problems := rules.Load(rules.Options{Window: time.Duration(opts.Rules.Window), Served: servedFamilies()}, opts.Rules.Files...)
	if problems.Refuse() {
		return nil, problems
	}
	for _, p := range problems {
		logger.Warn("warning in a rule file", "warning", p.String())
	}
	logger.Info("evaluating rules", "files", len(set.Files), "groups", len(set.Groups), "rules", set.Rules(), "alerts_left_out", set.Alerts)
	return set.Groups, nil
}

// startRules gives p an engine with the rules that its options name, if any.
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
		Render: renderer(p.opts.form()),
		Order:  p.order,
		Serves: p.serves,
		Limits: engine.Limits{Series: maxRuleSeries, Samples: int(p.opts.Rules.MaxSamples)},
	})
	p.rules.Replace(groups, time.Now())
	return nil
}

// observer receives the readings of the pipeline; nil without rules.
func (p *service) observer() pipeline.Observer {
	if p.rules == nil {
		return nil
	}
	return p.rules
}

// order returns the position of the source with a name, -1 for none.
func (p *service) order(source string) int {
	at, _ := p.readers.named(source)
	return at
}

// serves reports whether the latest reading of a source is fit to be served.
func (p *service) serves(source string) bool {
	_, r := p.readers.named(source)
	if r == nil {
		return false
	}
	_, err := r.pipeline.Status()
	return err == nil
}

// renderer returns what renders readings as they are served: the lines of the
// upstream that Prometheus accepts, and ours in the form, those that are left out included.
func renderer(form expose.Form) func(*canonical.Snapshot) [][]byte {
	writer := expose.NewWriter(form)
	var ours bytes.Buffer
	var text []byte
	var parts [][]byte
	return func(s *canonical.Snapshot) [][]byte {
		ours.Reset()
		_ = writer.Write(&ours, s) // a buffer refuses nothing
		parts = append(parts[:0], s.Valid...)
		if s.Text != nil {
			text = s.Text.AppendText(text[:0])
			parts = append(parts, text)
		}
		parts = append(parts, ours.Bytes())
		return parts
	}
}
