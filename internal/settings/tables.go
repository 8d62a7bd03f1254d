package settings

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// showPreset returns the preset, nil if weights replace it.
func (o *Options) showPreset() any {
	if o.Judge.Preset == compute.Custom {
		return nil
	}
	return o.Judge.Preset
}

// weightKeys are the keys of weights.
var weightKeys = []string{"sm", "tensor", "dram", "engine"}

// readWeights reads weights, which replace a preset.
func (o *Options) readWeights(v entry) {
	if v.isNull() || v.file.lines["preset"] > 0 {
		v.reject("cannot be empty, or beside a preset; remove one of the two")
		return
	}
	w, given, before := canonical.Weights{}, 0, len(v.file.problems)
	v.keys("all of sm, tensor, dram and engine, 0 for none", weightKeys, func(key string, v entry) {
		v.into([]*float64{&w.SM, &w.Tensor, &w.DRAM, &w.Engine}[slices.Index(weightKeys, key)])
		given++
	})
	switch {
	case len(v.file.problems) > before:
	case given < len(weightKeys):
		v.reject("contain %d of 4 numbers; give all of sm, tensor, dram and engine, 0 for none", given)
	case w == canonical.Weights{}:
		v.reject("are all 0; make at least one of them positive")
	default:
		o.Judge.Preset, o.Judge.Weights = compute.Custom, w
	}
}

// showWeights returns the weights if they replace the preset.
func (o *Options) showWeights() any {
	w := &o.Judge.Weights
	if o.Judge.Preset != compute.Custom {
		return nil
	}
	return mapping("sm", w.SM, "tensor", w.Tensor, "dram", w.DRAM, "engine", w.Engine)
}

// capital matches a capital letter.
var capital = diag.Pattern("[A-Z]")

// thresholdFields returns pointers to the thresholds that are single values, by key.
func thresholdFields(t *compute.Thresholds) (keys []string, fields map[string]any) {
	fields = map[string]any{}
	v := reflect.ValueOf(t).Elem()
	for i := range v.NumField() {
		key, kind := v.Type().Field(i).Tag.Get("yaml"), v.Field(i).Kind()
		if kind == reflect.Int || kind == reflect.Int64 { // a count or a duration, whose name is the key in capitals
			key = strings.ToLower(strings.TrimPrefix(capital().ReplaceAllString(v.Type().Field(i).Name, "_$0"), "_"))
		}
		if key != "-" {
			keys, fields[key] = append(keys, key), v.Field(i).Addr().Interface()
		}
	}
	return keys, fields
}

func (o *Options) readThresholds(v entry) {
	keys, fields := thresholdFields(&o.Judge.Thresholds)
	v.keys("thresholds such as idle_engine: 0.05", keys, func(key string, v entry) { v.into(fields[key]) })
}

func (o *Options) showThresholds() any {
	keys, fields := thresholdFields(&o.Judge.Thresholds)
	var pairs []any
	for _, key := range keys {
		pairs = append(pairs, key, plainValue(fields[key]))
	}
	return mapping(pairs...)
}

// otherModels is the key of the temperature for all models without one of their own.
const otherModels = "other"

// readTemperatures reads warning temperatures. The file's rows precede the built-in ones of other
// models: the first that matches a board counts.
func (o *Options) readTemperatures(v entry) {
	t := &o.Judge.Thresholds
	var rows []compute.ModelTemperature
	v.keys("degrees Celsius by model, such as H100: 95", nil, func(model string, v entry) {
		row := compute.ModelTemperature{Model: model}
		if v.into(&row.Celsius); model == otherModels {
			t.Temperature = row.Celsius
			return
		}
		rows = append(rows, row)
	})
	for _, row := range t.Temperatures {
		if !slices.ContainsFunc(rows, func(own compute.ModelTemperature) bool { return own.Model == row.Model }) {
			rows = append(rows, row)
		}
	}
	t.Temperatures = rows
}

func (o *Options) showTemperatures() any {
	var pairs []any
	for _, row := range o.Judge.Thresholds.Temperatures {
		pairs = append(pairs, row.Model, row.Celsius)
	}
	return mapping(append(pairs, otherModels, o.Judge.Thresholds.Temperature)...)
}

// stateWords are the words for what a condition raises, beside default.
var stateWords = []struct {
	word   string
	raises canonical.HealthSet
}{{"hot", canonical.RaisesHot}, {"warn", canonical.RaisesWarn}, {"crit", canonical.RaisesCrit}, {"off", 0}}

func (o *Options) readStates(v entry) {
	v.keys("states by condition, such as pcie_replay: off", canonical.ConditionNames(), func(name string, v entry) {
		condition, _ := canonical.ConditionOf(name)
		word, ok := v.text()
		if !ok || word == "default" {
			return
		}
		for _, s := range stateWords {
			if strings.EqualFold(word, s.word) {
				o.Judge.States[condition] = s.raises
				return
			}
		}
		v.reject("%q is not a state a condition can raise; write hot, warn, crit, default, or off to leave the condition out", word)
	})
}

func (o *Options) showStates() any {
	var pairs []any
	for condition, raises := range o.Judge.States {
		word := "default"
		for _, s := range stateWords {
			if s.raises == raises {
				word = s.word
			}
		}
		pairs = append(pairs, canonical.Condition(condition).String(), word)
	}
	return mapping(pairs...)
}

// readXIDs reads changes to the table of XIDs.
func (o *Options) readXIDs(v entry) {
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
	severity, action, before := v, entry{}, len(v.file.problems)
	if v.Kind == yaml.MappingNode {
		severity = entry{}
		v.keys("", []string{"severity", "action"}, func(key string, v entry) {
			if key == "action" {
				action = v
			} else {
				severity = v
			}
		})
	}
	known, _ := canonical.XIDOf(code)
	row := compute.XIDOverride{Severity: known.Severity, Action: known.Action}
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
	if severity.Node == nil && action.Node == nil && len(v.file.problems) == before {
		v.reject("says nothing; write a severity, such as warning, or severity and action, such as {severity: none, action: none}")
	}
	return row
}

func (o *Options) showXIDs() any {
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

// readSources reads the sources, each with the rows of the table for one.
func (o *Options) readSources(v entry) {
	for _, item := range v.items("sources such as {source: http://node7:9400/metrics}") {
		if item.isNull() {
			item.reject("is empty; write a value, or remove the key")
		}
		one := Options{Config: o.Config}
		one.read(item, "sources[].")
		o.Sources = append(o.Sources, one.FlagSource)
	}
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
