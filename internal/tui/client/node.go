package client

import (
	"cmp"
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Node is the last exposition of one URL. It is immutable: the next fetch makes a
// new one.
type Node struct {
	// URL identifies the node; it holds no credentials.
	URL string
	// Name is the first hostname of its devices, with the number of others; without devices
	// the host of its URL.
	Name string
	// Machines counts the hostnames of its devices: a proxy may read several nodes.
	Machines int
	Version  string // of the proxy

	// Up reports whether the last fetch worked and at least one source was read. Err says on
	// one line why the fetch failed and what to do.
	Up  bool
	Err string
	// FetchedAt is when, by our clock, the reading below first arrived. After a failed fetch,
	// the reading is that of the last fetch that worked.
	FetchedAt time.Time
	// At is the time of the reading of the newest source, by the node's clock.
	At time.Time
	// Period is the time between readings, reported or measured; 0 while unknown.
	Period time.Duration

	Sources []Source
	// Host is the machine; its values are NaN if they are not reported.
	Host canonical.Host
	Weighting
	// GPUs are ordered by hostname and index, instances behind their board.
	GPUs []*GPU
	Hiding
	// Skipped counts malformed lines that begin like ours.
	Skipped int
}

// Weighting is how a node weights real utilization: a preset by name, and its weights, "" and NaN
// while unknown.
type Weighting struct {
	Preset  string
	Weights canonical.Weights
}

// Hiding is what a Selection leaves out of a node.
type Hiding struct {
	// Hidden counts the boards; HiddenBy is the Selection's By, and Trouble its Trouble or Doubt.
	Hidden            int
	HiddenBy, Trouble string
	// HiddenBoards are the Keys of these boards.
	HiddenBoards map[Key]bool
}

// Source is a source of a proxy.
type Source struct {
	Name, Backend     string
	Up                bool
	At                time.Time
	Period, Unchanged time.Duration
	// Missing are the families that no device reported, without canonical.Prefix.
	Missing []string
	// LongLabels counts the samples so far that had a label longer than allowed.
	LongLabels float64
}

// unknownHost returns a machine that is not reported.
func unknownHost() canonical.Host {
	nan := math.NaN()
	return canonical.Host{CPUs: nan, CPUUtilization: nan, MemoryTotal: nan, MemoryAvailable: nan}
}

// Freshness says whether readings may be shown.
type Freshness uint8

const (
	// Fresh readings are shown as they are.
	Fresh Freshness = iota
	// Stale readings are shown dim, with their age.
	Stale
	// Expired readings are not shown.
	Expired
)

const (
	// stalePeriods and expiredPeriods are the ages of readings in periods of a node.
	stalePeriods, expiredPeriods = 3, 10
	// minStale keeps fast streams from flickering between fresh and stale.
	minStale = 2 * time.Second
	// defaultPeriod is assumed while none is known.
	defaultPeriod = 15 * time.Second
)

// Freshness returns the freshness and the age of the readings of n at now. Those of a node
// that stopped answering are stale at once.
func (n *Node) Freshness(now time.Time) (Freshness, time.Duration) {
	freshness, age := n.FreshnessByAge(now)
	if n.Stopped() {
		freshness = max(freshness, Stale)
	}
	return freshness, age
}

// FreshnessByAge is Freshness by age only: it ignores whether the node stopped answering.
func (n *Node) FreshnessByAge(now time.Time) (Freshness, time.Duration) {
	if n.FetchedAt.IsZero() {
		return Expired, 0
	}
	period := cmp.Or(n.Period, defaultPeriod)
	switch age := max(0, now.Sub(n.FetchedAt)); {
	case age >= max(expiredPeriods*period, 3*minStale):
		return Expired, age
	case age >= max(stalePeriods*period, minStale):
		return Stale, age
	default:
		return Fresh, age
	}
}

// Stopped reports whether n answered before and no longer does.
func (n *Node) Stopped() bool { return n.Err != "" && !n.FetchedAt.IsZero() }

// Waiting reports whether the first answer of n is still to come.
func (n *Node) Waiting() bool { return n.FetchedAt.IsZero() && n.Err == "" }

// Unread returns the first source that a node which is up could not read, and the
// number of such sources.
func (n *Node) Unread() (first string, count int) {
	for _, o := range n.Sources {
		if n.Up && !o.Up {
			first = cmp.Or(first, o.Name)
			count++
		}
	}
	return first, count
}

// unchangedLimit is how long all values of a source may stay the same. Beyond it, the exporter
// has most likely stopped collecting, however often it answers. The mixin's alert has the same
// limit.
const unchangedLimit = 15 * time.Minute

// Unchanged returns how long the values of a source of n have stayed the same, or 0 below
// unchangedLimit.
func (n *Node) Unchanged() time.Duration {
	longest := time.Duration(0)
	for _, o := range n.Sources {
		if o.Unchanged >= unchangedLimit {
			longest = max(longest, o.Unchanged)
		}
	}
	return longest
}

// ReadAt returns the time of the reading by the node's clock, or by ours if they differ by more
// than the age of a reading explains.
func (n *Node) ReadAt() time.Time {
	const slack = 5 * time.Second
	if away := n.FetchedAt.Sub(n.At); n.At.IsZero() || away < -slack || away > 2*n.Period+slack {
		return n.FetchedAt
	}
	return n.At
}

// Nodes are the nodes that are shown, at least one.
type Nodes []*Node

// Of returns the node of g, or nil if there is none.
func (all Nodes) Of(g *GPU) *Node {
	for _, n := range all {
		if n.URL == g.Key.Node {
			return n
		}
	}
	return nil
}

// Freshness returns the freshness and the age of the readings of g at now.
func (all Nodes) Freshness(g *GPU, now time.Time) (Freshness, time.Duration) {
	if n := all.Of(g); n != nil {
		return n.Freshness(now)
	}
	return Expired, 0
}

// Several reports whether there are devices of more than one machine, so that an index does not
// identify a device.
func (all Nodes) Several() bool { return len(all) > 1 || all[0].Machines > 1 }

// ID returns g.ID, with the hostname in front if there are several machines.
func (all Nodes) ID(g *GPU) string {
	if all.Several() {
		return g.Hostname + "/" + g.ID()
	}
	return g.ID()
}
