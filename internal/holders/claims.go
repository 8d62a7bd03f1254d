package holders

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

const (
	// claimsPause is the time from a change of the claims to a second request for their
	// devices, since drivers publish new devices a little later. It doubles up to
	// claimsRest while nothing changes, and up to claimsRetry while there is no answer.
	claimsPause = 10 * time.Second
	claimsRest  = 10 * time.Minute
	claimsRetry = time.Minute
	// maxPools bounds the pools that are requested if the node's name is unknown.
	maxPools = 4
)

// ClaimsOptions configure Claims.
type ClaimsOptions struct {
	// Client returns the access to the cluster. It is not called before a pod has a GPU
	// through a claim.
	Client func() (*Client, error)
	// Node is the name of this node; "" stands for the pool of a device, which drivers of
	// node-local devices name after the node.
	Node   string
	Logger *slog.Logger

	// Pause is claimsPause if 0.
	Pause time.Duration
}

// Claims finds the devices behind the claims of pods (dynamic resource allocation): the
// kubelet names them by driver, pool and device, and the node's ResourceSlices describe
// these. While no pod has a claim, nothing is requested. ResourceSlices are listed, not
// watched: their entry for a held device does not change, a claim of a new one is
// looked up at once, and a watch on each node would cost the API server more than a list
// whenever the claims change.
type Claims struct {
	opts    ClaimsOptions
	wanted  atomic.Pointer[[]claim]
	changed chan struct{} // signals a change of wanted
	answers chan struct{} // signals a change of resolved

	resolved atomic.Pointer[map[claim]resolution]
	notes    atomic.Pointer[[]canonical.Note]
	asked    atomic.Uint64
	failed   atomic.Uint64

	// Of the goroutine of Run.
	api      *resourceAPI                  // nil before the first claim
	watchers map[claim]map[poolDevice]bool // by claim, without its device
	failures int                           // in a row
	denied   bool                          // claims may not be read
}

// claim is a device of a claim.
type claim struct {
	namespace, name string
	device          poolDevice
}

// resolution is the device of a claim.
type resolution struct {
	reference
	known bool
	// watches is set if the device is not held: adminAccess.
	watches bool
}

// NewClaims returns Claims that ask nothing before Run.
func NewClaims(opts ClaimsOptions) *Claims {
	opts.Pause = cmp.Or(opts.Pause, claimsPause)
	c := &Claims{opts: opts, changed: make(chan struct{}, 1), answers: make(chan struct{}, 1)}
	c.resolved.Store(&map[claim]resolution{})
	c.wanted.Store(&[]claim{})
	return c
}

// want sets the claims to look for.
func (c *Claims) want(all []claim) {
	slices.SortFunc(all, func(a, b claim) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name), cmp.Compare(a.device.pool, b.device.pool), cmp.Compare(a.device.device, b.device.device))
	})
	all = slices.Compact(all)
	if !slices.Equal(*c.wanted.Load(), all) {
		c.wanted.Store(&all)
		signal(c.changed)
	}
}

func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default: // it is signalled already
	}
}

// Run asks the API server until ctx ends.
func (c *Claims) Run(ctx context.Context) {
	again := time.NewTimer(0)
	defer again.Stop()
	pause := c.opts.Pause
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.changed:
			pause = c.opts.Pause
		case <-again.C:
			pause *= 2
		}
		again.Stop()
		wanted := *c.wanted.Load()
		if len(wanted) == 0 {
			c.resolved.Store(&map[claim]resolution{})
			c.watchers, c.failures = nil, 0
			c.notes.Store(nil)
			continue
		}
		err := c.ask(ctx, wanted)
		if ctx.Err() != nil {
			return
		}
		c.account(err)
		pause = min(pause, claimsRest)
		if err != nil {
			pause = min(pause, max(claimsRetry, c.opts.Pause))
		}
		again.Reset(pause)
	}
}

// ask finds the devices of claims.
func (c *Claims) ask(ctx context.Context, wanted []claim) error {
	c.asked.Add(1)
	if c.api == nil {
		client, err := c.opts.Client()
		if err != nil {
			return err
		}
		if c.api, err = newResourceAPI(client); err != nil {
			return err
		}
	}
	bounded, end := context.WithTimeout(ctx, RequestTimeout)
	defer end()
	devices := map[poolDevice]reference{}
	for _, node := range c.nodes(wanted) {
		all, err := c.api.slices(bounded, node)
		if errors.Is(err, errDenied) {
			return errors.New("ResourceSlices may not be read; grant the service account list on resourceslices.resource.k8s.io: deploy/kubernetes/rbac.yaml")
		}
		if err != nil {
			return err
		}
		for at, r := range devicesOf(all) {
			devices[at] = r
		}
	}
	if err := c.askWatchers(ctx, wanted); err != nil {
		return err
	}
	before, now := *c.resolved.Load(), make(map[claim]resolution, len(wanted))
	for _, w := range wanted {
		r, known := devices[w.device]
		if was := before[w]; !known && was.known { // withdrawn by the driver, as for an unhealthy device: its holder keeps it
			r, known = was.reference, true
		}
		now[w] = resolution{reference: r, known: known, watches: c.watchers[w.whole()][w.device]}
	}
	c.resolved.Store(&now)
	signal(c.answers)
	return nil
}

// nodes returns the names of nodes whose slices are requested.
func (c *Claims) nodes(wanted []claim) (names []string) {
	if c.opts.Node != "" {
		return []string{c.opts.Node}
	}
	for _, w := range wanted {
		if len(names) < maxPools && !slices.Contains(names, w.device.pool) {
			names = append(names, w.device.pool)
		}
	}
	return names
}

// whole returns the claim of a device.
func (c claim) whole() claim { return claim{namespace: c.namespace, name: c.name} }

// askWatchers reads each claim once: its devices do not change while the kubelet names it.
// If claims may not be read, all of their devices count as held.
func (c *Claims) askWatchers(ctx context.Context, wanted []claim) error {
	known := c.watchers
	c.watchers, c.denied = make(map[claim]map[poolDevice]bool, len(known)), false
	for _, w := range wanted {
		whole := w.whole()
		if _, done := c.watchers[whole]; done || c.denied {
			continue
		}
		if devices, before := known[whole]; before {
			c.watchers[whole] = devices
			continue
		}
		bounded, end := context.WithTimeout(ctx, RequestTimeout)
		devices, err := c.api.watchers(bounded, w.namespace, w.name)
		end()
		switch {
		case errors.Is(err, errDenied):
			c.denied = true
		case errors.Is(err, errAbsent): // it has just gone
		case err != nil:
			return fmt.Errorf("claim %s/%s: %w", w.namespace, w.name, err)
		default:
			c.watchers[whole] = devices
		}
	}
	return nil
}

// account counts a failed request, and notes its problem.
func (c *Claims) account(err error) {
	switch {
	case err != nil:
		c.failed.Add(1)
		if c.failures++; c.failures == 1 {
			c.opts.Logger.Warn("cannot look up the GPUs of claims", "cause", err)
		}
		cause, remedy := splitRemedy(err)
		c.notes.Store(&[]canonical.Note{{Cause: "the GPUs of new claims are not known: " + cause, Remedy: cmp.Or(remedy, "check whether the Kubernetes API server can be reached from this pod")}})
		return
	case c.failures > 0:
		c.opts.Logger.Info("the GPUs of claims can be looked up again")
	}
	c.failures = 0
	c.notes.Store(nil)
	if c.denied {
		c.notes.Store(&[]canonical.Note{{
			Cause:  "pods that have a claim for watching GPUs (adminAccess) count as their holders: ResourceClaims may not be read",
			Remedy: "grant the service account get on resourceclaims.resource.k8s.io: deploy/kubernetes/rbac.yaml",
		}})
	}
}

// resolve adds to l the known devices of its claims, and returns how many are unknown.
func (c *Claims) resolve(l *listed) (unread int) {
	wanted := make([]claim, len(l.claims))
	for i, d := range l.claims {
		wanted[i] = claim{d.claimNS, d.claim, d.device}
	}
	resolved := *c.resolved.Load()
	for i, d := range l.claims {
		switch r := resolved[wanted[i]]; {
		case r.watches:
		case r.known:
			l.holds = append(l.holds, hold{d.Workload, r.reference})
		default:
			unread++
		}
	}
	c.want(wanted)
	return unread
}
