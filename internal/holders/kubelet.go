package holders

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

const (
	// kubeletInterval is how often the kubelet is asked. dcgm-exporter asks it in each of
	// its readings.
	kubeletInterval = 10 * time.Second
	// kubeletTimeout bounds one request.
	kubeletTimeout = 5 * time.Second
	// maxFailures is how many failures in a row void the kubelet's last answer.
	maxFailures = 3
)

// KubeletOptions configure a Kubelet.
type KubeletOptions struct {
	// Socket is the path of its pod-resources API.
	Socket string
	// Client returns the access to the cluster, for the devices that pods have through claims.
	// It is not called before a pod has one.
	Client func() (*Client, error)
	// Node is the name of this node in the cluster, "" if unknown.
	Node string
	// Minors returns the UUIDs of the machine's boards by the number of their device file.
	// Boards that it lacks, or all if it is nil, are found by their index.
	Minors func() map[string]string
	Logger *slog.Logger

	// Interval and Timeout are those of requests, Timeout also that for the devices of claims; 0
	// is 10 s and 5 s.
	Interval, Timeout time.Duration
}

// Kubelet knows which container of this node has which device, by asking the kubelet in the
// background. Any goroutine may use it.
type Kubelet struct {
	opts KubeletOptions

	current atomic.Pointer[holdings]
	notes   atomic.Pointer[[]canonical.Note]

	mu     sync.Mutex
	counts KubeletCounts // without those of sources

	// Of the goroutine of Run.
	claims   claims
	failures int // in a row
}

// holdings is an answer of the kubelet. Only matched is written to.
type holdings struct {
	holds []hold // in order, each once
	// existing is as in listed.
	existing map[string]int
	// matched are the holds of devices that a source has.
	matched []atomic.Bool
}

// KubeletCounts are the counts of requests to the kubelet.
type KubeletCounts struct {
	// Asked counts all requests, Failed those without an answer; ClaimsAsked and
	// ClaimsFailed count those for the devices of claims.
	Asked, Failed, ClaimsAsked, ClaimsFailed uint64
	// Matched and Unmatched count the devices that containers have, by whether a source
	// has the device. Unread counts NVIDIA's device ids and claims that do not identify a
	// device.
	Matched, Unmatched, Unread int
}

var nobody = &holdings{}

// NewKubelet returns a Kubelet that asks nothing before Run.
func NewKubelet(opts KubeletOptions) *Kubelet {
	opts.Interval = cmp.Or(opts.Interval, kubeletInterval)
	opts.Timeout = cmp.Or(opts.Timeout, kubeletTimeout)
	k := &Kubelet{opts: opts, claims: claims{client: opts.Client, node: opts.Node, first: opts.Interval, within: opts.Timeout, logger: opts.Logger}}
	k.current.Store(nobody)
	return k
}

// Run asks the kubelet until ctx ends.
func (k *Kubelet) Run(ctx context.Context) {
	again := time.NewTicker(k.opts.Interval)
	defer again.Stop()
	for {
		k.ask(ctx)
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// ask asks the kubelet once, and the API server if the devices of claims are due.
func (k *Kubelet) ask(ctx context.Context) {
	bounded, end := context.WithTimeout(ctx, k.opts.Timeout)
	l, err := list(bounded, k.opts.Socket)
	end()
	if ctx.Err() != nil {
		return
	}
	k.count(func(c *KubeletCounts) { c.Asked++ })
	if err != nil {
		k.count(func(c *KubeletCounts) { c.Failed++ })
		k.fail(err)
		return
	}
	if k.failures > 0 {
		k.opts.Logger.Info("the kubelet answers again", "socket", k.opts.Socket)
	}
	k.failures = 0
	k.findBoards(&l)
	due := k.claims.isDue(l.claims)
	k.publish(&l)
	if !due {
		return
	}
	k.count(func(c *KubeletCounts) { c.ClaimsAsked++ })
	ok := k.claims.ask(ctx)
	if ctx.Err() != nil {
		return
	}
	if !ok {
		k.count(func(c *KubeletCounts) { c.ClaimsFailed++ })
	}
	k.publish(&l)
}

// findBoards replaces the device files by which the kubelet names boards by UUIDs, if known.
func (k *Kubelet) findBoards(l *listed) {
	if k.opts.Minors == nil || !slices.ContainsFunc(l.holds, func(h hold) bool { return h.minor != "" }) {
		return
	}
	boards := k.opts.Minors()
	for i := range l.holds {
		if r := &l.holds[i].reference; boards[r.minor] != "" {
			r.uuid, r.minor = strings.ToLower(boards[r.minor]), ""
		}
	}
}

// publish makes an answer the current one.
func (k *Kubelet) publish(l *listed) {
	byClaims, unread := k.claims.holds(l.claims)
	k.count(func(c *KubeletCounts) { c.Unread = l.unknown + unread })
	notes := k.claims.notes()
	k.notes.Store(&notes)
	before := k.current.Load()
	if l.existing == nil { // that request had no answer
		l.existing = before.existing
	}
	holds := append(byClaims, l.holds...)
	slices.SortFunc(holds, compareHolds)
	holds = slices.Compact(holds)
	if !slices.Equal(before.holds, holds) || !maps.Equal(before.existing, l.existing) {
		k.current.Store(&holdings{holds: holds, existing: l.existing, matched: make([]atomic.Bool, len(holds))})
	}
}

// fail notes why there is no answer. It logs the first of several failures; maxFailures in a
// row void the kubelet's last answer.
func (k *Kubelet) fail(err *canonical.Failure) {
	if k.failures++; k.failures == 1 {
		k.opts.Logger.Warn("cannot get the pods of GPUs from the kubelet", "cause", err.Cause, "remedy", err.Remedy, "socket", k.opts.Socket)
	}
	if k.failures >= maxFailures {
		k.current.Store(nobody)
	}
	what := "the pods are those of the kubelet's last answer: "
	if k.current.Load() == nobody {
		what = "no pods from the kubelet: "
	}
	notes := append([]canonical.Note{{Cause: what + err.Cause, Remedy: err.Remedy}}, k.claims.notes()...)
	k.notes.Store(&notes)
}

// Notes returns the present problems.
func (k *Kubelet) Notes() []canonical.Note {
	if notes := k.notes.Load(); notes != nil {
		return *notes
	}
	return nil
}

func (k *Kubelet) count(change func(*KubeletCounts)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change(&k.counts)
}

// Counts returns the counts until now.
func (k *Kubelet) Counts() KubeletCounts {
	k.mu.Lock()
	c := k.counts
	k.mu.Unlock()
	now := k.current.Load()
	for i := range now.matched {
		if now.matched[i].Load() {
			c.Matched++
		}
	}
	c.Unmatched = len(now.holds) - c.Matched
	return c
}

func compareHolds(a, b hold) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Container, b.Container),
		cmp.Compare(a.uuid, b.uuid), cmp.Compare(a.minor, b.minor), cmp.Compare(a.instance, b.instance),
		cmp.Compare(a.parent, b.parent), cmp.Compare(a.profile, b.profile))
}
