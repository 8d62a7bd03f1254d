package counters

import (
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// OldNames returns the names that 4.9 removed and --compat=4.8 restores in front of an
// exporter with these lines (see Load), sorted.
func OldNames(lines []dcgm.Counter) []string {
	var families []string
	for i := range lines {
		if lines[i].Type != dcgm.LabelType {
			families = append(families, lines[i].Name)
		}
	}
	return translate.NamesIn(translate.V48, families)
}
