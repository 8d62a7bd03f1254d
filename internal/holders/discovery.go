package holders

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// mostParts is how many parts of 500 pods a list may have, far more than a cluster has exporters.
const mostParts = 100

// DiscoveryOptions select the exporters to look for.
type DiscoveryOptions struct {
	Client *Client
	// Selectors are label selectors; a pod that any of them selects is an exporter's.
	Selectors []string
	// Namespace and Node are where to look, "" for everywhere.
	Namespace, Node string
	// Port is the name or number of the pods' port, "" for dcgm-exporter's.
	Port string
	// Max bounds the exporters; those that come first, by node, are read.
	Max    int
	Logger *slog.Logger
	// Changed, unless nil, is called with all exporters, ordered by node, namespace and
	// name, whenever they change, by one goroutine at a time.
	Changed func([]Exporter)
}

// Discovery follows the pods that run exporters. While the API server does not answer, the
// known ones stay.
type Discovery struct {
	opts       DiscoveryOptions
	selections []*selection

	mu      sync.Mutex
	current []Exporter
	counts  DiscoveryCounts
}

// DiscoveryCounts are the counts of a discovery.
type DiscoveryCounts struct {
	// Exporters counts those that are read, Waiting the pods that do not run, LeftOut the
	// exporters beyond DiscoveryOptions.Max.
	Exporters, Waiting, LeftOut int
	// Failures counts failed lists and watches from the start.
	Failures uint64
}

// selection follows the pods of one selector.
type selection struct {
	of   *Discovery
	kept *cache.UndeltaStore // of *podObject by UID; it publishes after each change
	pods *cache.ListWatch

	parts int // of the list so far; of the goroutine that lists
	// Guarded by of.mu.
	listed  bool
	failure *canonical.Failure // of the latest request
}

// NewDiscovery returns a discovery that Run begins.
func NewDiscovery(opts DiscoveryOptions) *Discovery {
	d := &Discovery{opts: opts}
	byUID := func(pod any) (string, error) { return string(pod.(*podObject).UID), nil }
	for _, selector := range opts.Selectors {
		s := &selection{of: d}
		s.kept = cache.NewUndeltaStore(func([]any) { d.publish(s) }, byUID)
		s.pods = cache.NewFilteredListWatchFromClient(opts.Client, "pods", opts.Namespace, func(o *metav1.ListOptions) {
			if o.LabelSelector = selector; opts.Node != "" {
				o.FieldSelector = "spec.nodeName=" + opts.Node
			}
		})
		d.selections = append(d.selections, s)
	}
	return d
}

// Run follows the pods until ctx ends.
func (d *Discovery) Run(ctx context.Context) {
	d.each(func(s *selection) {
		lists := &cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
		cache.NewReflector(cache.ToListWatcherWithWatchListSemantics(lists, s), &podObject{}, s.kept, 0).RunWithContext(ctx)
	})
}

// each calls do with each selection, and waits.
func (d *Discovery) each(do func(*selection)) {
	var all sync.WaitGroup
	for _, s := range d.selections {
		all.Go(func() { do(s) })
	}
	all.Wait()
}

// IsWatchListSemanticsUnSupported makes the Reflector list before it watches: any server can.
func (s *selection) IsWatchListSemanticsUnSupported() bool { return true }

// list gets the selected pods.
func (s *selection) list(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	within, cancel := context.WithTimeoutCause(ctx, RequestTimeout, canonical.TimedOut(RequestTimeout))
	defer cancel()
	if opts.Continue == "" {
		s.parts = 0
	}
	pods, err := s.pods.ListWithContext(within, opts)
	if s.parts++; err == nil && s.parts > mostParts {
		err = fmt.Errorf("its list does not end after %d parts", mostParts)
	}
	err = cause(within, err)
	s.note(ctx, err)
	return pods, err
}

// watch begins a watch of the selected pods.
func (s *selection) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	events, err := s.pods.WatchWithContext(ctx, opts)
	s.note(ctx, err)
	return events, err
}

// note records the outcome of a request, and logs it if it is news.
func (s *selection) note(ctx context.Context, err error) {
	d := s.of
	d.mu.Lock()
	defer d.mu.Unlock()
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || errors.Is(ctx.Err(), context.Canceled) {
		return // the pods are listed again, or the program ends
	}
	before := d.failure()
	s.failure = d.explain(err)
	if err != nil {
		d.counts.Failures++
	}
	switch after := d.failure(); {
	case after != nil && (before == nil || before.Kind != after.Kind):
		d.opts.Logger.Warn("exporter discovery failed", "cause", after.Cause, "remedy", after.Remedy, "known", len(d.current))
	case before != nil && after == nil:
		d.opts.Logger.Info("exporter discovery works again")
	}
}

// publish reports the exporters if a change of a selection changed them: one at a time and in
// order, so mu is held.
func (d *Discovery) publish(by *selection) {
	d.mu.Lock()
	defer d.mu.Unlock()
	by.listed = true
	seen := map[types.UID]bool{}
	var all []Exporter
	for _, s := range d.selections {
		for _, one := range s.kept.List() {
			p := one.(*podObject)
			if e, runs := p.exporter(d.opts.Port); runs && !seen[p.UID] {
				all = append(all, e)
			}
			seen[p.UID] = true
		}
	}
	d.counts.Waiting = len(seen) - len(all)
	slices.SortFunc(all, compareExporters)
	leftOut := max(len(all)-d.opts.Max, 0)
	if leftOut > 0 && d.counts.LeftOut == 0 {
		d.opts.Logger.Warn("too many exporters; some are not read", "left_out", leftOut, "remedy", tooMany)
	}
	all = all[:len(all)-leftOut]
	d.counts.Exporters, d.counts.LeftOut = len(all), leftOut
	if !slices.Equal(all, d.current) {
		d.current = all
		if d.opts.Changed != nil {
			d.opts.Changed(slices.Clone(all))
		}
	}
}

const tooMany = "raise kube.discover.max_sources, or run several proxies, each for a part of the nodes"

// Counts returns the current counts.
func (d *Discovery) Counts() DiscoveryCounts {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts
}

// Notes returns why discovery is stuck, if it is.
func (d *Discovery) Notes() (notes []canonical.Note) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.failure(); f != nil {
		notes = append(notes, canonical.Note{Cause: f.Cause, Remedy: f.Remedy})
	}
	if n := d.counts.LeftOut; n > 0 {
		notes = append(notes, canonical.Note{
			Cause:  fmt.Sprintf("not read: %s beyond kube.discover.max_sources=%d", diag.Count(n, "exporter"), d.opts.Max),
			Remedy: tooMany,
		})
	}
	return notes
}

// Absent returns why no exporter is read: the API server lists none, or none of the expected
// ones runs. It is nil if a whole cluster certainly has none, as after its pool of GPU nodes
// was scaled to zero: that is not a failure.
func (d *Discovery) Absent() *canonical.Failure {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.failure(); f != nil {
		return f
	}
	f := &canonical.Failure{Kind: "not_read", Remedy: "wait a moment"}
	switch {
	case len(d.current) > 0 || slices.ContainsFunc(d.selections, func(s *selection) bool { return !s.listed }):
		f.Cause = "the exporters that the Kubernetes API server lists have not been read yet"
	case d.counts.Waiting > 0:
		f.Cause = fmt.Sprintf("no pod of an exporter runs (%s): %s waiting", d.where(), diag.Count(d.counts.Waiting, "pod"))
		f.Remedy = "see why: kubectl describe pods"
	case d.opts.Node != "":
		f.Cause = "there is no pod of an exporter (" + d.where() + ")"
		f.Remedy = "see why the exporter's DaemonSet has none there, and check that --kube.discover selects its label"
	default:
		return nil
	}
	return f
}

// where describes the pods that are looked for.
func (d *Discovery) where() string {
	text := "pods"
	if d.opts.Namespace != "" {
		text += " in namespace " + d.opts.Namespace
	}
	if d.opts.Node != "" {
		text += " on node " + d.opts.Node
	}
	return text + " with " + strings.Join(d.opts.Selectors, " or ")
}

// failure returns why discovery is stuck, nil if it is not. The caller holds mu.
func (d *Discovery) failure() *canonical.Failure {
	for _, s := range d.selections {
		if s.failure != nil {
			return s.failure
		}
	}
	return nil
}

// explain returns why a request failed, nil if it did not.
func (d *Discovery) explain(err error) *canonical.Failure {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		remedy := "grant it as deploy/kubernetes/rbac.yaml does: {apiGroups: [\"\"], resources: [pods], verbs: [list, watch]}"
		if d.opts.Namespace == "" {
			remedy += ", for the whole cluster, or name the exporters' namespace with --kube.discover-namespace"
		}
		return &canonical.Failure{
			Kind: "denied", Remedy: remedy,
			Cause: "the Kubernetes API server denies the right to list and watch " + d.where() + ": " + err.Error(),
		}
	}
	_, slow := errors.AsType[canonical.TimedOut](err)
	return &canonical.Failure{
		Kind: "unreachable", Timeout: slow || errors.Is(err, context.DeadlineExceeded),
		Cause:  "cannot get " + d.where() + " from the Kubernetes API server: " + err.Error(),
		Remedy: "check that this machine reaches it (network policies, --kube.config), and that the credentials are valid; known exporters are still read",
	}
}
