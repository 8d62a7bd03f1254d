package holders

import (
	"strings"
	"testing"
)

const (
	idBoard = "GPU-6ca82e47-c63a-1bea-38ad-d3af9e1dc26b"
	idMIG   = "MIG-9a1c51c0-1a2b-5c6d-8e9f-0a1b2c3d4e5f"
)

func TestDeviceIDs(t *testing.T) {
	board, mig := strings.ToLower(idBoard), strings.ToLower(idMIG)
	for _, c := range []struct {
		resource, id string
		want         reference
	}{
		{"nvidia.com/gpu", idBoard, reference{uuid: board}},
		{"nvidia.com/gpu", strings.ToUpper(idBoard), reference{uuid: board}},
		{"nvidia.com/gpu.shared", idBoard + "::3", reference{uuid: board}},
		{"nvidia.com/a100", idBoard, reference{uuid: board}},
		{"nvidia.com/mig-1g.10gb", idMIG, reference{uuid: mig, profile: "1g.10gb"}},
		{"nvidia.com/mig-1g.10gb.shared", idMIG + "::7", reference{uuid: mig, profile: "1g.10gb"}},
		{"nvidia.com/mig-1g.10gb.me", idMIG, reference{uuid: mig, profile: "1g.10gb.me"}},
		{"nvidia.com/gpu", idMIG + "::7", reference{uuid: mig}},
		{"nvidia.com/mig-3g.20gb", "MIG-" + idBoard + "/2/0", reference{uuid: board, instance: "2", profile: "3g.20gb"}},
		{"nvidia.com/gpu", "MIG-" + idBoard + "/2/0::1", reference{uuid: board, instance: "2"}},
		{"nvidia.com/gpu", "nvidia0", reference{minor: "0"}},
		{"nvidia.com/gpu", "nvidia11/gi13", reference{minor: "11", instance: "13"}},
		{"nvidia.com/gpu", "nvidia0/vgpu1", reference{minor: "0"}},
		{"nvidia.com/gpu", "nvidia3/gi1/vgpu12", reference{minor: "3", instance: "1"}},
	} {
		if got, ok := parseDeviceID(c.resource, c.id); !ok || got != c.want {
			t.Errorf("%s %s: %+v, %v; want %+v", c.resource, c.id, got, ok, c.want)
		}
	}
}

func TestIDsOfNoDevice(t *testing.T) {
	for _, id := range []string{
		"", "0", "nvidia", "nvidia-1", "nvidia0/", "nvidia0/gi", "nvidia0/gix", "nvidia0/gi1/", "nvidia0/vgpu", "nvidia0/vgpu1/2",
		"nvidia0/x", "nvidiactl", "GPU-", "MIG-", "MIG-GPU-", "MIG-GPU-1", "MIG-GPU-1/2", "MIG-GPU-1/2/x", "GPU-1::", "GPU-1::x",
		"GPU-1::2::3", "0000:41:00.0", "nvidia9999999999",
	} {
		if got, ok := parseDeviceID("nvidia.com/gpu", id); ok {
			t.Errorf("%q is %+v", id, got)
		}
	}
	for _, resource := range []string{"amd.com/gpu", "intel.com/i915", "", "gpu", "example.com/nvidia.com/gpu"} {
		if got, ok := parseDeviceID(resource, idBoard); ok {
			t.Errorf("a %q is %+v", resource, got)
		}
	}
}
