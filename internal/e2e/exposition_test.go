package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// series are the samples of an exposition by their labels.
type series map[string]float64

// parseExposition reads body with Prometheus' own parser. A duplicate series is an error.
func parseExposition(body []byte) (series, error) {
	p := textparse.NewPromParser(bytes.Clone(body), labels.NewSymbolTable(), false)
	all := series{}
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

// checkExposition accepts a body that Prometheus parses, without duplicate series, in whose kpulse_
// families promlint finds no problem.
func checkExposition(body []byte) error {
	if _, err := parseExposition(body); err != nil {
		return err
	}
	_, ours, _ := bytes.Cut(body, []byte("# HELP kpulse_"))
	if len(ours) > 1<<20 { // promlint compares each two samples of a family
		return nil
	}
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

// labelsOf returns the labels of a series, including its name.
func labelsOf(name string) map[string]string {
	all := map[string]string{}
	for _, l := range exposition.ParseLabels(name, nil) {
		all[l.Name] = l.Value
	}
	return all
}

// samplesOf returns the values of the series of a family that have some labels.
func samplesOf(s series, family string, want map[string]string) (values []float64) {
	for name, v := range s {
		ls := labelsOf(name)
		ok := ls["__name__"] == family
		for label, value := range want {
			ok = ok && ls[label] == value
		}
		if ok {
			values = append(values, v)
		}
	}
	return values
}
