package config

import (
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// field finds the reading of a name, with or without our prefix, and of labels,
// which are needed only where the readings of that name differ in them.
func (d *document) field(e, labels entry) canonical.Field {
	const want = "write the name of a reading of ours such as gpu_sm_active_ratio"
	word, ok := d.word(e, want)
	if !ok {
		return 0
	}
	word = strings.TrimPrefix(word, canonical.Prefix)
	pairs := d.pairs(labels)
	var known, choices []string
	for f := range canonical.NumFields {
		info := &canonical.Fields[f]
		known = append(known, info.Name)
		if info.Name != word {
			continue
		}
		if sameLabels(info.Labels, pairs) {
			d.refuseOurs(e, f)
			return f
		}
		choices = append(choices, "{"+strings.NewReplacer("=", ": ", `"`, "", ",", ", ").Replace(info.Labels)+"}")
	}
	switch near := diag.Nearest(word, known); {
	case len(choices) == 1 && choices[0] == "{}":
		d.reject(labels, "%s has none; remove them", word)
	case len(choices) > 0:
		d.reject(e, "%s is several readings; give labels, one of %s", word, strings.Join(choices, " or "))
	case near != "":
		d.reject(e, "%q is no reading of ours; did you mean %s?", word, near)
	default:
		d.reject(e, "%q is no reading of ours; %s", word, want)
	}
	return 0
}

// refuseOurs rejects the one reading that no source gives.
func (d *document) refuseOurs(e entry, f canonical.Field) {
	if f == canonical.TemperatureWarning {
		d.reject(e, "%s is no reading of an exporter; set it under temperatures", canonical.Fields[f].Name)
	}
}

// pairs reads labels, which may be left out, in the syntax of an exposition.
func (d *document) pairs(e entry) (pairs []string) {
	const want = "write labels such as {severity: correctable}"
	if e.value == nil {
		return nil
	}
	for _, label := range d.entries(e, want) {
		if value, ok := d.word(label, want); ok {
			pairs = append(pairs, label.key+`="`+value+`"`)
		}
	}
	return pairs
}

// sameLabels compares labels whatever their order.
func sameLabels(ours string, pairs []string) bool {
	slices.Sort(pairs)
	want := strings.Split(ours, ",")
	if ours == "" {
		want = nil
	}
	slices.Sort(want)
	return slices.Equal(want, pairs)
}
