package translate

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// rule is a compiled Row: where a sample goes and how its value is read.
type rule struct {
	// slot is the column of the frame or, from canonical.NumFields on, one of
	// the columns of fallback rows.
	slot int
	// quantity is the index of the quantity that it reads, -1 if no version names it.
	quantity                   int
	blanks                     blanks
	times, per                 float64
	lowest, highest, overshoot float64
}

// absent marks a cell that had a sample without a usable value, while an untouched cell is
// as Frame.Shape left it. Both are NaN, so no other package has to distinguish them.
var absent = math.Float64frombits(0x7FF8000000000002)

func isUntouched(cell float64) bool { return math.Float64bits(cell) == math.Float64bits(math.NaN()) }

func isAbsent(cell float64) bool { return math.Float64bits(cell) == math.Float64bits(absent) }

func newRule(field canonical.Field, unit Unit, slot int) *rule {
	u := units[unit]
	r := &rule{slot: slot, quantity: -1, blanks: blanksOf(field, unit), times: u.times, per: u.per, overshoot: u.overshoot}
	r.lowest, r.highest = canonical.Fields[field].Range()
	if unit == percentOrRatio {
		// Values stay as they are until the unit is known.
		r.lowest, r.highest = math.Inf(-1), math.Inf(1)
	}
	return r
}

// isOrdinary reports whether a number is above 0 and below all blanks, as most are.
func isOrdinary(v float64) bool { return v > 0 && v < firstInt32Blank }

// isPlain reports whether read returns v unchanged, as for most values: v is in SI, in range
// and no blank. Unlike read, it costs no call. No range begins above 0.
func (r *rule) isPlain(v float64) bool {
	return r.times == r.per && isOrdinary(v) && v <= r.highest
}

// read returns v in SI units, or absent. It counts in rep what it drops or clamps.
func (r *rule) read(v float64, rep *Report) float64 {
	if v-v != 0 {
		rep.Dropped[canonical.DropNotFinite]++
		return absent
	}
	if r.blanks.in(v) {
		rep.Dropped[canonical.DropBlank]++
		return absent
	}
	if r.times != r.per {
		v = v * r.times / r.per
	}
	switch {
	case v >= r.lowest && v <= r.highest:
		return v + 0 // turns -0 into 0: %f writes tiny negative numbers as -0.000000
	case v > r.highest && v <= r.overshoot:
		rep.Clamped++
		return r.highest
	}
	rep.Dropped[canonical.DropOutOfRange]++
	return absent
}

// write returns the number that read converts to v: the one with the fewest decimals, or
// the nearest if there is none. What read converted from a whole number becomes that number
// again.
func (r *rule) write(v float64) float64 {
	if r.times == r.per {
		return v
	}
	return r.rescale(v)
}

func (r *rule) rescale(v float64) float64 {
	n := v * r.per / r.times
	const finest = 1e12
	for scale := 1.0; scale <= finest; scale *= 10 {
		if rounded := math.Round(n*scale) / scale; rounded*r.times/r.per == v {
			return rounded
		}
	}
	return n // which read converts to v if it does so with any number
}

// ruleSet finds the rule of a family by its name.
type ruleSet struct {
	byName     map[string]*rule
	quantities []quantity
	fallbacks  []canonical.Field // the field that each fallback column replaces
	util       int               // the slot of utilRatioName
}

// builtIn returns the rules without rows of the user. All sources share them: they take 60 KB, and never change.
var builtIn = sync.OnceValues(func() (*ruleSet, error) { return newRuleSet(nil) })

// newRuleSet makes rules from the dialect and the user's own rows. It refuses
// rows of the user that are invalid or give a name a second meaning.
func newRuleSet(own []Row) (*ruleSet, error) {
	quantities, ofRow := newQuantities()
	rules := &ruleSet{byName: map[string]*rule{}, quantities: quantities}
	for range cardRows {
		ofRow = append(ofRow, -1) // --compat has no names of the other vendor for them
	}
	for i, row := range slices.Concat(dialect, cardRows) {
		if err := rules.add(&row, ofRow[i]); err != nil {
			return nil, fmt.Errorf("the built-in dialect is broken: %w; report this", err)
		}
	}
	for i := range own {
		if err := checkRow(&own[i]); err != nil {
			return nil, fmt.Errorf("dialect row %d: %w", i+1, err)
		}
		if err := rules.add(&own[i], rules.quantityOf(&own[i])); err != nil {
			return nil, fmt.Errorf("dialect row %d: %w", i+1, err)
		}
	}
	return rules, nil
}

func (rules *ruleSet) add(row *Row, quantity int) error {
	slot := int(row.Field)
	if row.Fallback {
		slot = int(canonical.NumFields) + len(rules.fallbacks)
		rules.fallbacks = append(rules.fallbacks, row.Field)
	}
	if row.Unit == percentOrRatio {
		rules.util = slot
	}
	r := newRule(row.Field, row.Unit, slot)
	r.quantity = quantity
	names := row.Names
	if row.Column != "" {
		names = append([]string{row.Column}, names...)
	}
	for _, name := range names {
		if _, taken := rules.byName[name]; taken {
			return fmt.Errorf("family %q already has a meaning; leave it out", name)
		}
		rules.byName[name] = r
	}
	return nil
}

// quantityOf returns the quantity of a row of the config file, −1 for a substitute.
func (rules *ruleSet) quantityOf(row *Row) int {
	if row.Fallback {
		return -1
	}
	return slices.IndexFunc(rules.quantities, func(q quantity) bool { return q.field == row.Field })
}

// checkRow returns what is wrong with a row of the user, nil if nothing.
func checkRow(row *Row) error {
	if row.Field >= canonical.NumFields {
		return fmt.Errorf("there is no reading number %d; name a known one", row.Field)
	}
	info := &canonical.Fields[row.Field]
	u, ok := units[row.Unit]
	if !ok || row.Unit == percentOrRatio {
		return fmt.Errorf("unit %q of %s is unknown; use one such as %q or %q", row.Unit, info.Name, Percent, Bytes)
	}
	if !slices.Contains(u.si, info.Unit) {
		return fmt.Errorf("%s is in %s, which %q cannot be converted to; correct the unit or the reading", info.Name, info.Unit, row.Unit)
	}
	if row.Column == "" && len(row.Names) == 0 {
		return fmt.Errorf("no family is named for %s; name one or remove the row", info.Name)
	}
	if slices.Contains(row.Names, "") {
		return fmt.Errorf("a family of %s has an empty name; remove it", info.Name)
	}
	return nil
}
