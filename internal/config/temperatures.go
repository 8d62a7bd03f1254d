package config

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/compute"
)

// otherModels is the key of the temperature of all models that have none of their
// own.
const otherModels = "other"

// readTemperatures reads warning temperatures in degrees Celsius by model. The
// file's rows go before the built-in ones, of which those of the same models fall
// away: of several that match a board, the first in the file then counts.
func readTemperatures(d *document, e entry, c *Config) {
	const want = "write degrees Celsius by model, such as H100: 95"
	var rows []compute.ModelTemperature
	for _, model := range d.entries(e, want) {
		celsius, ok := d.number(model, "write degrees Celsius such as 93")
		if !ok {
			continue
		}
		if model.key == otherModels {
			d.judge(model, c, func(o *compute.Options) { o.Thresholds.Temperature = celsius })
			continue
		}
		row := compute.ModelTemperature{Model: model.key, Celsius: celsius}
		d.judge(model, c, func(o *compute.Options) { o.Thresholds.Temperatures = []compute.ModelTemperature{row} })
		rows = append(rows, row)
	}
	for _, builtIn := range compute.DefaultThresholds().Temperatures {
		same := func(row compute.ModelTemperature) bool { return row.Model == builtIn.Model }
		if !slices.ContainsFunc(rows, same) {
			rows = append(rows, builtIn)
		}
	}
	c.Judge.Thresholds.Temperatures = rows
}
