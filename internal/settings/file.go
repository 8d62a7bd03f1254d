package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	promconfig "github.com/prometheus/common/config"
	"go.yaml.in/yaml/v3"

	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// maxProblems is how many problems of a file are reported.
const maxProblems = 100

// Masked replaces a secret in the output of --config.show. No file may contain it.
const Masked = "<secret>"

// File is a parsed config file.
type File struct {
	Config
	name     string
	lines    map[string]int // of the values, by path, such as sources[2].poll
	problems diag.Problems
}

// Load reads the file at path. The error is diag.Problems if the file can be read but has
// mistakes.
func Load(path string) (*File, error) {
	body, err := diag.Read(path, "config file")
	if err != nil {
		return nil, err
	}
	return Parse(path, body)
}

// IsBlank reports whether the file at path has no settings, "" being no file.
func IsBlank(path string) bool {
	body, err := os.ReadFile(path)
	var nothing any
	return path != "" && err == nil && yaml.Unmarshal(body, &nothing) == nil && nothing == nil
}

// Parse reads the content of a file, which errors call name. The error is
// diag.Problems, a list of all mistakes.
func Parse(name string, body []byte) (*File, error) {
	root, wrong := diag.ParseYAML(body)
	if wrong != nil {
		wrong.File = name
		return nil, diag.Problems{*wrong}
	}
	f, o := &File{name: name, lines: map[string]int{"": max(1, root.Line)}}, NewOptions()
	all := entry{root, "", f}
	if all.index(root.Line); len(f.problems) == 0 {
		o.read(all, "")
	}
	if f.lines["weights"] > 0 && len(f.problems) == 0 {
		o.Judge.Preset = compute.Custom
	}
	f.Config = o.Config
	for _, wrong := range f.Check() {
		f.reject(wrong.Option, "%s", wrong.Text)
	}
	if len(f.problems) > 0 {
		slices.SortStableFunc(f.problems, func(a, b diag.Problem) int { return a.Line - b.Line })
		return nil, f.problems
	}
	return f, nil
}

// Problem returns a problem of the value at a path, such as sources[2].poll, or, if the file
// lacks it, of the nearest value around it. The text ends with the remedy.
func (f *File) Problem(path, text string) diag.Problem {
	for f.lines[path] == 0 {
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return diag.Problem{File: f.name, Line: f.lines[path], Place: path, Text: text}
}

// reject reports that the value at a path is wrong, unless that is known already.
func (f *File) reject(path, format string, args ...any) {
	p := f.Problem(path, fmt.Sprintf(format, args...))
	if len(f.problems) < maxProblems && !slices.ContainsFunc(f.problems, func(other diag.Problem) bool { return other.Place == p.Place && p.Place != "" }) {
		f.problems = append(f.problems, p)
	}
}

// beside returns the name of a file that the config file names: it is relative to its directory.
func (f *File) beside(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(f.name), name)
}

// entry is a value of the file.
type entry struct {
	*yaml.Node
	path string
	file *File
}

// reject reports that the value is wrong.
func (e entry) reject(format string, args ...any) { e.file.reject(e.path, format, args...) }

// index notes the lines of a value, whose key is in a line, and of all within it.
func (e entry) index(line int) {
	if e.path != "" && e.file.lines[e.path] == 0 {
		e.file.lines[e.path] = line
	}
	switch {
	case e.Kind == yaml.AliasNode:
		e.reject("an alias (*%s) is not followed; write out what it stands for", e.Value)
	case e.Kind == yaml.ScalarNode && strings.Contains(e.Value, Masked):
		e.reject("contains %s, which --config.show prints in place of a secret; put the real one there", Masked)
	}
	for i, inner := range e.Content {
		switch {
		case e.Kind != yaml.MappingNode:
			e.inner(i).index(inner.Line)
		case i%2 == 1:
			e.inner(i).index(e.Content[i-1].Line)
		}
	}
}

// inner returns the i-th item of a list, or the value at i of a mapping.
func (e entry) inner(i int) entry {
	if e.Kind == yaml.MappingNode {
		return entry{e.Content[i], strings.TrimPrefix(e.path+"."+e.Content[i-1].Value, "."), e.file}
	}
	return entry{e.Content[i], fmt.Sprintf("%s[%d]", e.path, i+1), e.file}
}

func (e entry) isNull() bool { return e.Kind == yaml.ScalarNode && e.ShortTag() == diag.NullTag }

// String describes the value for a report. It shows nothing of a text, which may hold a password.
func (e entry) String() string {
	switch e.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "keys"
	}
	return "a value"
}

// keys visits the values of a mapping, which may be empty. known are its keys; nil means any. want says
// how they are written.
func (e entry) keys(want string, known []string, visit func(key string, value entry)) {
	if e.isNull() {
		return
	}
	if e.Kind != yaml.MappingNode {
		e.reject("%s where keys are expected; write %s", e, want)
		return
	}
	seen := map[string]int{}
	for i := 1; i < len(e.Content); i += 2 {
		key, v := e.Content[i-1], e.inner(i)
		first := seen[key.Value]
		seen[key.Value] = key.Line
		switch {
		case key.Kind != yaml.ScalarNode:
			e.reject("%s where a key is expected; write a word", entry{Node: key})
		case first > 0:
			twice := diag.Problem{File: e.file.name, Line: key.Line, Place: v.path}
			twice.Text = fmt.Sprintf("is in line %d already; remove one of them", first)
			e.file.problems = append(e.file.problems, twice)
		case known != nil && !slices.Contains(known, key.Value):
			v.reject("is not a known key%s", diag.Instead(key.Value, known))
		default:
			visit(key.Value, v)
		}
	}
}

// items returns the values of a list, which may be empty.
func (e entry) items(want string) (all []entry) {
	if e.Kind != yaml.SequenceNode && !e.isNull() {
		e.reject("%s where a list is expected; write %s", e, want)
		return nil
	}
	for i := range e.Content {
		all = append(all, e.inner(i))
	}
	return all
}

// text returns the text of a single value.
func (e entry) text() (text string, ok bool) {
	switch {
	case e.isNull():
		e.reject("is empty; write a value, or remove the key")
	case e.Kind != yaml.ScalarNode:
		e.reject("%s where one value is expected; write a word, or quote it", e)
	default:
		return e.Value, true
	}
	return "", false
}

// into reads a single value into what p points to, as a flag would.
func (e entry) into(p any) {
	if text, ok := e.text(); ok {
		if err := assign(p, text); err != nil {
			e.reject("%v", err)
		}
	}
}

// keysOf returns the keys of a section of the file, such as "" or "limits.", in the order of the table.
func keysOf(section string) (keys []string) {
	for i := range table {
		if rest, is := strings.CutPrefix(table[i].Key, section); is && rest != "" {
			key := rest[:(strings.IndexAny(rest+".", ".["))]
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// read reads a section of the file.
func (o *Options) read(e entry, section string) {
	example := "settings such as preset: ai"
	if section != "" {
		example = "its keys: " + strings.Join(keysOf(section), ", ")
	}
	e.keys(example, keysOf(section), func(key string, v entry) {
		at := slices.IndexFunc(table, func(s setting) bool { return s.Key == section+key })
		if at < 0 {
			o.read(v, section+key+".")
			return
		}
		switch s := &table[at]; {
		case s.Key == "sources":
			readSources(o, v)
		case s.read != nil:
			s.read(o, v)
		case s.fields != nil:
			v.readFields(s.fields(o))
		default:
			s.readValue(o, v)
		}
	})
}

// readFields reads values by key.
func (e entry) readFields(fields []named) {
	var keys []string
	for _, f := range fields {
		keys = append(keys, f.key)
	}
	e.keys("keys such as "+keys[0], keys, func(key string, v entry) { v.into(fields[slices.Index(keys, key)].value) })
}

// readValue reads a setting that is one value, or a list of them.
func (s *setting) readValue(o *Options, v entry) {
	set := func(v entry) {
		text, ok := v.text()
		if ok && s.file {
			text = v.file.beside(text)
		}
		if ok {
			if err := s.parseText(o, text); err != nil {
				v.reject("%v", err)
			}
		}
	}
	switch p := s.at(o).(type) {
	case **promconfig.HTTPClientConfig:
		*p = readHTTP(v)
	case *[]string:
		*p = nil
		for _, item := range v.items("one such as [NAME, NAME]") {
			set(item)
		}
	default:
		set(v)
	}
}
