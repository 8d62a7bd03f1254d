package settings

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/common/version"
	"go.yaml.in/yaml/v3"

	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/source/exporter"
)

const showHeader = `# The settings of kpulse-proxy %s in force. A comment behind a value says which flag, variable
# or line of the config file it is from; without one it is the default. To use this as a config
# file, put the real value in the place of each %s.
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
	text := diag.AppendJSON(nil, b.Bytes()) // quoted YAML has JSON's escapes
	text = append(text, "# What no config file can say, as flags:\n"...)
	for i := range table {
		for _, line := range o.asFlag(&table[i]) {
			text = append(text, "# "+line+"\n"...)
		}
	}
	_, err = stdout.Write(text)
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
	o.complete("", root)
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

// shown returns the value of a setting in the file, nil for none.
func (s *setting) shown(o *Options, directory string) any {
	if s.Key == "sources" {
		return o.showSources(directory)
	}
	if s.show != nil {
		return s.show(o, directory)
	}
	located := func(name string) string {
		if s.file && name != "" && !filepath.IsAbs(name) {
			return filepath.Join(directory, name)
		}
		return name
	}
	switch value := plainValue(s.at(o)).(type) {
	case string:
		if value == "" && s.bare != "" {
			return false
		}
		return located(value)
	case []string:
		all := []string{}
		for _, name := range value {
			all = append(all, located(name))
		}
		return all
	default:
		return value
	}
}

// plainValue returns what p points to as YAML writes it: a number, a word or a list of words.
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

// showSources returns the sources to read, with the defaults of keys that are not set.
func (o *Options) showSources(directory string) any {
	all := []any{}
	for i := range o.Upstreams {
		s := &o.Upstreams[i]
		one := Options{FlagSource: s.Source}
		one.FlagSource.Backend, one.FlagSource.Source = s.Backend.Name, exporter.MaskSource(s.Source.Source, Masked)
		poll := Duration(s.Period)
		if s.Backend.clamped {
			poll = max(poll, Duration(s.Backend.least))
		}
		if one.FlagSource.Poll != nil || poll > 0 {
			one.FlagSource.Poll = &poll
		}
		var pairs []any
		for i := range table {
			if key, is := strings.CutPrefix(table[i].Key, "sources[]."); is && !one.IsZero(&table[i]) {
				pairs = append(pairs, key, table[i].shown(&one, directory))
			}
		}
		all = append(all, mapping(pairs...))
	}
	return all
}

// mask returns a URL with Masked in place of its secrets.
func mask(url string) string { return exporter.Mask(url, Masked) }

// complete adds the origin of each value below a path, and quotes what a terminal could misread.
func (o *Options) complete(path string, n *yaml.Node) {
	if len(n.Content) == 0 {
		n.LineComment = o.originOf(path)
	}
	if diag.Text(n.Value) != n.Value {
		n.Style = yaml.DoubleQuotedStyle // on one line, with escapes
	}
	for i, inner := range n.Content {
		switch {
		case n.Kind == yaml.SequenceNode:
			o.complete(fmt.Sprintf("%s[%d]", path, i+1), inner)
		case i%2 == 1:
			o.complete(strings.TrimPrefix(path+"."+n.Content[i-1].Value, "."), inner)
		case diag.Text(inner.Value) != inner.Value:
			inner.Style = yaml.DoubleQuotedStyle
		}
	}
}

// originOf returns the origin of the value at a path of the config file, or "" for a default.
func (o *Options) originOf(path string) string {
	key := regexp.MustCompile(`\[\d+\]`).ReplaceAllString(path, "[]")
	for i := range table {
		s := &table[i]
		if s.Flag == "" || s.Key == "" || key != s.Key && !strings.HasPrefix(key, s.Key+".") && !strings.HasPrefix(key, s.Key+"[") {
			continue
		}
		if f := o.Given.Flag(s.Flag); f.Texts != nil {
			return f.Name()
		}
	}
	if o.replayFile != "" && (key == "sources[].backend" || key == "sources[].source") {
		return o.Given.Flag("replay").Name()
	}
	if strings.HasPrefix(key, "sources[") && o.sourceIsGiven() {
		return variableOf(key)
	}
	line := o.lines[path]
	for at := strings.Index(path, ".http_config."); line == 0 && at >= 0 && len(path) > at+len(".http_config"); { // Prometheus renames keys
		path = path[:strings.LastIndexAny(path, ".[")]
		line = o.lines[path]
	}
	if line > 0 {
		return fmt.Sprintf("%s:%d", onOneLine(o.ConfigFile), line)
	}
	return variableOf(key)
}

// variableOf returns the variable without a flag that sets a key if neither flag nor file does,
// or "".
func variableOf(key string) string {
	if key == "sources[].node_name" && os.Getenv("NODE_NAME") != "" {
		return "$NODE_NAME"
	}
	return ""
}

// shownAs are flags whose effect is shown in another way.
var shownAs = []string{"replay", "config.file", "config.show"}

// asFlag returns a setting that is given, and has no key in the file, as flags, a line for each item of a
// list, with its origin. Flags of discovered exporters have no key.
func (o *Options) asFlag(s *setting) (lines []string) {
	if s.Flag == "" || slices.Contains(shownAs, s.Flag) || s.Key != "" && (s.perSource == "" || !o.Discovers()) {
		return nil
	}
	f := o.Given.Flag(s.Flag)
	texts, origin := f.Texts, f.Name()
	if variable := variableOf(s.Key); texts == nil && variable != "" {
		texts, origin = []string{o.FlagSource.NodeName}, variable
	}
	for _, text := range texts {
		if strings.Contains(s.placeholder, "URL") {
			text = mask(text)
		}
		line := ShellWord("--" + s.Flag + "=" + text)
		if shown := onOneLine(text); shown != text {
			line = "--" + s.Flag + "=" + shown
		}
		lines = append(lines, line+"  # "+origin)
	}
	return lines
}

// onOneLine returns a text in a form that fits a comment, quoted if necessary.
func onOneLine(text string) string {
	if diag.Text(text) != text {
		return strconv.QuoteToASCII(text)
	}
	if quoted := strconv.Quote(text); quoted != `"`+text+`"` {
		return quoted
	}
	return text
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
