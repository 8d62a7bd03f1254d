package config

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// wantRow is how a row of the dialect looks.
const wantRow = "write rows such as {names: [MY_SM_ACTIVE], field: gpu_sm_active_ratio, unit: percent}"

// rowKeys are the keys of a row of the dialect.
var rowKeys = []string{"names", "field", "unit", "labels"} // the last may be left out

// units are all that translate can turn into ours.
var units = []string{
	string(translate.Ratio), string(translate.Percent),
	string(translate.Bytes), string(translate.MiB),
	string(translate.BytesPerSecond), string(translate.NVLinkMegabytes),
	string(translate.Watts), string(translate.Joules), string(translate.Millijoules),
	string(translate.Celsius), string(translate.Hertz), string(translate.Megahertz),
	string(translate.Seconds), string(translate.Nanoseconds), string(translate.Number),
}

// readDialect reads what further families mean.
func readDialect(d *document, e entry, c *Config) {
	taken := map[string]int{} // line of the row, by family
	for _, item := range d.items(e, wantRow) {
		failed := len(d.problems)
		row := d.row(item)
		for _, name := range row.Names {
			if line, twice := taken[name]; twice {
				d.reject(item, "family %q has a meaning from line %d already; leave it out", name, line)
			}
			taken[name] = item.line
		}
		if len(d.problems) > failed {
			continue
		}
		if _, err := translate.New(translate.Options{Rows: []translate.Row{row}}); err != nil {
			if inner := errors.Unwrap(err); inner != nil {
				err = inner // without the number of the row, of which there is one here
			}
			d.reject(item, "%v", err)
			continue
		}
		c.Rows = append(c.Rows, row)
	}
}

// row reads one item. It is complete if nothing was rejected.
func (d *document) row(item entry) translate.Row {
	failed := len(d.problems)
	given := map[string]entry{}
	for _, e := range d.entries(item, wantRow) {
		if !slices.Contains(rowKeys, e.key) {
			d.unknown(e, rowKeys)
		}
		given[e.key] = e
	}
	for _, key := range []string{"names", "field", "unit"} {
		if _, ok := given[key]; !ok && len(d.problems) == failed {
			d.reject(item, "has no %s; %s", key, wantRow)
		}
	}
	if len(d.problems) > failed {
		return translate.Row{}
	}
	return translate.Row{
		Names: d.names(given["names"]),
		Field: d.field(given["field"], given["labels"]),
		Unit:  d.unit(given["unit"]),
	}
}

// familyName is a name that the text format allows.
var familyName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)

// names reads the families of a row.
func (d *document) names(e entry) (names []string) {
	const want = "write a list of families such as [MY_SM_ACTIVE]"
	for _, item := range d.items(e, want) {
		name, ok := d.word(item, want)
		switch {
		case !ok:
		case !familyName.MatchString(name):
			d.reject(item, "%q is no name of a family; use letters, digits, _ and :", name)
		case strings.HasPrefix(name, canonical.Prefix):
			d.reject(item, "%q is named like ours, which are not read again; name the exporter's family", name)
		default:
			names = append(names, name)
		}
	}
	return names
}

func (d *document) unit(e entry) translate.Unit {
	word, ok := d.word(e, "write a unit such as percent")
	if ok && !slices.Contains(units, word) {
		d.reject(e, "%q is no unit; use one of %s", word, strings.Join(units, ", "))
	}
	return translate.Unit(word)
}
