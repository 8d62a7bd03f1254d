package canonical

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// severityGroups are the codes of each severity, and ranges of codes, in the facts behind the
// table.
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
		for _, code := range codesOf(group) {
			listed++
			if row, ok := XIDOf(code); !ok || row.Severity != severity {
				t.Errorf("XID %d: %v %v, want %v", code, ok, row.Severity, severity)
			}
		}
	}
	if listed != len(XIDs()) {
		t.Errorf("the groups have %d codes, the table %d", listed, len(XIDs()))
	}
}

// codesOf expands groups, each a code or a range.
func codesOf(groups string) (codes []uint32) {
	for _, group := range strings.Fields(groups) {
		first, last, ranged := strings.Cut(group, "-")
		if !ranged {
			last = first
		}
		from, _ := strconv.Atoi(first)
		to, _ := strconv.Atoi(last)
		for code := from; code <= to; code++ {
			codes = append(codes, uint32(code))
		}
	}
	return codes
}

// actionGroups are the catalog's immediate actions; its hardware workflows are check_hardware.
// All other codes have no action.
var actionGroups = map[Action]string{
	ActionRestartApplication: severityGroups[SeverityApplication],
	ActionCheckHardware:      "54 74 144-146 149 150 154 166-173",
	ActionResetGPU:           "46 48 62 64 95 109 110 119 120 136 140 143 155 156 158",
	ActionRestartVM:          "151",
	ActionRebootNode:         "79",
}

// recoveryGroups are the codes that the driver's recovery action follows, by the first driver
// version that does so: the catalog's column on 154. A 1 stands for "since the code exists".
var recoveryGroups = map[int]string{
	565: "48 62-64 74 79 94 95 110 120 136 144-150 155 156",
	570: "109",
	575: "143 160 161",
	1:   "158 159",
}

// TestXIDActions checks each code's action and recovery.
func TestXIDActions(t *testing.T) {
	actions, recoveries := map[uint32]Action{}, map[uint32]int{}
	for action, groups := range actionGroups {
		for _, code := range codesOf(groups) {
			actions[code] = action
		}
	}
	for driver, groups := range recoveryGroups {
		for _, code := range codesOf(groups) {
			recoveries[code] = driver
		}
	}
	for _, row := range XIDs() {
		if row.Action != actions[row.Code] || row.Recovery != recoveries[row.Code] {
			t.Errorf("XID %d asks to %v and recovers from driver %d, want %v and %d", row.Code, row.Action, row.Recovery, actions[row.Code], recoveries[row.Code])
		}
	}
}

// TestXIDModels: two codes do not apply to all models, by the catalog's columns on models.
func TestXIDModels(t *testing.T) {
	blackwell := []string{"NVIDIA B100", "NVIDIA B200", "NVIDIA B300 SXM6 AC", "NVIDIA GB200", "NVIDIA GB300"}
	older := []string{"NVIDIA A100-SXM4-40GB", "NVIDIA A800-SXM4-80GB", "NVIDIA A30", "NVIDIA A40", "NVIDIA L4", "NVIDIA L40S", "Tesla T4", "Tesla V100-SXM2-16GB", "Quadro RTX 6000"}
	hopper := []string{"NVIDIA H100 PCIe", "NVIDIA H200", "NVIDIA H800", "NVIDIA GH200 480GB", "NVIDIA H20"}
	for _, c := range []struct {
		code   uint32
		models []string
		want   Severity
	}{
		{74, blackwell, SeverityWarning}, {74, older, SeverityWarning}, {74, hopper, SeverityWarning},
		{136, blackwell, SeverityWarning}, {136, older, SeverityWarning}, {136, hopper, SeverityFatal},
		{79, blackwell, SeverityFatal}, {79, older, SeverityFatal}, {79, hopper, SeverityFatal},
	} {
		row, _ := XIDOf(c.code)
		for _, model := range c.models {
			severity, action := row.On(model)
			listed := c.want == SeverityFatal || c.code == 74 && !slices.Contains(blackwell, model)
			if severity != c.want || (action != ActionNone) != listed {
				t.Errorf("XID %d on %s: %v, %v", c.code, model, severity, action)
			}
		}
	}
	for _, row := range XIDs() {
		if row.Code == 74 || row.Code == 136 {
			continue
		}
		for _, model := range slices.Concat(blackwell, older, hopper) {
			if severity, action := row.On(model); severity != row.Severity || action != row.Action {
				t.Errorf("XID %d on %s: %v, %v, want %v, %v as everywhere", row.Code, model, severity, action, row.Severity, row.Action)
			}
		}
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
		row, listed := XIDOf(c.code)
		if listed != (c.code != 4711) {
			t.Errorf("XID %d is listed: %t", c.code, listed)
		}
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
		{119, "580.95.05", false}, {119, "", false}, {158, "535.1", true}, {149, "580.95.05", true}, {4711, "580.95.05", false},
	} {
		row, _ := XIDOf(c.code)
		if got := row.Recovers(c.driver); got != c.want {
			t.Errorf("XID %d, driver %q: %v", c.code, c.driver, got)
		}
	}
}

// immediate maps the catalog's immediate actions to ours.
var immediate = map[string]Action{
	"RESTART_APP": ActionRestartApplication, "IGNORE": ActionNone, "RESET_GPU": ActionResetGPU,
	"RESTART_BM": ActionRebootNode, "RESTART_VM": ActionRestartVM, "CHECK_MECHANICALS": ActionCheckHardware,
}

// TestXIDCatalog checks the table against the vendor's catalog, if that is at hand.
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

// TestParseXIDs reads a table of one row.
func TestParseXIDs(t *testing.T) {
	header, _, _ := strings.Cut(xidTable, "\n")
	rows, err := parseXIDs(header + "\n4294967295,NAME,fatal,reset_gpu,565,A B,book,meaning,advice\n")
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	got := rows[0]
	if got.Code != 4294967295 || got.Mnemonic != "NAME" || got.Severity != SeverityFatal || got.Action != ActionResetGPU || got.Recovery != 565 ||
		!slices.Equal(got.Except, []string{"A", "B"}) || got.Source != "book" || got.Meaning != "meaning" || got.Advice != "advice" {
		t.Errorf("%+v", got)
	}
	_, err = parseXIDs(header + "\n1,,fatal,none,,,,,\nx,,deadly,pray,R565,,,,\n")
	if want := `line 3: code "x", severity "deadly", action "pray" or recovery "R565" is invalid`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestXIDTableErrors(t *testing.T) {
	header, _, _ := strings.Cut(xidTable, "\n")
	for _, text := range []string{
		"", header, "code,severity\n1,fatal\n",
		header + "\n\"", header + "\n4294967296,,fatal,none,,,,,\n", header + "\nx,,fatal,none,,,,,\n", header + "\n1,,deadly,none,,,,,\n", header + "\n1,,fatal,pray,,,,,\n", header + "\n1,,fatal,none,R565,,,,\n", header + "\n1,fatal\n",
	} {
		if _, err := parseXIDs(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}
