package tui

import (
	"cmp"
	"time"
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
	Host    Host
	Weights Weights
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

// Host is how the machine of the node is doing; NaN where it does not tell.
type Host struct {
	CPUs, CPUUtilization         float64
	MemoryTotal, MemoryAvailable float64 // bytes
}

// Weights are those of real utilization; NaN where they were not told.
type Weights struct {
	Preset                   string
	SM, Tensor, DRAM, Engine float64
}

// Age of a node's values: how fresh they are shown.
type Age uint8

const (
	// Fresh values are shown as they are.
	Fresh Age = iota
	// Stale values are shown dim, with how old they are.
	Stale
	// Expired values are not shown.
	Expired
)

const (
	// staleAfter and expiredAfter are in periods of the node.
	staleAfter, expiredAfter = 3, 10
	// leastStale keeps fast streams from flickering between fresh and stale.
	leastStale = 2 * time.Second
	// usualPeriod is assumed while none is known.
	usualPeriod = 15 * time.Second
)

// Age returns how fresh the values of n are at now, and since when there have
// been no new ones.
func (n *Node) Age(now time.Time) (Age, time.Duration) {
	if n.FetchedAt.IsZero() {
		return Expired, 0
	}
	period := n.Period
	if period <= 0 {
		period = usualPeriod
	}
	since := max(0, now.Sub(n.FetchedAt))
	switch {
	case since >= max(expiredAfter*period, 3*leastStale):
		return Expired, since
	case since >= max(staleAfter*period, leastStale):
		return Stale, since
	default:
		return Fresh, since
	}
}

// waiting tells whether the first answer of n is still to come.
func (n *Node) waiting() bool { return n.FetchedAt.IsZero() && n.Err == "" }

// unread returns the first source that a node which is up could not read, and how many
// there are.
func (n *Node) unread() (first string, count int) {
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
const stillFrom = 15 * time.Minute

// unchanged returns for how long a source of n has said the same, 0 if it is no
// longer than it may be.
func (n *Node) unchanged() time.Duration {
	longest := time.Duration(0)
	for i := range n.Sources {
		longest = max(longest, n.Sources[i].Unchanged)
	}
	if longest < stillFrom {
		return 0
	}
	return longest
}
