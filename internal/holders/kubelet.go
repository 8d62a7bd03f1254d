package holders

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
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
	// Asked counts all requests, Failed those without an answer; ClaimsAsked and
	// ClaimsFailed count those for the devices of claims.
	Asked, Failed, ClaimsAsked, ClaimsFailed atomic.Uint64

	opts    KubeletOptions
	current atomic.Pointer[holdings]
	notes   atomic.Pointer[[]canonical.Note]
	unread  atomic.Int64

	// Of the goroutine of Run.
	claims   claims
	failures int             // in a row
	warned   map[string]bool // pods that were warned of
}

// holdings is an answer of the kubelet. Only matched is written to.
type holdings struct {
	holds []hold // in order, each once
	// matched are the holds of devices that a source has.
	matched []atomic.Bool
}

var nobody = &holdings{}

// NewKubelet returns a Kubelet that asks nothing before Run.
func NewKubelet(opts KubeletOptions) *Kubelet {
	opts.Interval = cmp.Or(opts.Interval, kubeletInterval)
	opts.Timeout = cmp.Or(opts.Timeout, kubeletTimeout)
	k := &Kubelet{opts: opts, claims: claims{client: opts.Client, node: opts.Node, first: opts.Interval, within: opts.Timeout, logger: opts.Logger}, warned: map[string]bool{}}
	k.current.Store(nobody)
	k.notes.Store(&[]canonical.Note{})
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
	k.Asked.Add(1)
	if err != nil {
		k.Failed.Add(1)
		k.fail(err)
		return
	}
	if k.failures > 0 {
		k.opts.Logger.Info("the kubelet answers again", "socket", k.opts.Socket)
	}
	k.failures = 0
	if k.claims.isDue(l.claims) {
		k.ClaimsAsked.Add(1)
		if !k.claims.ask(ctx) {
			k.ClaimsFailed.Add(1)
		}
	}
	if ctx.Err() == nil {
		k.warnOfUnmatched()
		k.publish(&l)
	}
}

// warnOfUnmatched warns, once for each pod, of devices in the previous answer that no source had until this one.
func (k *Kubelet) warnOfUnmatched() {
	now := k.current.Load()
	for i, h := range now.holds {
		if pod := h.Namespace + "/" + h.Pod; !now.matched[i].Load() && !k.warned[pod] && len(k.warned) < maxWarned {
			k.warned[pod] = true
			k.opts.Logger.Warn("a pod has a GPU that no source reads: it is not shown as its holder", "pod", pod,
				"device", cmp.Or(h.uuid, "nvidia"+h.minor), "remedy", "check that the sources read all GPUs of this node; the landing page lists them")
		}
	}
}

// maxWarned bounds the pods that are warned of.
const maxWarned = 100

// publish makes an answer the current one.
func (k *Kubelet) publish(l *listed) {
	holds, unread := k.claims.holds(l.claims)
	k.unread.Store(int64(l.unknown + unread))
	notes := k.claims.notes()
	k.notes.Store(&notes)
	holds = append(holds, l.holds...)
	k.findBoards(holds)
	slices.SortFunc(holds, compareHolds)
	holds = slices.Compact(holds)
	if !slices.Equal(k.current.Load().holds, holds) {
		k.current.Store(&holdings{holds, make([]atomic.Bool, len(holds))})
	}
}

// findBoards replaces the device files by which the kubelet names boards by UUIDs, if known.
func (k *Kubelet) findBoards(holds []hold) {
	if k.opts.Minors == nil || !slices.ContainsFunc(holds, func(h hold) bool { return h.minor != "" }) {
		return
	}
	boards := k.opts.Minors()
	for i := range holds {
		if r := &holds[i].reference; boards[r.minor] != "" {
			r.uuid, r.minor = strings.ToLower(boards[r.minor]), ""
		}
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

// Answer returns the last answer, to be compared with an earlier one.
func (k *Kubelet) Answer() any { return k.current.Load() }

// Holding returns which containers hold each of this node's devices, with the places of their compute instances.
func (k *Kubelet) Holding(devices []canonical.Device, mig []canonical.MIGPlace) [][]canonical.Workload {
	return k.current.Load().assign(devices, mig, func(*canonical.Device) bool { return true })
}

// Notes returns the present problems.
func (k *Kubelet) Notes() []canonical.Note { return *k.notes.Load() }

// Devices returns how many of the devices that containers have a source has, how many none has, and
// how many of NVIDIA's device ids and claims do not identify a device.
func (k *Kubelet) Devices() (matched, unmatched, unread int) {
	now := k.current.Load()
	for i := range now.matched {
		if now.matched[i].Load() {
			matched++
		}
	}
	return matched, len(now.holds) - matched, int(k.unread.Load())
}

func compareHolds(a, b hold) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Container, b.Container),
		cmp.Compare(a.uuid, b.uuid), cmp.Compare(a.minor, b.minor), cmp.Compare(a.instance, b.instance))
}
