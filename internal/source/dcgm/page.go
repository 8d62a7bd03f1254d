package dcgm

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// Counter is a line of a counters file of dcgm-exporter.
type Counter struct {
	// Name is the family, or the label, as it is served.
	Name string
	// Type is the TYPE word; LabelType is a label of all families.
	Type string
	Help string
	// Field is the index in Fields of what Name means, Unknown if Fields lacks it.
	Field int
	// Times and Per convert a number of Field to one of Name: n × Times / Per. 0 is 1.
	Times, Per float64
}

// value returns a number of the Counter's Field in the unit of its Name, and whether it is one of DCGM's doubles, as
// fractions of units are.
func (c *Counter) value(v float64, float bool) (float64, bool) {
	if c.Times == c.Per {
		return v, float
	}
	return v * c.Times / c.Per, float || c.Per != 1
}

// LabelType is the Type of a Counter that is a label of all other series.
const LabelType = "label"

// Page selects the part of a reading that a counters file serves: the families, with their names, TYPE and HELP, and
// the label of the driver's version. It is never modified once a Writer has it.
type Page struct {
	// Pods become labels, as with dcgm-exporter's --kubernetes; nil is none.
	Pods Pods

	fields []Counter // by id, as in the exporter
	events []eventFamily
	driver string   // the label of the driver's version, "" for none
	names  []string // of all families
}

// Pods knows which containers hold this node's devices.
type Pods interface {
	// Answer returns a comparable value, which differs from an earlier one if Holding may too.
	Answer() any
	Holding(devices []canonical.Device, mig []canonical.MIGPlace) [][]canonical.Workload
}

// driverLabels are the names of the driver's version: that of DCGM before 4.6, and since.
var driverLabels = []string{"DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION"}

// NewPage returns the Page of a counters file, and the names in it that cannot be served, because there is no such field
// or gives is false for DCGM's id of it.
func NewPage(counters []Counter, gives func(id int) bool) (p *Page, notGiven []string) {
	p = &Page{}
	for _, c := range counters {
		counted := slices.IndexFunc(events[:], func(e event) bool { return e.name == c.Name })
		switch label := c.Type == LabelType; {
		case label && slices.Contains(driverLabels, c.Name):
			p.driver = c.Name
			continue
		case !label && counted >= 0 && gives(Fields[events[counted].field].ID):
			p.events = append(p.events, eventFamily{c, events[counted]})
		case !label && c.Field != Unknown && gives(Fields[c.Field].ID):
			p.fields = append(p.fields, c)
		default:
			notGiven = append(notGiven, c.Name)
			continue
		}
		p.names = append(p.names, c.Name)
	}
	slices.SortStableFunc(p.fields, func(a, b Counter) int { return cmp.Compare(Fields[a.Field].ID, Fields[b.Field].ID) })
	return p, notGiven
}

// Wants returns the ids of the fields that the Page needs.
func (p *Page) Wants() (ids []int) {
	for _, c := range p.fields {
		ids = append(ids, Fields[c.Field].ID)
	}
	for _, e := range p.events {
		ids = append(ids, Fields[e.field].ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// rendering is a Page for the label blocks of one Dict.
type rendering struct {
	*Page
	blocks [][2]string // what the Page has in place of each block: labels of a family's own stand between the two parts
	// cut are the blocks of boards that have instances, with those of the instances.
	cut map[uint32][]uint32
}

// append appends the lines of b that the Page has. It is a Batch's Chosen. As in the exporter, a board that is cut has no
// rows: those of its instances repeat what only the board gives, such as its temperature.
func (r *rendering) append(dst []byte, b *raw.Batch) []byte {
	for i := range r.fields {
		c := &r.fields[i]
		first, _ := slices.BinarySearchFunc(b.Samples, uint32(c.Field), func(s raw.Sample, field uint32) int { return cmp.Compare(s.Family, field) })
		last, header := first, true
		for last < len(b.Samples) && b.Samples[last].Family == uint32(c.Field) {
			last++
		}
		for _, s := range b.Samples[first:last] {
			instances, cut := r.cut[s.Labels]
			if !cut {
				dst, header = r.appendLine(dst, c, s.Labels, s.Value, header), false
			}
			for _, block := range instances {
				own := Fields[c.Field].Stream == ProfilingStream || strings.Contains(Fields[c.Field].Family, "_FB_")
				if !own && !slices.ContainsFunc(b.Samples[first:last], func(s raw.Sample) bool { return s.Labels == block }) {
					dst, header = r.appendLine(dst, c, block, s.Value, header), false
				}
			}
		}
	}
	return r.appendEvents(dst, b.Events)
}

// appendLine appends a line of c, after HELP and TYPE if it is the first.
func (r *rendering) appendLine(dst []byte, c *Counter, block uint32, value float64, header bool) []byte {
	if header {
		dst = exposition.AppendHeader(dst, c.Name, c.Help, c.Type)
	}
	dst = append(append(dst, c.Name...), r.blocks[block][0]...)
	if c.Field == xidField { // as in the exporter, which adds err_msg, a text for people, too
		dst = append(strconv.AppendInt(append(dst, `,err_code="`...), int64(value), 10), '"')
	}
	dst = append(append(dst, r.blocks[block][1]...), ' ')
	v, float := c.value(value, Fields[c.Field].Float)
	return append(appendValue(dst, v, float), '\n')
}
