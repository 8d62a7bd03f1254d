package config

import (
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
)

// states are the words for what a condition raises.
var states = map[string]canonical.Health{
	"hot":  canonical.HealthHot,
	"warn": canonical.HealthWarn,
	"crit": canonical.HealthCrit,
	"off":  canonical.HealthOK,
}

// wantState ends what is said of a state that is none.
const wantState = "write hot, warn, crit, or off to leave the condition out"

// readHealth reads the state that each condition raises.
func readHealth(d *document, e entry, c *Config) {
	conditions := canonical.Conditions[:]
	for _, condition := range d.entries(e, "write states by condition, such as pcie_replay: off") {
		i := slices.Index(conditions, condition.key)
		if i < 0 {
			d.unknown(condition, conditions)
			continue
		}
		word, ok := d.word(condition, wantState)
		if !ok {
			continue
		}
		state, known := states[strings.ToLower(word)]
		if !known {
			d.reject(condition, "%q is no state a condition can raise; %s", word, wantState)
			continue
		}
		d.judge(condition, c, func(o *compute.Options) { o.States[i] = state })
	}
}
