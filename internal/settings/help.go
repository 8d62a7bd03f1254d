package settings

import (
	"slices"
	"strings"
	"text/template"

	"github.com/alecthomas/kingpin/v2"
)

const about = `Takes the place of dcgm-exporter as a scrape target. It passes the exporter's series
through unchanged, and adds the real utilization, workload class and health of every GPU,
and its readings under names and units that are the same for every exporter version.

Look around on any machine:   kpulse-proxy --backend=replay --tui
In front of an exporter:      kpulse-proxy --source=http://node:9400/metrics
On a node without one:        kpulse-proxy --backend=dcgm
Then scrape http://localhost:9401/metrics instead of the exporter.
As a table, once:             kpulse-proxy --source=http://node:9400/metrics --once
As CSV:                       kpulse-proxy --source=http://node:9400/metrics --export=all > gpus.csv
On the terminal:              kpulse-proxy --tui
The same from a recording:    kpulse-proxy --tui --replay=FILE
Is a config file right?       kpulse-proxy check config FILE
What would it run with?       kpulse-proxy --config.show
Are rule files right?         kpulse-proxy check rules FILE…
Is a counters file complete?  kpulse-proxy check counters FILE
May jobs run on these GPUs?   kpulse-proxy check health
What does XID 79 ask for?     kpulse-proxy explain xid 79
What did my job do?           kpulse-proxy report JOB
What works on this node?      kpulse-proxy doctor`

const usage = `usage: kpulse-proxy [<flags>]
       kpulse-proxy check config FILE
       kpulse-proxy check rules FILE…
       kpulse-proxy check counters FILE
       kpulse-proxy check health [<flags>]
       kpulse-proxy check alive [<flags>]
       kpulse-proxy explain xid CODE…
       kpulse-proxy explain class|condition|action [NAME…]
       kpulse-proxy report [<flags>] JOB
       kpulse-proxy doctor [<flags>]

{{.App.Help}}

`

// Templates of --help, which only names the flags and fits two screens of 30 lines, and of --help-all.
const (
	shortHelp = usage + `{{range groups .Context.Flags}}{{.Title}}:
{{.Flags|names}}{{end}}
kpulse-proxy --help-all explains each flag.
`
	longHelp = usage + `{{range groups .Context.Flags}}{{.Title}}:
{{.Flags|FlagsToTwoColumns|FormatTwoColumns}}
{{end}}Every flag is also an environment variable. The command line wins over it, and both win
over the config file (deploy/settings.md).
The program uses one core at a time unless GOMAXPROCS sets more.
`
)

// flagGroup is one heading of --help.
type flagGroup struct {
	Title string
	Flags []*kingpin.FlagModel
}

var helpFuncs = template.FuncMap{"groups": groupFlags, "names": namesOf}

// namesOf returns the names of flags in indented lines.
func namesOf(flags []*kingpin.FlagModel) string {
	const width = 85 // of the texts above
	var lines strings.Builder
	line := " "
	for _, f := range flags {
		if name := " --" + f.Name; len(line)+len(name) <= width {
			line += name
		} else {
			lines.WriteString(line + "\n")
			line = " " + name
		}
	}
	return lines.String() + line + "\n"
}

// groupFlags returns flags by heading; kingpin's own come last.
func groupFlags(flags []*kingpin.FlagModel) []flagGroup {
	groups := make([]flagGroup, len(groupTitles))
	for i, title := range groupTitles {
		groups[i].Title = title
	}
	for _, f := range flags {
		if f.Hidden {
			continue
		}
		at := groupRest
		if i := slices.IndexFunc(table, func(s setting) bool { return s.Flag == f.Name }); i >= 0 {
			at = table[i].group
		}
		groups[at].Flags = append(groups[at].Flags, f)
	}
	return groups
}
