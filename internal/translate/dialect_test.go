package translate

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// renames lists the fields that DCGM 4.6 renamed, as `id, old name, new name`.
const renames = "../../testdata/dcgm-renames.tsv"

// rowOf returns the row of the built-in dialect that has a name.
func rowOf(name string) *Row {
	for i := range dialect {
		if slices.Contains(dialect[i].Names, name) || dialect[i].Column == name {
			return &dialect[i]
		}
	}
	return nil
}

// The vendor's renames keep field and unit, so both names belong to one row. Only the new
// name of DCGM_FI_DEV_GPU_UTIL later got another meaning.
func TestDialectHoldsTheVendorsRenames(t *testing.T) {
	table, err := os.ReadFile(renames)
	if err != nil {
		t.Fatal(err)
	}
	translatedNames := 0
	for line := range strings.Lines(string(table)) {
		if line[0] == '#' {
			continue
		}
		field := strings.Fields(line)
		if len(field) != 3 {
			t.Fatalf("line %q does not have three fields", line)
		}
		before, after := rowOf(field[1]), rowOf(field[2])
		if before == nil {
			if after != nil {
				t.Errorf("%s is known, its old name %s is not", field[2], field[1])
			}
			continue
		}
		translatedNames++
		switch {
		case field[2] == utilRatioName:
			if after == nil || after.Field != before.Field || after.Unit != percentOrRatio {
				t.Errorf("%s is not %s in an open unit", field[2], field[1])
			}
		case before != after:
			t.Errorf("%s and %s are not in one row", field[1], field[2])
		}
	}
	if translatedNames < 29 {
		t.Errorf("only %d renamed families are translated", translatedNames)
	}
}

// The built-in rows pass the checks of users' rows, and every reading that a source can give
// is in some row.
func TestDialectIsSound(t *testing.T) {
	if _, err := newRuleSet(nil); err != nil {
		t.Fatal(err)
	}
	var covered [canonical.NumFields]bool
	for i := range dialect {
		row := dialect[i]
		covered[row.Field] = true
		if row.Unit == percentOrRatio {
			row.Unit = Percent
		}
		if err := checkRow(&row); err != nil {
			t.Errorf("%v: %v", row.Names, err)
		}
		for _, name := range row.Names {
			ours := row.Field == canonical.NVLinkLimit || row.Field == canonical.NVLinksActive || strings.HasPrefix(name, jobPrefix)
			if isVendorName(name) == ours {
				t.Errorf("%q is not a name of the vendor's", name)
			}
		}
	}
	for f := range canonical.NumFields {
		ours := f == canonical.TemperatureWarning || f == canonical.FramebufferUsedRatio
		if covered[f] == ours {
			t.Errorf("%s%s: covered = %v", canonical.Fields[f].Name, canonical.Fields[f].Labels, covered[f])
		}
	}
}

func TestOwnRows(t *testing.T) {
	r := translated(t, Options{Rows: []Row{
		{Field: canonical.Power, Unit: Watts, Names: []string{"acme_power", "acme_power_watts"}},
		{Field: canonical.SMActive, Unit: Percent, Names: []string{"acme_sm"}},
		{Field: canonical.FramebufferUsedRatio, Unit: Percent, Names: []string{"acme_memory_used"}},
		{Field: canonical.Temperature, Unit: Celsius, Fallback: true, Names: []string{"acme_hotspot"}},
		{Field: canonical.MemoryTemperature, Unit: Celsius, Fallback: true, Names: []string{"acme_memory_a"}},
		{Field: canonical.MemoryTemperature, Unit: Celsius, Fallback: true, Names: []string{"acme_memory_b"}},
	}}, `acme_power_watts{gpu="0",uuid="A"} 12
acme_sm{gpu="0",uuid="A"} 43
acme_hotspot{gpu="0",uuid="A"} 90
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="A"} 70
acme_memory_b{gpu="0",uuid="A"} 51
acme_memory_a{gpu="0",uuid="A"} 50
acme_memory_used{gpu="0",uuid="A"} 20
DCGM_FI_DEV_FB_TOTAL{gpu="0",UUID="A"} 4
DCGM_FI_DEV_FB_USED{gpu="0",UUID="A"} 1
`)
	r.checkRow(0, readings{
		canonical.Power: 12, canonical.SMActive: 0.43, canonical.Temperature: 70, canonical.MemoryTemperature: 50,
		canonical.FramebufferTotal: 4 << 20, canonical.FramebufferUsed: 1 << 20, canonical.FramebufferUsedRatio: 0.2,
	})
	r.checkDropped(Report{})
}

// TestBrokenDialect: a name with two meanings in the dialect itself is refused.
func TestBrokenDialect(t *testing.T) {
	sound := dialect
	defer func() { dialect = sound }()
	dialect = append(slices.Clone(sound), Row{Field: canonical.Power, Unit: Watts, Names: sound[0].Names})
	if _, err := newRuleSet(nil); err == nil || !strings.Contains(err.Error(), "built-in dialect is broken") {
		t.Errorf("error %v", err)
	}
}

func TestOwnRowsRefused(t *testing.T) {
	power := func(names ...string) Row { return Row{Field: canonical.Power, Unit: Watts, Names: names} }
	tests := []struct {
		name string
		rows []Row
		want string
	}{
		{"a built-in name", []Row{power("DCGM_FI_DEV_GPU_UTIL")}, `dialect row 1: family "DCGM_FI_DEV_GPU_UTIL" already`},
		{"a built-in name with its own meaning", []Row{power("DCGM_FI_DEV_POWER_USAGE")}, `"DCGM_FI_DEV_POWER_USAGE" already`},
		{"a column", []Row{power("GRACT")}, `"GRACT" already`},
		{"a column of one's own", []Row{{Field: canonical.Power, Unit: Watts, Column: "POWER"}}, `"POWER" already`},
		{"the open unit's name", []Row{{Field: canonical.NVMLUtilization, Unit: Ratio, Names: []string{utilRatioName}}}, "already"},
		{"twice in a row", []Row{power("a", "a")}, `dialect row 1: family "a" already`},
		{"in two rows", []Row{power("a"), {Field: canonical.Energy, Unit: Joules, Names: []string{"a"}}}, `dialect row 2: family "a" already`},
		{"no name", []Row{power("a"), power()}, "dialect row 2: no family is named"},
		{"an empty name", []Row{power("")}, "empty name"},
		{"no such reading", []Row{{Field: canonical.NumFields, Unit: Watts, Names: []string{"a"}}}, "no reading number"},
		{"no unit", []Row{{Field: canonical.Power, Names: []string{"a"}}}, `unit "" of gpu_power_watts is unknown`},
		{"an open unit", []Row{{Field: canonical.NVMLUtilization, Unit: percentOrRatio, Names: []string{"a"}}}, "is unknown"},
		{"a unit of something else", []Row{{Field: canonical.Power, Unit: MiB, Names: []string{"a"}}}, `gpu_power_watts is in watts, which "MiB" cannot`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := New(Options{Rows: test.rows})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}
