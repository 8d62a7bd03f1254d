package holders

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/lru"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

const (
	// maxPods is how many pods are remembered, each in about 300 bytes.
	maxPods = 8192
	// maxQueued is how many pods wait for their look-up. Pods beyond it are queued by a
	// later request.
	maxQueued = 2048
	// maxInFlight is how many look-ups are under way at once.
	maxInFlight = 4
	// round is how often Completers review what is known about the pods that hold GPUs.
	round = 15 * time.Second
	// lookAgain is the age at which an incomplete answer, or none, is requested again. A complete
	// one is kept: the pod's counters keep their labels.
	lookAgain = time.Minute
	// outOfUse is the time without a request for a pod after which its answer expires: its source
	// has not been read for as long, and another pod may have the name by now. It equals the time
	// after which a source is stale.
	outOfUse = 5 * time.Minute
)

// result is the result of a look-up.
type result int

const (
	wasFound result = iota
	wasAbsent
	wasDenied
	hasFailed
	wasDropped
	results
)

// Results returns the words for the indexes of Counts.Lookups.
func Results() []string { return []string{"found", "absent", "denied", "failed", "dropped"} }

// Counts are the counts of a Resolver.
type Counts struct {
	// Lookups counts the look-ups that ended, by Results: found; absent, if there is no
	// such pod; denied by the API server; failed, if it did not answer; dropped, if too
	// many waited.
	Lookups [results]uint64
	// InFlight and Queued count look-ups, Pods the remembered pods.
	InFlight, Queued, Pods int
}

// ResolverOptions configure a Resolver.
type ResolverOptions struct {
	Client *Client
	// Labels name workloads before owners do, in this order.
	Labels []WorkloadLabel
	Logger *slog.Logger
}

// Resolver finds the owners of pods in the background: a caller gets what is known already. It is
// safe for concurrent use.
type Resolver struct {
	*breaker
	// lookUp is cluster.ownerOf.
	lookUp func(context.Context, Pod) (Owner, bool, error)
	queue  chan *entry

	// generation changes when an answer may have, and with each round.
	generation atomic.Uint64
	inFlight   atomic.Int64
	counts     [results]atomic.Uint64

	mu   sync.Mutex
	pods *lru.Cache // entries by Pod
}

// entry is the state of a pod, guarded by Resolver.mu.
type entry struct {
	pod      Pod
	owner    Owner // zero if unknown
	answered bool
	sure     bool      // the answer is complete
	queued   bool      // or being looked up
	doubted  bool      // find returned that there is none
	due      time.Time // when to look up again
	used     time.Time // when it was last asked for
	names    int       // how many Completers name it
}

// NewResolver returns a Resolver. It does nothing until Run.
func NewResolver(o ResolverOptions) *Resolver {
	b := newBreaker(o.Logger)
	return newResolver(newCluster(o.Client, o.Labels, b).ownerOf, b)
}

func newResolver(lookUp func(context.Context, Pod) (Owner, bool, error), b *breaker) *Resolver {
	return &Resolver{breaker: b, lookUp: lookUp, queue: make(chan *entry, maxQueued), pods: lru.New(maxPods)}
}

// Run looks up what was asked for until ctx ends.
func (r *Resolver) Run(ctx context.Context) {
	var workers sync.WaitGroup
	defer workers.Wait()
	for range maxInFlight {
		workers.Go(func() {
			for {
				select {
				case e := <-r.queue:
					r.resolve(ctx, e)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	tick := time.NewTicker(round)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.generation.Add(1)
		case <-ctx.Done():
			return
		}
	}
}

// resolve looks up a pod and keeps the answer, unless the API server fails: the next request for
// the pod tries again then.
func (r *Resolver) resolve(ctx context.Context, e *entry) {
	if known, ok := r.pods.Get(e.pod); !ok || known != e { // it left while it waited
		return
	}
	if !r.enter(wholeServer) {
		r.mu.Lock()
		defer r.mu.Unlock()
		e.queued = false
		return
	}
	r.inFlight.Add(1)
	defer r.inFlight.Add(-1)
	owner, sure, err := r.lookUp(ctx, e.pod)
	if ctx.Err() != nil {
		return
	}
	of, lives := wasFound, lookAgain
	switch {
	case errors.Is(err, errDenied):
		of, lives = wasDenied, denialLife
	case isAnswer(err):
		of = wasAbsent
	case err != nil:
		of = hasFailed
	}
	r.counts[of].Add(1)
	var news bool
	answered := of != hasFailed || errors.Is(err, errFails)
	if answered {
		news = r.succeed(wholeServer)
	} else {
		news = r.fail(wholeServer, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e.queued = false
	if answered {
		if err != nil {
			owner = e.owner // the earlier one: the pod is still the same
		}
		news = news || !e.answered || e.owner != owner
		e.owner, e.answered, e.sure, e.due = owner, true, sure, time.Now().Add(lives)
	}
	if news {
		r.generation.Add(1)
	}
}

// find returns the owner of a pod, zero if there is no answer, and queues a look-up if one is due.
// ok is false if the answer has not come yet. It does not block. first is set if the caller did not
// name the pod before.
func (r *Resolver) find(pod Pod, first bool, now time.Time) (owner Owner, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept, _ := r.pods.Get(pod)
	e, is := kept.(*entry)
	if !is || e.answered && now.Sub(e.used) > outOfUse {
		e = &entry{pod: pod}
		r.pods.Add(pod, e)
	}
	if e.used = now; first {
		e.names++
	}
	if !e.queued && !e.sure && !now.Before(e.due) {
		select {
		case r.queue <- e:
			e.queued = true
		default:
			r.counts[wasDropped].Add(1)
		}
	}
	e.doubted = e.doubted || r.isOpen(wholeServer)
	return e.owner, e.answered || e.doubted
}

// leave notes that a caller no longer names a pod: if the name returns, it may be another pod. The
// pod is forgotten unless another caller names it.
func (r *Resolver) leave(pod Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept, _ := r.pods.Get(pod)
	e, ok := kept.(*entry)
	if !ok {
		return
	}
	if e.names--; e.names <= 0 {
		r.pods.Remove(pod)
	}
}

// Counts returns the current counts.
func (r *Resolver) Counts() Counts {
	c := Counts{InFlight: int(r.inFlight.Load()), Queued: len(r.queue), Pods: r.pods.Len()}
	for i := range c.Lookups {
		c.Lookups[i] = r.counts[i].Load()
	}
	return c
}

// Notes returns the present problems, with remedies.
func (r *Resolver) Notes() []canonical.Note { return r.notes() }

// Completer adds the owners, as a Resolver knows them, to the pods that hold the devices of
// one source. It belongs to the goroutine that reads the source.
//
// The owner in the source's own labels may not be the topmost: the Job instead of the
// CronJob. An account keeps its labels, and they must not depend on which answer was faster.
// So the source's owner is used only if the Resolver has no answer, and withheld until then.
type Completer struct {
	resolver   *Resolver
	generation uint64
	made       relabelled
	owners     map[Pod]Owner // of the pods in made.in
}

// NewCompleter returns a Completer for one source.
func (r *Resolver) NewCompleter() *Completer { return &Completer{resolver: r} }

// Complete sets Kind and Name of the Frame's allocations. It does not block, and allocates
// nothing between the rounds while the allocations do not change.
func (c *Completer) Complete(f *canonical.Frame) {
	generation := c.resolver.generation.Load()
	if f.AllocationSet != c.made.in || generation != c.generation {
		c.complete(f.AllocationSet)
		c.generation = generation
	}
	c.made.apply(f)
}

// complete finds the owners of the pods in a set.
func (c *Completer) complete(in *canonical.AllocationSet) {
	before, now := c.owners, time.Now()
	c.owners = make(map[Pod]Owner, len(before))
	if in != nil {
		for i := range in.Allocations {
			c.name(&in.Allocations[i], before, now)
		}
	}
	for pod := range before {
		if _, stays := c.owners[pod]; !stays {
			c.resolver.leave(pod)
		}
	}
	if in != c.made.in || !maps.Equal(before, c.owners) {
		c.made.relabel(in, func(a *canonical.Allocation) {
			if owner, named := c.owners[Pod{a.Namespace, a.Pod}]; named {
				a.Kind, a.Name = owner.Kind, owner.Name
			}
		})
	}
}

// name finds the owner of an allocation's pod.
func (c *Completer) name(a *canonical.Allocation, before map[Pod]Owner, now time.Time) {
	pod := Pod{a.Namespace, a.Pod}
	if _, done := c.owners[pod]; done || a.Pod == "" || a.Namespace == "" {
		return
	}
	_, named := before[pod]
	owner, ok := c.resolver.find(pod, !named, now)
	if ok && owner == (Owner{}) {
		owner = Owner{a.Kind, a.Name}
	}
	c.owners[pod] = owner
}
