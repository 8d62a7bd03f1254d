package settings

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// row is an addition to the dialect.
type row struct {
	Names  []string `yaml:"names"`
	Field  string   `yaml:"field"`
	Unit   string   `yaml:"unit"`
	Labels labels   `yaml:"labels,omitempty"`
}

type labels map[string]string

// units are all units that translate can convert.
var units = []string{
	string(translate.Ratio), string(translate.Percent),
	string(translate.Bytes), string(translate.MiB),
	string(translate.BytesPerSecond), string(translate.NVLinkMegabytes),
	string(translate.Watts), string(translate.Joules), string(translate.Millijoules),
	string(translate.Celsius), string(translate.Hertz), string(translate.Megahertz),
	string(translate.Seconds), string(translate.Nanoseconds), string(translate.Number),
}

// familyName matches the family names that the text format allows.
var familyName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)

// rows returns the additions to the dialect.
func (f *file) rows(d *document) (rows []translate.Row) {
	families := map[string]int{} // the line of the row, by family
	for i := range f.Dialect {
		r, path := &f.Dialect[i], fmt.Sprintf("dialect[%d]", i+1)
		r.check(d, path)
		line := d.find(path).first
		for _, name := range r.Names {
			if first, twice := families[name]; twice {
				d.reject(path, "family %q has a meaning from line %d already; leave it out", name, first)
			}
			families[name] = line
		}
		row := translate.Row{Names: r.Names, Field: r.field(d, path), Unit: translate.Unit(r.Unit)}
		if _, err := translate.New(translate.Options{Rows: []translate.Row{row}}); err != nil {
			if inner := errors.Unwrap(err); inner != nil {
				err = inner // without the row number, which is always 1 here
			}
			d.reject(path, "%v", err)
		}
		rows = append(rows, row)
	}
	return rows
}

// check reports missing keys of a row, and invalid names and units.
func (r *row) check(d *document, path string) {
	switch {
	case r.Names == nil:
		d.reject(path, "has no names; %s", wantRow)
	case r.Field == "":
		d.reject(path, "has no field; %s", wantRow)
	case r.Unit == "":
		d.reject(path, "has no unit; %s", wantRow)
	case !slices.Contains(units, r.Unit):
		d.reject(path+".unit", "%q is not a unit; use one of %s", r.Unit, strings.Join(units, ", "))
	}
	for i, name := range r.Names {
		switch at := fmt.Sprintf("%s.names[%d]", path, i+1); {
		case !familyName.MatchString(name):
			d.reject(at, "%q is not a name of a family; use letters, digits, _ and :", name)
		case strings.HasPrefix(name, canonical.Prefix):
			d.reject(at, "%q is named like the proxy's own series, which are not read again; name the exporter's family", name)
		}
	}
}

// field finds the reading of a row, whose name may have our prefix. Labels are needed
// only if several readings have that name.
func (r *row) field(d *document, path string) canonical.Field {
	word := strings.TrimPrefix(r.Field, canonical.Prefix)
	var pairs, known, choices []string
	for name, value := range r.Labels {
		pairs = append(pairs, name+`="`+value+`"`)
	}
	slices.Sort(pairs)
	for f := range canonical.NumFields {
		info := &canonical.Fields[f]
		known = append(known, info.Name)
		if info.Name != word {
			continue
		}
		ours := strings.FieldsFunc(info.Labels, func(c rune) bool { return c == ',' })
		slices.Sort(ours)
		if slices.Equal(ours, pairs) {
			if f == canonical.TemperatureWarning { // no source gives it
				d.reject(path+".field", "%s is not a reading of an exporter; set it under temperatures", info.Name)
			}
			return f
		}
		choices = append(choices, "{"+strings.NewReplacer("=", ": ", `"`, "", ",", ", ").Replace(info.Labels)+"}")
	}
	switch near := diag.Nearest(word, known); {
	case len(choices) == 1 && choices[0] == "{}":
		d.reject(path+".labels", "%s has none; remove them", word)
	case len(choices) > 0:
		d.reject(path+".field", "%s is several readings; give labels, one of %s", word, strings.Join(choices, " or "))
	case near != "":
		d.reject(path+".field", "%q is not a reading of kpulse-proxy; did you mean %s?", word, near)
	default:
		d.reject(path+".field", "%q is not a reading of kpulse-proxy; write the name of one such as gpu_sm_active_ratio", word)
	}
	return 0
}
