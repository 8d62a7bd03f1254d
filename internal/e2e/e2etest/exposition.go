package e2etest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// Series are the samples of an exposition by their labels.
type Series map[string]float64

// ParseExposition reads body with Prometheus' own parser. A duplicate series is an error.
func ParseExposition(body []byte) (Series, error) {
	p := textparse.NewPromParser(bytes.Clone(body), labels.NewSymbolTable(), false)
	all := Series{}
	for {
		entry, err := p.Next()
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		case entry != textparse.EntrySeries:
			continue
		}
		var ls labels.Labels
		p.Labels(&ls)
		_, _, v := p.Series()
		if _, dup := all[ls.String()]; dup {
			return nil, fmt.Errorf("duplicate series %s", ls)
		}
		all[ls.String()] = v
	}
}

// CheckExposition accepts a body that Prometheus parses, without duplicate series, in whose kpulse_
// families promlint finds no problem.
func CheckExposition(body []byte) error {
	if _, err := ParseExposition(body); err != nil {
		return err
	}
	_, ours, _ := bytes.Cut(body, []byte("# HELP kpulse_"))
	problems, err := promlint.New(bytes.NewReader(append([]byte("# HELP kpulse_"), ours...))).Lint()
	if err != nil {
		return fmt.Errorf("promlint: %w", err)
	}
	for _, p := range problems {
		if !strings.HasPrefix(p.Metric, "kpulse_") {
			continue // recorded by a rule; such names have colons
		}
		err = errors.Join(err, fmt.Errorf("promlint: %s: %s", p.Metric, p.Text))
	}
	return err
}
