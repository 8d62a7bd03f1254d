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
	if len(got) != MaxEvents {
		t.Fatalf("%d events", len(got))
	}
	for i, e := range got {
		if want := uint32(MaxEvents + 7 + i); e.Code != want {
			t.Fatalf("event %d is %d, want %d", i, e.Code, want)
		}
	}
}
