package holders

import (
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Completer adds the owners, as a Resolver knows them, to the pods that hold the devices of
// one source. It belongs to the goroutine that reads the source.
//
// The owner in the source's own labels may not be the topmost: the Job instead of the
// CronJob. An account keeps its labels, and they must not depend on which answer was faster.
// So the source's owner is used only if the Resolver has no answer, and withheld until then.
type Completer struct {
	resolver   *Resolver
	generation uint64
	in, out    *canonical.AllocationSet // of the latest Frame
	same       []int32                  // each allocation's own index
	owners     []Owner                  // of the allocations of out
}

// NewCompleter returns a Completer for one source.
func (r *Resolver) NewCompleter() *Completer { return &Completer{resolver: r} }

// Complete sets Kind and Name of the Frame's allocations. It does not block, and allocates
// nothing while neither the allocations nor their owners change.
func (c *Completer) Complete(f *canonical.Frame) {
	generation := c.resolver.generation.Load()
	if f.AllocationSet != c.in || generation != c.generation {
		c.complete(f.AllocationSet)
		c.generation = generation
	}
	if c.out != c.in {
		f.Reattribute(c.out, c.same)
	}
}

// complete makes c.out from in.
func (c *Completer) complete(in *canonical.AllocationSet) {
	changed := in != c.in
	now := time.Now()
	if changed {
		c.release(in, now)
	}
	if in == nil {
		c.in, c.out = nil, nil
		return
	}
	if changed {
		c.in, c.out = in, in
		c.owners = slices.Grow(c.owners[:0], len(in.Allocations))[:len(in.Allocations)]
		for i := len(c.same); i < len(in.Allocations); i++ {
			c.same = append(c.same, int32(i))
		}
		c.same = c.same[:len(in.Allocations)]
	}
	differs := false
	for i := range in.Allocations {
		a := &in.Allocations[i]
		owner := c.owner(a, now)
		changed = changed || owner != c.owners[i]
		differs = differs || owner != Owner{a.Kind, a.Name}
		c.owners[i] = owner
	}
	switch {
	case !differs:
		c.out = in
	case changed:
		c.out = c.replaced()
	}
}

// release gives up the pods that the source named before and that in does not name.
func (c *Completer) release(in *canonical.AllocationSet, now time.Time) {
	if c.in == nil {
		return
	}
	stays := map[Pod]bool{}
	if in != nil {
		for i := range in.Allocations {
			stays[podOfAllocation(&in.Allocations[i])] = true
		}
	}
	for i := range c.in.Allocations {
		if pod := podOfAllocation(&c.in.Allocations[i]); !stays[pod] {
			c.resolver.leave(pod, c, now)
		}
	}
}

func podOfAllocation(a *canonical.Allocation) Pod { return Pod{a.Namespace, a.Pod} }

// owner returns what an allocation's pod belongs to.
func (c *Completer) owner(a *canonical.Allocation, now time.Time) Owner {
	given := Owner{a.Kind, a.Name}
	if a.Pod == "" || a.Namespace == "" {
		return given
	}
	switch owner, is := c.resolver.find(podOfAllocation(a), c, now); is {
	case known:
		return owner
	case pending:
		return Owner{}
	default:
		return given
	}
}

// replaced returns c.in with the owners.
func (c *Completer) replaced() *canonical.AllocationSet {
	set := *c.in
	set.Allocations = slices.Clone(set.Allocations)
	for i := range set.Allocations {
		set.Allocations[i].Kind, set.Allocations[i].Name = c.owners[i].Kind, c.owners[i].Name
	}
	return &set
}
