package dcgm

import (
	"cmp"
	"slices"
	"strconv"

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
	// Field is the index in Fields of what Name means, Unknown if Fields lacks it. A Page
	// has further fields (see Others).
	Field int
	// Times and Per convert a number of Field to one of Name: n × Times / Per. 0 is 1.
	Times, Per float64
}

// value returns a number of the Counter's Field in the unit of its Name, and whether it is
// one of DCGM's doubles, as fractions of units are.
func (c *Counter) value(v float64, float bool) (float64, bool) {
	if c.Times == c.Per {
		return v, float
	}
	return v * c.Times / c.Per, float || c.Per != 1
}

// LabelType is the Type of a Counter that is a label of all other series.
const LabelType = "label"

// Page selects the part of a reading that a counters file serves: the families, with their
// names, TYPE and HELP, and their labels. It is never modified.
type Page struct {
	fields []Counter // by id, as in the exporter; Field is an index as Page.Field takes it
	others []Field
	labels []pageLabel
	events []eventFamily
	names  []string // of all families
}

// pageLabel is a label of all series. text is the index in Texts.
type pageLabel struct {
	name string
	text int
}

// NewPage returns the Page of a counters file, and the names in it that cannot be
// served, because there is no such field or gives is false for DCGM's id of it.
func NewPage(counters []Counter, gives func(id int) bool) (p *Page, notGiven []string) {
	p = &Page{}
	for _, c := range counters {
		event, text, label := eventOf(c.Name), textOf(c.Name), c.Type == LabelType
		switch {
		case label && text != Unknown && gives(Texts[text].ID):
			p.labels = append(p.labels, pageLabel{c.Name, text})
		case !label && event != nil && gives(Fields[event.field].ID):
			p.events = append(p.events, eventFamily{c, event})
			p.names = append(p.names, c.Name)
		case !label:
			if c.Field = p.add(&c, gives); c.Field == Unknown {
				notGiven = append(notGiven, c.Name)
				continue
			}
			p.fields = append(p.fields, c)
			p.names = append(p.names, c.Name)
		default:
			notGiven = append(notGiven, c.Name)
		}
	}
	slices.SortStableFunc(p.fields, func(a, b Counter) int { return cmp.Compare(p.Field(a.Field).ID, p.Field(b.Field).ID) })
	// The exporter sorts labels by name.
	slices.SortFunc(p.labels, func(a, b pageLabel) int { return cmp.Compare(a.name, b.name) })
	return p, notGiven
}

// Wants returns the ids of the fields that the Page needs.
func (p *Page) Wants() (ids []int) {
	for _, c := range p.fields {
		ids = append(ids, p.Field(c.Field).ID)
	}
	for _, e := range p.events {
		ids = append(ids, Fields[e.event.field].ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Texts returns the indices in the table Texts of the labels of p, which may be nil.
func (p *Page) Texts() (texts []int) {
	if p == nil {
		return nil
	}
	for _, l := range p.labels {
		texts = append(texts, l.text)
	}
	return texts
}

// errCodeLabel begins the label that repeats the value of the last XID in the exporter. The
// exporter also adds err_msg, a text for people, which we lack.
const errCodeLabel = `,err_code="`

// rendering is a Page for the devices and jobs of one Dict.
type rendering struct {
	page   *Page
	blocks []string   // of each label block of the Dict, as the Page has it
	ends   []int      // of each of these blocks: where the labels of the device end
	heads  []string   // of each device: its labels without jobs, not closed
	tails  [][]string // of each device: what follows the labels, once for each of its jobs
	text   func(dst []byte, b *raw.Batch) []byte
}

// newRendering returns the rendering for the devices and jobs of w.
func (p *Page) newRendering(w *Writer) *rendering {
	n := len(w.inventory.Devices)
	r := &rendering{page: p, blocks: make([]string, w.dict.Blocks()), ends: make([]int, w.dict.Blocks()), heads: make([]string, n), tails: make([][]string, n)}
	for i := range w.inventory.Devices {
		d := &w.inventory.Devices[i]
		head := w.appendDevice(nil, d)
		for _, l := range p.labels {
			value := d.Texts[l.text]
			if l.text == 0 {
				value = d.Driver
			}
			head = appendOptional(head, ","+l.name, value)
		}
		r.heads[i] = string(head)
		for _, job := range w.jobs.Of(d.GPU, d.Instance) {
			r.tails[i] = append(r.tails[i], string(append(exposition.AppendLabel(nil, ",hpc_job", job), "} "...)))
		}
		if r.tails[i] == nil {
			r.tails[i] = []string{"} "}
		}
		for _, blocks := range [...][]uint32{w.labels[i].blocks, w.labels[i].clique} {
			for k, block := range blocks {
				r.blocks[block], r.ends[block] = r.heads[i]+r.tails[i][k], len(r.heads[i])
			}
		}
	}
	r.text = r.append
	return r
}

// append appends the lines of b that the Page has. It is a Batch's Chosen.
func (r *rendering) append(dst []byte, b *raw.Batch) []byte {
	var from [MaxFields + 1]int // where the samples of a field begin; samples are ordered by field
	at := 0
	for f := range from {
		for at < len(b.Samples) && int(b.Samples[at].Family) < f {
			at++
		}
		from[f] = at
	}
	for i := range r.page.fields {
		c := &r.page.fields[i]
		field := r.page.Field(c.Field)
		samples := b.Samples[from[c.Field]:from[c.Field+1]]
		if len(samples) > 0 {
			dst = exposition.AppendHeader(dst, c.Name, c.Help, c.Type)
		}
		for k := range samples {
			block, end := r.blocks[samples[k].Labels], r.ends[samples[k].Labels]
			dst = append(append(dst, c.Name...), block[:end]...)
			if c.Field == xidField {
				dst = append(strconv.AppendInt(append(dst, errCodeLabel...), int64(samples[k].Value), 10), '"')
			}
			dst = append(dst, block[end:]...)
			v, float := c.value(samples[k].Value, field.Float)
			dst = append(appendValue(dst, v, float), '\n')
		}
	}
	return r.appendEvents(dst, b.Events)
}
