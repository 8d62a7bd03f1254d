package app

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/checks"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/settings"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// page returns the page that --counters has s serve; nil means all that s reads. gives reports
// whether the backend reads a field of DCGM.
func (o *options) page(s *settings.Upstream, gives func(id int) bool, logger *slog.Logger) (*dcgm.Page, error) {
	if s.Counters == "" {
		return nil, nil
	}
	body, err := diag.Read(s.Counters, "counters file")
	if err != nil {
		return nil, fmt.Errorf("--counters: %w", err)
	}
	lines, problems := checks.CheckCounters(s.Counters, body, nil)
	if problems.Refuse() {
		return nil, fmt.Errorf("--counters: %w", problems)
	}
	page, notGiven := dcgm.NewPage(lines, gives)
	remedy := "take them out of the file, or read what an exporter gives: --backend=prometheus"
	if rendered := renderable(notGiven); len(rendered) > 0 && o.Mode() == settings.ModeServe {
		if slices.Contains(o.Compat, translate.V49.String()) {
			notGiven = slices.DeleteFunc(notGiven, func(name string) bool { return slices.Contains(rendered, name) })
		} else {
			remedy = "state the unit in the help, (in %) or (ratio), or get it from --compat=4.9: " + strings.Join(rendered, " ")
		}
	}
	if s.NotGiven = notGiven; len(notGiven) > 0 {
		logger.Warn("lines of the counters file are left out: this backend does not give these fields", "backend", s.Backend.Name,
			"file", s.Counters, "names", strings.Join(notGiven, " "), "remedy", remedy)
	}
	return page, nil
}

// renderable returns those of names that --compat=4.9 serves even if the file does not give their
// unit, because the version does.
func renderable(names []string) []string {
	var families []string
	for i := range dcgm.Fields {
		families = append(families, dcgm.Fields[i].Family)
	}
	known := translate.NamesIn(translate.V49, families)
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(known, name) })
}
