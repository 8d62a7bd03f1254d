package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

const (
	// settled is how long something must stay as it is before it is told: a
	// device at a threshold is no news every second.
	settled = 10 * time.Second
	// wasted is how long a held device idles before that is told.
	wasted = 5 * time.Minute
)

// watch finds the events in what nodes say.
type Watch struct {
	devices map[client.Key]*watched
	nodes   map[string]*attended
}

// watched is a device as the events left it.
type watched struct {
	health canonical.Health
	class  canonical.Class
	gone   bool
	xids   float64
	// better and changed are since when health is better, and the class another,
	// than was told; zero while they are not.
	better, changed time.Time
	next            canonical.Class // the one it changed to
	idle            time.Time       // since when it idles; zero while it works
	toldIdle        bool
	node, label     string    // of the device
	read            time.Time // when it was last told of
}

// attended is a node as the events left it.
type attended struct {
	age  client.Freshness
	lost time.Time // since when there is nothing new
}

func NewWatch() *Watch {
	return &Watch{devices: map[client.Key]*watched{}, nodes: map[string]*attended{}}
}

// reading returns the events of a new reading of n.
func (w *Watch) Reading(n *client.Node) []Event {
	var events []Event
	at := n.ReadAt()
	for _, g := range n.GPUs {
		d := w.devices[g.Key]
		if d == nil {
			d = &watched{health: canonical.HealthOK, class: g.Class, xids: g.XIDChanges}
			w.devices[g.Key] = d
		}
		add := func(kind EventKind, state canonical.Health, text string) {
			events = append(events, Event{At: at, Key: g.Key, Node: g.Hostname, GPU: g.Label(), Kind: kind, State: state, Text: text})
		}
		d.seeGone(g, add)
		if !g.Gone {
			d.seeHealth(g, at, add)
			d.seeXID(g, add)
			d.seeClass(g, at, add)
			d.seeIdle(g, at, add)
		}
		d.node, d.label, d.read = g.Hostname, g.Label(), at
	}
	return append(events, w.lost(n, at)...)
}

// lost forgets the devices that a reading of all sources of n does not tell of any
// more, and returns events of those that were boards: a proxy that was started anew
// knows of none that went before.
func (w *Watch) lost(n *client.Node, at time.Time) []Event {
	if slices.ContainsFunc(n.Sources, func(o client.Source) bool { return !o.Up }) {
		return nil
	}
	var events []Event
	for k, d := range w.devices {
		if k.Node != n.URL || d.read.Equal(at) {
			continue
		}
		delete(w.devices, k)
		if k.Instance == "" && !d.gone {
			events = append(events, Event{At: at, Key: k, Node: d.node, GPU: d.label, Kind: EventGone, State: canonical.HealthWarn, Text: "is not told of any more: the node has fewer GPUs than before"})
		}
	}
	slices.SortFunc(events, func(a, b Event) int {
		return cmp.Or(client.CompareNumbers(a.GPU, b.GPU), cmp.Compare(a.Key.UUID, b.Key.UUID))
	})
	return events
}

type adder func(kind EventKind, state canonical.Health, text string)

func (d *watched) seeGone(g *client.GPU, add adder) {
	switch {
	case g.Gone && !d.gone:
		add(EventGone, canonical.HealthCrit, "is not there: it fell off the bus, or the node has fewer GPUs than expected")
	case !g.Gone && d.gone:
		add(EventGone, canonical.HealthOK, "is there again")
	}
	d.gone = g.Gone
}

// seeHealth tells at once of what gets worse, and of what got better when it has
// stayed so.
func (d *watched) seeHealth(g *client.GPU, at time.Time, add adder) {
	switch worse := cmp.Compare(g.Health, d.health); {
	case g.IsInstance() || g.Health == canonical.HealthUnknown || worse == 0:
		d.better = time.Time{}
	case worse > 0:
		d.health, d.better = g.Health, time.Time{}
		add(EventHealth, g.Health, g.Health.String()+": "+string(g.AppendWhy(nil)))
	case d.better.IsZero():
		d.better = at
	case at.Sub(d.better) >= settled:
		d.better = time.Time{}
		text := "is ok again, was " + d.health.String()
		if d.health = g.Health; g.Health != canonical.HealthOK {
			text = "is better: " + g.Health.String() + ", " + string(g.AppendWhy(nil))
		}
		add(EventHealth, g.Health, text)
	}
}

func (d *watched) seeXID(g *client.GPU, add adder) {
	if g.XIDChanges > d.xids {
		state := canonical.HealthWarn
		if slices.ContainsFunc(g.Raised, func(r client.RaisedCondition) bool { return r.Condition == canonical.CondXIDFatal }) {
			state = canonical.HealthCrit
		}
		add(EventXID, state, "XID "+strconv.FormatFloat(g.Values[canonical.XIDLast], 'f', -1, 64))
	}
	if !math.IsNaN(g.XIDChanges) {
		d.xids = g.XIDChanges
	}
}

// seeClass tells of another class of work when the device has stayed in it.
func (d *watched) seeClass(g *client.GPU, at time.Time, add adder) {
	switch {
	case g.Class == d.class:
		d.changed = time.Time{}
	case d.changed.IsZero() || g.Class != d.next:
		d.changed, d.next = at, g.Class
	case at.Sub(d.changed) >= settled:
		add(EventClass, canonical.HealthOK, client.ClassNames[d.class].Long+" → "+client.ClassNames[g.Class].Long)
		d.class, d.changed = g.Class, time.Time{}
	}
}

// seeIdle tells of a device that somebody holds and nobody uses.
func (d *watched) seeIdle(g *client.GPU, at time.Time, add adder) {
	switch {
	case g.Class != canonical.Idle || len(g.Allocations) == 0:
		d.idle, d.toldIdle = time.Time{}, false
	case d.idle.IsZero():
		d.idle = at
	case !d.toldIdle && at.Sub(d.idle) >= wasted:
		d.toldIdle = true
		add(EventClass, canonical.HealthOK, fmt.Sprintf("idle for %d minutes while %s holds it", int(wasted.Minutes()), g.Allocations[0].Label()))
	}
}

// clock returns the events of time going by: nodes that say nothing new any more,
// and those that are back.
func (w *Watch) Clock(nodes []*client.Node, now time.Time) []Event {
	var events []Event
	for _, n := range nodes {
		a := w.nodes[n.URL]
		if a == nil {
			a = &attended{}
			w.nodes[n.URL] = a
		}
		if n.Waiting() {
			continue
		}
		age, since := n.Freshness(now)
		event := Event{At: now, Node: n.Name, Kind: EventStale}
		switch {
		case age != client.Fresh && a.age == client.Fresh:
			a.lost = now.Add(-since)
			event.State, event.Text = canonical.HealthWarn, "says nothing new: "+cmp.Or(n.Err, "its readings stand still")
			if n.FetchedAt.IsZero() {
				event.Text = "cannot be read: " + n.Err
			}
			events = append(events, event)
		case age == client.Fresh && a.age != client.Fresh:
			event.Text = "is back after " + now.Sub(a.lost).Round(time.Second).String()
			events = append(events, event)
		}
		a.age = age
	}
	return events
}
