package holders

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

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
	// answer that is incomplete, or none.
	lookAgain     = 10 * time.Minute
	lookAgainSoon = time.Minute
)

// LookUps are the words for how look-ups end: found; absent, if there is no such pod; denied by
// the API server; failed, if it did not answer; dropped, if too many waited.
var LookUps = [...]string{"found", "absent", "denied", "failed", "dropped"}

// The indexes of LookUps.
const (
	wasFound = iota
	wasAbsent
	wasDenied
	hasFailed
	wasDropped
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
	*breaker
	// Ended counts the look-ups that ended, as LookUps.
	Ended [len(LookUps)]atomic.Uint64

	lookUp func(context.Context, Pod) (Owner, bool, error) // cluster.ownerOf
	queue  chan Pod
	kept   *cache.LRUExpireCache // Owners by Pod, zero for no answer
	byUID  *cache.LRUExpireCache // Pods by podUID

	// generation changes when an answer may have, and with each round.
	generation atomic.Uint64

	mu      sync.Mutex
	awaited map[Pod]bool // queued, or being looked up
}

// NewResolver returns a Resolver. It does nothing until Run.
func NewResolver(o ResolverOptions) *Resolver {
	b := newBreaker(o.Logger)
	c := newCluster(o.Client, o.Labels, b)
	r := newResolver(c.ownerOf, b)
	r.byUID = c.kept
	return r
}

// PodOf returns the pod that has a UID, zero unless its owner was looked up.
func (r *Resolver) PodOf(uid string) Pod {
	known, _ := r.byUID.Get(podUID(uid))
	pod, _ := known.(Pod)
	return pod
}

func newResolver(lookUp func(context.Context, Pod) (Owner, bool, error), b *breaker) *Resolver {
	return &Resolver{
		breaker: b, lookUp: lookUp, queue: make(chan Pod, maxQueued), kept: cache.NewLRUExpireCache(maxPods), awaited: map[Pod]bool{},
	}
}

// Run looks up what was asked for until ctx ends.
func (r *Resolver) Run(ctx context.Context) {
	var workers sync.WaitGroup
	defer workers.Wait()
	for range maxInFlight {
		workers.Go(func() {
			for {
				select {
				case pod := <-r.queue:
					r.resolve(ctx, pod)
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
func (r *Resolver) resolve(ctx context.Context, pod Pod) {
	owner, lives := Owner{}, time.Duration(0)
	if r.allows(wholeServer) {
		owner, lives = r.ask(ctx, pod)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.awaited[pod] && lives > 0 { // it has not left meanwhile
		r.kept.Add(pod, owner, lives)
		r.generation.Add(1)
	}
	delete(r.awaited, pod)
}

// ask looks up a pod, and returns how long the answer is kept; 0 is no answer.
func (r *Resolver) ask(ctx context.Context, pod Pod) (owner Owner, lives time.Duration) {
	owner, sure, err := r.lookUp(ctx, pod)
	if ctx.Err() != nil {
		return owner, 0
	}
	ended, lives := wasFound, lookAgainSoon
	switch {
	case errors.Is(err, errDenied):
		ended = wasDenied
	case errors.Is(err, errAbsent):
		ended = wasAbsent
	case err != nil:
		ended = hasFailed
	case sure:
		lives = lookAgain
	}
	r.Ended[ended].Add(1)
	if ended != hasFailed {
		r.succeed(wholeServer)
		return owner, lives
	}
	if r.fail(wholeServer, canonical.Note{
		Cause:  "the Kubernetes API server does not answer correctly, so the workloads of new pods are not known: " + err.Error(),
		Remedy: "check that this machine reaches it (network policies, --kube.config), and that the credentials are valid",
	}) {
		r.generation.Add(1)
	}
	return owner, 0
}

// find returns the owner of a pod, zero if there is no answer, and queues a look-up if one is due.
// ok is false if the answer has not come yet. It does not block.
func (r *Resolver) find(pod Pod) (owner Owner, ok bool) {
	if known, ok := r.kept.Get(pod); ok {
		return known.(Owner), true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.awaited[pod] {
		select {
		case r.queue <- pod:
			r.awaited[pod] = true
		default:
			r.Ended[wasDropped].Add(1)
		}
	}
	return Owner{}, r.fails(wholeServer)
}

// leave forgets a pod: if its name returns, it may be another pod.
func (r *Resolver) leave(pod Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept.Remove(pod)
	delete(r.awaited, pod)
}

// Completer adds the owners, as a Resolver knows them, to the pods that hold the devices of
// one source. It belongs to the goroutine that reads the source.
//
// The owner in the source's own labels may not be the topmost: the Job instead of the
// CronJob. An account keeps its labels, and they must not depend on which answer was faster.
// So the source's owner is used only if the Resolver has no answer, and withheld until then. An
// owner that was known stays as long as the source names the pod, unless there is another.
type Completer struct {
	resolver   *Resolver
	generation uint64
	made       relabelled
	owners     map[Pod]standing // of the pods in made.in
}

// standing is what is known about a pod: withheld is set until there is an answer.
type standing struct {
	owner    Owner
	withheld bool
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
	before := c.owners
	c.owners = make(map[Pod]standing, len(before))
	if in != nil {
		for i := range in.Allocations {
			pod := Pod{in.Allocations[i].Namespace, in.Allocations[i].Pod}
			if _, done := c.owners[pod]; done || pod.Name == "" || pod.Namespace == "" {
				continue
			}
			was, named := before[pod]
			owner, ok := c.resolver.find(pod)
			c.owners[pod] = standing{cmp.Or(owner, was.owner), !ok && (!named || was.withheld)}
		}
	}
	for pod := range before {
		if _, stays := c.owners[pod]; !stays {
			c.resolver.leave(pod)
		}
	}
	if in != c.made.in || !maps.Equal(before, c.owners) {
		c.made.relabel(in, func(a *canonical.Allocation) {
			if is, named := c.owners[Pod{a.Namespace, a.Pod}]; named && (is.withheld || is.owner != Owner{}) {
				a.Kind, a.Name = is.owner.Kind, is.owner.Name
			}
		})
	}
}
