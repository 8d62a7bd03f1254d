package canonical

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// severityGroups are the groups of the facts that the table was made of, codes and ranges.
var severityGroups = map[Severity]string{
	SeverityFatal:       "46 48 62 64 79 95 109 110 119 120 136 140 143 151 155 156 158",
	SeverityWarning:     "54 74 78 144-146 149 150 154 166-173",
	SeverityApplication: "8 11 13 25 31 32 39-41 60 68-72 75-77 80 82-86 88 89 94 96-105 126-135 139 142",
	SeveritySympathetic: "43-45 137 159",
	SeverityNone:        "37 38 63 66 67 92 93 106 107 121 141 147 148 152 153 157 160-165",
}

func TestXIDGroups(t *testing.T) {
	listed := 0
	for severity, group := range severityGroups {
		for _, codes := range strings.Fields(group) {
			first, last, ranged := strings.Cut(codes, "-")
			if !ranged {
				last = first
			}
			from, _ := strconv.Atoi(first)
			to, _ := strconv.Atoi(last)
			for code := from; code <= to; code++ {
				listed++
				if row, ok := XIDOf(uint32(code)); !ok || row.Severity != severity {
					t.Errorf("XID %d: %v %v, want %v", code, ok, row.Severity, severity)
				}
			}
		}
	}
	if listed != len(XIDs()) {
		t.Errorf("the groups have %d codes, the table %d", listed, len(XIDs()))
	}
}

func TestXIDRows(t *testing.T) {
	var before uint32
	for _, r := range XIDs() {
		if r.Code <= before {
			t.Errorf("XID %d follows %d", r.Code, before)
		}
		before = r.Code
		if r.Source == "" || !strings.HasSuffix(r.Meaning, ".") || !strings.HasSuffix(r.Advice, ".") {
			t.Errorf("XID %d: source %q, meaning %q, advice %q: want all, in sentences", r.Code, r.Source, r.Meaning, r.Advice)
		}
		fatal := r.Severity == SeverityFatal
		if fatal != (r.Action >= ActionResetGPU) || (r.Severity <= SeveritySympathetic) && r.Action != ActionNone {
			t.Errorf("XID %d is %v and asks to %v", r.Code, r.Severity, r.Action)
		}
	}
	for _, c := range []struct {
		code     uint32
		model    string
		severity Severity
		action   Action
	}{
		{79, "NVIDIA H100 80GB HBM3", SeverityFatal, ActionRebootNode},
		{136, "NVIDIA H100 80GB HBM3", SeverityFatal, ActionResetGPU},
		{136, "NVIDIA H200", SeverityFatal, ActionResetGPU},
		{136, "NVIDIA GB200", SeverityWarning, ActionNone},
		{136, "NVIDIA A100-SXM4-80GB", SeverityWarning, ActionNone},
		{136, "", SeverityFatal, ActionResetGPU},
		{74, "NVIDIA A100-SXM4-80GB", SeverityWarning, ActionCheckHardware},
		{74, "NVIDIA B200", SeverityWarning, ActionNone},
		{151, "", SeverityFatal, ActionRestartVM},
		{94, "", SeverityApplication, ActionRestartApplication},
		{4711, "", SeverityWarning, ActionNone},
	} {
		row, _ := XIDOf(c.code)
		if s, a := row.On(c.model); s != c.severity || a != c.action {
			t.Errorf("XID %d on %q: %v %v, want %v %v", c.code, c.model, s, a, c.severity, c.action)
		}
	}
}

func TestXIDRecovers(t *testing.T) {
	for _, c := range []struct {
		code   uint32
		driver string
		want   bool
	}{
		{48, "570.86.15", true}, {48, "565.1", true}, {48, "550.54.15", false}, {48, "", true},
		{109, "565.57.01", false}, {109, "570.86.15", true}, {143, "570.86.15", false}, {143, "580.95.05", true},
		{119, "580.95.05", false}, {119, "", false}, {149, "580.95.05", true}, {4711, "580.95.05", false},
	} {
		row, _ := XIDOf(c.code)
		if got := row.Recovers(c.driver); got != c.want {
			t.Errorf("XID %d, driver %q: %v", c.code, c.driver, got)
		}
	}
}

// immediate is our action for the catalog's immediate one.
var immediate = map[string]Action{
	"RESTART_APP": ActionRestartApplication, "IGNORE": ActionNone, "RESET_GPU": ActionResetGPU,
	"RESTART_BM": ActionRebootNode, "RESTART_VM": ActionRestartVM, "CHECK_MECHANICALS": ActionCheckHardware,
}

// TestXIDCatalog holds the table to the vendor's, where that is at hand.
func TestXIDCatalog(t *testing.T) {
	text, err := os.ReadFile("../../../shared/facts/xid-catalog.tsv")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(text)) {
		c := strings.Split(line, "\t")
		code, err := strconv.ParseUint(c[1], 10, 32)
		if err != nil {
			continue // the header
		}
		row, ok := XIDOf(uint32(code))
		if !ok || !strings.Contains(c[2], row.Mnemonic) {
			t.Errorf("XID %d: %v %q, want %q", code, ok, row.Mnemonic, c[2])
		}
		if want, ok := immediate[c[7]]; ok && row.Action != want {
			t.Errorf("XID %d: %v, the catalog says %s", code, row.Action, c[7])
		}
	}
}

func TestXIDTableErrors(t *testing.T) {
	header, _, _ := strings.Cut(xidTable, "\n")
	for _, text := range []string{
		"", header, "code,severity\n1,fatal\n",
		header + "\nx,,fatal,none,,,,,\n", header + "\n1,,deadly,none,,,,,\n", header + "\n1,,fatal,pray,,,,,\n", header + "\n1,,fatal,none,R565,,,,\n", header + "\n1,fatal\n",
	} {
		if _, err := parseXIDs(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}
