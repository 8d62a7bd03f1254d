package canonical

import "testing"

// TestCompareDevices compares each pair of an ordered list.
func TestCompareDevices(t *testing.T) {
	ordered := []Device{
		{Hostname: "a", UUID: "GPU-0"},
		{Hostname: "a", GPU: "2", UUID: "GPU-1"},
		{Hostname: "a", GPU: "2", UUID: "GPU-1", Instance: "9"},
		{Hostname: "a", GPU: "2", UUID: "GPU-1", Instance: "13"},
		{Hostname: "a", GPU: "2", UUID: "GPU-2"},
		{Hostname: "a", GPU: "10", UUID: "GPU-0"},
		{Hostname: "a", GPU: "nvidia0", UUID: "GPU-0"},
		{Hostname: "b", GPU: "0", UUID: "GPU-0"},
	}
	for i := range ordered {
		for j := range ordered {
			got, want := CompareDevices(&ordered[i], &ordered[j]), min(max(i-j, -1), 1)
			if got != want {
				t.Errorf("%+v and %+v: %d, want %d", ordered[i], ordered[j], got, want)
			}
		}
	}
}

func TestTopologyAt(t *testing.T) {
	topology := Topology{Devices: []Device{{GPU: "0"}, {GPU: "2"}}, Absent: []Device{{GPU: "1"}}}
	for i, want := range []string{"0", "2", "1"} {
		if got := topology.At(i); got == nil || got.GPU != want {
			t.Errorf("%d is %+v, want GPU %s", i, got, want)
		}
	}
	if topology.At(-1) != nil || topology.At(3) != nil {
		t.Error("At returns a device for an index out of range")
	}
}

// TestIdentity: a uuid identifies a board on any host; without one, host and index do.
func TestIdentity(t *testing.T) {
	base := Device{Hostname: "a", GPU: "0", UUID: "GPU-1"}
	with := func(change func(*Device)) Device {
		d := base
		change(&d)
		return d
	}
	nameless := with(func(d *Device) { d.UUID = "" })
	for n, c := range []struct {
		a, b Device
		same bool
	}{
		{base, with(func(d *Device) { d.Hostname, d.GPU = "b", "1" }), true},
		{base, with(func(d *Device) { d.UUID = "GPU-2" }), false},
		{base, with(func(d *Device) { d.Instance = "7" }), false},
		{base, with(func(d *Device) { d.Profile = "1g.10gb" }), false},
		{nameless, with(func(d *Device) { d.UUID, d.Model = "", "H100" }), true},
		{nameless, with(func(d *Device) { d.UUID, d.Hostname = "", "b" }), false},
		{nameless, with(func(d *Device) { d.UUID, d.GPU = "", "1" }), false},
		{nameless, with(func(d *Device) { d.UUID, d.Instance = "", "7" }), false},
		{nameless, with(func(d *Device) { d.UUID, d.Profile = "", "1g.10gb" }), false},
	} {
		if (c.a.Identity() == c.b.Identity()) != c.same {
			t.Errorf("case %d: %+v and %+v are one: %t", n, c.a, c.b, !c.same)
		}
	}
	if base.IsInstance() || !(&Device{Instance: "7"}).IsInstance() {
		t.Error("IsInstance does not follow the instance id")
	}
}
