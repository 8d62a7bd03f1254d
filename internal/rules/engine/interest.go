package engine

import (
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/kpulse/kpulse-proxy/internal/rules"
)

// maxFamilies bounds how many names an interest remembers the selectors of. No page
// has as many families; a page that makes up names pays for it with time.
const maxFamilies = 1 << 14

// selector selects series of a rule's expression.
type selector struct {
	names  []*labels.Matcher // of the metric's name
	others []*labels.Matcher
	// keep is for how many milliseconds samples may count after the last one. What
	// lies further back is of no use except for the newest of them, which is what
	// an instant selector sees.
	keep int64
}

// interest is all series that some rules select.
type interest struct {
	selectors []selector
	// families are the selectors that each name seen so far may satisfy.
	families map[string][]*selector
	// records are the names that the rules record under: true for one that a source
	// has a family of too.
	records map[string]bool
	// before are those that a source had a family of before a reload: it still counts
	// as having them until every source was read again.
	before map[string]bool
	// changed is set when a source turns out to have a family of a recorded name.
	changed bool
}

// newInterest returns what the rules of groups select.
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

// serve notes that a source has a family of this name.
func (in *interest) serve(name string) {
	if served, recorded := in.records[name]; recorded && !served {
		in.records[strings.Clone(name)] = true
		in.changed = true
	}
}

// serves reports whether a source has a family of a recorded name.
func (in *interest) serves(name string) bool { return in.records[name] || in.before[name] }

// follow keeps what the interest before a reload knew of sources.
func (in *interest) follow(old *interest) {
	in.before = map[string]bool{}
	for name := range in.records {
		if old.serves(name) {
			in.before[name] = true
		}
	}
}

// family returns the selectors that series of this name may satisfy, nil if no rule
// selects them. It allocates nothing for a name that it was asked for before.
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

// keep returns for how long samples of a series are needed, and whether any of its
// family's selectors selects it.
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
