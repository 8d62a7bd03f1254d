package app

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

var update = flag.Bool("update", false, "write deploy/settings.md and deploy/xids.md anew")

const (
	referenceFile = "../../deploy/settings.md"
	xidsFile      = "../../deploy/xids.md"
	exampleFile   = "../../deploy/config.example.yml"
)

// TestReference: deploy/settings.md has the table of settings, deploy/xids.md that of XIDs.
func TestReference(t *testing.T) {
	for file, want := range map[string][]byte{referenceFile: reference(), xidsFile: xidReference()} {
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is out of date (%v): go test ./internal/app -run TestReference -update", file, err)
		}
	}
}

func xidReference() []byte {
	var b bytes.Buffer
	b.WriteString(`# XIDs

Generated from internal/canonical/xids.csv by ` + "`go test ./internal/app -run TestReference -update`" + `;
` + "`kpulse-proxy explain xid 79`" + ` explains one code.

An XID is an error code that NVIDIA's driver reports for a board. Its effect on health depends on the severity of its row:

| severity | effect on health |
|---|---|
`)
	for s, means := range severityMeans {
		fmt.Fprintf(&b, "| %s | %s |\n", canonical.Severity(s), means)
	}
	b.WriteString(`
A code without a row is a warning without an action, and so is a code on a board that its row excludes ("not on").
If the driver reports a recovery action, that outranks the table.

Published tables of XIDs contradict each other: one tool treats a code as fatal, another as harmless or as a fault of the
program. This table follows the "immediate action" of NVIDIA's catalog; the last column names the source of each row, and
sources that disagree. If your machines show otherwise, change the row in the [config file](config.example.yml); that applies
to all boards:

` + "```yaml" + `
xids:
  109: warning                           # a severity, with the action that goes with it
  31: {severity: none, action: none}     # or both
` + "```" + `

| XID | severity | action | what it means, and what to do | not on | source |
|---|---|---|---|---|---|
`)
	cell := strings.NewReplacer("|", `\|`, "<", "&lt;")
	for _, r := range canonical.XIDs() {
		fmt.Fprintf(&b, "| %d<br>%s | %s | %s | %s %s | %s | %s |\n", r.Code, r.Mnemonic, r.Severity, r.Action,
			cell.Replace(r.Meaning), cell.Replace(r.Advice), strings.Join(r.Except, ", "), cell.Replace(r.Source))
	}
	return b.Bytes()
}

func reference() []byte {
	var b bytes.Buffer
	b.WriteString(`# Settings

Generated from the table in internal/app/settings.go by ` + "`go test ./internal/app -run TestReference -update`" + `.

A flag takes precedence over its environment variable, the variable over the config file (--config.file, see
[config.example.yml](config.example.yml)), and the file over the default. "For" lists the modes and backends that a setting
applies to: *serve*, *once* (--once), *export* (--export), *tui* (--tui that reads by itself), *attach* (--tui
of another proxy) and *health* (check health). Settings marked *Reloaded* are read again from the config file on SIGHUP or a
POST to /-/reload; all others need a restart.
`)
	defaults := newOptions()
	for g, title := range groupTitles {
		fmt.Fprintf(&b, "\n## %s\n\n| flag, variable, key of the config file | default | for | |\n|---|---|---|---|\n", title)
		for i := range settings {
			s := &settings[i]
			if int(s.group) != g {
				continue
			}
			var names []string
			if s.flag != "" {
				names = append(names, code("--"+s.flag+assigned(s)), code(s.variable()))
			}
			if s.key != "" {
				names = append(names, code(s.key))
			}
			standard := ""
			if s.flag != "" && s.defaultText(defaults) != "" {
				standard = code(s.defaultText(defaults))
			}
			help := strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(s.help)
			if s.key != "" && !s.restart && !strings.HasPrefix(s.key, "sources[]") {
				help += " *Reloaded.*"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", strings.Join(names, "<br>"), standard, meant(s), help)
		}
	}
	b.WriteString(`
## Environment of gpu-container-exporter

As a replacement for gpu-container-exporter, the proxy also reads these variables, and NODE_NAME as always. The flag, its
own variable and, for what to read, the sources of the config file take precedence. A single variable may be meant for another
program, so at least two must be set, one of them DCGM_HOST or DCGM_LABELS. DCGM_PORT=5555, the port of the host engine, and
the values that Kubernetes sets for a Service (tcp://…) are ignored. The log names the variables that are used, and those that are not.

| variable | flag | |
|---|---|---|
`)
	for _, a := range adoptions {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", code(a.by), code("--"+a.flag), a.help)
	}
	return b.Bytes()
}

func code(text string) string { return "`" + strings.ReplaceAll(text, "|", `\|`) + "`" }

// assigned returns the value shown with a flag's name.
func assigned(s *setting) string {
	f := &givenFlag{setting: s}
	switch placeholder := s.placeholder; {
	case f.IsBoolFlag():
		return ""
	case placeholder == "":
		return "=" + s.defaultText(newOptions())
	default:
		return "=" + placeholder
	}
}

// meant lists the modes and backends that a setting applies to.
func meant(s *setting) string {
	modes := func(set mode) string {
		var names []string
		for i, name := range []string{"serve", "once", "export", "tui", "attach", "health"} {
			if set&(1<<i) != 0 {
				names = append(names, name)
			}
		}
		return strings.Join(names, " ")
	}
	text := modes(s.modes)
	if s.backends != "" {
		text += "; backends " + s.backends
	}
	if s.everywhere != 0 {
		text += ", all of them in " + modes(s.everywhere)
	}
	return text
}

// TestTable: each row is complete and refers only to existing backends and flags.
func TestTable(t *testing.T) {
	defaults := newOptions()
	for i := range settings {
		s := &settings[i]
		name := s.flag + s.key
		if s.help == "" || s.modes == 0 || s.at(defaults) == nil || reflect.ValueOf(s.at(defaults)).IsNil() {
			t.Errorf("%s: help %q, modes %b", name, s.help, s.modes)
		}
		for _, word := range strings.Fields(s.backends) {
			if _, err := parseBackend(word); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if s.backends != "" && s.remedy == "" {
			t.Errorf("%s is refused without a remedy", name)
		}
		for _, flag := range strings.Fields(s.needs) {
			if settingOf(flag).flag != flag {
				t.Errorf("%s needs --%s", name, flag)
			}
		}
		if s.restart && s.key == "" {
			t.Errorf("%s is in no file that could be reloaded", name)
		}
		if text := s.defaultText(defaults); s.flag != "" && text != "" {
			if _, bool := s.at(defaults).(*bool); bool {
				t.Errorf("%s: %s by default", name, text)
			} else if err := s.set(newOptions(), text); err != nil && s.flag != "weights" {
				t.Errorf("%s refuses its default %s: %v", name, text, err)
			}
		}
		if slices.ContainsFunc(settings[:i], func(o setting) bool { return o.flag+o.key == name }) {
			t.Errorf("%s is there twice", name)
		}
	}
}

// TestTableHasTheKeysOfTheExample: each key of the example config file has a row, and each row's
// key is in the example, with its flag.
func TestTableHasTheKeysOfTheExample(t *testing.T) {
	body, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	// Lines that begin with # and no blank are examples that are turned off.
	text := regexp.MustCompile(`(?m)^#(\S)`).ReplaceAllString(string(body), "$1")
	var root map[string]yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for key, n := range root {
		switch key {
		case "limits", "rules", "series", "kube":
			for i := 0; i < len(n.Content); i += 2 {
				keys[key+"."+n.Content[i].Value] = true
			}
			keys["kube.discover.selector"], keys["kube.discover.namespace"] = true, true // its other keys have no flag
		case "sources":
			keys[key] = true
			for _, item := range n.Content {
				for i := 0; i < len(item.Content); i += 2 {
					keys["sources[]."+item.Content[i].Value] = item.Content[i].Value != "http_config"
				}
			}
		default:
			keys[key] = true
		}
	}
	for i := range settings {
		s := &settings[i]
		if s.key != "" && !keys[s.key] {
			t.Errorf("%s is not in the example", s.key)
		}
		if s.key != "" && s.flag != "" && !strings.HasPrefix(s.key, "sources[]") && !strings.Contains(string(body), "--"+s.flag) {
			t.Errorf("the example does not name --%s", s.flag)
		}
		delete(keys, s.key)
	}
	delete(keys, "sources[].http_config")
	if len(keys) > 0 {
		t.Errorf("no row has %v", keys)
	}
}
