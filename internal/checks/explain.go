package checks

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/alecthomas/kingpin/v2"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/settings"
)

const explainUsage = `usage: kpulse-proxy explain xid [--config.file=FILE] [--json] [CODE…]

Explains XIDs, the error codes of NVIDIA's driver: what they mean, how severe they are
for health, and what to do. Without a code it lists the whole table, including the
changes in the config file. Exits with 1 if a code is in neither.
`

// severityMeans is the meaning of each severity for health.
var severityMeans = [canonical.NumSeverities]string{
	canonical.SeverityNone:        "informational; raises nothing",
	canonical.SeveritySympathetic: "follows from another error; raises nothing",
	canonical.SeverityApplication: "the fault of a program; raises nothing unless it repeats on one board (xid_repeated)",
	canonical.SeverityWarning:     "something is wrong, but the board still works (xid_recent)",
	canonical.SeverityFatal:       "the board is unusable until someone acts (xid_fatal)",
}

// explanation is a row of the table of XIDs in force.
type explanation struct {
	Code     uint32   `json:"code"`
	Mnemonic string   `json:"mnemonic"`
	Severity string   `json:"severity"`
	Action   string   `json:"action"`
	Except   []string `json:"except"`
	Meaning  string   `json:"meaning"`
	Advice   string   `json:"advice"`
	Source   string   `json:"source"`
	// Changed means changed by the config file, for all boards.
	Changed bool `json:"changed"`

	severity canonical.Severity
}

// xidOverrides are the rows of the config file, by code.
type xidOverrides map[uint32]compute.XIDOverride

// explain returns the row in force of a code, and whether there is one.
func (o xidOverrides) explain(code uint32) (explanation, bool) {
	r, found := canonical.XIDOf(code)
	e := explanation{
		Code: r.Code, Mnemonic: r.Mnemonic, Severity: r.Severity.String(), Action: r.Action.String(),
		Except: append([]string{}, r.Except...), Meaning: r.Meaning, Advice: r.Advice, Source: r.Source, severity: r.Severity,
	}
	own, changed := o[code]
	if !changed {
		return e, found
	}
	e.Changed, e.Severity, e.Action, e.severity, e.Except = true, own.Severity.String(), own.Action.String(), own.Severity, []string{}
	e.Source = "the config file"
	if found {
		e.Source += fmt.Sprintf(", in place of %s and %s (%s)", r.Severity, r.Action, r.Source)
		e.Advice = "The table advises: " + r.Advice
	}
	return e, true
}

// ExplainCommand is the mode `explain xid CODE…`. It returns the exit code.
func ExplainCommand(args []string, stdout, stderr io.Writer) int {
	usage := func(err error) int {
		fmt.Fprintf(stderr, "kpulse-proxy: %v\n(kpulse-proxy explain --help says more)\n", err)
		return settings.ExitUsage
	}
	var path string
	var asJSON bool
	var codes []string
	answered := false
	app := kingpin.New("kpulse-proxy explain", "")
	app.Terminate(func(int) { answered = true })
	app.UsageWriter(stdout).UsageTemplate(explainUsage)
	app.HelpFlag.Short('h')
	app.Flag("config.file", "").Envar("KPULSE_CONFIG_FILE").StringVar(&path)
	app.Flag("json", "").BoolVar(&asJSON)
	app.Arg("code", "").StringsVar(&codes)
	_, err := app.Parse(args)
	switch {
	case answered:
		return settings.ExitDone
	case err != nil:
		return usage(err)
	case len(codes) == 0:
		return usage(errors.New("explain: say what, such as: kpulse-proxy explain xid 79"))
	case codes[0] != "xid":
		return usage(fmt.Errorf("explain: %q cannot be explained; write: kpulse-proxy explain xid 79", codes[0]))
	}
	var overrides xidOverrides
	if path != "" {
		file, err := settings.Load(path)
		if err != nil {
			fmt.Fprintf(stderr, "kpulse-proxy: --config.file: %v\n", err)
			return settings.ExitFailed
		}
		overrides = file.Judge.XIDs
	}
	rows, missing, err := overrides.explanations(codes[1:])
	if err != nil {
		return usage(err)
	}
	switch {
	case asJSON:
		err = writeJSON(stdout, rows)
	case len(codes) == 1:
		err = writeXIDs(stdout, rows)
	default:
		_, err = io.WriteString(stdout, inWords(rows))
	}
	if err != nil {
		fmt.Fprintf(stderr, "kpulse-proxy: %v\n", err)
		return settings.ExitFailed
	}
	for _, code := range missing {
		why := "0 is not an XID: a last XID of 0 means no error"
		if code > 0 {
			why = fmt.Sprintf("the table has no XID %d, which counts as a warning for health; look it up in NVIDIA's XID catalog (docs.nvidia.com/deploy/xid-errors), and give it a row in the config file, such as xids: {%d: fatal}", code, code)
		}
		fmt.Fprintf(stderr, "kpulse-proxy: %s\n", why)
	}
	if len(missing) > 0 {
		return settings.ExitFailed
	}
	return settings.ExitDone
}

// explanations returns the rows of codes, or all rows without codes, and the codes without a row.
func (o xidOverrides) explanations(codes []string) (rows []explanation, missing []uint32, err error) {
	rows = []explanation{}
	if len(codes) == 0 {
		all := slices.Collect(maps.Keys(o))
		for _, r := range canonical.XIDs() {
			all = append(all, r.Code)
		}
		slices.Sort(all)
		for _, code := range slices.Compact(all) {
			row, _ := o.explain(code)
			rows = append(rows, row)
		}
		return rows, nil, nil
	}
	for _, text := range codes {
		code, err := strconv.ParseUint(text, 10, 32)
		if err != nil || code > canonical.HighestXID {
			return nil, nil, fmt.Errorf("%q is not an XID, which is a number from 1 to %d, such as 79", text, canonical.HighestXID)
		}
		row, found := o.explain(uint32(code))
		if !found {
			missing = append(missing, uint32(code))
			continue
		}
		rows = append(rows, row)
	}
	return rows, missing, nil
}

func writeXIDs(out io.Writer, rows []explanation) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "XID\tSEVERITY\tACTION\tMEANING")
	for _, r := range rows {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\n", r.Code, r.Severity, r.Action, r.Meaning)
	}
	return table.Flush()
}

// inWords returns rows in words, with a blank line between them.
func inWords(rows []explanation) string {
	var text strings.Builder
	for i, r := range rows {
		if i > 0 {
			text.WriteByte('\n')
		}
		fmt.Fprintf(&text, "%s\n%s\n", strings.TrimSpace(fmt.Sprintf("XID %d %s", r.Code, r.Mnemonic)), r.Meaning)
		fmt.Fprintf(&text, "severity  %s: %s\n", r.Severity, severityMeans[r.severity])
		fmt.Fprintf(&text, "action    %s\n", r.Action)
		fmt.Fprintf(&text, "to do     %s\n", r.Advice)
		if len(r.Except) > 0 {
			fmt.Fprintf(&text, "but on    %s, where it means something else, or should not come: there it is a warning without an action\n", strings.Join(r.Except, ", "))
		}
		fmt.Fprintf(&text, "source    %s\n", r.Source)
	}
	return text.String()
}
