package canonical

import (
	"cmp"
	_ "embed" // xids.csv
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// HighestXID is far above all known codes, and bounds how many a board can have. A greater value
// is not a code: some exporters report all bits set for no code.
const HighestXID = 1023

// XIDRow is the row of an XID in the table.
type XIDRow struct {
	Code uint32
	// Mnemonic is the driver's own name, "" if unknown.
	Mnemonic string
	Severity Severity
	Action   Action
	// Recovery is the first major version of the driver whose recovery action follows the code:
	// only then does an action of 0 mean that the error is dealt with. 0 if none does.
	Recovery int
	// Except are parts of the names of models on which the code means something else, or should
	// not occur: for these it counts as a code that the table lacks.
	Except []string
	// Source is the origin of the row, and who classifies the code otherwise.
	Source string
	// Meaning and Advice say in a sentence or two what happened and what to do.
	Meaning, Advice string
}

//go:embed xids.csv
var xidTable string

// XIDs returns the table of XIDs, ordered by code. Do not write to it.
//
// Severity follows the immediate action of the vendor's catalog: a reset or restart of anything
// below the program is fatal, a restart of the program is application, and a code to ignore is
// none, or sympathetic if another error causes it. A code that the catalog leaves open is at most
// a warning. These include 166 to 173, for which it has no action yet: a board must not be
// drained on a guess, and a driver that writes these codes also reports a recovery action, which
// decides.
func XIDs() []XIDRow { return parsedXIDs() }

var parsedXIDs = sync.OnceValue(func() []XIDRow {
	rows, err := parseXIDs(xidTable)
	if err != nil {
		panic("xids.csv: " + err.Error()) // a test reads it
	}
	return rows
})

// XIDOf returns the row of a code, and whether the table has one. A code without a row is a
// warning without an action: most codes are errors, and the remedy for this one is unknown.
func XIDOf(code uint32) (XIDRow, bool) {
	rows := XIDs()
	i, found := slices.BinarySearchFunc(rows, code, func(r XIDRow, code uint32) int { return cmp.Compare(r.Code, code) })
	if !found {
		return unlisted(code), false
	}
	return rows[i], true
}

func unlisted(code uint32) XIDRow {
	return XIDRow{
		Code: code, Severity: SeverityWarning,
		Source:  "not in the table",
		Meaning: "A code that the table does not have.",
		Advice:  "Look it up in the vendor's catalog.",
	}
}

// On returns the severity and action of the code on a board of a model.
func (r *XIDRow) On(model string) (Severity, Action) {
	for _, part := range r.Except {
		if strings.Contains(model, part) {
			r := unlisted(r.Code)
			return r.Severity, r.Action
		}
	}
	return r.Severity, r.Action
}

// Recovers reports whether the recovery action of a driver version follows the code. An unknown
// version counts as recent.
func (r *XIDRow) Recovers(driver string) bool {
	if r.Recovery == 0 || driver == "" {
		return r.Recovery > 0
	}
	major, _, _ := strings.Cut(driver, ".")
	version, err := strconv.Atoi(major)
	return err != nil || version >= r.Recovery
}

// SeverityOf returns the severity with a name, and whether there is one.
func SeverityOf(name string) (Severity, bool) {
	i := slices.Index(Severities[:], name)
	return Severity(max(i, 0)), i >= 0
}

// ActionOf returns the action with a name, and whether there is one.
func ActionOf(name string) (Action, bool) {
	i := slices.Index(Actions[:], name)
	return Action(max(i, 0)), i >= 0
}

// parseXIDs reads the table: a header, then the fields of XIDRow in their order, Except
// separated by spaces.
func parseXIDs(text string) ([]XIDRow, error) {
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(records) < 2 || len(records[0]) != 9 {
		return nil, fmt.Errorf("%d lines: want a header of 9 columns and rows", len(records))
	}
	rows := make([]XIDRow, 0, len(records)-1)
	for i, c := range records[1:] {
		code, err := strconv.ParseUint(c[0], 10, 32)
		severity, isSeverity := SeverityOf(c[2])
		action, isAction := ActionOf(c[3])
		recovery, errRecovery := strconv.Atoi("0" + c[4])
		if err != nil || errRecovery != nil || !isSeverity || !isAction {
			return nil, fmt.Errorf("line %d: code %q, severity %q, action %q or recovery %q is invalid", i+2, c[0], c[2], c[3], c[4])
		}
		rows = append(rows, XIDRow{
			Code: uint32(code), Mnemonic: c[1], Severity: severity, Action: action, Recovery: recovery,
			Except: strings.Fields(c[5]), Source: c[6], Meaning: c[7], Advice: c[8],
		})
	}
	return rows, nil
}
