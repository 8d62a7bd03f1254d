package app

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/config"
	"github.com/kpulse/kpulse-proxy/internal/counters"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// maxCounters is the largest counters file, in bytes: the exporter's own has four
// thousand.
const maxCounters = 1 << 20

// checkCounters says what is wrong in a counters file of dcgm-exporter, and which
// readings our scores miss in it.
func checkCounters(files []string) (string, diag.Problems, error) {
	body, err := diag.Read(files[0], "counters file", maxCounters)
	if err != nil {
		return "", nil, err
	}
	wants, err := wantedReadings()
	if err != nil {
		return "", nil, err
	}
	fields, problems := counters.Check(files[0], body, wants)
	return fmt.Sprintf("%s: %s: ok", files[0], plural(fields, "field")), problems, nil
}

// wantedReadings are what our scores are made of: first what utilization and class
// are, then what each condition of health looks at, conditions that look at the same
// in one.
func wantedReadings() (wants []counters.Want, err error) {
	judge, err := compute.New(config.Default().Judge)
	if err != nil {
		return nil, err
	}
	var health []counters.Want
	ofHealth := map[canonical.Field]bool{}
	for condition, criterion := range compute.Criteria() {
		fields := criterion.Inputs
		for _, f := range fields {
			ofHealth[f] = true
		}
		same := slices.IndexFunc(health, func(w counters.Want) bool { return slices.Equal(w.AnyOf, fields) })
		if same < 0 {
			health = append(health, counters.Want{AnyOf: fields, For: "the health condition " + canonical.Conditions[condition]})
			continue
		}
		health[same].For = strings.Replace(health[same].For, "condition ", "conditions ", 1) + " and " + canonical.Conditions[condition]
	}
	for _, f := range judge.Inputs() {
		if !ofHealth[f] {
			wants = append(wants, counters.Want{AnyOf: []canonical.Field{f}, For: "real utilization or the workload class"})
		}
	}
	return append(wants, health...), nil
}
