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
       kpulse-proxy explain class|condition|action [NAME…]

Explains what kpulse-proxy says of a GPU, and what to do: XIDs, the error codes of
NVIDIA's driver (deploy/xids.md has the whole table), workload classes, conditions of
health (deploy/health.md), and recommended actions; without a NAME all of a kind. Exits
with 1 if a code is neither in the table nor in the config file.
`

// explained is a word of ours, with lines of a title and a text.
type explained struct {
	name  string
	lines [][2]string
}

// vocabularies are the kinds of words, besides XIDs.
var vocabularies = map[string]func() []explained{
	"class": func() (all []explained) {
		for _, c := range canonical.Classes {
			all = append(all, explained{c.Name, [][2]string{{"is", c.Title + ", bottleneck " + c.Bottleneck}, {"means", c.Advice}}})
		}
		return all
	},
	"condition": func() (all []explained) {
		for _, c := range canonical.Conditions {
			e := explained{c.Name, [][2]string{{"is", c.Title}, {"raised", c.When}, {"means", c.Remedy}}}
			if c.Action != canonical.ActionNone {
				e.lines = append(e.lines, [2]string{"to do", c.Action.String() + ": " + canonical.ActionAdvice[c.Action]})
			}
			all = append(all, e)
		}
		return all
	},
	"action": func() (all []explained) {
		for a, advice := range canonical.ActionAdvice {
			all = append(all, explained{canonical.Actions[a], [][2]string{{"to do", advice}}})
		}
		return all
	},
}

// explainWords writes the words of a kind with these names, all without any.
func explainWords(out io.Writer, kind string, names []string) error {
	all := vocabularies[kind]()
	var known []string
	for _, e := range all {
		known = append(known, e.name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("explain: %q is no %s; the known ones are %s", name, kind, strings.Join(known, ", "))
		}
	}
	first := true
	for _, e := range all {
		if len(names) > 0 && !slices.Contains(names, e.name) {
			continue
		}
		if !first {
			fmt.Fprintln(out)
		}
		first = false
		fmt.Fprintln(out, e.name)
		for _, line := range e.lines {
			fmt.Fprintf(out, "%-9s %s\n", line[0], line[1])
		}
	}
	return nil
}

// severityMeans is the meaning of each severity for health.
var severityMeans = [canonical.NumSeverities]string{
	canonical.SeverityNone:        "informational; raises nothing",
	canonical.SeveritySympathetic: "follows from another error; raises nothing",
	canonical.SeverityApplication: "the fault of a program; raises nothing unless it repeats on one board (xid_repeated)",
	canonical.SeverityWarning:     "something is wrong, but the board still works (xid_recent)",
	canonical.SeverityFatal:       "the board is unusable until someone acts (xid_fatal)",
}

// Explain is the mode `explain`. It returns the exit code.
func Explain(args []string, stdout, stderr io.Writer) int {
	if AsksForHelp(args) {
		fmt.Fprint(stdout, explainUsage)
		return settings.ExitDone
	}
	words, flags := wordsAndFlags(args)
	_, o, err := flagsFor("explain", flags, stdout, "config.file")
	var codes []uint32
	switch {
	case errors.Is(err, settings.ErrAnswered):
		return settings.ExitDone
	case err != nil:
	case len(words) == 0:
		err = errors.New("explain: say what: xid, class, condition or action, such as: kpulse-proxy explain xid 79")
	case vocabularies[words[0]] != nil:
		if err = explainWords(stdout, words[0], words[1:]); err == nil {
			return settings.ExitDone
		}
	case words[0] != "xid":
		err = fmt.Errorf("explain: %q is not a kind of word; the kinds are xid, class, condition and action, such as: kpulse-proxy explain xid 79", words[0])
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

// wordsAndFlags splits arguments.
func wordsAndFlags(args []string) (words, flags []string) {
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			flags = append(flags, arg)
		} else {
			words = append(words, arg)
		}
	}
	return words, flags
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
