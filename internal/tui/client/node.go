package client

import (
	"cmp"
	"math"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Node is the last exposition of one URL. It is immutable: the next fetch makes a
// new one.
type Node struct {
	URL      string // identifies the node; it holds no credentials
	Name     string // the first hostname of its devices, with the number of others, or the host of its URL
	Machines int    // hostnames of its devices: a proxy may read several nodes
	Version  string // of the proxy

	Up        bool          // the last fetch worked, and at least one source was read
	Err       string        // one line: why the last fetch failed, and what to do
	FetchedAt time.Time     // when, by our clock, the last reading that worked first arrived
	At        time.Time     // of the reading of the newest source, by the node's clock
	Period    time.Duration // between readings; 0 while unknown

	Sources []Source
	Host    canonical.Host // its values are NaN if they are not reported
	Weighting
	GPUs     []*GPU // by hostname and index, instances behind their board
	Switches []FailedSwitch
	Hiding
	Skipped int // malformed lines that begin like ours
}

// FailedSwitch is an NVSwitch with fatal SXIDs that nothing resolved.
type FailedSwitch struct {
	Hostname, PCIBusID string
	Codes              []string
}

// Text names its errors, such as "fatal SXID 20034".
func (s *FailedSwitch) Text() string { return "fatal SXID " + OneLine(strings.Join(s.Codes, ", ")) }

// Weighting is how a node weights real utilization: a preset by name, and its weights, "" and NaN
// while unknown.
type Weighting struct {
	Preset  string
	Weights canonical.Weights
}

// Hiding is what a Selection leaves out of a node.
type Hiding struct {
	Hidden            int    // boards
	HiddenBy, Trouble string // the Selection's By, and its Trouble or Doubt
	HiddenBoards      map[Key]bool
}

// Source is a source of a proxy.
type Source struct {
	Name, Backend     string
	Up                bool
	At                time.Time
	Period, Unchanged time.Duration
	Missing           []string // families that no device reported, without canonical.Prefix
	LongLabels        float64  // samples so far that had a label longer than allowed
}

// unknownHost returns a machine that is not reported.
func unknownHost() canonical.Host {
	nan := math.NaN()
	return canonical.Host{CPUs: nan, CPUUtilization: nan, MemoryTotal: nan, MemoryAvailable: nan}
}

// Freshness says whether readings may be shown.
type Freshness uint8

// Fresh readings are shown as they are, stale ones dim with their age, expired ones not.
const (
	Fresh Freshness = iota
	Stale
	Expired
)

const (
	stalePeriods, expiredPeriods = 3, 10            // ages of readings in periods of a node
	minStale                     = 2 * time.Second  // keeps fast streams from flickering between fresh and stale
	defaultPeriod                = 15 * time.Second // while none is known
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
