package holders

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

const (
	// firstRetry and longestRetry bound the pause after a failed request: it doubles from
	// one failure to the next.
	firstRetry   = time.Second
	longestRetry = time.Minute
)

// DiscoveryOptions select the exporters to look for.
type DiscoveryOptions struct {
	Client *Client
	// Selectors are label selectors; a pod that any of them selects is an exporter's.
	Selectors []string
	// Namespace and Node are where to look, "" for everywhere.
	Namespace, Node string
	// Port is the name or number of the pods' port, "" for dcgm-exporter's.
	Port string
	// Max bounds the exporters. Those that were found first stay.
	Max    int
	Logger *slog.Logger
	// Changed, unless nil, is called with all exporters, ordered by node, namespace and
	// name, whenever they change, by one goroutine at a time.
	Changed func([]Exporter)
}

// Discovery follows the pods that run exporters. While the API server does not answer, the
// known ones stay.
type Discovery struct {
	opts     DiscoveryOptions
	watchers []*watcher

	mu       sync.Mutex
	lists    []map[string]candidate // of each watcher by UID, nil until it has listed
	admitted map[string]bool        // UIDs
	current  []Exporter
	counts   DiscoveryCounts
	failures []error // of each watcher, nil while all is well
	told     uint64  // how many candidates came so far
}

// candidate is a pod that is selected.
type candidate struct {
	exporter Exporter
	runs     bool
	version  uint64 // of the pod, which rises with each change; 0 if it is not a number
	told     uint64 // its number, in the order in which candidates came
}

// isNewer reports whether c is a more recent state of a pod than other: one of two watches may
// be behind, as while it is cut.
func (c candidate) isNewer(other candidate) bool {
	if c.version != other.version && c.version != 0 && other.version != 0 {
		return c.version > other.version
	}
	return c.told > other.told
}

// DiscoveryCounts are the counts of a discovery.
type DiscoveryCounts struct {
	// Exporters counts those that are read, Waiting the pods that do not run, LeftOut the
	// exporters beyond DiscoveryOptions.Max.
	Exporters, Waiting, LeftOut int
	// Lists and Failures count from the start: complete lists, and failed lists and watches.
	Lists, Failures uint64
}

// NewDiscovery returns a discovery that Run begins.
func NewDiscovery(opts DiscoveryOptions) (*Discovery, error) {
	d := &Discovery{opts: opts, admitted: map[string]bool{}}
	for i, selector := range opts.Selectors {
		w, err := newWatcher(opts.Client, selector, opts.Namespace, opts.Node)
		if err != nil {
			return nil, err
		}
		w.replace = func(pods []podObject) { d.replace(i, pods) }
		w.change = func(p *podObject, deleted bool) { d.change(i, p, deleted) }
		w.answered = func() { d.note(i, nil) }
		d.watchers = append(d.watchers, w)
	}
	d.lists, d.failures = make([]map[string]candidate, len(d.watchers)), make([]error, len(d.watchers))
	return d, nil
}

// Run follows the pods until ctx ends.
func (d *Discovery) Run(ctx context.Context) {
	var all sync.WaitGroup
	for i, w := range d.watchers {
		all.Go(func() { d.follow(ctx, i, w) })
	}
	all.Wait()
}

// List lists the exporters once, instead of Run, and returns them in the order of
// DiscoveryOptions.Changed. Absent says why there are none, and Notes why some may be missing.
func (d *Discovery) List(ctx context.Context) []Exporter {
	var all sync.WaitGroup
	for i, w := range d.watchers {
		all.Go(func() {
			if err := w.list(ctx); err != nil {
				d.note(i, err)
			}
		})
	}
	all.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.current)
}

// follow follows the pods of one selector. It pauses after failures, longer after each.
func (d *Discovery) follow(ctx context.Context, i int, w *watcher) {
	pause := firstRetry
	for ctx.Err() == nil {
		begun := time.Now()
		err := w.follow(ctx)
		if time.Since(begun) > longestRetry || err == nil {
			pause = firstRetry
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		switch {
		case errors.Is(err, errGone):
		case errors.Is(err, errCut) && !w.isCutOften():
			d.count()
		default:
			d.note(i, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause)): //nolint:gosec // spreads load
		}
		pause = min(2*pause, longestRetry)
	}
}

// count counts a failure without noting it: the next request shows whether anything is wrong.
func (d *Discovery) count() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts.Failures++
}

// note records the outcome of a request, and logs it if it is news.
func (d *Discovery) note(i int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.failure()
	d.failures[i] = err
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

// replace takes all pods of a watcher.
func (d *Discovery) replace(i int, pods []podObject) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts.Lists++
	d.lists[i] = make(map[string]candidate, len(pods))
	for j := range pods {
		d.put(i, &pods[j])
	}
	d.publish()
}

// change takes one pod of a watcher.
func (d *Discovery) change(i int, p *podObject, deleted bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if deleted {
		delete(d.lists[i], p.Metadata.UID)
	} else {
		d.put(i, p)
	}
	d.publish()
}

func (d *Discovery) put(i int, p *podObject) {
	e, runs := p.exporter(d.opts.Port)
	version, _ := strconv.ParseUint(p.Metadata.ResourceVersion, 10, 64)
	d.told++
	d.lists[i][p.Metadata.UID] = candidate{e, runs, version, d.told}
}

// publish reports the exporters if they changed. The caller holds mu, so that states are
// reported one at a time and in order.
func (d *Discovery) publish() {
	pods := map[string]candidate{}
	for _, list := range d.lists {
		for uid, f := range list {
			if other, also := pods[uid]; !also || f.isNewer(other) {
				pods[uid] = f
			}
		}
	}
	var all []Exporter
	d.counts.Waiting = 0
	for _, f := range pods {
		if f.runs {
			all = append(all, f.exporter)
		} else {
			d.counts.Waiting++
		}
	}
	slices.SortFunc(all, compareExporters)
	all = d.admit(all)
	if d.counts.Exporters = len(all); !slices.Equal(all, d.current) {
		d.current = all
		if d.opts.Changed != nil {
			d.opts.Changed(slices.Clone(all))
		}
	}
}

// admit returns the exporters that there is room for; known ones go first.
func (d *Discovery) admit(all []Exporter) []Exporter {
	room, before := d.opts.Max, d.admitted
	d.admitted = map[string]bool{}
	for _, known := range []bool{true, false} {
		for i := range all {
			if uid := all[i].UID; before[uid] == known && room > 0 {
				d.admitted[uid] = true
				room--
			}
		}
	}
	leftOut := len(all) - len(d.admitted)
	if leftOut > 0 && d.counts.LeftOut == 0 {
		d.opts.Logger.Warn("too many exporters; some are not read", "left_out", leftOut, "remedy", "raise kube.discover.max_sources, or run several proxies, each for a part of the nodes")
	}
	d.counts.LeftOut = leftOut
	return slices.DeleteFunc(all, func(e Exporter) bool { return !d.admitted[e.UID] })
}

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
		notes = append(notes, canonical.Note{Cause: fmt.Sprintf("%s not read: there are more than kube.discover.max_sources=%d", are(n, "exporter"), d.opts.Max), Remedy: "raise it, or run several proxies, each for a part of the nodes"})
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
	if slices.ContainsFunc(d.lists, func(list map[string]candidate) bool { return list == nil }) {
		return &canonical.Failure{Kind: "not_read", Cause: "the Kubernetes API server has not been asked for exporters yet", Remedy: "wait a moment"}
	}
	where := " (" + d.where() + ")"
	switch {
	case len(d.current) > 0:
		return &canonical.Failure{Kind: "not_read", Cause: are(len(d.current), "exporter") + " about to be read", Remedy: "wait a moment"}
	case d.counts.Waiting > 0:
		return &canonical.Failure{Kind: "not_read", Cause: fmt.Sprintf("no pod of an exporter runs%s: %s waiting", where, are(d.counts.Waiting, "pod")), Remedy: "see why: kubectl describe pods"}
	case d.opts.Node != "":
		return &canonical.Failure{Kind: "not_read", Cause: "there is no pod of an exporter" + where, Remedy: "see why the exporter's DaemonSet has none there, and check that --kube.discover selects its label"}
	}
	return nil
}

// are returns a count of a word with its verb, as in "2 pods are".
func are(n int, word string) string {
	verb := " are"
	if n == 1 {
		verb = " is"
	}
	return diag.Count(n, word) + verb
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
	for i, selector := range d.opts.Selectors {
		text += []string{" with ", " or "}[min(i, 1)] + selector
	}
	return text
}

// failure returns why discovery is stuck, nil if it is not. The caller holds mu.
func (d *Discovery) failure() *canonical.Failure {
	for _, err := range d.failures {
		if err == nil {
			continue
		}
		status, is := errors.AsType[*statusError](err)
		switch {
		case is && status.code == http.StatusForbidden:
			remedy := "grant it as deploy/kubernetes/rbac.yaml does: {apiGroups: [\"\"], resources: [pods], verbs: [list, watch]}"
			if d.opts.Namespace == "" {
				remedy += ", for the whole cluster, or name the exporters' namespace with --kube.discover-namespace"
			}
			return &canonical.Failure{Kind: "denied", Cause: "the Kubernetes API server denies the right to list and watch " + d.where() + ": " + status.message, Remedy: remedy}
		case is && status.code == http.StatusUnauthorized:
			return &canonical.Failure{Kind: "unauthorized", Cause: "the Kubernetes API server does not accept the proxy's credentials: " + status.message,
				Remedy: "see the pod's service account, or --kube.config"}
		}
		if errors.Is(err, errCut) {
			return &canonical.Failure{Kind: "cut", Cause: "each watch of " + d.where() + " is cut off at once: " + err.Error(),
				Remedy: "check whether a proxy in front of the Kubernetes API server closes long-lived requests; until then the pods are listed, at most a minute apart"}
		}
		_, slow := errors.AsType[canonical.TimedOut](err)
		return &canonical.Failure{Kind: "unreachable", Timeout: slow || errors.Is(err, context.DeadlineExceeded),
			Cause:  "cannot get " + d.where() + " from the Kubernetes API server: " + err.Error(),
			Remedy: "check that this machine reaches it (network policies, --kube.config); known exporters are still read"}
	}
	return nil
}
