package settings

import (
	"maps"
	"slices"
	"strconv"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// xids are rows that replace those of the XID table, by code.
type xids map[string]xidRow

// xidRow is a severity, or a map of keys.
type xidRow struct {
	xidKeys `yaml:",inline"`
}

type xidKeys struct {
	Severity string `yaml:"severity"`
	Action   string `yaml:"action"`
}

// UnmarshalYAML implements yaml.v3's older interface, with which the decoder
// refuses unknown fields in nested values too.
func (x *xidRow) UnmarshalYAML(unmarshal func(any) error) error {
	if unmarshal(&x.Severity) == nil {
		return nil
	}
	return unmarshal(&x.xidKeys)
}

// rows returns the overrides, nil for none, and reports invalid rows to d. The table
// completes a row, a severity alone with the action that fits it.
func (all xids) rows(d *document) map[uint32]compute.XIDOverride {
	var rows map[uint32]compute.XIDOverride
	for _, name := range slices.Sorted(maps.Keys(all)) {
		x, path := all[name], "xids."+name
		code, err := strconv.ParseUint(name, 10, 32)
		if err != nil || code == 0 || code > canonical.HighestXID || strconv.FormatUint(code, 10) != name {
			d.reject(path, "is not an XID, which is a number from 1 to %d; %s", canonical.HighestXID, wantXIDs)
			continue
		}
		table, _ := canonical.XIDOf(uint32(code))
		row := compute.XIDOverride{Severity: table.Severity, Action: table.Action}
		if x.Severity == "" && x.Action == "" {
			d.reject(path, "says nothing; %s", wantXID)
			continue
		}
		if x.Severity != "" {
			severity, known := canonical.SeverityOf(x.Severity)
			if !known {
				d.reject(path+".severity", "%q is not a severity%s", x.Severity, diag.Instead(x.Severity, canonical.Severities[:]))
				continue
			}
			row = compute.OverrideXID(uint32(code), severity)
		}
		if x.Action != "" {
			action, known := canonical.ActionOf(x.Action)
			if !known {
				d.reject(path+".action", "%q is not an action%s", x.Action, diag.Instead(x.Action, canonical.Actions[:]))
				continue
			}
			row.Action = action
		}
		if rows == nil {
			rows = map[uint32]compute.XIDOverride{}
		}
		rows[uint32(code)] = row
	}
	return rows
}
