package holders

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fakeLookUp replaces a cluster: it answers for pods by name.
type fakeLookUp struct {
	mu     sync.Mutex
	owners map[string]Owner // of pods by name; others are absent
	err    error            // in place of all answers
	slow   time.Duration    // to each answer
	hang   bool             // until the context ends, or 10 s
	unsure bool
	asked  map[string]int
	now    int // look-ups under way
	most   int
}

func (f *fakeLookUp) ownerOf(ctx context.Context, pod Pod) (Owner, bool, error) {
	f.mu.Lock()
	if f.asked == nil {
		f.asked = map[string]int{}
	}
	f.asked[pod.Name]++
	f.now++
	f.most = max(f.most, f.now)
	owner, ok := f.owners[pod.Name]
	err, hang, unsure := f.err, f.hang, f.unsure
	f.mu.Unlock()
	time.Sleep(f.slow)
	if hang {
		limit, cancel := context.WithTimeout(ctx, RequestTimeout)
		defer cancel()
		<-limit.Done()
		err = limit.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now--
	if err != nil {
		return Owner{}, false, err
	}
	if !ok {
		return Owner{}, false, errAbsent
	}
	return owner, !unsure, nil
}

func (f *fakeLookUp) change(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// count returns how often a pod was asked for; "" is all of them.
func (f *fakeLookUp) count(pod string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, asked := range f.asked {
		if pod == "" || name == pod {
			n += asked
		}
	}
	return n
}

// atOnce returns the highest number of look-ups under way at once.
func (f *fakeLookUp) atOnce() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.most
}

// resolving runs test with a Resolver over f, in a synctest bubble.
func resolving(t *testing.T, f *fakeLookUp, test func(*testing.T, *Resolver)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newResolver(f.ownerOf, newBreaker(discard))
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { r.Run(ctx) })
		test(t, r)
		cancel()
		running.Wait()
	})
}

// wantStanding asks for a pod, and fails if the answer is another.
func wantStanding(t *testing.T, r *Resolver, pod string, owner Owner, is bool) {
	t.Helper()
	if got, ok := r.find(Pod{"n", pod}); got != owner || ok != is {
		t.Errorf("%s: %v, %v; want %v, %v", pod, got, ok, owner, is)
	}
}

// use asks for a pod each second, as readings do.
func use(r *Resolver, pod string, span time.Duration) {
	for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(time.Second) {
		r.find(Pod{"n", pod})
	}
	synctest.Wait()
}

func TestResolverAnswersWhenItKnows(t *testing.T) {
	f := &fakeLookUp{owners: map[string]Owner{"a": {"Job", "j"}}, slow: time.Second}
	resolving(t, f, func(t *testing.T, r *Resolver) {
		was := r.generation.Load()
		wantStanding(t, r, "a", Owner{}, false)
		wantStanding(t, r, "a", Owner{}, false) // is looked up once
		wantStanding(t, r, "b", Owner{}, false)
		time.Sleep(f.slow)
		synctest.Wait()
		if r.generation.Load() == was {
			t.Error("the generation does not change with an answer")
		}
		wantStanding(t, r, "a", Owner{"Job", "j"}, true)
		wantStanding(t, r, "b", Owner{}, true) // there is no such pod
		if f.count("") != 2 {
			t.Errorf("asked %v", f.asked)
		}
		if found, absent := r.Ended[wasFound].Load(), r.Ended[wasAbsent].Load(); found != 1 || absent != 1 {
			t.Errorf("%d found, %d absent", found, absent)
		}
	})
}

// TestResolverLooksAgain: an answer that is in use is requested again now and then, sooner if
// there was none or it was incomplete.
func TestResolverLooksAgain(t *testing.T) {
	f := &fakeLookUp{owners: map[string]Owner{"a": {"Job", "j"}}}
	resolving(t, f, func(t *testing.T, r *Resolver) {
		use(r, "b", time.Second)
		f.change(func() { f.owners["b"] = Owner{"Job", "late"} })
		use(r, "b", lookAgainSoon+time.Second)
		wantStanding(t, r, "b", Owner{"Job", "late"}, true)
		for _, unsure := range []bool{false, true} {
			f.change(func() { f.unsure = unsure })
			n := f.count("a")
			use(r, "a", lookAgain+time.Second)
			if n = f.count("a") - n; (n > 4) != unsure {
				t.Errorf("asked %d times, for an incomplete answer: %v", n, unsure)
			}
		}
	})
}

// TestResolverSparesAServerThatFails: pauses grow, few requests are sent at a time, the failure is
// logged once, and earlier answers are still served.
func TestResolverSparesAServerThatFails(t *testing.T) {
	var log bytes.Buffer
	f := &fakeLookUp{owners: map[string]Owner{"p7": {"Job", "j"}}, err: errors.New("connection refused")}
	resolving(t, f, func(t *testing.T, r *Resolver) {
		r.logger = slog.New(slog.NewTextHandler(&log, nil))
		askAll := func() {
			for i := range 500 {
				r.find(Pod{"n", fmt.Sprintf("p%d", i)})
			}
			synctest.Wait()
		}
		askAll()
		first := f.count("")
		for range 600 { // 10 min
			time.Sleep(time.Second)
			askAll()
			wantStanding(t, r, "p7", Owner{}, true)
		}
		if n := f.count("") - first; first > maxInFlight || n < 8 || n > 15*maxInFlight {
			t.Errorf("%d look-ups at once, %d in the 10 minutes after", first, n)
		}
		if notes := r.Notes(); len(notes) != 1 || !strings.Contains(notes[0].Cause, "connection refused") || notes[0].Remedy == "" {
			t.Errorf("notes %q", notes)
		}
		f.change(func() { f.err = nil })
		for range 2 * int(longestPause/time.Second) {
			time.Sleep(time.Second)
			askAll()
		}
		wantStanding(t, r, "p7", Owner{"Job", "j"}, true)
		if len(r.Notes()) != 0 || strings.Count(log.String(), "\n") != 2 {
			t.Errorf("notes %q, log:\n%s", r.Notes(), log.String())
		}
	})
}

// TestResolverIsBounded: if the API server hangs, few requests wait for it, and no more pods
// than there is room for.
func TestResolverIsBounded(t *testing.T) {
	f := &fakeLookUp{hang: true}
	resolving(t, f, func(t *testing.T, r *Resolver) {
		for i := range maxPods + 10 {
			wantStanding(t, r, fmt.Sprintf("p%d", i), Owner{}, false)
		}
		synctest.Wait()
		if dropped := r.Ended[wasDropped].Load(); dropped < maxPods-maxQueued-maxInFlight {
			t.Errorf("%d dropped", dropped)
		}
		time.Sleep(time.Hour)
		if most := f.atOnce(); most != maxInFlight {
			t.Errorf("%d look-ups at once", most)
		}
	})
}

// TestOneRequestForAll: pods of one owner, looked up at the same time, share the request about it.
func TestOneRequestForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(nil, nil, nil)
		var asked atomic.Int32
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if name, err := remembered(c, "uid", func() (string, error) { asked.Add(1); time.Sleep(time.Second); return "train", nil }); name != "train" || err != nil {
					t.Error(name, err)
				}
			})
		}
		all.Wait()
		if n := asked.Load(); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}
