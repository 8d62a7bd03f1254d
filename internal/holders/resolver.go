package holders

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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
	// lookAgain is the age at which an answer is requested again, lookAgainSoon that for an
	// answer that may be incomplete. The old answer is used meanwhile.
	lookAgain     = 10 * time.Minute
	lookAgainSoon = time.Minute
	// outOfUse is the time without a request for a pod after which its answer expires: its source
	// has not been read for as long, and another pod may have the name by now. It equals the time
	// after which a source is stale.
	outOfUse = 5 * time.Minute
)

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
	// lookUp is cluster.ownerOf.
	lookUp func(context.Context, Pod) (Owner, bool, error)
	outage *outage
	obstacles
	queue chan Pod

	// generation changes when an answer may have, and with each round.
	generation atomic.Uint64
	inFlight   atomic.Int64
	counts     [results]atomic.Uint64

	mu   sync.Mutex
	pods *recent[Pod, *entry]
}

// entry is the state of a pod.
type entry struct {
	owner    Owner // zero if unknown
	answered bool
	queued   bool      // or being looked up
	doubted  bool      // find returned that there is no answer
	due      time.Time // when to look up again
	used     time.Time // when it was last asked for
	names    []naming  // of the Completers that asked for it
}

// naming means that the source of a Completer names a pod.
type naming struct {
	by   *Completer
	used time.Time // when it last did
}

// namedBy notes that the source of a Completer names the pod.
func (e *entry) namedBy(by *Completer, now time.Time) {
	e.used = now
	at := slices.IndexFunc(e.names, func(n naming) bool { return n.by == by })
	if at < 0 {
		e.unname(nil, now) // drops sources that are no longer read
		at, e.names = len(e.names), append(e.names, naming{by: by})
	}
	e.names[at].used = now
}

// unname notes that the source of a Completer does not name the pod, and reports whether
// another does.
func (e *entry) unname(by *Completer, now time.Time) (named bool) {
	e.names = slices.DeleteFunc(e.names, func(n naming) bool { return n.by == by || now.Sub(n.used) > outOfUse })
	return len(e.names) > 0
}

// NewResolver returns a Resolver. It does nothing until Run.
func NewResolver(o ResolverOptions) (*Resolver, error) {
	obstacles := newObstacles(o.Logger)
	cluster, err := newCluster(o.Client, o.Labels, obstacles)
	if err != nil {
		return nil, err
	}
	return newResolver(cluster.ownerOf, obstacles, o.Logger), nil
}

func newResolver(lookUp func(context.Context, Pod) (Owner, bool, error), in obstacles, logger *slog.Logger) *Resolver {
	return &Resolver{
		lookUp: lookUp, outage: newOutage(logger), obstacles: in,
		queue: make(chan Pod, maxQueued), pods: newRecent[Pod, *entry](maxPods),
	}
}

// Run looks up what was asked for until ctx ends.
func (r *Resolver) Run(ctx context.Context) {
	var workers sync.WaitGroup
	for range maxInFlight {
		workers.Go(func() { r.work(ctx) })
	}
	for tick := time.NewTicker(round); ; {
		select {
		case <-tick.C:
			r.generation.Add(1)
			continue
		case <-ctx.Done():
			tick.Stop()
		}
		break
	}
	workers.Wait()
}

// work looks up pods of the queue until ctx ends.
func (r *Resolver) work(ctx context.Context) {
	for {
		select {
		case pod := <-r.queue:
			leave, err := r.outage.enter(ctx)
			if err != nil {
				return
			}
			r.resolve(ctx, pod)
			leave()
		case <-ctx.Done():
			return
		}
	}
}

// resolve looks up a pod and keeps the answer.
func (r *Resolver) resolve(ctx context.Context, pod Pod) {
	if !r.remembers(pod) { // it left while it waited
		return
	}
	r.inFlight.Add(1)
	defer r.inFlight.Add(-1)
	owner, sure, err := r.lookUp(ctx, pod)
	if ctx.Err() != nil {
		return
	}
	lives := lookAgain
	if !sure {
		lives = lookAgainSoon
	}
	switch {
	case err == nil:
		r.counts[wasFound].Add(1)
	case errors.Is(err, errDenied):
		r.counts[wasDenied].Add(1)
		lives = denialLife
	case isAnswer(err):
		r.counts[wasAbsent].Add(1)
	case errors.Is(err, errTroubled):
		r.counts[hasFailed].Add(1)
	default:
		r.counts[hasFailed].Add(1)
		r.fail(pod, err)
		return
	}
	lives -= rand.N(lives / 4) //nolint:gosec // spreads load
	changed := r.outage.answered()
	r.mu.Lock()
	defer r.mu.Unlock()
	// If the pod was forgotten meanwhile, no source asks for it any more.
	if e, ok := r.pods.byKey[pod]; ok {
		e := e.Value.(*kept[Pod, *entry]).value
		if err != nil {
			owner = e.owner // the earlier one: the pod is still the same
		}
		changed = changed || !e.answered || e.owner != owner
		e.owner, e.answered, e.queued, e.due = owner, true, false, time.Now().Add(lives)
	}
	if changed {
		r.generation.Add(1)
	}
}

// fail notes that a pod could not be looked up. The next request for it tries again.
func (r *Resolver) fail(pod Pod, err error) {
	began := r.outage.failed(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.pods.byKey[pod]; ok {
		e.Value.(*kept[Pod, *entry]).value.queued = false
	}
	if began {
		r.generation.Add(1)
	}
}

// standing is the state of the look-up of a pod's owner.
type standing uint8

const (
	// pending means that the answer has not come yet.
	pending standing = iota
	// unknown means that there is no answer.
	unknown
	known
)

// find returns the owner of a pod to a Completer, if it is known, and queues a look-up if one
// is due. It does not block.
func (r *Resolver) find(pod Pod, by *Completer, now time.Time) (Owner, standing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.pods.get(pod)
	if !ok || e.answered && now.Sub(e.used) > outOfUse {
		queued := ok && e.queued
		e = &entry{queued: queued}
		r.pods.put(pod, e)
	}
	e.namedBy(by, now)
	if !e.queued && !now.Before(e.due) {
		select {
		case r.queue <- pod:
			e.queued = true
		default:
			r.counts[wasDropped].Add(1)
		}
	}
	switch {
	case e.owner != Owner{}:
		return e.owner, known
	case e.answered || e.doubted || r.outage.is():
		e.doubted = true
		return Owner{}, unknown
	}
	return Owner{}, pending
}

func (r *Resolver) remembers(pod Pod) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pods.byKey[pod] != nil
}

// leave notes that the source of a Completer no longer names a pod: if the name returns, it may
// be another pod. The pod is forgotten or, if another source names it, looked up again, and its
// owner is kept meanwhile.
func (r *Resolver) leave(pod Pod, by *Completer, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.pods.byKey[pod]
	if !ok {
		return
	}
	if e := e.Value.(*kept[Pod, *entry]).value; e.unname(by, now) {
		e.due = now
	} else {
		r.pods.remove(pod)
	}
}

// Notes returns the present problems, with remedies.
func (r *Resolver) Notes() []canonical.Note {
	return slices.Concat(r.outage.notes(), r.denials.notes(), r.troubles.notes())
}
