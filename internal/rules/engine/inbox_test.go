package engine

import (
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

func TestInbox(t *testing.T) {
	b, at := newInbox(), time.Unix(1_700_000_000, 0)
	put := func(source string, after time.Duration, want bool) {
		t.Helper()
		if got := b.put(outcome{source: source, at: at.Add(after), snapshot: &canonical.Snapshot{}}); got != want {
			t.Errorf("%s after %s: added is %v, want %v", source, after, got, want)
		}
	}
	put("a", 0, true)
	put("a", 900*time.Millisecond, false) // within a second
	put("b", 900*time.Millisecond, true)
	put("a", 950*time.Millisecond, true)
	b.put(outcome{source: "a", at: at.Add(900 * time.Millisecond)}) // reported late
	b.put(outcome{source: "a", at: at.Add(time.Second)})
	b.put(outcome{source: "b", at: at.Add(time.Second)})
	b.put(outcome{source: "a", at: at.Add(2 * time.Second)}) // already recorded
	put("a", 2*time.Second, true)
	put("a", 3*time.Second, false) // full
	put("b", 2*time.Second, true)  // counted by source
	if b.lostReadings() != 1 {
		t.Errorf("%d readings are lost, want 1", b.lostReadings())
	}
	for _, want := range []struct {
		source string
		failed bool
	}{{"a", false}, {"b", false}, {"a", false}} {
		if r, ok := b.next(at.Add(960 * time.Millisecond)); !ok || r.source != want.source || r.snapshot == nil {
			t.Errorf("next is %+v (%v), want %s", r, ok, want.source)
		}
	}
	if r, ok := b.next(at.Add(960 * time.Millisecond)); ok {
		t.Errorf("next is %+v, which is later", r)
	}
	for _, want := range []string{"a", "b"} {
		if r, ok := b.next(at.Add(time.Second)); !ok || r.snapshot != nil || r.source != want {
			t.Errorf("next is %+v (%v), want the failure of %s", r, ok, want)
		}
	}
	b.put(outcome{source: "a", at: at.Add(3 * time.Second)})
	put("a", 3100*time.Millisecond, true) // soon after a failure
}
