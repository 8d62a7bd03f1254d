package settings

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/holders"
)

// document is a file whose problems are reported by line. Structs have no lines, so
// its nodes are found by path.
type document struct {
	file     string
	nodes    []node // in the order of the file; the first is the root
	problems diag.Problems
}

// node is a value of the file.
type node struct {
	path        string // such as thresholds.io_sm or sources[2]
	value       *yaml.Node
	first, last int // lines, including its key
}

// decode reads body into a struct. The file may have only the struct's keys.
func (d *document) decode(body []byte, into any) {
	root, wrong := diag.ParseYAML(body)
	if wrong != nil {
		wrong.File = d.file
		d.problems = append(d.problems, *wrong)
		return
	}
	if d.index("", root.Line, root); len(d.nodes) > maxNodes {
		d.reject("", "contains more than %d values, too many for settings; name the right file", maxNodes)
		return
	}
	for _, n := range d.nodes {
		switch {
		case n.value.Kind == yaml.AliasNode:
			d.reject(n.path, "an alias (*%s) is not followed; write out what it stands for", n.value.Value)
			return
		case n.value.Kind == yaml.ScalarNode && strings.Contains(n.value.Value, Masked):
			d.reject(n.path, "contains %s, which --config.show prints in place of a secret; put the real one there", Masked)
		case n.value.ShortTag() == diag.NullTag && !mayBeEmpty.MatchString(n.path):
			d.reject(n.path, "is empty; write a value, or remove the key")
		}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(body))
	decoder.KnownFields(true)
	err := decoder.Decode(into)
	if err == nil || errors.Is(err, io.EOF) {
		return
	}
	problems := diag.ExplainDecoding(err, reflect.TypeOf(into), wanted)
	if problems == nil {
		d.problems = append(d.problems, d.problem(d.undecodable(""), strings.TrimPrefix(err.Error(), "yaml: ")+"; correct it"))
		return
	}
	for _, p := range problems[:min(len(problems), maxProblems)] {
		p.File, p.Place = d.file, d.place(p)
		p.Text = d.withSelector(p)
		d.problems = append(d.problems, p)
	}
}

// withSelector returns the text of a problem. If a selector is given instead of the keys of
// kube.discover, it says how to write both.
func (d *document) withSelector(p diag.Problem) string {
	given := d.find(p.Place).value.Value
	if _, err := holders.ParseSelector(given); p.Place != "kube.discover" || err != nil {
		return p.Text
	}
	return strings.Replace(p.Text, "{selector: true}", "{selector: "+given+"}", 1)
}

// undecodable returns the path of the first value below a path that does not fit its
// tag, or is merged and not a map: yaml.v3 reports no line for these. If there is none,
// it returns the path itself.
func (d *document) undecodable(below string) string {
	for _, n := range d.nodes {
		isMerge := n.value.Kind != yaml.MappingNode && (n.path == "<<" || strings.HasSuffix(n.path, ".<<"))
		if strings.HasPrefix(n.path, below) && (isMerge || n.value.Kind == yaml.ScalarNode && n.value.Decode(new(any)) != nil) {
			return n.path
		}
	}
	return below
}

// place returns the path of a problem of the decoder, if its line and its key or value
// leave only one. The line is that of the key, or of a value below it.
func (d *document) place(p diag.Problem) string {
	for _, line := range []func(*node) int{func(n *node) int { return n.first }, func(n *node) int { return n.value.Line }} {
		if paths := d.candidates(p, line); len(paths) == 1 {
			return paths[0]
		}
	}
	return p.Place
}

// candidates returns the possible paths of a problem, of values that begin in its line.
func (d *document) candidates(p diag.Problem, line func(*node) int) (paths []string) {
	scalar := !strings.HasPrefix(p.Text, "a list ") && !strings.HasPrefix(p.Text, "keys ")
	var exact []string
	for i := range d.nodes {
		n := &d.nodes[i]
		isKey := n.path == p.Place || strings.HasSuffix(n.path, "."+p.Place)
		isValue := p.Place == "" && (n.value.Kind == yaml.ScalarNode) == scalar
		if n.path == "" || line(n) != p.Line || !isKey && !isValue {
			continue
		}
		paths = append(paths, n.path)
		if strings.HasPrefix(p.Text, strconv.Quote(n.value.Value)+" where ") {
			exact = append(exact, n.path)
		}
	}
	if len(paths) != 1 && len(exact) == 1 {
		return exact
	}
	return paths
}

// Limits of a file, and of the reported problems. The work grows with the square of the
// size; a larger file is not a config file.
const (
	maxNodes    = 20_000
	maxProblems = 100
)

// mayBeEmpty matches the paths of values that may be empty: sections, and what
// Prometheus reads.
var mayBeEmpty = regexp.MustCompile(`^(|thresholds|temperatures|health|xids|dialect|limits|sources|rules|rules\.files|series|series\.exclude|kube|kube\.workload_labels|kube\.discover|dialect\[\d+\]\.labels|.*\.http_config\..*)$`)

// index appends a value and all that it contains to d.nodes, and returns its last line.
func (d *document) index(path string, line int, value *yaml.Node) (last int) {
	at := len(d.nodes)
	d.nodes = append(d.nodes, node{path, value, line, value.Line})
	last = value.Line
	for i, inner := range value.Content {
		switch {
		case value.Kind == yaml.SequenceNode:
			last = d.index(itemOf(path, i), inner.Line, inner)
		case i%2 == 1:
			key := value.Content[i-1]
			last = d.index(keyOf(path, key.Value), key.Line, inner)
		}
	}
	d.nodes[at].last = last
	return last
}

// itemOf returns the path of item i of a list, counted from 0.
func itemOf(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i+1) }

// keyOf returns the path of a key's value.
func keyOf(section, key string) string { return strings.TrimPrefix(section+"."+key, ".") }

// merged matches the part of a path that a merge key << adds.
var merged = regexp.MustCompile(`(^|\.)<<(\[\d+\])?\.`)

// bearer replaces a key of http_config, with or without _file, by the one as which Prometheus reads
// it.
var bearer = strings.NewReplacer(".http_config.bearer_token", ".http_config.authorization.credentials")

// Lines returns the line of each value of the file, by its path in Show.
func (f *File) Lines() map[string]int {
	lines := map[string]int{}
	for i := range f.document.nodes {
		n := &f.document.nodes[i]
		path := merged.ReplaceAllString(n.path, "$1")
		isMerged := path != n.path
		path = bearer.Replace(path)
		if _, known := lines[path]; !isMerged || !known { // a key overrides a merged value
			lines[path] = n.first
		}
	}
	return lines
}

// find returns the node with a path, or the nearest one around it.
func (d *document) find(path string) *node {
	for ; path != ""; path = path[:max(0, strings.LastIndexAny(path, ".["))] {
		if i := slices.IndexFunc(d.nodes, func(n node) bool { return n.path == path }); i >= 0 {
			return &d.nodes[i]
		}
	}
	return &d.nodes[0]
}

// reject reports that the value at a path is wrong, unless a problem in its lines is
// reported already. The text ends with the remedy.
func (d *document) reject(path, format string, args ...any) {
	if len(d.problems) >= maxProblems {
		return
	}
	n := d.find(path)
	if !slices.ContainsFunc(d.problems, func(p diag.Problem) bool {
		return p.Line >= n.first && p.Line <= n.last && (p.Place == "" || strings.HasPrefix(p.Place, n.path))
	}) {
		d.problems = append(d.problems, d.problem(path, fmt.Sprintf(format, args...)))
	}
}

// problem returns the problem of the value at a path.
func (d *document) problem(path, text string) diag.Problem {
	n := d.find(path)
	return diag.Problem{File: d.file, Line: n.first, Place: n.path, Text: text}
}

// failure returns the problems in the order of the file, nil for none.
func (d *document) failure() error {
	if len(d.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(d.problems, func(a, b diag.Problem) int { return cmp.Compare(a.Line, b.Line) })
	return d.problems
}

const (
	wantSources = "write sources such as {source: http://node7:9400/metrics}"
	wantWeights = "give all of sm, tensor, dram and engine, 0 for none"
	wantHTTP    = "write what Prometheus takes as http_config, such as tls_config: {ca_file: ca.pem}"
	wantRow     = "write rows such as {names: [MY_SM_ACTIVE], field: gpu_sm_active_ratio, unit: percent}"
	wantXIDs    = "write severities by code, such as 109: warning"
	wantXID     = "write a severity, such as warning, or severity and action, such as {severity: none, action: none}"
	wantState   = "write hot, warn, crit, default, or off to leave the condition out"
)

// wanted says, for each type, how its values are written.
var wanted = map[string]string{
	"":                      "another form is expected; " + wantHTTP,
	"settings.file":         "keys are expected; write settings such as preset: ai",
	"settings.weights":      "keys are expected; " + wantWeights,
	"settings.thresholds":   "keys are expected; write thresholds such as idle_engine: 0.05",
	"map[string]float64":    "keys are expected; write degrees Celsius by model, such as H100: 95",
	"settings.states":       "keys are expected; write states by condition, such as pcie_replay: off",
	"settings.xids":         "keys are expected; " + wantXIDs,
	"settings.xidKeys":      "another form is expected; " + wantXID,
	"settings.labels":       "keys are expected; write labels such as {severity: correctable}",
	"settings.Limits":       "keys are expected; write limits such as series_limit: 250000",
	"settings.Kube":         "keys are expected; write workloads: true",
	"settings.Discover":     "keys are expected; write discover: {selector: true}",
	"settings.Selector":     "a label selector is expected; write one such as app=nvidia-dcgm-exporter, or true",
	"settings.Rules":        "keys are expected; write files: [/etc/kpulse-proxy/rules/*.yml]",
	"settings.Source":       "keys are expected; " + wantSources,
	"[]settings.Source":     "a list is expected; " + wantSources,
	"settings.row":          "keys are expected; " + wantRow,
	"[]settings.row":        "a list is expected; " + wantRow,
	"[]string":              "a list is expected; write one such as [NAME, NAME]",
	"string":                "one value is expected; write a word, or quote it",
	"float64":               "a number is expected; write one such as 0.5",
	"settings.Count":        "a whole number of at least 1 is expected; write it in digits",
	"settings.Duration":     "a duration is expected; write 15s, 500ms or bare seconds such as 2",
	"settings.KernelLog":    "a path is expected; write /dev/kmsg, or true for it",
	"settings.PodResources": "a path is expected; write that of the kubelet's socket, or true for the usual one",
	"settings.Size":         "a size is expected; write 64MiB, 1GiB or bytes",
}
