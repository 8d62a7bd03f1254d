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
	Changed  bool     `json:"changed"` // by the config file, for all boards

	severity canonical.Severity
}

// Explain is the mode `explain xid CODE…`. It returns the exit code.
func Explain(args []string, stdout, stderr io.Writer) int {
	if AsksForHelp(args) {
		fmt.Fprint(stdout, explainUsage)
		return settings.ExitDone
	}
	isFlag := func(arg string) bool { return strings.HasPrefix(arg, "-") }
	words := slices.DeleteFunc(slices.Clone(args), isFlag)
	flags := slices.DeleteFunc(args, func(arg string) bool { return !isFlag(arg) })
	_, o, err := flagsFor("explain", flags, stdout, "config.file", "json")
	var codes []uint32
	switch {
	case errors.Is(err, settings.ErrAnswered):
		return settings.ExitDone
	case err != nil:
	case len(words) == 0:
		err = errors.New("explain: say what, such as: kpulse-proxy explain xid 79")
	case words[0] != "xid":
		err = fmt.Errorf("explain: %q cannot be explained; write: kpulse-proxy explain xid 79", words[0])
	default:
		codes, err = xidsOf(words[1:])
	}
	if err != nil {
		fmt.Fprintf(stderr, "kpulse-proxy: %v\n(kpulse-proxy explain --help says more)\n", err)
		return settings.ExitUsage
	}
	var changes map[uint32]compute.XIDOverride
	if o.ConfigFile != "" {
		file, err := settings.Load(o.ConfigFile)
		if err != nil {
			fmt.Fprintf(stderr, "kpulse-proxy: --config.file: %v\n", err)
			return settings.ExitFailed
		}
		changes = file.Judge.XIDs
	}
	rows, missing := explanations(codes, changes)
	switch {
	case o.JSON:
		err = writeJSON(stdout, rows)
	case len(codes) == 0:
		err = writeXIDs(stdout, rows)
	default:
		_, err = io.WriteString(stdout, inWords(rows))
	}
	if err != nil {
		fmt.Fprintf(stderr, "kpulse-proxy: %v\n", err)
		return settings.ExitFailed
	}
	if len(missing) > 0 {
		fmt.Fprintln(stderr, strings.Join(missing, "\n"))
		return settings.ExitFailed
	}
	return settings.ExitDone
}

// xidsOf returns the codes of words.
func xidsOf(words []string) (codes []uint32, err error) {
	for _, text := range words {
		code, err := strconv.ParseUint(text, 10, 32)
		if err != nil || code > canonical.HighestXID {
			return nil, fmt.Errorf("%q is not an XID, which is a number from 1 to %d, such as 79", text, canonical.HighestXID)
		}
		codes = append(codes, uint32(code))
	}
	return codes, nil
}

// explanations returns the rows in force of codes, or all rows if there are no codes, and what to say of
// codes without a row. changes are those of the config file.
func explanations(codes []uint32, changes map[uint32]compute.XIDOverride) (rows []explanation, missing []string) {
	if len(codes) == 0 {
		codes = slices.Collect(maps.Keys(changes))
		for _, r := range canonical.XIDs() {
			codes = append(codes, r.Code)
		}
		slices.Sort(codes)
		codes = slices.Compact(codes)
	}
	rows = []explanation{}
	for _, code := range codes {
		r, found := canonical.XIDOf(code)
		own, changed := changes[code]
		if code == 0 {
			missing = append(missing, "kpulse-proxy: 0 is not an XID: a last XID of 0 means no error")
			continue
		} else if !found && !changed {
			missing = append(missing, fmt.Sprintf("kpulse-proxy: the table has no XID %d, which counts as a warning for health; look it up in "+
				"NVIDIA's XID catalog (docs.nvidia.com/deploy/xid-errors), and give it a row in the config file, such as xids: {%[1]d: fatal}", code))
			continue
		}
		if changed {
			source := "the config file"
			if found {
				source += fmt.Sprintf(", in place of %s and %s (%s)", r.Severity, r.Action, r.Source)
				r.Advice = "The table advises: " + r.Advice
			}
			r.Severity, r.Action, r.Except, r.Source = own.Severity, own.Action, nil, source
		}
		rows = append(rows, explanation{r.Code, r.Mnemonic, r.Severity.String(), r.Action.String(),
			append([]string{}, r.Except...), r.Meaning, r.Advice, r.Source, changed, r.Severity})
	}
	return rows, missing
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
	texts := make([]string, len(rows))
	for i, r := range rows {
		not := ""
		if len(r.Except) > 0 {
			not = "but on    " + strings.Join(r.Except, ", ") + ", where it means something else, or should not come: there it is a warning without an action\n"
		}
		texts[i] = strings.TrimSpace(fmt.Sprintf("XID %d %s", r.Code, r.Mnemonic)) + "\n" + r.Meaning +
			"\nseverity  " + r.Severity + ": " + severityMeans[r.severity] + "\naction    " + r.Action + "\nto do     " + r.Advice +
			"\n" + not + "source    " + r.Source + "\n"
	}
	return strings.Join(texts, "\n")
}
