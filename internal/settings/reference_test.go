package settings

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

	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write deploy/settings.md anew")

const (
	referenceFile = "../../deploy/settings.md"
	exampleFile   = "../../deploy/config.example.yml"
)

// TestReference: deploy/settings.md has the table of settings.
func TestReference(t *testing.T) {
	want := reference()
	if *update {
		if err := os.WriteFile(referenceFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(referenceFile); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is out of date (%v): go test ./internal/settings -run TestReference -update", referenceFile, err)
	}
}

func reference() []byte {
	var b bytes.Buffer
	b.WriteString(`# Settings

Generated from the table in internal/settings/settings.go by ` + "`go test ./internal/settings -run TestReference -update`" + `.

A flag takes precedence over its environment variable, the variable over the config file (--config.file, see
[config.example.yml](config.example.yml)), and the file over the default. "For" lists the modes and backends that a setting
applies to: *serve*, *once* (--once), *export* (--export), *tui* (--tui that reads by itself), *attach* (--tui
of another proxy), *health* (check health) and *report*. Settings marked *Reloaded* are read again from the config file on SIGHUP or a
POST to /-/reload; all others need a restart.
`)
	defaults := NewOptions()
	for g, title := range groupTitles {
		fmt.Fprintf(&b, "\n## %s\n\n| flag, variable, key of the config file | default | for | |\n|---|---|---|---|\n", title)
		for i := range table {
			s := &table[i]
			if int(s.group) != g {
				continue
			}
			var names []string
			if s.Flag != "" {
				names = append(names, code("--"+s.Flag+assigned(s)), code(s.Variable()))
			}
			if s.Key != "" {
				names = append(names, code(s.Key))
			}
			standard := ""
			if s.Flag != "" && s.defaultText(defaults) != "" {
				standard = code(s.defaultText(defaults))
			}
			help := strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(s.help)
			if s.Key != "" && !s.restart && !strings.HasPrefix(s.Key, "sources[]") {
				help += " *Reloaded.*"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", strings.Join(names, "<br>"), standard, meant(s), help)
		}
	}
	return b.Bytes()
}

func code(text string) string { return "`" + strings.ReplaceAll(text, "|", `\|`) + "`" }

// assigned returns the value shown with a flag's name.
func assigned(s *setting) string {
	f := &givenFlag{Setting: s}
	switch placeholder := s.placeholder; {
	case f.IsBoolFlag():
		return ""
	case placeholder == "":
		return "=" + s.defaultText(NewOptions())
	default:
		return "=" + placeholder
	}
}

// meant lists the modes and backends that a setting applies to.
func meant(s *setting) string {
	modes := func(set mode) string {
		var names []string
		for i, name := range []string{"serve", "once", "export", "tui", "attach", "health", "report"} {
			if set&(1<<i) != 0 {
				names = append(names, name)
			}
		}
		return strings.Join(names, " ")
	}
	text := modes(s.Modes)
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
	defaults := NewOptions()
	for i := range table {
		s := &table[i]
		name := s.Flag + s.Key
		if s.help == "" || s.Modes == 0 || s.at(defaults) == nil || reflect.ValueOf(s.at(defaults)).IsNil() {
			t.Errorf("%s: help %q, modes %b", name, s.help, s.Modes)
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
			if rowOf(flag).Flag != flag {
				t.Errorf("%s needs --%s", name, flag)
			}
		}
		if s.restart && s.Key == "" {
			t.Errorf("%s is in no file that could be reloaded", name)
		}
		if text := s.defaultText(defaults); s.Flag != "" && text != "" {
			if _, bool := s.at(defaults).(*bool); bool {
				t.Errorf("%s: %s by default", name, text)
			} else if err := s.set(NewOptions(), text); err != nil && s.Flag != "weights" {
				t.Errorf("%s refuses its default %s: %v", name, text, err)
			}
		}
		if slices.ContainsFunc(table[:i], func(o setting) bool { return o.Flag+o.Key == name }) {
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
	text := regexp.MustCompile(`(?m)^( *)#(\S)`).ReplaceAllString(string(body), "$1$2")
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	var visit func(section string, n *yaml.Node)
	visit = func(section string, n *yaml.Node) {
		for i := 0; i < len(n.Content); i += 2 {
			key, value := section+n.Content[i].Value, n.Content[i+1]
			switch key {
			case "limits", "rules", "series", "kube", "kube.discover":
				visit(key+".", value)
				continue
			case "sources":
				for _, item := range value.Content {
					visit("sources[].", item)
				}
			}
			keys[key] = true
		}
	}
	visit("", root.Content[0])
	for i := range table {
		s := &table[i]
		if s.Key != "" && !keys[s.Key] {
			t.Errorf("%s is not in the example", s.Key)
		}
		if s.Key != "" && s.Flag != "" && !strings.HasPrefix(s.Key, "sources[]") && !strings.Contains(string(body), "--"+s.Flag) {
			t.Errorf("the example does not name --%s", s.Flag)
		}
		delete(keys, s.Key)
	}
	if len(keys) > 0 {
		t.Errorf("no row has %v", keys)
	}
}
