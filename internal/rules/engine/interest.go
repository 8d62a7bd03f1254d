package engine

import (
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/kpulse/kpulse-proxy/internal/rules"
)

// maxFamilies bounds the names whose selectors an interest remembers. No real page has as
// many families; a page that invents names costs time instead of memory.
const maxFamilies = 1 << 14

// selector selects series of a rule's expression.
type selector struct {
	names  []*labels.Matcher // of the metric's name
	others []*labels.Matcher
	// keep is how long before the last sample, in milliseconds, samples may count. Of
	// older ones only the newest counts, which an instant selector may see.
	keep int64
}

// interest describes the series that the rules select.
type interest struct {
	selectors []selector
	// families are the selectors that each name seen so far may satisfy.
	families map[string][]*selector
	// records are the names that the rules record, true if a source serves a family of
	// that name.
	records map[string]bool
	// before are the recorded names that a source served before a reload. They count as
	// served until every source has been read again.
	before map[string]bool
	// changed is set when a source is found to serve a recorded name.
	changed bool
}

// newInterest returns the interest of the rules of groups.
func newInterest(groups []rules.Group) *interest {
	in := &interest{families: map[string][]*selector{}, records: map[string]bool{}}
	for i := range groups {
		g := &groups[i]
		for j := range g.Rules {
			in.records[g.Rules[j].Record] = false
			for _, s := range rules.Selectors(g.Rules[j].Expr, 0) {
				in.add(s, g.Offset)
			}
		}
	}
	return in
}

func (in *interest) add(s rules.Selector, offset time.Duration) {
	sel := selector{keep: max(0, s.Reach+offset).Milliseconds()}
	for _, m := range s.Vector.LabelMatchers {
		if m.Name == model.MetricNameLabel {
			sel.names = append(sel.names, m)
		} else {
			sel.others = append(sel.others, m)
		}
	}
	in.selectors = append(in.selectors, sel)
}

// serve records that a source serves a family of this name.
func (in *interest) serve(name string) {
	if served, recorded := in.records[name]; recorded && !served {
		in.records[strings.Clone(name)] = true
		in.changed = true
	}
}

// serves reports whether a source serves a family of a recorded name.
func (in *interest) serves(name string) bool { return in.records[name] || in.before[name] }

// follow keeps the served names of old, the interest before a reload.
func (in *interest) follow(old *interest) {
	in.before = map[string]bool{}
	for name := range in.records {
		if old.serves(name) {
			in.before[name] = true
		}
	}
}

// family returns the selectors that series of this name may satisfy, nil if no rule
// selects them. It allocates nothing for a name that it remembers.
func (in *interest) family(name string) []*selector {
	if selectors, known := in.families[name]; known {
		return selectors
	}
	if len(in.families) >= maxFamilies {
		clear(in.families)
	}
	name = strings.Clone(name)
	var selectors []*selector
	for i := range in.selectors {
		if sel := &in.selectors[i]; matchAll(sel.names, name) {
			selectors = append(selectors, sel)
		}
	}
	in.families[name] = selectors
	return selectors
}

func matchAll(matchers []*labels.Matcher, value string) bool {
	for _, m := range matchers {
		if !m.Matches(value) {
			return false
		}
	}
	return true
}

// keep returns how long samples of a series are needed, and whether any of selectors,
// those of its family, selects it.
func keep(selectors []*selector, series labels.Labels) (millis int64, selected bool) {
	for _, sel := range selectors {
		if matches(sel.others, series) {
			millis, selected = max(millis, sel.keep), true
		}
	}
	return millis, selected
}

// matches reports whether series satisfies all of matchers.
func matches(matchers []*labels.Matcher, series labels.Labels) bool {
	for _, m := range matchers {
		if !m.Matches(series.Get(m.Name)) {
			return false
		}
	}
	return true
}
