package config

import (
	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
)

func readPreset(d *document, e entry, c *Config) {
	if name, ok := d.word(e, "name a preset such as ai"); ok {
		d.judge(e, c, func(o *compute.Options) { o.Preset = name })
	}
}

// wantWeights ends what is said of weights that are not all there.
const wantWeights = "give all of sm, tensor, dram and engine, 0 for none"

func readWeights(d *document, e entry, c *Config) {
	if line, both := d.seen["preset"]; both {
		d.reject(e, "stand in place of the preset in line %d; remove one of the two", line)
		return
	}
	var w canonical.Weights
	inputs := map[string]*float64{"sm": &w.SM, "tensor": &w.Tensor, "dram": &w.DRAM, "engine": &w.Engine}
	failed, given := len(d.problems), 0
	for _, weight := range d.entries(e, wantWeights) {
		target, known := inputs[weight.key]
		if !known {
			d.unknown(weight, []string{"sm", "tensor", "dram", "engine"})
			continue
		}
		*target, _ = d.number(weight, "write a weight such as 0.35")
		given++
	}
	switch {
	case len(d.problems) > failed:
	case given < len(inputs):
		d.reject(e, "hold %d of 4 numbers; %s", given, wantWeights)
	case w == canonical.Weights{}:
		d.reject(e, "are all 0; make at least one of them positive")
	default:
		d.judge(e, c, func(o *compute.Options) { o.Preset, o.Weights = compute.Custom, w })
	}
}

func readMissingInputs(d *document, e entry, c *Config) {
	word, ok := d.word(e, "write renormalize or zero")
	if !ok {
		return
	}
	missing, err := compute.ParseMissing(word)
	if err != nil {
		d.reject(e, "%v", err)
		return
	}
	d.judge(e, c, func(o *compute.Options) { o.Missing = missing })
}

func readMinCoverage(d *document, e entry, c *Config) {
	if v, ok := d.number(e, "write a fraction such as 0.5"); ok {
		d.judge(e, c, func(o *compute.Options) { o.MinCoverage = v })
	}
}
