package exposition

import (
	"cmp"
	"slices"
)

// nameLabel is the label of the metric name.
const nameLabel = "__name__"

// Refused reports whether a Prometheus server refuses a scrape because of the names of a sample
// or header that its parser accepts. labels are those of ParseLabels, which it reorders, or nil
// for a block that was accepted before.
//
// A server first drops every label name that has an empty value somewhere. Then it
// requires a metric name, and no name twice. Names must be those of the format that we
// serve, 0.0.4: letters, digits, underscores and, in a metric name, colons. Prometheus 2
// refuses the whole scrape for a name in quotes, or one after blanks, which are then a
// part of it. Prometheus 3 takes both, even if the Content-Type says 0.0.4, but no
// exporter sends them to a client that asks for 0.0.4, as we do.
func (e *Entry) Refused(labels []Label) bool {
	if e.Quoted || isBlank(e.Name[0]) || len(labels) > 0 && quotesName(e.Labels) {
		return true
	}
	slices.SortFunc(labels, func(a, b Label) int {
		// The empty value of a name comes first.
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Value, b.Value))
	})
	for i := 0; i < len(labels); {
		n := 1
		for i+n < len(labels) && labels[i+n].Name == labels[i].Name {
			n++
		}
		name, empty := labels[i].Name, labels[i].Value == ""
		if name == nameLabel || n > 1 && !empty { // a second metric name or, if empty, it leaves none
			return true
		}
		i += n
	}
	return false
}

// quotesName reports whether a label block has a name in quotes.
func quotesName(block string) bool {
	for i := 1; ; {
		if i = SkipBlanks(block, i); i < len(block) && block[i] == '"' {
			return true
		}
		it := blockItem(block, i)
		if it.kind != labelItem {
			return false
		}
		i = it.next
	}
}
