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
	for id, want := range map[string]reference{
		idBoard:                      {uuid: board},
		strings.ToUpper(idBoard):     {uuid: board},
		idBoard + "::3":              {uuid: board},
		idMIG:                        {uuid: mig},
		idBoard + "-17":              {uuid: board},
		idMIG + "::7":                {uuid: mig},
		"MIG-" + idBoard + "/2/0":    {uuid: board, instance: "2"},
		"MIG-" + idBoard + "/2/0::1": {uuid: board, instance: "2"},
		"nvidia0":                    {minor: "0"},
		"nvidia11/gi13":              {minor: "11", instance: "13"},
		"nvidia0/vgpu1":              {minor: "0"},
		"nvidia3/gi1/vgpu12":         {minor: "3", instance: "1"},
	} {
		if got, ok := parseDeviceID(id); !ok || got != want {
			t.Errorf("%s: %+v, %v; want %+v", id, got, ok, want)
		}
	}
}

func TestIDsOfNoDevice(t *testing.T) {
	for _, id := range []string{
		"", "0", "nvidia", "nvidia-1", "nvidia0/", "nvidia0/gi", "nvidia0/gix", "nvidia0/gi1/", "nvidia0/vgpu", "nvidia0/vgpu1/2",
		"nvidia0/x", "nvidiactl", "GPU-", "MIG-", "MIG-GPU-1/2", "MIG-GPU-1/2/x", "GPU-1::", "GPU-1::x",
		"GPU-1::2::3", "0000:41:00.0", "nvidia9999999999",
	} {
		if got, ok := parseDeviceID(id); ok {
			t.Errorf("%q is %+v", id, got)
		}
	}
	for _, resource := range []string{"amd.com/gpu", "intel.com/i915", "", "gpu", "example.com/nvidia.com/gpu"} {
		if isOurs(resource) {
			t.Errorf("%q is NVIDIA's", resource)
		}
	}
}
