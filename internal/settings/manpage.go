package settings

import (
	"strings"

	"github.com/alecthomas/kingpin/v2"
)

// askManPage is kingpin's flag for a man page. Kingpin's own page has neither a summary, which
// apropos needs, nor our commands and groups.
const askManPage = "--help-man"

const manTemplate = `.TH KPULSE-PROXY 1 "" "kpulse-proxy" "User Commands"
.SH NAME
kpulse-proxy \- GPU metrics: real utilization, workload class and health in front of dcgm-exporter
.SH SYNOPSIS
.nf
{{range commands}}\fBkpulse-proxy\fR {{roff .}}
{{end}}.fi
.SH DESCRIPTION
.nf
{{roff .App.Help}}
.fi
.SH OPTIONS
Every flag is also an environment variable. The command line wins over it, and both win over the config file.
{{range groups .Context.Flags}}.SS {{roff .Title}}
{{range .Flags}}.TP
\fB{{if .Short}}\-{{.Short|Char}}, {{end}}\-\-{{roff .Name}}{{if not .IsBoolFlag}}={{roff .FormatPlaceHolder}}{{end}}\fR
{{roff .HelpWithEnvar}}
{{end}}{{end}}.SH EXIT STATUS
0 done, 1 failed, 2 wrong usage. check health has codes of its own: 0 if all GPUs are ok, 1 if the worst is warn or hot, 2 if one is crit or gone, 3 if health is unknown.
.SH SIGNALS
SIGHUP reads the config file and the rules again. SIGTERM and SIGINT end it once running scrapes are answered.
.SH SEE ALSO
https://github.com/kpulse/kpulse-proxy
`

// writeManPage writes the man page of an application with all of its flags.
func writeManPage(app *kingpin.Application) error {
	context, err := app.ParseContext(nil)
	if err != nil {
		return err
	}
	return app.UsageForContextWithTemplate(context, 0, manTemplate)
}

// roff escapes a text for the source of a man page: a backslash is not an escape, a hyphen can be
// copied, and no line begins a request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
