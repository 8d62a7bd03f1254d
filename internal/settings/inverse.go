package settings

import (
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// file returns the file for c: the inverse of file.config, except for the names of files.
func (c *Config) file() *file {
	judge := &c.Judge
	f := &file{
		Preset:        judge.Preset,
		MissingInputs: judge.Missing.String(),
		MinCoverage:   judge.MinCoverage,
		Thresholds:    newThresholds(judge.Thresholds),
		Temperatures:  append(slices.Clone(judge.Thresholds.Temperatures), compute.ModelTemperature{Model: otherModels, Celsius: judge.Thresholds.Temperature}),
		Health:        statesOf(judge),
		XIDs:          xidsOf(judge.XIDs),
		XIDHold:       Duration(judge.XIDHold),
		Limits:        c.Limits,
		Sources:       c.Sources,
		Rules:         c.Rules,
		KernelLog:     c.KernelLog,
		Compat:        c.Compat,
		Kube:          c.Kube,
		Series:        c.Series,
	}
	if judge.Preset == compute.Custom {
		w := judge.Weights
		f.Preset, f.Weights = "", &weights{&w.SM, &w.Tensor, &w.DRAM, &w.Engine}
	}
	for i := range c.Rows {
		f.Dialect = append(f.Dialect, rowOf(&c.Rows[i]))
	}
	f.Series.Birth = Duration(judge.Birth)
	return f
}

// statesOf returns the words for what conditions raise, the plainest word for each.
func statesOf(o *compute.Options) states {
	all := states{}
	for condition, raises := range o.States {
		for _, word := range []string{"hot", "warn", "crit", "off", "default"} {
			if healthStates[word](canonical.DefaultStates()[condition]) == raises {
				all[canonical.Condition(condition).String()] = word
				break
			}
		}
	}
	return all
}

// MarshalYAML implements yaml.Marshaler. Conditions have the order of their table.
func (s states) MarshalYAML() (any, error) {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, name := range canonical.ConditionNames() {
		if word, ok := s[name]; ok {
			n.Content = append(n.Content, scalar(name), scalar(word))
		}
	}
	return n, nil
}

// MarshalYAML implements yaml.Marshaler. It keeps the order, because the first model that matches a
// board counts.
func (t temperatures) MarshalYAML() (any, error) {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, row := range t {
		celsius := new(yaml.Node)
		if err := celsius.Encode(row.Celsius); err != nil {
			return nil, err
		}
		n.Content = append(n.Content, scalar(row.Model), celsius)
	}
	return n, nil
}

// scalar returns the node of a text, in quotes only if YAML needs them.
func scalar(text string) *yaml.Node {
	n := new(yaml.Node)
	n.SetString(text)
	return n
}

// xidsOf returns the rows for overrides: the inverse of xids.rows.
func xidsOf(overrides map[uint32]compute.XIDOverride) xids {
	all := xids{}
	for code, o := range overrides {
		row := xidRow{xidKeys{Severity: o.Severity.String()}}
		if compute.OverrideXID(code, o.Severity) != o {
			row.Action = o.Action.String()
		}
		all[strconv.FormatUint(uint64(code), 10)] = row
	}
	return all
}

// MarshalYAML implements yaml.Marshaler. A severity alone needs no keys.
func (x xidRow) MarshalYAML() (any, error) {
	if x.Action == "" {
		return x.Severity, nil
	}
	return x.xidKeys, nil
}

// rowOf returns the row for r.
func rowOf(r *translate.Row) row {
	info := &canonical.Fields[r.Field]
	one := row{Names: r.Names, Field: info.Name, Unit: string(r.Unit)}
	for pair := range strings.SplitSeq(info.Labels, ",") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			if one.Labels == nil {
				one.Labels = labels{}
			}
			one.Labels[name] = strings.Trim(value, `"`)
		}
	}
	return one
}
