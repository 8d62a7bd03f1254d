package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// document is a file whose problems are reported by line. yaml.v3 decodes it into
// structs, which know no lines: nodes find them again.
type document struct {
	file  string
	nodes []node // in the order of the file; the first is the root

	problems []problem
}

// node is a value of the file.
type node struct {
	path       string     // such as thresholds.io_sm or sources[2]
	key, value *yaml.Node // key is nil for the root and for items of lists
	into       reflect.Type
	siblings   []string // the keys that are known beside this one
}

// line returns the line that a problem with n is reported in.
func (n *node) line() int {
	if n.key != nil {
		return n.key.Line
	}
	return n.value.Line
}

// problem is a problem with a node.
type problem struct {
	node int
	diag.Problem
}

// decode reads body into the struct, whose keys are all that the file may have. What
// is wrong becomes a problem.
func (d *document) decode(body []byte, into any) {
	root, wrong := diag.ParseYAML(body)
	if wrong != nil {
		wrong.File = d.file
		d.problems = append(d.problems, problem{0, *wrong})
		return
	}
	d.index(node{value: root, into: reflect.TypeOf(into).Elem()})
	for i := range d.nodes {
		switch n := &d.nodes[i]; {
		case n.value.Kind == yaml.AliasNode:
			d.rejectNode(i, n.line(), "%s is not followed; write out what it stands for", diag.YAMLKind(n.value))
			return
		case n.value.ShortTag() == diag.NullTag && !mayBeEmpty.MatchString(n.path):
			d.rejectNode(i, n.line(), "is empty; write a value, or remove the key")
		}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(body))
	decoder.KnownFields(true)
	err := decoder.Decode(into)
	if list, ok := errors.AsType[*yaml.TypeError](err); ok {
		for _, text := range list.Errors {
			d.rejectDecoding(text)
		}
	} else if err != nil && !errors.Is(err, io.EOF) {
		d.rejectNode(0, 0, "%s; correct it", strings.TrimPrefix(err.Error(), "yaml: "))
	}
}

// mayBeEmpty matches the paths of values that may be left empty: those of sections, and
// of what Prometheus reads.
var mayBeEmpty = regexp.MustCompile(`^(|thresholds|temperatures|health|dialect|limits|sources|rules|rules\.files|dialect\[\d+\]\.labels|.*\.http_config\..*)$`)

// index appends a value, and all that it holds, to d.nodes.
func (d *document) index(n node) {
	d.nodes = append(d.nodes, n)
	switch n.value.Kind {
	case yaml.MappingNode:
		keys, types := fields(n.into)
		for i := 0; i+1 < len(n.value.Content); i += 2 {
			key := n.value.Content[i]
			into := types[key.Value]
			if into == nil && n.into != nil && n.into.Kind() == reflect.Map {
				into = n.into.Elem()
			}
			d.index(node{strings.TrimPrefix(n.path+"."+key.Value, "."), key, n.value.Content[i+1], into, keys})
		}
	case yaml.SequenceNode:
		var into reflect.Type
		if n.into != nil && n.into.Kind() == reflect.Slice {
			into = n.into.Elem()
		}
		for i, item := range n.value.Content {
			d.index(node{path: fmt.Sprintf("%s[%d]", n.path, i+1), value: item, into: into})
		}
	}
}

// fields returns the keys of a struct in the order of its fields, and their types.
func fields(t reflect.Type) (keys []string, types map[string]reflect.Type) {
	types = map[string]reflect.Type{}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return nil, types
	}
	for i := range t.NumField() {
		field := t.Field(i)
		key, options, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		switch {
		case options == "inline":
			inner, innerTypes := fields(field.Type)
			keys = append(keys, inner...)
			maps.Copy(types, innerTypes)
		case key != "" && key != "-":
			keys = append(keys, key)
			types[key] = field.Type
		}
	}
	return keys, types
}

// find returns the index of the node with a path, or of the one that it would be in.
func (d *document) find(path string) int {
	for ; path != ""; path = path[:max(0, strings.LastIndexAny(path, ".["))] {
		if i := slices.IndexFunc(d.nodes, func(n node) bool { return n.path == path }); i >= 0 {
			return i
		}
	}
	return 0
}

// reject reports that the value at a path is wrong, unless something inside it is
// known to be. The text ends in what to do.
func (d *document) reject(path, format string, args ...any) {
	i := d.find(path)
	if !slices.ContainsFunc(d.problems, func(p problem) bool { return strings.HasPrefix(p.Place, d.nodes[i].path) }) {
		d.rejectNode(i, d.nodes[i].line(), format, args...)
	}
}

func (d *document) rejectNode(i, line int, format string, args ...any) {
	d.problems = append(d.problems, problem{i, diag.Problem{File: d.file, Line: line, Place: d.nodes[i].path, Text: fmt.Sprintf(format, args...)}})
}

// failure returns the problems in the order of the file, nil if there are none.
func (d *document) failure() error {
	if len(d.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(d.problems, func(a, b problem) int { return cmp.Compare(a.node, b.node) })
	all := make(diag.Problems, len(d.problems))
	for i, p := range d.problems {
		all[i] = p.Problem
	}
	return all
}

// What yaml.v3 reports in a yaml.TypeError.
var (
	misfit   = regexp.MustCompile(`(?s)^line (\d+): (cannot unmarshal .*) into (\S+)$`)
	unknown  = regexp.MustCompile(`(?s)^line (\d+): field (.*) not found in type (\S+)$`)
	repeated = regexp.MustCompile(`(?s)^line (\d+): mapping key (".*") already defined at line (\d+)$`)
)

// rejectDecoding reports what yaml.v3 says, by the path of the node that it says it of.
func (d *document) rejectDecoding(text string) {
	if m := misfit.FindStringSubmatch(text); m != nil {
		remedy := cmp.Or(wanted[m[3]], "another form is wanted; "+wantHTTP)
		if i := d.on(m[1], m[3], func(n *node) bool { return refusal(n.value) == m[2] }); i >= 0 {
			d.rejectNode(i, d.nodes[i].value.Line, "%s where %s", describe(&d.nodes[i]), remedy)
			return
		}
		if i := d.on(m[1], "", func(n *node) bool { return n.key != nil && refusal(n.key) == m[2] }); i >= 0 {
			d.rejectNode(i, d.nodes[i].line(), "%s where a key is wanted; write a word", diag.YAMLKind(d.nodes[i].key))
			return
		}
	}
	if m := unknown.FindStringSubmatch(text); m != nil {
		if i := d.on(m[1], "", func(n *node) bool { return n.key != nil && n.key.Value == m[2] }); i >= 0 {
			d.rejectKey(i, d.nodes[i].siblings)
			return
		}
	}
	if m := repeated.FindStringSubmatch(text); m != nil {
		if i := d.on(m[1], "", func(n *node) bool { return n.key != nil && strconv.Quote(n.key.Value) == m[2] }); i >= 0 {
			d.rejectNode(i, d.nodes[i].line(), "is in line %s already; remove one of them", m[3])
			return
		}
	}
	d.rejectNode(0, 0, "%s; correct it", text)
}

// rejectKey reports a key that is none of known.
func (d *document) rejectKey(i int, known []string) {
	n := &d.nodes[i]
	remedy := "remove it"
	if near := diag.Nearest(n.key.Value, known); near != "" {
		remedy = "did you mean " + near + "?"
	} else if known != nil {
		remedy = "the ones here are " + strings.Join(known, ", ")
	}
	d.rejectNode(i, n.line(), "is no setting; %s", remedy)
}

// on returns the first node on a line that matches and has no problem yet, -1 for none.
// One of the Go type goes before others.
func (d *document) on(line, into string, match func(*node) bool) int {
	found := -1
	for i := range d.nodes {
		n := &d.nodes[i]
		if strconv.Itoa(n.line()) != line && strconv.Itoa(n.value.Line) != line || !match(n) ||
			slices.ContainsFunc(d.problems, func(p problem) bool { return p.node == i }) {
			continue
		}
		if n.into != nil && n.into.String() == into {
			return i
		}
		if found < 0 {
			found = i
		}
	}
	return found
}

// describe says what a value is. Of sources it does not quote it: it may be a URL with
// a password, or a secret in the wrong place.
func describe(n *node) string {
	if n.value.Kind == yaml.ScalarNode && n.value.ShortTag() != diag.NullTag && strings.HasPrefix(n.path, "sources") {
		return "a value"
	}
	return diag.YAMLKind(n.value)
}

const (
	wantSources = "write sources such as {source: http://node7:9400/metrics}"
	wantWeights = "give all of sm, tensor, dram and engine, 0 for none"
	wantHTTP    = "write what Prometheus takes as http_config, such as tls_config: {ca_file: ca.pem}"
	wantRow     = "write rows such as {names: [MY_SM_ACTIVE], field: gpu_sm_active_ratio, unit: percent}"
	wantState   = "write hot, warn, crit, or off to leave the condition out"
)

// wanted says of each type in a file what it is written as.
var wanted = map[string]string{
	"config.file":        "keys are wanted; write settings such as preset: ai",
	"config.weights":     "keys are wanted; " + wantWeights,
	"config.thresholds":  "keys are wanted; write thresholds such as idle_engine: 0.05",
	"map[string]float64": "keys are wanted; write degrees Celsius by model, such as H100: 95",
	"config.states":      "keys are wanted; write states by condition, such as pcie_replay: off",
	"config.labels":      "keys are wanted; write labels such as {severity: correctable}",
	"config.Limits":      "keys are wanted; write limits such as series_limit: 250000",
	"config.Rules":       "keys are wanted; write files: [/etc/kpulse-proxy/rules/*.yml]",
	"config.Source":      "keys are wanted; " + wantSources,
	"[]config.Source":    "a list is wanted; " + wantSources,
	"config.row":         "keys are wanted; " + wantRow,
	"[]config.row":       "a list is wanted; " + wantRow,
	"[]string":           "a list is wanted; write one such as [NAME, NAME]",
	"string":             "one value is wanted; write a word, or quote it",
	"float64":            "a number is wanted; write one such as 0.5",
	"config.Count":       "a whole number of at least 1 is wanted; write it in digits",
	"config.Duration":    "a duration is wanted; write 15s, 500ms or bare seconds such as 2",
	"config.Size":        "a size is wanted; write 64MiB, 1GiB or bytes",
}
