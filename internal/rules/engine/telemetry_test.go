package engine

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// gathered returns the telemetry of an engine, summed by name.
func gathered(t *testing.T, e *Engine) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(e)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("the telemetry: %v, %v", problems, err)
	}
	sums := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			sums[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sums
}

// TestRulesInOneLine: a file that a program wrote may have all rules on one line, several
// with the same name; the first of these stands for them.
func TestRulesInOneLine(t *testing.T) {
	groups := group15([2]string{"r:x", "vector(1)"}, [2]string{"r:x", "vector(2)"}, [2]string{"r:y", "vector(1)"})
	for i := range groups[0].Rules {
		groups[0].Rules[i].Line = 1
	}
	te := newTestEngine(t, groups)
	te.evaluate(time.Unix(1_700_000_000, 0))
	if m := gathered(t, te.e); m["kpulse_proxy_rule_evaluations_total"] != 2 || m["kpulse_proxy_rule_samples"] != 2 {
		t.Errorf("%v evaluations, %v results; want 2 and 2", m["kpulse_proxy_rule_evaluations_total"], m["kpulse_proxy_rule_samples"])
	}
}
