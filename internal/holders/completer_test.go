package holders

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// holding returns a set in which each allocation has a device of its own.
func holding(allocations ...canonical.Allocation) *canonical.AllocationSet {
	for i := range allocations {
		allocations[i].Device = i
	}
	return &canonical.AllocationSet{Allocations: allocations, Holders: make([]int, len(allocations))}
}

func podOf(name, kind, owner string) canonical.Allocation {
	return canonical.Allocation{Workload: canonical.Workload{Namespace: "n", Pod: name, Container: "c"}, Kind: kind, Name: owner}
}

// owners returns the owners of a frame's pods after Complete.
func owners(c *Completer, set *canonical.AllocationSet) (all []Owner) {
	f := canonical.Frame{AllocationSet: set}
	c.Complete(&f)
	for _, a := range f.AllocationSet.Allocations {
		all = append(all, Owner{a.Kind, a.Name})
	}
	return all
}

func wantOwners(t *testing.T, when string, c *Completer, set *canonical.AllocationSet, want ...Owner) {
	t.Helper()
	if got := owners(c, set); !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", when, got, want)
	}
}

// TestCompleter: the owner in the exporter's labels is withheld until the answer comes, and
// used if there is none. Only pods are looked up.
func TestCompleter(t *testing.T) {
	f := &fakeLookUp{owners: map[string]Owner{"a": {"CronJob", "nightly"}, "b": {"Deployment", "web"}}}
	resolving(t, f, func(t *testing.T, r *Resolver) {
		set := holding(podOf("a", "Job", "nightly-29"), podOf("b", "", ""), podOf("gone", "Job", "old"),
			canonical.Allocation{Workload: canonical.Workload{Job: "17"}}, canonical.Allocation{Workload: canonical.Workload{Pod: "nowhere"}, Kind: "Job", Name: "x"})
		before := slices.Clone(set.Allocations)
		c := r.NewCompleter()
		wantOwners(t, "at first", c, set, Owner{}, Owner{}, Owner{}, Owner{}, Owner{"Job", "x"})
		synctest.Wait()
		wantOwners(t, "at the next reading", c, set, Owner{"CronJob", "nightly"}, Owner{"Deployment", "web"}, Owner{"Job", "old"}, Owner{}, Owner{"Job", "x"})
		if !slices.Equal(set.Allocations, before) {
			t.Errorf("the set that came in is changed: %v", set.Allocations)
		}
		if n := f.count(""); n != 3 {
			t.Errorf("asked %v", f.asked)
		}
		wantOwners(t, "of another set", c, holding(podOf("b", "Deployment", "web")), Owner{"Deployment", "web"})
		wantOwners(t, "of no allocations", c, holding())
	})
}

// TestCompleterAsksAnewForAPodThatWas: a pod that returns may be another of that name.
func TestCompleterAsksAnewForAPodThatWas(t *testing.T) {
	f := &fakeLookUp{owners: map[string]Owner{"a": {"Job", "one"}, "b": {"Job", "b"}}}
	resolving(t, f, func(t *testing.T, r *Resolver) {
		a, b := podOf("a", "", ""), podOf("b", "", "")
		c := r.NewCompleter()
		owners(c, holding(a, b))
		synctest.Wait()
		wantOwners(t, "at first", c, holding(a, b), Owner{"Job", "one"}, Owner{"Job", "b"})
		f.change(func() { f.owners["a"] = Owner{"Job", "two"} })
		wantOwners(t, "while it is away", c, holding(b), Owner{"Job", "b"})
		wantOwners(t, "back", c, holding(a, b), Owner{}, Owner{"Job", "b"})
		synctest.Wait()
		wantOwners(t, "looked up", c, holding(a, b), Owner{"Job", "two"}, Owner{"Job", "b"})
		if n := f.count("b"); n != 1 {
			t.Errorf("asked %d times for one that was always there", n)
		}
		c.Complete(&canonical.Frame{})
		if n := len(r.kept.Keys()); n != 0 {
			t.Errorf("%d pods are remembered", n)
		}
	})
}

// TestCompleterKeepsAPodOfAnotherSource: a pod that one source drops for a reading, while
// another names it, keeps its owner in the other.
func TestCompleterKeepsAPodOfAnotherSource(t *testing.T) {
	f := &fakeLookUp{owners: map[string]Owner{"a": {"Job", "one"}}, slow: time.Second}
	resolving(t, f, func(t *testing.T, r *Resolver) {
		one, other := r.NewCompleter(), r.NewCompleter()
		set := holding(podOf("a", "", ""))
		owners(one, set)
		owners(other, set)
		time.Sleep(f.slow)
		synctest.Wait()
		wantOwners(t, "at first", one, set, Owner{"Job", "one"})
		wantOwners(t, "at first, of the other", other, set, Owner{"Job", "one"})
		owners(one, holding())
		r.generation.Add(1)
		wantOwners(t, "while one drops it", other, set, Owner{"Job", "one"})
		wantOwners(t, "back", one, set, Owner{})
		time.Sleep(f.slow)
		synctest.Wait()
		wantOwners(t, "looked up", one, set, Owner{"Job", "one"})
	})
}

// TestCompleterKeepsAnOwner that was known, as long as the pod is there, whatever the API server
// answers later.
func TestCompleterKeepsAnOwner(t *testing.T) {
	f := &fakeLookUp{owners: map[string]Owner{"a": {"Job", "j"}}}
	resolving(t, f, func(t *testing.T, r *Resolver) {
		c, set := r.NewCompleter(), holding(podOf("a", "ReplicaSet", "rs"))
		owners(c, set)
		synctest.Wait()
		for _, err := range []error{nil, errors.New("no route to host"), errDenied, errAbsent} {
			f.change(func() { f.err = err })
			for range 2 * int(lookAgain/round) {
				time.Sleep(round)
				wantOwners(t, fmt.Sprint(err), c, set, Owner{"Job", "j"})
			}
		}
		f.change(func() { f.err, f.owners["a"] = nil, Owner{"CronJob", "c"} })
		time.Sleep(2 * longestPause)
		owners(c, set)
		time.Sleep(round)
		wantOwners(t, "another", c, set, Owner{"CronJob", "c"})
	})
}

// TestCompleterDuringAnOutage: the exporter's owner is used, and stays.
func TestCompleterDuringAnOutage(t *testing.T) {
	f := &fakeLookUp{err: errors.New("no route to host"), slow: time.Second}
	resolving(t, f, func(t *testing.T, r *Resolver) {
		set := holding(podOf("a", "Job", "j"))
		c := r.NewCompleter()
		wantOwners(t, "at first", c, set, Owner{})
		time.Sleep(f.slow)
		synctest.Wait()
		wantOwners(t, "once that is known", c, set, Owner{"Job", "j"})
		r.succeed(wholeServer) // about another pod
		r.generation.Add(1)
		wantOwners(t, "after the outage", c, set, Owner{"Job", "j"})
	})
}

// TestCompleterKeepsTheSet: there is a new set only if something changed, and it keeps the
// uses of the source. Else nothing is allocated.
func TestCompleterKeepsTheSet(t *testing.T) {
	f := &fakeLookUp{owners: map[string]Owner{"a": {"Job", "j"}}}
	resolving(t, f, func(t *testing.T, r *Resolver) {
		set := holding(podOf("a", "", ""))
		c := r.NewCompleter()
		frame := &canonical.Frame{AllocationSet: set}
		if c.Complete(frame); frame.AllocationSet != set {
			t.Error("a set without answers is another one")
		}
		synctest.Wait()
		frame.Uses = []canonical.Use{{NVMLUtilization: 0.25, Framebuffer: 7}}
		c.Complete(frame)
		first := frame.AllocationSet
		if first == set || len(frame.Uses) != 1 || frame.Uses[0].Framebuffer != 7 {
			t.Errorf("the same set, or uses %v", frame.Uses)
		}
		r.generation.Add(1)
		frame.AllocationSet = set
		c.Complete(frame)
		if frame.AllocationSet != first {
			t.Error("the set is another one though nothing changed")
		}
		if n := testing.AllocsPerRun(100, func() {
			frame.AllocationSet, frame.Uses = set, append(frame.Uses[:0], canonical.NoUse)
			c.Complete(frame)
		}); n != 0 {
			t.Errorf("%v allocations at a reading", n)
		}
	})
}
