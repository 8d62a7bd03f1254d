package canonical

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// groups are the codes by severity and action, in the facts behind the table: the catalog's
// immediate actions; its hardware workflows are check_hardware.
var groups = map[string]string{
	"fatal reset_gpu":                 "46 48 62 64 95 109 110 119 120 136 140 143 155 156 158",
	"fatal restart_vm":                "151",
	"fatal reboot_node":               "79",
	"warning check_hardware":          "54 74 144-146 149 150 154 166-173",
	"warning none":                    "78",
	"application restart_application": "8 11 13 25 31 32 39-41 60 68-72 75-77 80 82-86 88 89 94 96-105 126-135 139 142",
	"sympathetic none":                "43-45 137 159",
	"none none":                       "37 38 63 66 67 92 93 106 107 121 141 147 148 152 153 157 160-165",
}

// recoveryGroups are the codes that the driver's recovery action follows, by the first driver
// version that does so: the catalog's column on 154. A 1 stands for "since the code exists".
var recoveryGroups = map[string]string{
	"565": "48 62-64 74 79 94 95 110 120 136 144-150 155 156",
	"570": "109",
	"575": "143 160 161",
	"1":   "158 159",
}

// byCode expands groups, each of codes and ranges.
func byCode(groups map[string]string) map[uint32]string {
	of := map[uint32]string{}
	for name, codes := range groups {
		for group := range strings.FieldsSeq(codes) {
			first, last, ranged := strings.Cut(group, "-")
			if !ranged {
				last = first
			}
			from, _ := strconv.Atoi(first)
			to, _ := strconv.Atoi(last)
			for code := from; code <= to; code++ {
				of[uint32(code)] = name
			}
		}
	}
	return of
}

// TestXIDGroups checks each code's severity, action and recovery.
func TestXIDGroups(t *testing.T) {
	group, recovery := byCode(groups), byCode(recoveryGroups)
	for _, row := range XIDs() {
		driver, _ := strconv.Atoi(recovery[row.Code])
		if got := row.Severity.String() + " " + row.Action.String(); got != group[row.Code] || row.Recovery != driver {
			t.Errorf("XID %d is %s and recovers from driver %d, want %s and %d", row.Code, got, row.Recovery, group[row.Code], driver)
		}
	}
	if len(group) != len(XIDs()) {
		t.Errorf("the groups have %d codes, the table %d", len(group), len(XIDs()))
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
