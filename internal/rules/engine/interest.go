package engine

import (
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/kpulse/kpulse-proxy/internal/rules"
)

// maxFamilies bounds how many names an interest remembers the answer for. No page
// has as many families; a page that makes up names pays for it with time.
const maxFamilies = 1 << 14

// want is series that a rule selects.
type want struct {
	names  []*labels.Matcher // of the metric's name
	others []*labels.Matcher
	// keep is for how many milliseconds samples may count after the last one. What
	// lies further back is of no use but for the newest of them, which is what an
	// instant selector sees.
	keep int64
}

// interest is all series that some rules select.
type interest struct {
	wants []want
	// families are the wants that each name met so far may satisfy.
	families map[string][]*want
	// records are the names that the rules record under: true for one that a source
	// has a family of too.
	records map[string]bool
	// before are those that a source had a family of before a reload: it is taken to
	// have them still, until every source was read again.
	before map[string]bool
	// met is set when a source turned out to have a family of a recorded name.
	met bool
}

// newInterest returns what the rules of groups select.
func newInterest(groups []rules.Group) *interest {
	in := &interest{families: map[string][]*want{}, records: map[string]bool{}}
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
	w := want{keep: max(0, s.Reach+offset).Milliseconds()}
	for _, m := range s.Vector.LabelMatchers {
		if m.Name == model.MetricNameLabel {
			w.names = append(w.names, m)
		} else {
			w.others = append(w.others, m)
		}
	}
	in.wants = append(in.wants, w)
}

// meet notes that a source has a family of this name.
func (in *interest) meet(name []byte) {
	if served, recorded := in.records[string(name)]; recorded && !served {
		in.records[string(name)] = true
		in.met = true
	}
}

// serves tells whether a source has a family of a recorded name.
func (in *interest) serves(name string) bool { return in.records[name] || in.before[name] }

// follow makes in take over what the interest before a reload knew of sources.
func (in *interest) follow(old *interest) {
	in.before = map[string]bool{}
	for name := range in.records {
		if old.serves(name) {
			in.before[name] = true
		}
	}
}

// family returns the wants that series of this name may satisfy, nil if nobody
// selects them. It allocates nothing for a name that it was asked for before.
func (in *interest) family(name []byte) []*want {
	if wants, known := in.families[string(name)]; known {
		return wants
	}
	if len(in.families) >= maxFamilies {
		clear(in.families)
	}
	text := string(name)
	var wants []*want
	for i := range in.wants {
		if matchAll(in.wants[i].names, text) {
			wants = append(wants, &in.wants[i])
		}
	}
	in.families[text] = wants
	return wants
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
// family's wants selects it.
func keep(wants []*want, series labels.Labels) (millis int64, wanted bool) {
	for _, w := range wants {
		if matches(w.others, series) {
			millis, wanted = max(millis, w.keep), true
		}
	}
	return millis, wanted
}

// matches tells whether series satisfies all of matchers.
func matches(matchers []*labels.Matcher, series labels.Labels) bool {
	for _, m := range matchers {
		if !m.Matches(series.Get(m.Name)) {
			return false
		}
	}
	return true
}
