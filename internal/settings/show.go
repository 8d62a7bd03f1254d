package settings

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	promconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/version"
	"go.yaml.in/yaml/v3"

	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/source/exporter"
)

const showHeader = `# The settings of kpulse-proxy %s in force. To use this as a config file, put the real value in the
# place of each %s.
`

// ShowConfig is the mode --config.show: it writes the settings in force, those with a key as a
// config file and the others as comments. It opens no source.
func (o *Options) ShowConfig(stdout io.Writer) error {
	directory, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("cannot get the working directory: %w; change to a directory that exists", err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, showHeader, version.Version, Masked)
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(o.asFile(directory)); err != nil {
		return err
	}
	b.WriteString("# What no config file can say, as flags:\n")
	for i := range table {
		for _, line := range o.asFlag(&table[i]) {
			b.WriteString("# " + diag.Text(line) + "\n")
		}
	}
	_, err = diag.Writer(stdout).Write(b.Bytes())
	return err
}

// asFile returns the settings that have a key as a config file that means the same, except for what is
// masked. Names of files are made absolute.
func (o *Options) asFile(directory string) *yaml.Node {
	root := mapping()
	for i := range table {
		if s := &table[i]; s.Key != "" && !strings.HasPrefix(s.Key, "sources[].") {
			if value := s.shown(o, directory); value != nil {
				section, keys := root, strings.Split(s.Key, ".")
				for _, key := range keys[:len(keys)-1] {
					section = sectionOf(section, key)
				}
				section.Content = append(section.Content, mapping(keys[len(keys)-1], value).Content...)
			}
		}
	}
	return root
}

// sectionOf returns the mapping at a key of another, which it adds if necessary.
func sectionOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	n.Content = append(n.Content, mapping(key, mapping()).Content...)
	return n.Content[len(n.Content)-1]
}

// shown returns the value of a setting in the file as YAML writes it, nil for none.
func (s *setting) shown(o *Options, directory string) any {
	switch p := s.at(o).(type) {
	case **promconfig.HTTPClientConfig:
		return showHTTP(*p, directory)
	case *string:
		if s.file && *p != "" && !filepath.IsAbs(*p) {
			return filepath.Join(directory, *p)
		}
		if *p == "" && s.bare != "" {
			return false
		}
	case *[]string:
		all := []string{}
		for _, name := range *p {
			if s.file && !filepath.IsAbs(name) {
				name = filepath.Join(directory, name)
			}
			all = append(all, name)
		}
		return all
	}
	switch {
	case s.Key == "sources":
		return showSources(o, directory)
	case s.show != nil:
		return s.show(o, directory)
	case s.fields != nil && s.Flag != "" && o.isZero(s): // weights that replace no preset
		return nil
	case s.fields != nil:
		var pairs []any
		for _, f := range s.fields(o) {
			pairs = append(pairs, f.key, plainValue(f.value))
		}
		return mapping(pairs...)
	}
	return plainValue(s.at(o))
}

// plainValue returns what p points to as YAML writes it: a number or a word.
func plainValue(p any) any {
	switch p := p.(type) {
	case *Count:
		return int(*p)
	case *time.Duration:
		return Duration(*p).String()
	case **Duration:
		if *p == nil {
			return nil
		}
		return (*p).String()
	}
	value := reflect.ValueOf(p).Elem().Interface()
	if text, is := value.(fmt.Stringer); is {
		return text.String()
	}
	return value
}

// mask returns a URL with Masked in place of its secrets.
func mask(url string) string { return exporter.Mask(url, Masked) }

// shownAs are flags whose effect is shown in another way.
var shownAs = []string{"replay", "config.file", "config.show"}

// asFlag returns a setting that is given, and has no key in the file, as flags, one for each item of a
// list. Flags of discovered exporters have no key.
func (o *Options) asFlag(s *setting) (flags []string) {
	if s.Flag == "" || slices.Contains(shownAs, s.Flag) || s.Key != "" && (!s.perSource || !o.Discovers()) {
		return nil
	}
	for _, text := range o.Given.Flag(s.Flag).Texts {
		if strings.Contains(s.placeholder, "URL") {
			text = mask(text)
		}
		flags = append(flags, ShellWord("--"+s.Flag+"="+text))
	}
	return flags
}

// ShellWord quotes a word for a shell if necessary.
func ShellWord(word string) string {
	if !strings.ContainsFunc(word, func(r rune) bool {
		return r > '~' || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:=,@%+", r)
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
