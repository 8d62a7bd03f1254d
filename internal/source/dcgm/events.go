package dcgm

import (
	"slices"
	"strconv"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// eventWindow is the default of the exporter's flags --xid-count-window-size and --clock-events-count-window-size, which
// the label gives in milliseconds.
const (
	eventWindow      = 300 // seconds
	eventWindowLabel = `,window_size_in_ms="300000"`
)

// The fields whose values are counted: the latest XID, and the reasons for which the clocks are held down.
var xidField, clockField = FieldOf([]byte("XIDER")), FieldOf([]byte("DVCCTR"))

// xidTotalFamily is the family of dcgm-exporter, since 4.8.3, that counts each XID, and ours for the XIDs that a source
// receives.
const xidTotalFamily = "DCGM_EXP_XID_ERRORS_TOTAL"

// event is a family that the exporter counts by itself: values of a field, within eventWindow or since the start.
type event struct {
	name     string
	field    int
	windowed bool
}

// events are the families that we can count too.
var events = [...]event{
	{"DCGM_EXP_XID_ERRORS_COUNT", xidField, true},
	{xidTotalFamily, xidField, false},
	{"DCGM_EXP_CLOCK_EVENTS_COUNT", clockField, true},
	{"DCGM_EXP_CLOCK_EVENTS_TOTAL", clockField, false},
}

// eventFamily is an event as a counters file has it.
type eventFamily struct {
	Counter
	event
}

// clockEvents are the exporter's names of the bits of field 112 (dcgm_fields.h).
var clockEvents = [...]string{
	"gpu_idle", "clocks_setting", "power_cap", "hw_slowdown", "sync_boost", "sw_thermal", "hw_thermal", "hw_power_brake", "display_clocks",
}

// XIDReporter is implemented by Readings that receive XIDs one by one.
type XIDReporter interface {
	// XIDs appends the XIDs of a board of the inventory, each code once, and a code 0 if there were none. It appends
	// nothing if no source reports XIDs of the board. The Writer fills in the Labels.
	XIDs(dst []raw.XID, board int) []raw.XID
}

// tallied is the device of a tally.
type tallied struct{ uuid, instance string }

// tally counts the events of one device.
type tally struct {
	xids, clocks counts
	last         uint32 // the latest XID
	bits         uint32 // of the latest reading of the clocks
	xidsKnown    bool   // last is known
	bitsKnown    bool
	seen         []raw.XID // what an XIDReporter last reported
}

// counts are the counts of the codes of one kind.
type counts struct {
	codes  []codeCount
	recent []moment // of eventWindow, the oldest first
}

type codeCount struct {
	code         uint32
	recent, ever uint64 // within eventWindow, and since the start
}

// moment is how often a code was counted within one second.
type moment struct {
	second int64
	code   int // index in codes
	n      uint64
}

// add adds recent to the count of a code within the window, at that second, and ever to its count since the start.
func (c *counts) add(second int64, code uint32, recent, ever uint64) {
	at := slices.IndexFunc(c.codes, func(known codeCount) bool { return known.code == code })
	if at < 0 {
		at = len(c.codes)
		c.codes = append(c.codes, codeCount{code: code})
	}
	c.codes[at].recent += recent
	c.codes[at].ever += ever
	for i := len(c.recent) - 1; i >= 0 && c.recent[i].second == second; i-- {
		if c.recent[i].code == at {
			c.recent[i].n += recent
			return
		}
	}
	c.recent = append(c.recent, moment{second, at, recent})
}

// expire subtracts what has left the window.
func (c *counts) expire(second int64) {
	old := 0
	for old < len(c.recent) && c.recent[old].second <= second-eventWindow {
		c.codes[c.recent[old].code].recent -= c.recent[old].n
		old++
	}
	c.recent = slices.Delete(c.recent, 0, old)
}

// noteXID counts the XID of a reading, 0 for none. That of the first reading is not counted, since its time is unknown.
func (t *tally) noteXID(second int64, code uint32) {
	if t.xidsKnown && code != 0 && code != t.last {
		t.xids.add(second, code, 1, 1)
	}
	t.last, t.xidsKnown = code, true
}

// noteXIDs counts what was reported since the last call; in the first call, what was reported since the start of the
// source.
func (t *tally) noteXIDs(second int64, totals []raw.XID) {
	for _, now := range totals {
		before := uint64(0)
		for _, s := range t.seen {
			if s.Code == now.Code {
				before = s.Count
			}
		}
		if now.Count > before {
			t.xids.add(second, now.Code, now.Count-before, now.Count-before)
		}
	}
	t.seen = append(t.seen[:0], totals...)
}

// noteClocks counts the bits of a reading: within the window, each that is set, as the exporter counts samples; since
// the start, each that the previous reading did not have.
func (t *tally) noteClocks(second int64, bits uint32) {
	for code := range uint32(len(clockEvents)) {
		risen := uint64(0)
		if t.bitsKnown && t.bits&(1<<code) == 0 {
			risen = 1
		}
		if bits&(1<<code) != 0 {
			t.clocks.add(second, code, 1, risen)
		}
	}
	t.bits, t.bitsKnown = bits, true
}

// tally returns the tally of a device, which outlives its inventory.
func (w *Writer) tally(d int) *tally {
	key := tallied{w.inventory.Devices[d].UUID, w.inventory.Devices[d].Instance}
	if w.counted[key] == nil {
		w.counted[key] = &tally{}
	}
	return w.counted[key]
}

// count counts the events of a reading, and appends the counts that the Page has to b.
func (w *Writer) count(b *raw.Batch, at time.Time, from Readings) {
	second := at.Unix()
	_, each := from.(XIDReporter)
	for d := range w.seen {
		if !w.seen[d].read {
			continue
		}
		t := w.tally(d)
		t.xids.expire(second)
		t.clocks.expire(second)
		switch v := from.Reading(xidField, d); {
		case each:
			t.noteXIDs(second, w.xidsOf(b, d))
		case v == v:
			t.noteXID(second, uint32(v))
		case w.seen[d].device: // there is no XID, or no longer one
			t.noteXID(second, 0)
		}
		if v := from.Reading(clockField, d); v == v {
			t.noteClocks(second, uint32(v))
		}
	}
	for i := range w.page.events {
		for d := range w.seen {
			if w.seen[d].read {
				w.appendCounts(b, i, d)
			}
		}
	}
}

// appendCounts appends the counts of a device in one family of the Page to b.
func (w *Writer) appendCounts(b *raw.Batch, family, d int) {
	e, t := &w.page.events[family], w.tally(d)
	codes := t.xids.codes
	if e.field == clockField {
		codes = t.clocks.codes
	}
	for _, block := range w.labels[d].blocks {
		first := len(b.Events)
		for _, c := range codes {
			n := c.ever
			if e.windowed {
				n = c.recent
			}
			if n > 0 {
				b.Events = append(b.Events, raw.Event{Family: uint32(family), Labels: block, Code: c.code, Count: n})
			}
		}
		// The exporter writes 0 for a device without an XID in the window.
		if e.windowed && e.field == xidField && len(b.Events) == first {
			b.Events = append(b.Events, raw.Event{Family: uint32(family), Labels: block})
		}
	}
}

// appendEvents appends the text of events, with their labels in the exporter's order, which is by name.
func (r *rendering) appendEvents(dst []byte, list []raw.Event) []byte {
	for i := range list {
		e := &list[i]
		f := &r.events[e.Family]
		if i == 0 || e.Family != list[i-1].Family {
			dst = exposition.AppendHeader(dst, f.Name, f.Help, f.Type)
		}
		dst = append(append(dst, f.Name...), r.blocks[e.Labels][0]...)
		if f.field == clockField {
			dst = exposition.AppendLabel(dst, ",clock_event", clockEvents[e.Code])
		}
		if f.windowed {
			dst = append(dst, eventWindowLabel...)
		}
		if f.field == xidField && e.Code != 0 {
			dst = appendXID(dst, e.Code)
		}
		dst = append(append(dst, r.blocks[e.Labels][1]...), ' ')
		dst = append(strconv.AppendUint(dst, e.Count, 10), '\n')
	}
	return dst
}

func appendXID(dst []byte, code uint32) []byte {
	return append(strconv.AppendUint(append(dst, `,xid="`...), uint64(code), 10), '"')
}

// writeXIDs appends the XIDs of the boards that are read or lost.
func (w *Writer) writeXIDs(b *raw.Batch, from Readings) {
	reporter, is := from.(XIDReporter)
	for d := range w.seen {
		if !is || !w.seen[d].alive {
			continue
		}
		first := len(b.XIDs)
		b.XIDs = reporter.XIDs(b.XIDs, d)
		for i := first; i < len(b.XIDs); i++ {
			b.XIDs[i].Labels = w.labels[d].name
		}
	}
}

// xidsOf returns the XIDs in b of the board of a device, which are adjacent.
func (w *Writer) xidsOf(b *raw.Batch, device int) []raw.XID {
	name := w.labels[w.inventory.Devices[device].Board].name
	first := 0
	for first < len(b.XIDs) && b.XIDs[first].Labels != name {
		first++
	}
	end := first
	for end < len(b.XIDs) && b.XIDs[end].Labels == name {
		end++
	}
	return b.XIDs[first:end]
}

// appendXIDs appends the XIDs of b as the exporter writes them: a line for each code that occurred.
func appendXIDs(dst []byte, b *raw.Batch) []byte {
	headed := false
	for i := range b.XIDs {
		x := &b.XIDs[i]
		if x.Code == 0 {
			continue
		}
		if !headed {
			headed = true
			dst = exposition.AppendHeader(dst, xidTotalFamily, "Times that each XID error occurred.", counter)
		}
		block := b.Dict.Block(x.Labels)
		dst = append(append(dst, xidTotalFamily...), block[:len(block)-1]...)
		dst = append(appendXID(dst, x.Code), "} "...)
		dst = append(strconv.AppendUint(dst, x.Count, 10), '\n')
	}
	return dst
}
