package main

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// proxy is the program for one node: it translates and judges readings.
type proxy struct {
	tb         testing.TB
	scanner    raw.Scanner
	batch      raw.Batch
	translator *translate.Translator
	judge      *compute.Judge
	frame      canonical.Frame
	verdicts   []canonical.Verdict
}

func newProxy(tb testing.TB, host string) *proxy {
	tb.Helper()
	tr, err := translate.New(translate.Options{FallbackHost: host})
	if err != nil {
		tb.Fatal(err)
	}
	j, err := compute.New(inRules())
	if err != nil {
		tb.Fatal(err)
	}
	return &proxy{tb: tb, batch: raw.Batch{Dict: raw.NewDict()}, translator: tr, judge: j}
}

// inRules returns the options of a proxy limited to the conditions of the rules.
func inRules() compute.Options {
	o := compute.DefaultOptions()
	for _, c := range beyond {
		o.States[c] = 0
	}
	return o
}

func (p *proxy) read(at time.Time, body []byte) {
	p.batch.Reset()
	p.batch.At = at
	p.batch.Body = append(p.batch.Body, body...)
	p.scanner.Scan(&p.batch)
	var rep translate.Report
	p.translator.Translate(&p.frame, &p.batch, &rep)
	p.verdicts = p.judge.Judge(&p.frame, p.verdicts)
}

// names of the series that both the rules and the program have.
var names = []string{
	"kpulse_gpu_real_utilization_ratio", "kpulse_gpu_real_utilization_coverage_ratio",
	"kpulse_gpu_workload_class", "kpulse_gpu_health", "kpulse_gpu_health_condition",
	"kpulse_gpu_recommended_action",
}

// identify returns a series as its name and its labels.
func identify(name string, l labels.Labels) string {
	var b strings.Builder
	b.WriteString(name)
	l.Range(func(l labels.Label) {
		if l.Name != model.MetricNameLabel {
			fmt.Fprintf(&b, " %s=%s", l.Name, l.Value)
		}
	})
	return b.String()
}

// conclude adds the series that the proxy exports for its latest reading.
func (p *proxy) conclude(into map[string]float64) {
	sets := inRules().States
	for i := range p.verdicts {
		d, v := &p.frame.Topology.Devices[i], &p.verdicts[i]
		add := func(value float64, name string, more ...string) {
			if math.IsNaN(value) || d.UUID == "" {
				return
			}
			l := append([]string{"hostname", d.Hostname, "gpu", d.GPU, "uuid", d.UUID}, more...)
			if d.IsInstance() {
				l = append(l, "mig_instance", d.Instance)
			}
			if d.Profile != "" {
				l = append(l, "mig_profile", d.Profile)
			}
			into[identify(name, labels.FromStrings(l...))] = value
		}
		if !d.Implied {
			add(v.RealUtilization, names[0])
			add(v.Coverage, names[1])
			for c := range canonical.NumClasses {
				add(indicator(v.Class == c), names[2], "class", c.String(), "bottleneck", canonical.Classes[c].Bottleneck)
			}
		}
		if d.IsInstance() {
			continue
		}
		for h := range canonical.NumHealth {
			add(indicator(v.Health == h), names[3], "state", h.String())
		}
		if v.Health != canonical.HealthUnknown {
			add(1, names[5], "action", v.Action.String())
		}
		for c := range canonical.NumConditions {
			found := v.Findings.Of(c)
			if found != canonical.NotRead {
				for _, state := range states(sets[c]) {
					add(indicator(found == canonical.Raised && v.States[c] == state), names[4], "condition", c.String(), "state", state.String())
				}
			}
		}
	}
}

func indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// concluded returns these series as the rules recorded them.
func (s *server) concluded(at time.Time) map[string]float64 {
	series := map[string]float64{}
	for _, name := range names {
		for _, m := range s.store.current(name, at.UnixMilli()) {
			if m.labels.Get("instance") == "" {
				series[identify(name, m.labels)] = m.last()
			}
		}
	}
	return series
}

// differences lists the series that differ: ratios by more than 1e-9, others at all.
func differences(want, got map[string]float64) (list []string) {
	for id, w := range want {
		g, ok := got[id]
		if !ok {
			list = append(list, fmt.Sprintf("%s is absent, want %v", id, w))
		} else if tolerance := 1e-9 * indicator(strings.Contains(id, "utilization")); !(math.Abs(g-w) <= tolerance) {
			list = append(list, fmt.Sprintf("%s is %v, want %v", id, g, w))
		}
	}
	for id, g := range got {
		if _, ok := want[id]; !ok {
			list = append(list, fmt.Sprintf("%s is %v, want absent", id, g))
		}
	}
	return list
}
