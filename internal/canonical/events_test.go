package canonical

import "testing"

func TestEventListKeepsTheLatest(t *testing.T) {
	var l EventList
	if got := l.AppendTo(nil); len(got) != 0 {
		t.Errorf("a new list has %v", got)
	}
	for i := range 2*MaxEvents + 7 {
		l.Add(Event{Code: uint32(i)})
	}
	got := l.AppendTo(nil)
	if len(got) != 1000 { // as /events promises
		t.Fatalf("%d events", len(got))
	}
	for i, e := range got {
		if want := uint32(MaxEvents + 7 + i); e.Code != want {
			t.Fatalf("event %d is %d, want %d", i, e.Code, want)
		}
	}
}

// TestEventListAddsToItsOwn: details are merged only into an error of the same board and code
// that has none yet.
func TestEventListAddsToItsOwn(t *testing.T) {
	told := Event{Kind: EventXID, Hostname: "h", GPU: "0", UUID: "a", Code: 79, Count: 1}
	with := func(change func(*Event)) Event {
		e := told
		change(&e)
		return e
	}
	more := with(func(e *Event) { e.Count, e.Text, e.PID = 0, "fell off the bus", 7 })
	for n, c := range []struct {
		first, then Event
		joined      bool
	}{
		{told, more, true},
		{told, with(func(e *Event) { e.Count, e.Text = 2, "again" }), false},
		{with(func(e *Event) { e.Kind = EventSXID }), more, false},
		{with(func(e *Event) { e.Hostname = "i" }), more, false},
		{with(func(e *Event) { e.GPU = "1" }), more, false},
		{with(func(e *Event) { e.UUID = "b" }), more, false},
		{with(func(e *Event) { e.Code = 48 }), more, false},
		{with(func(e *Event) { e.Text = "said" }), more, false},
		{with(func(e *Event) { e.PID = 9 }), more, false},
		{told, with(func(e *Event) { e.Kind, e.Count, e.Text = EventReset, 0, "a reset" }), false},
	} {
		var l EventList
		l.Add(c.first, c.then)
		if got := l.AppendTo(nil); c.joined != (len(got) == 1) {
			t.Errorf("case %d: %d events: %+v", n, len(got), got)
		}
	}
	latest := with(func(e *Event) { e.Count = 3 })
	var three EventList
	three.Add(told, Event{Kind: EventReset}, latest, more)
	if got := three.AppendTo(nil); len(got) != 3 || got[0] != told || got[2].Text != more.Text || got[2].Count != 3 {
		t.Errorf("the details were not merged into the later of two errors: %+v", got)
	}
	var l EventList
	if l.Add(more); len(l.AppendTo(nil)) != 1 {
		t.Error("details without an earlier error were not kept as an event")
	}
}

func TestFailure(t *testing.T) {
	for want, f := range map[string]Failure{"cause": {Cause: "cause"}, "cause; remedy": {Cause: "cause", Remedy: "remedy"}} {
		if f.Error() != want {
			t.Errorf("%q, want %q", f.Error(), want)
		}
	}
}
