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
	"weak"

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
	// Claims finds the devices that pods have through claims; nil finds none. The Kubelet
	// calls its Run.
	Claims *Claims
	// Minors returns the UUIDs of the machine's boards by the number of their device file.
	// Boards that it lacks, or all if it is nil, are found by their index.
	Minors func() map[string]string
	Logger *slog.Logger

	// Interval and Timeout are those of requests; 0 is 10 s and 5 s.
	Interval, Timeout time.Duration
}

// Kubelet knows which container of this node has which device, by asking the kubelet in the
// background. Any goroutine may use it.
type Kubelet struct {
	opts KubeletOptions

	mu    sync.Mutex
	feeds []weak.Pointer[Feed] // of sources, which may end

	current atomic.Pointer[answer]
	notes   atomic.Pointer[[]canonical.Note]
	counts  kubeletCounts

	// Of the goroutine of Run.
	failures int // in a row
}

// answer is an answer of the kubelet. It is never written to.
type answer struct {
	// holds are in the order in which they appeared, each once.
	holds []hold
	// existing is as in listed.
	existing map[string]int
}

// kubeletCounts are totals since the start, and gauges of the latest answer.
type kubeletCounts struct{ asked, failed, unread atomic.Uint64 }

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

var nobody = &answer{}

// NewKubelet returns a Kubelet that asks nothing before Run.
func NewKubelet(opts KubeletOptions) *Kubelet {
	opts.Interval = cmp.Or(opts.Interval, kubeletInterval)
	opts.Timeout = cmp.Or(opts.Timeout, kubeletTimeout)
	k := &Kubelet{opts: opts}
	k.current.Store(nobody)
	return k
}

// Run asks the kubelet until ctx ends.
func (k *Kubelet) Run(ctx context.Context) {
	var besides sync.WaitGroup
	defer besides.Wait()
	var answers <-chan struct{}
	if c := k.opts.Claims; c != nil {
		besides.Go(func() { c.Run(ctx) })
		answers = c.answers
	}
	again := time.NewTicker(k.opts.Interval)
	defer again.Stop()
	for ctx.Err() == nil {
		k.ask(ctx)
		select {
		case <-again.C:
		case <-answers:
		case <-ctx.Done():
		}
	}
}

// ask asks the kubelet once.
func (k *Kubelet) ask(ctx context.Context) {
	bounded, end := context.WithTimeout(ctx, k.opts.Timeout)
	l, err := list(bounded, k.opts.Socket)
	end()
	if ctx.Err() != nil {
		return
	}
	k.counts.asked.Add(1)
	if err != nil {
		k.counts.failed.Add(1)
		k.fail(err)
		return
	}
	k.findBoards(&l)
	unread := l.unknown + len(l.claims)
	if k.opts.Claims != nil {
		unread = l.unknown + k.opts.Claims.resolve(&l)
	}
	k.counts.unread.Store(uint64(unread))
	k.succeed(&l)
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

// succeed makes an answer the current one.
func (k *Kubelet) succeed(l *listed) {
	if k.failures > 0 {
		k.opts.Logger.Info("the kubelet answers again", "socket", k.opts.Socket)
	}
	k.failures = 0
	k.note(nil)
	before := k.current.Load()
	if l.existing == nil && l.anyProfile() { // that request had no answer
		l.existing = before.existing
	}
	now := &answer{holds: inOrder(before.holds, l.holds), existing: l.existing}
	if !slices.Equal(before.holds, now.holds) || !maps.Equal(before.existing, now.existing) {
		k.current.Store(now)
	}
}

// fail notes why there is no answer. It logs the first of several failures; maxFailures in a
// row void the kubelet's last answer.
func (k *Kubelet) fail(err error) {
	if k.failures++; k.failures == 1 {
		k.opts.Logger.Warn("cannot get the pods of GPUs from the kubelet", "cause", err, "socket", k.opts.Socket)
	}
	cause, remedy := splitRemedy(err)
	if k.failures >= maxFailures {
		k.current.Store(nobody)
	}
	if k.current.Load() == nobody {
		cause = "no pods from the kubelet: " + cause
	} else {
		cause = "the pods are those of the kubelet's last answer: " + cause
	}
	k.note(&canonical.Note{Cause: cause, Remedy: remedy})
}

// note replaces the note by n, nil for none.
func (k *Kubelet) note(n *canonical.Note) {
	if n == nil {
		k.notes.Store(nil)
		return
	}
	k.notes.Store(&[]canonical.Note{*n})
}

// Notes returns the present problems.
func (k *Kubelet) Notes() (all []canonical.Note) {
	if notes := k.notes.Load(); notes != nil {
		all = append(all, *notes...)
	}
	if k.opts.Claims != nil {
		if notes := k.opts.Claims.notes.Load(); notes != nil {
			all = append(all, *notes...)
		}
	}
	return all
}

// Counts returns the counts until now.
func (k *Kubelet) Counts() KubeletCounts {
	c := KubeletCounts{Asked: k.counts.asked.Load(), Failed: k.counts.failed.Load(), Unread: int(k.counts.unread.Load())}
	if claims := k.opts.Claims; claims != nil {
		c.ClaimsAsked, c.ClaimsFailed = claims.asked.Load(), claims.failed.Load()
	}
	now := k.current.Load()
	matched := k.matched(now)
	for i := range now.holds {
		if matched[i] {
			c.Matched++
		} else {
			c.Unmatched++
		}
	}
	return c
}

// matched reports which holds of an answer are of devices that any source has.
func (k *Kubelet) matched(now *answer) []bool {
	all := make([]bool, len(now.holds))
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, feed := range k.feeds {
		f := feed.Value()
		if f == nil {
			continue
		}
		if m := f.matched.Load(); m != nil && m.answer == now {
			for i := range all {
				all[i] = all[i] || m.found[i]
			}
		}
	}
	return all
}

// splitRemedy splits the text of an error into cause and remedy, as explain joins them.
func splitRemedy(err error) (cause, remedy string) {
	cause, remedy, _ = strings.Cut(err.Error(), "; ")
	return cause, remedy
}

// inOrder returns the holds of now, each once: first those in before, in its order, so that
// the newest come last.
func inOrder(before, now []hold) []hold {
	present := make(map[hold]bool, len(now))
	for _, h := range now {
		present[h] = true
	}
	ordered := make([]hold, 0, len(now))
	for _, list := range [][]hold{before, now} {
		for _, h := range list {
			if present[h] {
				ordered = append(ordered, h)
				delete(present, h)
			}
		}
	}
	return ordered
}
