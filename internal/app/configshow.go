package app

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/version"

	"github.com/kpulse/kpulse-proxy/internal/config"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/source/exporter"
)

const showHeader = `# The settings of kpulse-proxy %s in force. A comment behind a value says which flag, variable
# or line of the config file it is from; without one it is the default. To use this as a config
# file, put the real value in the place of each %s.
`

// showConfig is the mode --config.show: it writes the settings in force, those with a key as a
// config file and the others as comments. It opens no source.
func (o *options) showConfig(stdout io.Writer) error {
	directory, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("cannot get the working directory: %w; change to a directory that exists", err)
	}
	c := o.Config
	c.Sources = o.effectiveSources()
	body, err := c.Show(config.Showing{Origin: o.originOf, Mask: mask, Directory: directory})
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, showHeader, version.Version, config.Masked)
	b.Write(body)
	b.WriteString("# What no config file can say, as flags:\n")
	defaults := newOptions()
	for i := range settings {
		for _, line := range o.asFlag(&settings[i], defaults) {
			b.WriteString("# " + line + "\n")
		}
	}
	_, err = stdout.Write(b.Bytes())
	return err
}

func mask(url string) string { return exporter.Mask(url, config.Masked) }

// effectiveSources returns the sources to read, with the defaults of keys that are not set.
func (o *options) effectiveSources() (all []config.Source) {
	for i := range o.sources {
		s := &o.sources[i]
		one := s.Source
		one.Backend = s.backend.name
		one.Source = exporter.MaskSource(one.Source, config.Masked)
		poll := config.Duration(s.poll)
		if s.backend.clamped {
			poll = max(poll, config.Duration(s.backend.least))
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
func (o *options) originOf(path string) string {
	key := position.ReplaceAllString(path, "[]")
	for i := range settings {
		s := &settings[i]
		if s.flag == "" || s.key == "" || key != s.key && !strings.HasPrefix(key, s.key+".") && !strings.HasPrefix(key, s.key+"[") {
			continue
		}
		if f := o.given.flag(s.flag); f.texts != nil {
			return f.name()
		}
	}
	if o.replayFile != "" && (key == "sources[].backend" || key == "sources[].source") {
		return o.given.flag("replay").name()
	}
	ofFlags := strings.HasPrefix(key, "sources[") && o.sourceIsGiven()
	if line := o.lines[path]; line > 0 && !ofFlags {
		return fmt.Sprintf("%s:%d", onOneLine(o.configFile), line)
	}
	return o.variableOf(key)
}

// variableOf returns the variable without a flag that sets a key if neither flag nor file does,
// or "".
func (o *options) variableOf(key string) string {
	adopted := o.given.flag("kube.discover").adopted != ""
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
func (o *options) asFlag(s *setting, defaults *options) (lines []string) {
	mode := o.mode()
	if mode == modeTUI {
		mode |= modeAttach // whether it attaches is not known yet
	}
	if s.flag == "" || s.modes&mode == 0 || slices.Contains(shownAs, s.flag) || !o.isForSources(s) || !o.hasNeeded(s) {
		return nil
	}
	texts, origin := o.texts(s, defaults)
	for _, text := range texts {
		if strings.Contains(s.placeholder, "URL") {
			text = mask(text)
		}
		line := shellWord("--" + s.flag + "=" + text)
		if shown := onOneLine(text); shown != text {
			line = "--" + s.flag + "=" + shown
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
func (o *options) texts(s *setting, defaults *options) (texts []string, origin string) {
	f := o.given.flag(s.flag)
	if s.key != "" && (s.perSource == "" || !o.discovers()) {
		return nil, ""
	}
	switch variable := o.variableOf(s.key); {
	case f.texts != nil:
		return f.texts, f.name()
	case variable != "":
		return []string{o.flagSource.NodeName}, variable
	case s.key != "":
		return nil, ""
	case s.flag == "log.level" && o.presents():
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
