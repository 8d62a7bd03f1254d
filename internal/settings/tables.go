package settings

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/source/exporter"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// named is one value of a key with a fixed set of keys below it.
type named struct {
	key   string
	value any // as setting.at returns it
}

func (o *Options) weights() []named {
	w := &o.Judge.Weights
	return []named{{"sm", &w.SM}, {"tensor", &w.Tensor}, {"dram", &w.DRAM}, {"engine", &w.Engine}}
}

// thresholds returns the thresholds that are single values.
func (o *Options) thresholds() (all []named) {
	v := reflect.ValueOf(&o.Judge.Thresholds).Elem()
	for i := range v.NumField() {
		if key := v.Type().Field(i).Tag.Get("yaml"); key != "-" {
			all = append(all, named{key, v.Field(i).Addr().Interface()})
		}
	}
	return all
}

func (o *Options) states() (all []named) {
	for i := range o.Judge.States {
		all = append(all, named{canonical.Condition(i).String(), (*raises)(&o.Judge.States[i])})
	}
	return all
}

// raises is what a condition raises, as a word.
type raises canonical.HealthSet

var raisesWords = map[string]raises{
	"hot": raises(canonical.RaisesHot), "warn": raises(canonical.RaisesWarn), "crit": raises(canonical.RaisesCrit), "off": 0,
}

// Set reads a word. It implements kingpin.Value.
func (r *raises) Set(word string) error {
	if word == "default" {
		return nil
	}
	set, known := raisesWords[strings.ToLower(word)]
	if !known {
		return fmt.Errorf("%q is not a state a condition can raise; write hot, warn, crit, default, or off to leave the condition out", word)
	}
	*r = set
	return nil
}

// String returns the word.
func (r raises) String() string {
	for word, set := range raisesWords {
		if set == r {
			return word
		}
	}
	return "default"
}

func showPreset(o *Options, _ string) any {
	if o.Judge.Preset == compute.Custom {
		return nil // weights replace it
	}
	return o.Judge.Preset
}

// otherModels is the key of the temperature for all models without one of their own.
const otherModels = "other"

// readTemperatures reads warning temperatures. The file's rows precede the built-in ones of other
// models: the first that matches a board counts.
func readTemperatures(o *Options, v entry) {
	t := &o.Judge.Thresholds
	var rows []compute.ModelTemperature
	v.keys("degrees Celsius by model, such as H100: 95", nil, func(model string, v entry) {
		row := compute.ModelTemperature{Model: model}
		if v.into(&row.Celsius); model == otherModels {
			t.Temperature = row.Celsius
			return
		}
		rows = append(rows, row)
		t.Temperatures = slices.DeleteFunc(slices.Clone(t.Temperatures), func(m compute.ModelTemperature) bool { return m.Model == model })
	})
	t.Temperatures = append(rows, t.Temperatures...)
}

func showTemperatures(o *Options, _ string) any {
	var pairs []any
	for _, row := range o.Judge.Thresholds.Temperatures {
		pairs = append(pairs, row.Model, row.Celsius)
	}
	return mapping(append(pairs, otherModels, o.Judge.Thresholds.Temperature)...)
}

// readXIDs reads changes to the table of XIDs.
func readXIDs(o *Options, v entry) {
	v.keys("severities by code, such as 109: warning", nil, func(name string, v entry) {
		code, err := strconv.ParseUint(name, 10, 32)
		if err != nil || code == 0 || code > canonical.HighestXID || strconv.FormatUint(code, 10) != name {
			v.reject("is not an XID, which is a number from 1 to %d; write severities by code, such as 109: warning", canonical.HighestXID)
			return
		}
		if o.Judge.XIDs == nil {
			o.Judge.XIDs = map[uint32]compute.XIDOverride{}
		}
		o.Judge.XIDs[uint32(code)] = readXID(v, uint32(code))
	})
}

// readXID reads a severity, an action or both. A severity alone has the action that fits it.
func readXID(v entry, code uint32) compute.XIDOverride {
	known, _ := canonical.XIDOf(code)
	row, severity, action := compute.XIDOverride{Severity: known.Severity, Action: known.Action}, v, entry{}
	if v.Kind == yaml.MappingNode {
		severity = entry{}
		parts := map[string]*entry{"severity": &severity, "action": &action}
		v.keys("", []string{"severity", "action"}, func(key string, v entry) { *parts[key] = v })
	}
	if severity.Node != nil {
		word, ok := severity.text()
		if s, known := canonical.SeverityOf(word); known {
			row = compute.OverrideXID(code, s)
		} else if ok {
			severity.reject("%q is not a severity%s", word, diag.Instead(word, canonical.Severities[:]))
		}
	}
	if action.Node != nil {
		word, ok := action.text()
		if a, known := canonical.ActionOf(word); known {
			row.Action = a
		} else if ok {
			action.reject("%q is not an action%s", word, diag.Instead(word, canonical.Actions[:]))
		}
	}
	return row
}

func showXIDs(o *Options, _ string) any {
	all := map[string]any{}
	for code, row := range o.Judge.XIDs {
		var value any = row.Severity.String()
		if compute.OverrideXID(code, row.Severity) != row {
			value = mapping("severity", row.Severity.String(), "action", row.Action.String())
		}
		all[strconv.FormatUint(uint64(code), 10)] = value
	}
	return all
}

const wantRow = "rows such as {names: [MY_SM_ACTIVE], field: gpu_sm_active_ratio, unit: percent}"

// readDialect reads additions to the dialect.
func readDialect(o *Options, v entry) {
	for _, item := range v.items(wantRow) {
		var row translate.Row
		var field, unit string
		labels, before := map[string]string{}, len(item.file.problems)
		item.keys(wantRow, []string{"names", "field", "unit", "labels"}, func(key string, v entry) {
			switch key {
			case "names":
				for _, name := range v.items("one such as [NAME, NAME]") {
					name.into(&row.Names)
				}
			case "field":
				v.into(&field)
			case "unit":
				v.into(&unit)
			case "labels":
				v.keys("labels such as {severity: correctable}", nil, func(name string, v entry) { labels[name], _ = v.text() })
			}
		})
		if len(item.file.problems) > before {
			continue
		}
		var err error
		row.Unit = translate.Unit(unit)
		if row.Field, err = fieldOf(field, labels); err == nil {
			_, err = translate.New(translate.Options{Rows: append(slices.Clone(o.Rows), row)})
			err = cmp.Or(errors.Unwrap(err), err) // without the number of the row, which its path has
		}
		if err != nil {
			item.reject("%v", err)
			continue
		}
		o.Rows = append(o.Rows, row)
	}
}

// fieldOf finds the reading of a row, whose name may have our prefix. Labels are needed
// only if several readings have that name.
func fieldOf(name string, labels map[string]string) (canonical.Field, error) {
	name = strings.TrimPrefix(name, canonical.Prefix)
	var known, choices []string
	for f := range canonical.NumFields {
		info := &canonical.Fields[f]
		if f == canonical.TemperatureWarning { // no source gives it
			continue
		}
		if known = append(known, info.Name); info.Name != name {
			continue
		}
		if maps.Equal(labelsOf(f), labels) {
			return f, nil
		}
		choices = append(choices, "{"+strings.NewReplacer("=", ": ", `"`, "", ",", ", ").Replace(info.Labels)+"}")
	}
	if choices == nil {
		return 0, fmt.Errorf("%q is not a reading of kpulse-proxy; write one such as %s", name, cmp.Or(diag.Nearest(name, known), "gpu_sm_active_ratio"))
	}
	return 0, fmt.Errorf("%s has other labels; give one of %s", name, strings.Join(choices, " or "))
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

func showDialect(o *Options, _ string) any {
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

// readSources reads the sources, each with the rows of the table for one.
func readSources(o *Options, v entry) {
	for _, item := range v.items("sources such as {source: http://node7:9400/metrics}") {
		one := Options{Config: o.Config}
		one.read(item, "sources[].")
		o.Sources = append(o.Sources, one.FlagSource)
	}
}

// showSources returns the sources to read, with the defaults of keys that are not set.
func showSources(o *Options, directory string) any {
	all := []any{}
	for i := range o.Upstreams {
		s := &o.Upstreams[i]
		one := Options{FlagSource: s.Source}
		one.FlagSource.Backend, one.FlagSource.Source = s.Backend.Name, exporter.MaskSource(s.Source.Source, Masked)
		poll := Duration(s.Period)
		if s.Backend.clamped {
			poll = max(poll, Duration(s.Backend.least))
		}
		if one.FlagSource.Poll != nil || poll > 0 {
			one.FlagSource.Poll = &poll
		}
		var pairs []any
		for i := range table {
			if key, is := strings.CutPrefix(table[i].Key, "sources[]."); is && !one.isZero(&table[i]) {
				pairs = append(pairs, key, table[i].shown(&one, directory))
			}
		}
		all = append(all, mapping(pairs...))
	}
	return all
}

// mapping returns a mapping of keys and values in this order.
func mapping(pairs ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i < len(pairs); i += 2 {
		key, value := new(yaml.Node), new(yaml.Node)
		key.SetString(pairs[i].(string))
		switch v := pairs[i+1].(type) {
		case *yaml.Node:
			value = v
		case string:
			value.SetString(v) // in quotes only if it would be something else
		default:
			if err := value.Encode(v); err != nil {
				panic(fmt.Sprint("a value of ", pairs[i], " has no form in YAML: ", err)) // they are numbers, words and lists of these
			}
		}
		n.Content = append(n.Content, key, value)
	}
	return n
}
