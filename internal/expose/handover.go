package expose

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// handovers keeps the counters of a device in several sources from jumping: its series come
// from the first source that can be read, and each source has an account of its own. If another
// source takes over, the counters continue from the values served last, plus what the new
// source has counted since the last scrape. They also continue if an account begins again at 0,
// as after a reload. It is safe for concurrent use.
type handovers struct {
	birth time.Duration // how long a counter is young
	mu    sync.Mutex
	known map[holder]*handover
	codes map[holder][]uint32 // XIDs ever served for a device
	swept time.Time
}

// holder is a device, one of its XIDs, or one of its allocations.
type holder struct {
	device   canonical.Identity
	hostname string
	// label holds the labels that distinguish the allocations on a device.
	label struct {
		workload   canonical.Workload
		kind, name string
	}
	code uint32 // the XID; XIDChanges of the account is its count
}

// handover is the served state of a holder.
type handover struct {
	source  string // that serves it
	offset  canonical.Account
	account canonical.Account // of the source, when last served
	read    time.Time         // when the source read that
	at      time.Time
	// births are served; young are those that are young because a source took over the holder.
	births canonical.Births
	young  canonical.Newborns
	// others are the accounts of other sources that have the holder, by source; nil for none.
	others map[string]noted
}

// noted is an account as it was at a scrape.
type noted struct {
	account canonical.Account
	at      time.Time
}

// handoverMemory is how long a holder that is no longer read is remembered, as in the ledger.
const handoverMemory = time.Hour

// follow changes the readings of a scrape of all sources to make the counters continue. It
// copies the snapshots that it changes.
func (h *handovers) follow(readings []reading, l *layout, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known == nil {
		if len(readings) < 2 {
			return // there never were several sources
		}
		h.known, h.codes = map[holder]*handover{}, map[holder][]uint32{}
	}
	for i := range readings {
		r := &readings[i]
		if r.snapshot == nil || r.snapshot.Ledger.Roster == nil {
			continue
		}
		h.devices(r, &l.sources[i].rows[ofDevices], now)
		h.xids(r, &l.sources[i].rows[ofDevices], now)
		if r.snapshot.Ledger.AllocationRoster != nil {
			h.allocations(r, &l.sources[i].rows[ofAllocations], now)
		}
	}
	if now.Sub(h.swept) > handoverMemory {
		h.swept = now
		h.sweep(now)
	}
}

// sweep forgets holders that are no longer read, and accounts of sources that no longer read
// their holder: new exporters have new names.
func (h *handovers) sweep(now time.Time) {
	for key, one := range h.known {
		if now.Sub(one.at) > handoverMemory {
			delete(h.known, key)
			delete(h.codes, key)
		}
		maps.DeleteFunc(one.others, func(_ string, other noted) bool { return now.Sub(other.at) > handoverMemory })
	}
}

// holder returns the holder for a device of the roster.
func (r *reading) holder(row int) holder {
	d := &r.snapshot.Ledger.Roster.Devices[row]
	return holder{device: d.Identity(), hostname: d.Hostname}
}

func (h *handovers) devices(r *reading, text *rows, now time.Time) {
	ledger := &r.snapshot.Ledger
	for row := range min(len(ledger.Devices), text.labels.len()) {
		key := r.holder(row)
		if len(text.labels.at(row)) == 0 {
			h.note(key, r.source.Name, &ledger.Devices[row], now)
			continue
		}
		if one := h.take(key, r.source, &ledger.Devices[row], now); one.differs(&ledger.Devices[row]) {
			r.own().Devices[row] = one.serve(&ledger.Devices[row])
		}
	}
}

func (h *handovers) allocations(r *reading, text *rows, now time.Time) {
	ledger := &r.snapshot.Ledger
	for row := range min(len(ledger.Allocations), text.labels.len()) {
		a := &ledger.AllocationRoster.Allocations[row]
		key := r.holder(a.Device)
		key.label.workload, key.label.kind, key.label.name = a.Workload, a.Kind, a.Name
		if len(text.labels.at(row)) == 0 {
			h.note(key, r.source.Name, &ledger.Allocations[row], now)
			continue
		}
		if one := h.take(key, r.source, &ledger.Allocations[row], now); one.differs(&ledger.Allocations[row]) {
			r.own().Allocations[row] = one.serve(&ledger.Allocations[row])
		}
	}
}

// take returns the handover of a holder that source serves now, updated to its account there. A
// reading older than the one that another scrape served changes nothing.
func (h *handovers) take(key holder, source *canonical.Source, account *canonical.Account, now time.Time) *handover {
	one := h.known[key]
	switch {
	case one == nil:
		one = &handover{source: source.Name, births: account.Births}
		h.known[key] = one
	case one.source != source.Name:
		from := account
		if before, known := one.others[source.Name]; known && before.at.Equal(one.at) {
			from = &before.account // what it counted since the last scrape is not served yet
			if beganAgain(account, from) {
				from = &canonical.Account{}
			}
		}
		served := sum(&one.account, &one.offset)
		one.source, one.offset = source.Name, difference(&served, from)
	case source.At.Before(one.read):
		return one
	case beganAgain(account, &one.account):
		one.offset = sum(&one.account, &one.offset)
	}
	one.account, one.read, one.at = *account, source.At, now
	one.follow(account.Births, now, h.birth)
	return one
}

// differs reports whether what is served differs from the account of the source.
func (one *handover) differs(account *canonical.Account) bool {
	return one.offset != (canonical.Account{}) || one.births != account.Births
}

// serve returns the account to serve for an account of the source.
func (one *handover) serve(account *canonical.Account) canonical.Account {
	served := sum(account, &one.offset)
	served.Births = one.births
	return served
}

// follow takes over the births of the source: served counters continue, and others start at 0,
// however long the source has counted them.
func (one *handover) follow(now canonical.Births, at time.Time, youth time.Duration) {
	grown := one.births.Born &^ one.births.Young
	for c, fresh := canonical.Class(0), now.Born&^one.births.Born; fresh>>c != 0; c++ {
		if fresh.Has(c) {
			one.young.Bear(c, at)
		}
	}
	one.births = canonical.Births{Born: one.births.Born | now.Born, Young: (now.Young | one.young.Grow(at, youth)) &^ grown}
}

// beganAgain reports whether an account began again at 0: a counter is lower than before.
func beganAgain(now, before *canonical.Account) bool {
	d := difference(now, before)
	return d.Observed < 0 || d.Known < 0 || d.Utilized < 0 || d.Microjoules < 0 || now.XIDChanges < before.XIDChanges ||
		slices.Min(d.Classes[:]) < 0 || slices.Min(d.Health[:]) < 0
}

// note remembers the account of a source that does not serve the holder.
func (h *handovers) note(key holder, source string, account *canonical.Account, now time.Time) {
	one := h.known[key]
	if one == nil {
		return
	}
	if one.others == nil {
		one.others = map[string]noted{}
	}
	one.others[source] = noted{*account, now}
}

// own returns the reading's ledger for writing, in a copy of the snapshot.
func (r *reading) own() *canonical.Ledger {
	if !r.copied {
		r.copied = true
		s := *r.snapshot
		s.Ledger.Devices = append([]canonical.Account(nil), s.Ledger.Devices...)
		s.Ledger.Allocations = append([]canonical.Account(nil), s.Ledger.Allocations...)
		s.Ledger.XIDs = slices.Clone(s.Ledger.XIDs)
		r.snapshot = &s
	}
	return &r.snapshot.Ledger
}

// sum returns a with the counters of b added.
func sum(a, b *canonical.Account) canonical.Account {
	c := *a
	c.Observed += b.Observed
	c.Known += b.Known
	c.Utilized += b.Utilized
	c.Microjoules += b.Microjoules
	c.XIDChanges += b.XIDChanges
	for i := range c.Classes {
		c.Classes[i] += b.Classes[i]
	}
	for i := range c.Health {
		c.Health[i] += b.Health[i]
	}
	return c
}

// difference returns the counters of a less those of b.
func difference(a, b *canonical.Account) (d canonical.Account) {
	d.Observed = a.Observed - b.Observed
	d.Known = a.Known - b.Known
	d.Utilized = a.Utilized - b.Utilized
	d.Microjoules = a.Microjoules - b.Microjoules
	d.XIDChanges = a.XIDChanges - b.XIDChanges // wraps, as the sum does
	for i := range d.Classes {
		d.Classes[i] = a.Classes[i] - b.Classes[i]
	}
	for i := range d.Health {
		d.Health[i] = a.Health[i] - b.Health[i]
	}
	return d
}
