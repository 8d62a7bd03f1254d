package canonical

import "testing"

// TestCompareDevices lists devices in their order and finds each pair in it.
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
		t.Error("there is a device beyond the topology")
	}
}
