package translate

import (
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// Report says what became of the parts of a reading that are not in its Frame. Counts are
// for this reading only.
type Report struct {
	// Dropped counts the samples of known meaning that gave no value, each once and by reason. A
	// sample that repeats an earlier one is not counted.
	Dropped [canonical.NumDropReasons]uint64
	// Clamped counts the values just above their range, which are read as its end.
	Clamped uint64
	// LongLabel is about a label above the limit; nil if none is. It is not modified.
	LongLabel *canonical.Note
	// DroppedSeries counts the samples of devices beyond Options.MaxDevices.
	DroppedSeries uint64
	// DroppedAllocations counts the allocations beyond Options.MaxAllocations, each in the first
	// reading that it is left out of.
	DroppedAllocations uint64
	// UnknownFamilies are the families, sorted, that have a name of the vendor's, a
	// sample of a device in this reading, and no row in the dialect. The slice is
	// never modified.
	UnknownFamilies []string
}

// isVendorName reports whether a family has the prefix of dcgm-exporter's names.
func isVendorName(name string) bool {
	return strings.HasPrefix(name, "DCGM_") || strings.HasPrefix(name, "dcgm_")
}

// listUnknown returns the unknown families of this reading, in the previous slice if they
// are the same. It resets what families remember of the reading.
func (t *Translator) listUnknown(d *raw.Dict) []string {
	changed := false
	for i := range t.families {
		f := &t.families[i]
		now := f.unknown && f.seen
		changed = changed || now != f.listed
		f.listed, f.seen = now, false
	}
	if !changed {
		return t.unknown
	}
	t.unknown = nil
	for i := range t.families {
		if t.families[i].listed {
			t.unknown = append(t.unknown, strings.Clone(d.Family(uint32(i)).Name))
		}
	}
	slices.Sort(t.unknown)
	return t.unknown
}

// Missing appends to dst, in order, the inputs that no device of f gives.
func Missing(f *canonical.Frame, inputs []canonical.Field, dst []canonical.Field) []canonical.Field {
	for _, field := range inputs {
		if !f.Gives(field) {
			dst = append(dst, field)
		}
	}
	return dst
}

// Unusable appends to dst, in order, the missing fields of which f has a sample: it is blank,
// stale, out of range or of unknown unit.
func Unusable(f *canonical.Frame, missing []canonical.Field, dst []canonical.Field) []canonical.Field {
	for _, field := range missing {
		for i := range f.Len() {
			if isAbsent(*f.Cell(i, field)) {
				dst = append(dst, field)
				break
			}
		}
	}
	return dst
}
