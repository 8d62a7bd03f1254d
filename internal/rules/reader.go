package rules

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// maxNodes is how many keys and items of a file are looked at. Aliases can make
// more of them than a file of maxFile has room for.
const maxNodes = 200_000

// reader reads one file. It works on nodes, which know their lines and columns,
// where decoding into structs would not.
type reader struct {
	*loader
	file     string
	source   source
	groups   map[string]int // line by name
	mentions []mention
	findings []finding
	refused  int  // findings that are no warnings
	nodes    int  // that were looked at
	full     bool // there were too many: what is wrong from there on only follows
	alerts   int

	// Where in the file we are, for problems.
	group, rule string
	number      int
}

// reject notes what is wrong at n. The text ends in what to do.
func (r *reader) reject(n *yaml.Node, format string, args ...any) {
	r.note(diag.Problem{Line: n.Line, Column: n.Column, Text: fmt.Sprintf(format, args...)})
}

// doubt notes what cannot be evaluated here, though Prometheus can.
func (r *reader) doubt(n *yaml.Node, format string, args ...any) {
	r.doubtAlike(n, "", format, args...)
}

// doubtAlike is doubt of what may be so of many rules.
func (r *reader) doubtAlike(n *yaml.Node, alike, format string, args ...any) {
	r.noteAlike(diag.Problem{Line: n.Line, Column: n.Column, Text: fmt.Sprintf(format, args...), Warning: r.opts.ForPrometheus}, alike)
}

// note adds a problem to those of the file, and to it where we are.
func (r *reader) note(p diag.Problem) { r.noteAlike(p, "") }

// noteAlike is note of what may be so of many rules.
func (r *reader) noteAlike(p diag.Problem, alike string) {
	if !p.Warning {
		r.refused++
	}
	if !r.full {
		r.findings = append(r.findings, finding{r.here(p), alike})
	}
}

// here adds to a problem where we are.
func (r *reader) here(p diag.Problem) diag.Problem {
	p.File, p.Place = r.file, placeOf(r.group, r.number, r.rule, p.Place)
	return p
}

// value returns what n or its alias stands for. Tags, with which YAML can make
// anything of a value, are refused.
func (r *reader) value(n *yaml.Node) (*yaml.Node, bool) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Style&yaml.TaggedStyle != 0 {
		r.reject(n, "has the tag %s; leave it out", n.Tag)
		return n, false
	}
	return n, true
}

// entry is one key of a mapping with its value.
type entry struct{ key, value *yaml.Node }

// entries returns the keys of a mapping, none if it is left empty.
func (r *reader) entries(n *yaml.Node, want string) (entries []entry) {
	n, ok := r.value(n)
	if !ok || n.Tag == diag.NullTag {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		r.reject(n, "%s where keys are wanted; %s", diag.YAMLKind(n), want)
		return nil
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content) && r.spend(n); i += 2 {
		key, ok := r.value(n.Content[i])
		if !ok {
			continue
		}
		first, twice := lines[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			r.reject(key, "%s where a key is wanted; write a word", diag.YAMLKind(key))
		case key.Tag == "!!merge":
			r.reject(key, "merges keys of another place; write them out here")
		case twice:
			r.reject(key, "%s is in line %d already; remove one of them", key.Value, first)
		default:
			lines[key.Value] = key.Line
			entries = append(entries, entry{key, n.Content[i+1]})
		}
	}
	return entries
}

// items returns the items of a list, none if it is left empty.
func (r *reader) items(n *yaml.Node, want string) []*yaml.Node {
	n, ok := r.value(n)
	if !ok || n.Tag == diag.NullTag {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		r.reject(n, "%s where a list is wanted; %s", diag.YAMLKind(n), want)
		return nil
	}
	for i := range n.Content {
		if !r.spend(n) {
			return n.Content[:i]
		}
	}
	return n.Content
}

// spend counts one more node; the first beyond maxNodes is refused.
func (r *reader) spend(n *yaml.Node) bool {
	if r.nodes++; r.nodes == maxNodes+1 {
		r.reject(n, "there are more than %d keys and items up to here, aliases followed; split the file", maxNodes)
		r.full = true
	}
	return r.nodes <= maxNodes
}

// word returns a plain value as it is written, whatever YAML takes it for, and ""
// for one that is left empty.
func (r *reader) word(n *yaml.Node) (string, bool) {
	n, ok := r.value(n)
	switch {
	case !ok:
		return "", false
	case n.Kind != yaml.ScalarNode:
		r.reject(n, "%s where one value is wanted; write a word, or quote it", diag.YAMLKind(n))
		return "", false
	case n.Tag == diag.NullTag:
		return "", true
	}
	return n.Value, true
}

// key is what may stand in a mapping, and what reads it.
type key[T any] struct {
	name string
	read func(*reader, *T, *yaml.Node)
}

// readKeys reads a mapping into what it is of.
func readKeys[T any](r *reader, into *T, n *yaml.Node, keys []key[T], want string) {
	for _, e := range r.entries(n, want) {
		i := slices.IndexFunc(keys, func(k key[T]) bool { return k.name == e.key.Value })
		if i >= 0 {
			keys[i].read(r, into, e.value)
			continue
		}
		names := make([]string, len(keys))
		for i, k := range keys {
			names[i] = k.name
		}
		if near := diag.Nearest(e.key.Value, names); near != "" {
			r.reject(e.key, "%q is no key here; did you mean %s?", e.key.Value, near)
			continue
		}
		r.reject(e.key, "%q is no key here; the ones that are: %s", e.key.Value, strings.Join(names, ", "))
	}
}
