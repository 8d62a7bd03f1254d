package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// document walks a file's settings and collects what is wrong with them. It works
// on nodes, which know their lines, where decoding into structs would not.
type document struct {
	file     string
	seen     map[string]int // line by path, of the keys met so far
	problems diag.Problems
}

// entry is one key, or item of a list, with its value.
type entry struct {
	path  string // of keys from the top, such as thresholds.io_sm
	key   string // the last of path
	line  int
	value *yaml.Node
}

// reject notes a problem with e. The text ends in what to do.
func (d *document) reject(e entry, format string, args ...any) {
	d.problems = append(d.problems, diag.Problem{File: d.file, Line: e.line, Place: e.path, Text: fmt.Sprintf(format, args...)})
}

// failure returns the problems in the order of the file, nil if there are none.
func (d *document) failure() error {
	if len(d.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(d.problems, func(a, b diag.Problem) int { return cmp.Compare(a.Line, b.Line) })
	return d.problems
}

// open parses body as YAML. A file without a single setting has a null value.
func (d *document) open(body []byte) (entry, bool) {
	root, problem := diag.ParseYAML(body)
	if problem != nil {
		d.reject(entry{line: problem.Line}, "%s", problem.Text)
		return entry{}, false
	}
	return entry{line: root.Line, value: root}, true
}

// The tags of plain values that need telling apart.
const (
	nullTag  = diag.NullTag
	intTag   = "!!int"
	floatTag = "!!float"
)

// entries returns the keys of a mapping, none if it is left empty.
func (d *document) entries(of entry, want string) []entry {
	n := of.value
	if n.Tag == nullTag {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		d.reject(of, "%s where keys are wanted; %s", diag.YAMLKind(n), want)
		return nil
	}
	var entries []entry
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		e := entry{strings.TrimPrefix(of.path+"."+key.Value, "."), key.Value, key.Line, n.Content[i+1]}
		first, twice := d.seen[e.path]
		switch {
		case key.Kind != yaml.ScalarNode:
			e.path = of.path
			d.reject(e, "%s where a key is wanted; write a word", diag.YAMLKind(key))
		case twice:
			d.reject(e, "is in line %d already; remove one of them", first)
		default:
			d.seen[e.path] = e.line
			entries = append(entries, e)
		}
	}
	return entries
}

// items returns the items of a list, none if it is left empty. Their path is that
// of the list and their number, from 1.
func (d *document) items(of entry, want string) []entry {
	n := of.value
	if n.Tag == nullTag {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		d.reject(of, "%s where a list is wanted; %s", diag.YAMLKind(n), want)
		return nil
	}
	items := make([]entry, len(n.Content))
	for i, item := range n.Content {
		items[i] = entry{fmt.Sprintf("%s[%d]", of.path, i+1), of.key, item.Line, item}
	}
	return items
}

// unknown rejects a key that is none of known.
func (d *document) unknown(e entry, known []string) {
	if near := diag.Nearest(e.key, known); near != "" {
		d.reject(e, "is no setting; did you mean %s?", near)
		return
	}
	d.reject(e, "is no setting; the ones here are %s", strings.Join(known, ", "))
}
