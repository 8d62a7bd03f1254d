package dcgm

import (
	"slices"
	"strconv"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// eventWindow is the window of the exporter's counts: the default of its flags
// --xid-count-window-size and --clock-events-count-window-size, which the label gives in
// milliseconds.
const (
	eventWindow      = 300 // seconds
	eventWindowLabel = `,window_size_in_ms="300000"`
)

// event is a family that the exporter counts by itself.
type event struct {
	name string
	// column is the field whose values are counted.
	column string
	// windowed events are counted over eventWindow, others since the start.
	windowed bool
	append   func(dst []byte, code uint32) []byte // appends the label of a code
}

// field returns the index in Fields of the counted field.
func (e *event) field() int { return FieldOf([]byte(e.column)) }

// The fields whose values are counted.
const (
	xidColumn   = "XIDER"
	clockColumn = "DVCCTR"
)

// events are the families that we can count too, in the exporter's order.
var events = [...]event{
	{"DCGM_EXP_XID_ERRORS_COUNT", xidColumn, true, appendXID},
	{xidTotalFamily, xidColumn, false, appendXID},
	{"DCGM_EXP_CLOCK_EVENTS_COUNT", clockColumn, true, appendClockEvent},
	{"DCGM_EXP_CLOCK_EVENTS_TOTAL", clockColumn, false, appendClockEvent},
}

// eventOf returns the event of a name, nil if there is none.
func eventOf(name string) *event {
	for i := range events {
		if events[i].name == name {
			return &events[i]
		}
	}
	return nil
}

// eventFamily is an event as a counters file has it.
type eventFamily struct {
	Counter
	*event
}

// clockEvents are the exporter's names of the bits of field 112 (dcgm_fields.h).
var clockEvents = [...]string{
	"gpu_idle", "clocks_setting", "power_cap", "hw_slowdown", "sync_boost", "sw_thermal", "hw_thermal", "hw_power_brake", "display_clocks",
}

func appendXID(dst []byte, code uint32) []byte {
	return append(strconv.AppendUint(append(dst, `,xid="`...), uint64(code), 10), '"')
}

func appendClockEvent(dst []byte, code uint32) []byte {
	return exposition.AppendLabel(dst, ",clock_event", clockEvents[code])
}

// tally counts the events of one device.
type tally struct {
	xids, clocks counts
	last         uint32 // the latest XID
	bits         uint32 // of the latest reading of the clocks
	xidsKnown    bool   // last is known
	bitsKnown    bool
	seen         []raw.XID // what an XIDTeller last reported
}

// counts are the counts of the codes of one kind, over eventWindow and since the start.
type counts struct {
	codes  []codeCount
	recent []moment // of the window, the oldest first
}

type codeCount struct {
	code         uint32
	recent, ever uint64
}

// moment is how often a code was counted within one second.
type moment struct {
	second int64
	code   int // index in codes
	n      uint64
}

// mostCodes bounds the codes, far above those that exist.
const mostCodes = 512

// add adds recent to the count of a code within the window, at that second, and ever to its
// count since the start.
func (c *counts) add(second int64, code uint32, recent, ever uint64) {
	at := slices.IndexFunc(c.codes, func(known codeCount) bool { return known.code == code })
	if at < 0 {
		if at = len(c.codes); at == mostCodes {
			return
		}
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

// expire subtracts what has left the window from the counts.
func (c *counts) expire(second int64) {
	old := 0
	for old < len(c.recent) && c.recent[old].second <= second-eventWindow {
		c.codes[c.recent[old].code].recent -= c.recent[old].n
		old++
	}
	c.recent = c.recent[:copy(c.recent, c.recent[old:])]
}

// noteXID counts the XID of a reading, 0 for none. That of the first reading is not counted,
// since its time is unknown.
func (t *tally) noteXID(second int64, code uint32) {
	if t.xidsKnown && code != 0 && code != t.last {
		t.xids.add(second, code, 1, 1)
	}
	t.last, t.xidsKnown = code, true
}

// noteXIDs counts what was reported since the last call; in the first call, what was reported
// since the start of the source.
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

// noteClocks counts the bits of a reading: within the window, each that is set, as the
// exporter counts samples; since the start, each that the previous reading did not have.
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

// of returns the counts of a kind of event.
func (t *tally) of(e *event) *counts {
	if e.column == xidColumn {
		return &t.xids
	}
	return &t.clocks
}

// appendEvents appends the series of events.
func (r *rendering) appendEvents(dst []byte, list []raw.Event) []byte {
	for i := range list {
		e := &list[i]
		f := &r.page.events[e.Family]
		if i == 0 || e.Family != list[i-1].Family {
			dst = exposition.AppendHeader(dst, f.Name, f.Help, f.Type)
		}
		for _, tail := range r.tails[e.Device] {
			dst = append(append(dst, f.Name...), r.heads[e.Device]...)
			dst = append(f.appendLabels(dst, e), tail...)
			dst = append(strconv.AppendUint(dst, e.Count, 10), '\n')
		}
	}
	return dst
}

// appendLabels appends the labels of an event in the exporter's order, which is by name.
func (f *eventFamily) appendLabels(dst []byte, e *raw.Event) []byte {
	if f.column == clockColumn { // of which there is no None
		dst = f.append(dst, e.Code)
	}
	if f.windowed {
		dst = append(dst, eventWindowLabel...)
	}
	if f.column == xidColumn && !e.None {
		dst = f.append(dst, e.Code)
	}
	return dst
}

// count counts the events of a reading and appends their series to b.
func (w *Writer) count(b *raw.Batch, at time.Time, from Readings) {
	second := at.Unix()
	xid, clocks := FieldOf([]byte(xidColumn)), FieldOf([]byte(clockColumn))
	_, each := from.(XIDTeller)
	for d, t := range w.tallies {
		if !w.read[d] {
			continue
		}
		t.xids.expire(second)
		t.clocks.expire(second)
		switch v := from.Reading(xid, d); {
		case each:
			t.noteXIDs(second, w.toldOf(b, d))
		case v == v:
			t.noteXID(second, uint32(v))
		case w.readDevice[d]: // there is no XID, or no longer one
			t.noteXID(second, 0)
		}
		if v := from.Reading(clocks, d); v == v {
			t.noteClocks(second, uint32(v))
		}
	}
	for i := range w.page.events {
		w.appendEvents(b, i)
	}
}

// appendEvents appends the series of one family of the Page to b.
func (w *Writer) appendEvents(b *raw.Batch, family int) {
	e := w.page.events[family].event
	for d, t := range w.tallies {
		if !w.read[d] {
			continue
		}
		from := len(b.Events)
		for _, c := range t.of(e).codes {
			n := c.ever
			if e.windowed {
				n = c.recent
			}
			if n > 0 {
				b.Events = append(b.Events, raw.Event{Family: uint32(family), Device: uint32(d), Code: c.code, Count: n})
			}
		}
		// The exporter writes 0 for a device without a sample in the window.
		if e.windowed && e.column == xidColumn && len(b.Events) == from {
			b.Events = append(b.Events, raw.Event{Family: uint32(family), Device: uint32(d), None: true})
		}
	}
}
