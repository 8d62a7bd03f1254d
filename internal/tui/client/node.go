package client

import (
	"cmp"
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Node is what one URL, or the pipeline in this process, said last. It is
// immutable: the next fetch makes a new one.
type Node struct {
	// URL tells nodes apart; it holds no credentials. "" is this very process.
	URL string
	// Name is the hostname its devices carry, the first with how many more there are,
	// else the host of its URL.
	Name string
	// Machines is how many hostnames its devices carry: a proxy may read several nodes.
	Machines int
	Version  string // of the proxy

	// Up is whether the last fetch worked and at least one source could be read;
	// Err says why not, on one line with what to do.
	Up  bool
	Err string
	// FetchedAt is when the fetch that brought these readings ended, by our clock: one
	// that worked, the first of them where several brought the same. The GPUs are
	// those of that reading, however long ago.
	FetchedAt time.Time
	// At is the time of the reading itself, by the node's clock: of its newest
	// source.
	At time.Time
	// Period is how often there is a new reading: what the node says, or the
	// distance of the readings seen; 0 while it is not known.
	Period time.Duration

	Sources []Source
	// Host is the machine; NaN where the node does not report it.
	Host canonical.Host
	// Preset names the Weights of real utilization; "" and NaN while unknown.
	Preset  string
	Weights canonical.Weights
	// GPUs are in stable order: by name of the node and index, instances right
	// behind their board.
	GPUs []*GPU
	// Hidden is how many boards it has beside them that are not to be shown, and
	// HiddenBy what says so. Trouble says what was to be shown and is not there.
	Hidden            int
	HiddenBy, Trouble string
	// Skipped counts lines named like ours that could not be read.
	Skipped int
}

// Source is a source that a proxy reads.
type Source struct {
	Name, Backend, Aggregation string
	Up                         bool
	At                         time.Time
	Period, Took, Unchanged    time.Duration
	// Missing are the families that no device gave, without canonical.Prefix.
	Missing []string
}

// unknownHost is a machine that reports nothing.
func unknownHost() canonical.Host {
	nan := math.NaN()
	return canonical.Host{CPUs: nan, CPUUtilization: nan, MemoryTotal: nan, MemoryAvailable: nan}
}

// Age of a node's values: how fresh they are shown.
type Freshness uint8

const (
	// Fresh values are shown as they are.
	Fresh Freshness = iota
	// Stale values are shown dim, with how old they are.
	Stale
	// Expired values are not shown.
	Expired
)

const (
	// staleAfter and expiredAfter are in periods of the node.
	staleAfter, expiredAfter = 3, 10
	// leastStale keeps fast streams from flickering between fresh and stale.
	minStale = 2 * time.Second
	// usualPeriod is assumed while none is known.
	usualPeriod = 15 * time.Second
)

// Age returns how fresh the values of n are at now, and since when there have
// been no new ones.
func (n *Node) Freshness(now time.Time) (Freshness, time.Duration) {
	if n.FetchedAt.IsZero() {
		return Expired, 0
	}
	period := n.Period
	if period <= 0 {
		period = usualPeriod
	}
	since := max(0, now.Sub(n.FetchedAt))
	switch {
	case since >= max(expiredAfter*period, 3*minStale):
		return Expired, since
	case since >= max(staleAfter*period, minStale):
		return Stale, since
	default:
		return Fresh, since
	}
}

// waiting tells whether the first answer of n is still to come.
func (n *Node) Waiting() bool { return n.FetchedAt.IsZero() && n.Err == "" }

// unread returns the first source that a node which is up could not read, and how many
// there are.
func (n *Node) Unread() (first string, count int) {
	for i := range n.Sources {
		if o := &n.Sources[i]; n.Up && !o.Up {
			first = cmp.Or(first, o.Name)
			count++
		}
	}
	return first, count
}

// stillFrom is for how long no value of a source may stay as it is before it is told
// that it does, as in the alert of the mixin: its exporter has most likely stopped
// collecting, however often it answers.
const unchangedLimit = 15 * time.Minute

// unchanged returns for how long a source of n has said the same, 0 if it is no
// longer than it may be.
func (n *Node) Unchanged() time.Duration {
	longest := time.Duration(0)
	for i := range n.Sources {
		longest = max(longest, n.Sources[i].Unchanged)
	}
	if longest < unchangedLimit {
		return 0
	}
	return longest
}

// readAt is when the values of n were read: by its own clock, unless that differs
// from ours by more than the reading can be old.
func (n *Node) ReadAt() time.Time {
	const slack = 5 * time.Second
	if away := n.FetchedAt.Sub(n.At); n.At.IsZero() || away < -slack || away > 2*n.Period+slack {
		return n.FetchedAt
	}
	return n.At
}

// Nodes are those that are shown.
type Nodes []*Node

// Of returns the node that g was read from, nil if there is none.
func (all Nodes) Of(g *GPU) *Node {
	for _, n := range all {
		if n.URL == g.Key.Node {
			return n
		}
	}
	return nil
}

// Age returns how fresh the values of g are at now, and for how long there have
// been no new ones.
func (all Nodes) Freshness(g *GPU, now time.Time) (Freshness, time.Duration) {
	if n := all.Of(g); n != nil {
		return n.Freshness(now)
	}
	return Expired, 0
}

// several reports whether devices are of more than one machine, so that an index
// alone identifies none.
func (all Nodes) Several() bool { return len(all) > 1 || all[0].Machines > 1 }

// ID is g.ID, with the name of its machine where there are several.
func (all Nodes) ID(g *GPU) string {
	if all.Several() {
		return g.Hostname + "/" + g.ID()
	}
	return g.ID()
}
