package exposition

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// nameLabel is the label that a metric name is.
const nameLabel = "__name__"

// Refused reports whether a Prometheus server refuses a scrape for the names of a
// sample that its parser accepts. labels are those of ParseLabels, which are put in
// another order.
//
// A server first leaves out every label name that has an empty value somewhere. Then
// it wants a metric name, names that are valid, and none of them twice. A name that is
// written in quotes is valid if it is UTF-8 and not empty; blanks in front of one that
// is not are part of it and make it invalid.
func (e *Entry) Refused(labels []Label) bool {
	if !e.validName() {
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
		switch {
		case name == nameLabel: // beside the metric name it is the second, or leaves none
			return true
		case empty:
		case n > 1, name == "", !utf8.ValidString(name):
			return true
		}
		i += n
	}
	return false
}

// validName reports whether the metric name of a sample is valid.
func (e *Entry) validName() bool {
	if e.Quoted {
		return e.Name != "" && utf8.ValidString(e.Name) // as it is unescaped
	}
	return !isBlank(e.Name[0])
}
