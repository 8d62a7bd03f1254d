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

// TestEventListTellsAnErrorOnce: what the kernel's log adds to an error that the driver reported
// before, with a count of 0, becomes part of that.
func TestEventListTellsAnErrorOnce(t *testing.T) {
	var l EventList
	for range MaxEvents { // so that it goes round
		l.Add(Event{Kind: EventReset})
	}
	told := Event{Kind: EventXID, UUID: "a", Code: 149, Count: 1, Severity: SeverityWarning}
	more := Event{Kind: EventXID, UUID: "a", Code: 149, Severity: SeverityFatal, Action: ActionResetGPU, Text: "NETIR_LINK_EVT", PID: 7, Process: "p"}
	other := more
	other.UUID = "b"
	l.Add(Event{Kind: EventXID, UUID: "a", Code: 149, Count: 1, Text: "of before"}, told, Event{Kind: EventReset, UUID: "a"}, more, other, more)
	got := l.AppendTo(nil)[MaxEvents-5:]
	want := more
	want.Count = 1
	if got[0].Text != "of before" || got[1] != want || got[2].Kind != EventReset || got[3] != other || got[4] != more {
		t.Errorf("%+v", got)
	}
}
