package settings

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/prometheus/common/version"

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
	c := o.Config
	c.Sources = o.effectiveSources()
	body, err := c.Show(Showing{Origin: o.originOf, Mask: mask, Directory: directory})
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, showHeader, version.Version, Masked)
	b.Write(body)
	b.WriteString("# What no config file can say, as flags:\n")
	defaults := NewOptions()
	for i := range table {
		for _, line := range o.asFlag(&table[i], defaults) {
			b.WriteString("# " + line + "\n")
		}
	}
	_, err = stdout.Write(b.Bytes())
	return err
}

func mask(url string) string { return exporter.Mask(url, Masked) }

// effectiveSources returns the sources to read, with the defaults of keys that are not set.
func (o *Options) effectiveSources() (all []Source) {
	for i := range o.Upstreams {
		s := &o.Upstreams[i]
		one := s.Source
		one.Backend = s.Backend.Name
		one.Source = exporter.MaskSource(one.Source, Masked)
		poll := Duration(s.Period)
		if s.Backend.clamped {
			poll = max(poll, Duration(s.Backend.least))
		}
		if one.Poll != nil || poll > 0 {
			one.Poll = &poll
		}
		all = append(all, one)
	}
	return all
}

// position matches the index of an item in a path.
var position = regexp.MustCompile(`\[\d+\]`)

// originOf returns the origin of the value at a path of the config file, or "" for a default.
func (o *Options) originOf(path string) string {
	key := position.ReplaceAllString(path, "[]")
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
	ofFlags := strings.HasPrefix(key, "sources[") && o.sourceIsGiven()
	if line := o.lines[path]; line > 0 && !ofFlags {
		return fmt.Sprintf("%s:%d", onOneLine(o.ConfigFile), line)
	}
	return o.variableOf(key)
}

// variableOf returns the variable without a flag that sets a key if neither flag nor file does,
// or "".
func (o *Options) variableOf(key string) string {
	adopted := o.Given.Flag("kube.discover").Adopted != ""
	for _, v := range []struct {
		key, name string
		counts    bool
	}{
		{"sources[].node_name", "NODE_NAME", true},
		{"kube.discover.port", "DCGM_PORT", adopted},
		{"kube.discover.path", "DCGM_METRICS_ENDPOINT", adopted},
	} {
		if v.key == key && v.counts && neighbour(os.LookupEnv).get(v.name) != "" {
			return "$" + v.name
		}
	}
	return ""
}

// shownAs are flags whose effect is shown in another way.
var shownAs = []string{"replay", "config.file", "config.show"}

// asFlag returns a setting that has no key in the file as flags, a line for each item of a list,
// with its origin; nil if the setting has no meaning here.
func (o *Options) asFlag(s *setting, defaults *Options) (lines []string) {
	mode := o.Mode()
	if mode == modeTUI {
		mode |= modeAttach // whether it attaches is not known yet
	}
	if s.Flag == "" || s.Modes&mode == 0 || slices.Contains(shownAs, s.Flag) || !o.isForSources(s) || !o.hasNeeded(s) {
		return nil
	}
	texts, origin := o.texts(s, defaults)
	for _, text := range texts {
		if strings.Contains(s.placeholder, "URL") {
			text = mask(text)
		}
		line := ShellWord("--" + s.Flag + "=" + text)
		if shown := onOneLine(text); shown != text {
			line = "--" + s.Flag + "=" + shown
		}
		if origin != "" {
			line += "  # " + origin
		}
		lines = append(lines, line)
	}
	return lines
}

// texts returns the values of a flag and their origin, or nil if the file has a place for them.
// It has none for flags of discovered exporters.
func (o *Options) texts(s *setting, defaults *Options) (texts []string, origin string) {
	f := o.Given.Flag(s.Flag)
	if s.Key != "" && (s.perSource == "" || !o.Discovers()) {
		return nil, ""
	}
	switch variable := o.variableOf(s.Key); {
	case f.Texts != nil:
		return f.Texts, f.Name()
	case variable != "":
		return []string{o.FlagSource.NodeName}, variable
	case s.Key != "":
		return nil, ""
	case s.Flag == "log.level" && o.Presents():
		return []string{"warn"}, ""
	case f.IsBoolFlag():
		return []string{"false"}, ""
	}
	return []string{s.defaultText(defaults)}, ""
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
