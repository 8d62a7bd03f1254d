package expose

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// deviceFamily is a family with series of devices, or of the allocations on them.
type deviceFamily struct {
	Series
	header
	of    subject
	reach reach
	kinds kind // of the devices that have series
	// tails distinguish the series of a row; nil is one series.
	tails []string
	fill  rowFiller // nil: the values are the fields from first to end
	thin  thinner   // leaves out of what fill set what the form omits; nil for nothing
	// none reports that a row has no series, so its values are not computed; nil means never.
	none func(s *canonical.Snapshot, row int) bool
	// one: a row has a series with at most one of the tails.
	one bool
	// codes: the family has a series for each XID of a device, and no tails.
	codes bool
	// first to end, exclusive, are the fields of the family; none for verdicts and accounts.
	first, end canonical.Field
}

// deviceFamilies returns the families of devices and allocations in the order of the exposition.
func (f Form) deviceFamilies() []deviceFamily {
	list := f.included(deviceFamilies())
	if f.Full {
		return list
	}
	return thin(list)
}

// deviceFamilies returns the families of the full form.
func deviceFamilies() []deviceFamily {
	list := identityFamilies()
	for f := range canonical.NumFields {
		if beginsFamily(f) {
			list = append(list, fieldFamily(f))
		}
	}
	return slices.Concat(list, verdictFamilies(), ledgerFamilies(), allocationFamilies())
}

// included returns list without the families that are left out, ready to be written.
func (f Form) included(list []deviceFamily) []deviceFamily {
	for i := range list {
		list[i].header = newHeader(list[i].Series)
		if list[i].tails == nil {
			list[i].tails = []string{tail("")}
		}
	}
	return slices.DeleteFunc(list, func(one deviceFamily) bool { return f.excludes(one.name) })
}

// beginsFamily reports whether f is the first field of its family.
func beginsFamily(f canonical.Field) bool {
	return f == 0 || canonical.Fields[f-1].Name != canonical.Fields[f].Name
}

// fieldFamily returns the family that begins with the field first: a series for each of its
// fields, or for each reason of its bitmask.
func fieldFamily(first canonical.Field) deviceFamily {
	info := &canonical.Fields[first]
	family := deviceFamily{Series: Series{info.Name, info.Type, "", info.Help}, kinds: everyDevice, first: first, end: first + 1}
	if info.Unit == canonical.Bitmask {
		family.Labels, family.fill = "reason", fillReasons(first)
		for _, event := range canonical.ClockEventReasons {
			family.tails = append(family.tails, tail(fmt.Sprintf("reason=%q", event.Reason)))
		}
		return family
	}
	family.Labels = labelNames(info.Labels)
	for family.end < canonical.NumFields && !beginsFamily(family.end) {
		family.end++
	}
	for field := first; field < family.end; field++ {
		family.tails = append(family.tails, tail(canonical.Fields[field].Labels))
	}
	return family
}

// labelNames returns the names in labels, which are in exposition syntax.
func labelNames(labels string) string {
	var names []string
	for _, label := range exposition.ParseLabels("{"+labels+"}", nil) {
		names = append(names, label.Name)
	}
	return strings.Join(names, ",")
}

// write renders one family of all devices, or allocations. This loop takes most of the time.
func (f *deviceFamily) write(o *output, l *layout, readings []outcome) {
	scratch := o.scratch(len(f.tails))
	headed := false
	for i := range readings {
		snap, text := readings[i].snapshot, &l.sources[i].rows[f.of]
		if snap == nil || f.absent(&snap.Frame) {
			continue
		}
		if f.codes {
			headed = f.writeXIDs(o, text, snap, headed)
			continue
		}
		for row := range text.upto[f.reach] {
			labels := text.labels.at(row)
			if len(labels) == 0 || text.kinds[row]&f.kinds == 0 {
				continue
			}
			if f.none != nil && f.none(snap, row) {
				continue
			}
			values := scratch
			if f.fill == nil {
				values = snap.Frame.Row(row)[f.first:f.end]
			} else if f.fill(values, snap, row); f.thin != nil {
				f.thin(values, snap, row)
			}
			buf := o.buf
			for j, v := range values {
				if !canonical.Given(v) {
					continue
				}
				buf = append(f.begin(buf, &headed), labels...)
				buf = append(buf, f.tails[j]...)
				if v == 0 { // as most values are
					buf = append(buf, '0', '\n')
					continue
				}
				buf = append(exposition.AppendFloat(buf, v), '\n')
			}
			if o.buf = buf; len(buf) >= cmp.Or(o.most, chunk) {
				o.flush()
			}
		}
	}
}

// writeXIDs renders the totals of a source's XIDs, and returns whether the family now has its
// header.
func (f *deviceFamily) writeXIDs(o *output, text *rows, snap *canonical.Snapshot, headed bool) bool {
	for _, x := range snap.Ledger.XIDs {
		if x.Device >= text.upto[f.reach] || text.kinds[x.Device]&f.kinds == 0 {
			continue
		}
		labels := text.labels.at(x.Device)
		if len(labels) == 0 {
			continue
		}
		buf := append(f.begin(o.buf, &headed), labels...)
		buf = strconv.AppendUint(append(buf, `,xid="`...), uint64(x.Code), 10)
		o.buf = append(exposition.AppendFloat(append(buf, `"} `...), float64(x.Total)), '\n')
		o.flushIfFull()
	}
	return headed
}

// absent reports whether no device of frame has a reading for a series of f.
func (f *deviceFamily) absent(frame *canonical.Frame) bool {
	for field := f.first; field < f.end; field++ {
		if frame.Gives(field) {
			return false
		}
	}
	return f.first < f.end
}

// fillNaN sets all values to NaN: no series.
func fillNaN(values []float64) {
	for i := range values {
		values[i] = math.NaN()
	}
}
