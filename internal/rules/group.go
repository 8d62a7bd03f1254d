package rules

import (
	"time"

	"github.com/prometheus/common/model"
	"gopkg.in/yaml.v3"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// MinInterval is the least time between two evaluations of a group: below it there
// is hardly a new reading.
const MinInterval = time.Second

// fileDraft is a file as it is being read.
type fileDraft struct{ groups *yaml.Node }

// groupDraft is a group as it is being read. Its rules wait until all of its own
// keys are known.
type groupDraft struct {
	Group
	labels map[string]string
	rules  *yaml.Node
}

// fileKeys are those of a file, groupKeys those of a group: Prometheus' own.
var (
	fileKeys = []key[fileDraft]{
		{"groups", func(_ *reader, f *fileDraft, n *yaml.Node) { f.groups = n }},
	}
	groupKeys = []key[groupDraft]{
		{"name", func(r *reader, g *groupDraft, n *yaml.Node) { g.Name, _ = r.word(n) }},
		{"interval", func(r *reader, g *groupDraft, n *yaml.Node) { g.Interval = r.interval(n) }},
		{"query_offset", func(r *reader, g *groupDraft, n *yaml.Node) { g.Offset = r.duration(n) }},
		{"limit", func(r *reader, g *groupDraft, n *yaml.Node) { g.Limit = r.count(n) }},
		{"labels", func(r *reader, g *groupDraft, n *yaml.Node) { g.labels = r.labels(n) }},
		{"rules", func(_ *reader, g *groupDraft, n *yaml.Node) { g.rules = n }},
	}
)

// read adds what body holds to the set.
func (r *reader) read(body []byte) {
	r.source.body = string(body)
	root, problem := diag.ParseYAML(body)
	if problem != nil {
		r.note(*problem)
		return
	}
	if has(root, "tests") && !has(root, "groups") {
		r.reject(root, "holds tests, which are for promtool test rules; name the rule files without it")
		return
	}
	const want = "begin the file with groups:"
	var f fileDraft
	readKeys(r, &f, root, fileKeys, want)
	if f.groups != nil {
		for _, n := range r.items(f.groups, "write - name: before each group") {
			r.readGroup(n)
		}
	}
	r.group, r.rule, r.number = "", "", 0
	switch {
	case r.refused == 0 && len(r.groups) == 0:
		r.note(diag.Problem{Text: "holds no group, so nothing is evaluated; " + want, Warning: true})
	case r.alerts > 0 && !r.opts.ForPrometheus:
		r.note(diag.Problem{Text: alertsLeftOut(r.alerts), Warning: true})
	}
	r.set.Alerts += r.alerts
}

// readGroup adds a group to the set if nothing is wrong with the group itself.
func (r *reader) readGroup(n *yaml.Node) {
	r.group, r.rule, r.number = peek(n, "name"), "", 0
	before := r.refused
	g := groupDraft{Group: Group{File: r.file, Line: n.Line}}
	readKeys(r, &g, n, groupKeys, "write name: and rules:")
	first, twice := r.groups[g.Name]
	switch {
	case g.Name == "" && r.refused == before:
		r.reject(n, "has no name; give it one that no other group of the file has")
	case g.Name != "" && twice:
		r.reject(n, "has the name of the group in line %d; give it another, or join them", first)
	case g.Name != "":
		r.groups[g.Name] = n.Line
	}
	sound := r.refused == before
	if g.rules != nil {
		for i, rule := range r.items(g.rules, "write - record: before each rule") {
			r.number = i + 1
			r.readRule(&g, rule)
		}
	}
	if sound {
		r.set.Groups = append(r.set.Groups, g.Group)
	}
}

// peek returns the first of the words that a mapping has under one of the names:
// what to call it while it is being read.
func peek(n *yaml.Node, names ...string) string {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	for _, name := range names {
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if v := n.Content[i+1]; n.Content[i].Value == name && v.Kind == yaml.ScalarNode && v.Value != "" {
				return v.Value
			}
		}
	}
	return ""
}

// has tells whether a mapping has a key.
func has(n *yaml.Node, key string) bool {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return true
		}
	}
	return false
}

// duration reads a duration as Prometheus has it: 0 where it is left empty.
func (r *reader) duration(n *yaml.Node) time.Duration {
	s, ok := r.word(n)
	if !ok || s == "" && n.Tag == diag.NullTag {
		return 0
	}
	d, err := model.ParseDuration(s)
	if err != nil {
		r.reject(n, "%v; write 30s, 5m or 1h30m", err)
	}
	return time.Duration(d)
}

func (r *reader) interval(n *yaml.Node) time.Duration {
	d := r.duration(n)
	if d > 0 && d < MinInterval {
		r.doubt(n, "interval %s is too short to be evaluated here; write %s or more", model.Duration(d), model.Duration(MinInterval))
	}
	return d
}

// count reads a number of series: 0 where it is left empty.
func (r *reader) count(n *yaml.Node) (count int) {
	v, ok := r.value(n)
	if !ok || v.Tag == diag.NullTag {
		return 0
	}
	if v.Tag != "!!int" || v.Decode(&count) != nil || count < 0 {
		r.reject(v, "%s is no number of series; write a whole number, or 0 for no limit", diag.YAMLKind(v))
		return 0
	}
	return count
}

// labels reads label names and their values.
func (r *reader) labels(n *yaml.Node) map[string]string {
	labels := map[string]string{}
	for _, e := range r.entries(n, "write each label as name: value") {
		name := e.key.Value
		switch {
		case name == "" || name == model.MetricNameLabel:
			r.reject(e.key, "%q can be no label of a rule; remove it", name)
		case !model.LegacyValidation.IsValidLabelName(name):
			r.doubt(e.key, "%q is no label name of the text format; use letters, digits and _", name)
		}
		if value, ok := r.word(e.value); ok {
			labels[name] = value
		}
	}
	return labels
}
