package checks

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/settings"
)

const explainUsage = `usage: kpulse-proxy explain xid [--config.file=FILE] CODE…

Explains XIDs, the error codes of NVIDIA's driver: what they mean, how severe they are
for health, and what to do. deploy/xids.md has the whole table. Exits with 1 if a code
is neither there nor in the config file.
`

// severityMeans is the meaning of each severity for health.
var severityMeans = [canonical.NumSeverities]string{
	canonical.SeverityNone:        "informational; raises nothing",
	canonical.SeveritySympathetic: "follows from another error; raises nothing",
	canonical.SeverityApplication: "the fault of a program; raises nothing unless it repeats on one board (xid_repeated)",
	canonical.SeverityWarning:     "something is wrong, but the board still works (xid_recent)",
	canonical.SeverityFatal:       "the board is unusable until someone acts (xid_fatal)",
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
	_, o, err := flagsFor("explain", flags, stdout, "config.file")
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
	var texts []string
	exit := settings.ExitDone
	for _, code := range codes {
		row, missing := inForce(code, changes)
		if missing != "" {
			fmt.Fprintln(stderr, "kpulse-proxy: "+missing)
			exit = settings.ExitFailed
		} else {
			texts = append(texts, inWords(row))
		}
	}
	fmt.Fprint(stdout, strings.Join(texts, "\n"))
	return exit
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
	if len(codes) == 0 {
		return nil, errors.New("explain xid: name a code, such as 79")
	}
	return codes, nil
}

// inForce returns the row of a code with the changes of the config file, or why there is none.
func inForce(code uint32, changes map[uint32]compute.XIDOverride) (row canonical.XIDRow, missing string) {
	row, found := canonical.XIDOf(code)
	change, changed := changes[code]
	switch {
	case code == 0:
		return row, "0 is not an XID: a last XID of 0 means no error"
	case !found && !changed:
		return row, fmt.Sprintf("the table has no XID %d, which counts as a warning for health; look it up in NVIDIA's XID catalog "+
			"(docs.nvidia.com/deploy/xid-errors), and give it a row in the config file, such as xids: {%[1]d: fatal}", code)
	case changed:
		source := "the config file"
		if found {
			source += fmt.Sprintf(", in place of %s and %s (%s)", row.Severity, row.Action, row.Source)
			row.Advice = "The table advises: " + row.Advice
		}
		row.Severity, row.Action, row.Except, row.Source = change.Severity, change.Action, nil, source
	}
	return row, ""
}

// inWords returns a row as lines.
func inWords(r canonical.XIDRow) string {
	text := strings.TrimSpace(fmt.Sprintf("XID %d %s", r.Code, r.Mnemonic)) + "\n" + r.Meaning + "\n"
	text += fmt.Sprintf("severity  %s: %s\naction    %s\nto do     %s\n", r.Severity, severityMeans[r.Severity], r.Action, r.Advice)
	if len(r.Except) > 0 {
		text += "but on    " + strings.Join(r.Except, ", ") + ", where it means something else, or should not come: there it is a warning without an action\n"
	}
	return text + "source    " + r.Source + "\n"
}
