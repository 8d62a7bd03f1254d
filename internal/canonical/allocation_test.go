package canonical

import (
	"strings"
	"testing"
)

// TestWeight: every label counts, and 512 bytes of them weigh one more.
func TestWeight(t *testing.T) {
	text := func(n int) string { return strings.Repeat("x", n) }
	if w := (&Device{}).Weight(); w != 1 {
		t.Errorf("a device without labels weighs %d", w)
	}
	for n, want := range map[int]int{100: 1, 102: 1, 103: 2, 204: 2, 205: 3} { // five labels: 510, 515, 1020, 1025 bytes
		if w := (&Device{Hostname: text(n), GPU: text(n), UUID: text(n), Instance: text(n), Profile: text(n)}).Weight(); w != want {
			t.Errorf("a device with five labels of %d bytes weighs %d, want %d", n, w, want)
		}
	}
	for n, d := range []*Device{{Hostname: text(512)}, {GPU: text(512)}, {UUID: text(512)}, {Instance: text(512)}, {Profile: text(512)}, {UUID: text(511), GPU: "0"}} {
		if d.Weight() != 2 || (&Allocation{}).Weight(d) != 2 {
			t.Errorf("label %d of a device: %d, and %d of its allocation, want 2", n, d.Weight(), (&Allocation{}).Weight(d))
		}
	}
	if w := (&Device{UUID: text(511)}).Weight(); w != 1 {
		t.Errorf("511 bytes weigh %d", w)
	}
	if w := (&Allocation{}).Weight(&Device{}); w != 1 {
		t.Errorf("an allocation without labels weighs %d", w)
	}
	d := &Device{UUID: text(12)}
	for n, a := range []Allocation{
		{Workload: Workload{Namespace: text(500)}}, {Workload: Workload{Pod: text(500)}}, {Workload: Workload{Container: text(500)}}, {Workload: Workload{Job: text(500)}},
		{Kind: text(500)}, {Name: text(500)}, {User: text(500)}, {Account: text(500)}, {Partition: text(500)},
		{Workload: Workload{Namespace: text(100), Pod: text(100), Container: text(50), Job: text(50)}, Kind: text(50), Name: text(50), User: text(50), Account: text(25), Partition: text(25)},
	} {
		if a.Weight(d) != 2 {
			t.Errorf("label %d of an allocation, and 12 bytes of the device: %d, want 2", n, a.Weight(d))
		}
		if a.Weight(&Device{UUID: text(11)}) != 1 {
			t.Errorf("label %d of an allocation, and 11 bytes of the device: %d, want 1", n, a.Weight(&Device{UUID: text(11)}))
		}
	}
}
