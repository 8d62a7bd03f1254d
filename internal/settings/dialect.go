package settings

import (
	"cmp"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// units are all units that translate can convert.
var units = []string{
	string(translate.Ratio), string(translate.Percent), string(translate.Bytes), string(translate.MiB), string(translate.BytesPerSecond),
	string(translate.NVLinkMegabytes), string(translate.Watts), string(translate.Joules), string(translate.Millijoules),
	string(translate.Celsius), string(translate.Hertz), string(translate.Megahertz), string(translate.Seconds), string(translate.Nanoseconds),
	string(translate.Number),
}

const wantRow = "rows such as {names: [MY_SM_ACTIVE], field: gpu_sm_active_ratio, unit: percent}"

// readDialect reads additions to the dialect.
func (o *Options) readDialect(v entry) {
	families := map[string]int{} // the line of the row, by family
	for _, item := range v.items(wantRow) {
		if item.isNull() {
			item.reject("is empty; write a value, or remove the key")
			continue
		}
		if row, ok := readDialectRow(item); ok {
			for _, name := range row.Names {
				if first, twice := families[name]; twice {
					item.reject("family %q has a meaning from line %d already; leave it out", name, first)
				}
				families[name] = item.Line
			}
			o.Rows = append(o.Rows, row)
		}
	}
}

func readDialectRow(item entry) (row translate.Row, ok bool) {
	var field, unit string
	labels, before := map[string]string{}, len(item.file.problems)
	item.keys(wantRow, []string{"names", "field", "unit", "labels"}, func(key string, v entry) {
		switch key {
		case "names":
			for _, name := range v.items("one such as [NAME, NAME]") {
				if text, ok := name.text(); ok {
					row.Names = append(row.Names, text)
					checkFamily(name, text)
				}
			}
		case "field":
			v.into(&field)
		case "unit":
			if v.into(&unit); unit != "" && !slices.Contains(units, unit) {
				v.reject("%q is not a unit; use one of %s", unit, strings.Join(units, ", "))
			}
		case "labels":
			v.keys("labels such as {severity: correctable}", nil, func(name string, v entry) {
				labels[name], _ = v.text()
			})
		}
	})
	if len(item.file.problems) > before {
		return row, false
	}
	for _, need := range []struct{ key, value string }{{"names", strings.Join(row.Names, "")}, {"field", field}, {"unit", unit}} {
		if need.value == "" {
			item.reject("has no %s; write %s", need.key, wantRow)
			return row, false
		}
	}
	row.Unit = translate.Unit(unit)
	if row.Field, ok = fieldOf(item, field, labels); !ok {
		return row, false
	}
	if _, err := translate.New(translate.Options{Rows: []translate.Row{row}}); err != nil {
		item.reject("%v", cmp.Or(errors.Unwrap(err), err)) // without the row number, which is always 1 here
		return row, false
	}
	return row, true
}

// checkFamily rejects the name of a family that cannot be read.
func checkFamily(v entry, name string) {
	switch {
	case name == "" || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_:") != "" || '0' <= name[0] && name[0] <= '9':
		v.reject("%q is not a name of a family; use letters, digits, _ and :", name)
	case strings.HasPrefix(name, canonical.Prefix):
		v.reject("%q is named like the proxy's own series, which are not read again; name the exporter's family", name)
	}
}

// fieldOf finds the reading of a row, whose name may have our prefix. Labels are needed
// only if several readings have that name.
func fieldOf(item entry, word string, labels map[string]string) (canonical.Field, bool) {
	word = strings.TrimPrefix(word, canonical.Prefix)
	at := entry{item.Node, item.path + ".field", item.file}
	var known, choices []string
	for f := range canonical.NumFields {
		info := &canonical.Fields[f]
		if known = append(known, info.Name); info.Name != word {
			continue
		}
		if reflect.DeepEqual(labelsOf(f), labels) {
			if f == canonical.TemperatureWarning { // no source gives it
				at.reject("%s is not a reading of an exporter; set it under temperatures", info.Name)
			}
			return f, true
		}
		choices = append(choices, "{"+strings.NewReplacer("=", ": ", `"`, "", ",", ", ").Replace(info.Labels)+"}")
	}
	switch {
	case len(choices) == 1 && choices[0] == "{}":
		item.file.reject(item.path+".labels", "%s has none; remove them", word)
	case len(choices) > 0:
		at.reject("%s is several readings; give labels, one of %s", word, strings.Join(choices, " or "))
	case diag.Nearest(word, known) != "":
		at.reject("%q is not a reading of kpulse-proxy; did you mean %s?", word, diag.Nearest(word, known))
	default:
		at.reject("%q is not a reading of kpulse-proxy; write the name of one such as gpu_sm_active_ratio", word)
	}
	return 0, false
}

// labelsOf returns the labels that tell a field from others of its name.
func labelsOf(f canonical.Field) map[string]string {
	labels := map[string]string{}
	for pair := range strings.SplitSeq(canonical.Fields[f].Labels, ",") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			labels[name] = strings.Trim(value, `"`)
		}
	}
	return labels
}

func (o *Options) showDialect() any {
	all := []any{}
	for _, row := range o.Rows {
		pairs := []any{"names", row.Names, "field", canonical.Fields[row.Field].Name, "unit", string(row.Unit)}
		if labels := labelsOf(row.Field); len(labels) > 0 {
			pairs = append(pairs, "labels", labels)
		}
		all = append(all, mapping(pairs...))
	}
	return all
}
