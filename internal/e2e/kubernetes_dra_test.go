package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// draDevice is a device as NVIDIA's DRA driver lists it.
type draDevice struct {
	name string // gpu-0, or gpu-0-mig-9-0-4 for a MIG instance
	uuid string
	// parent and profile of a MIG instance: the board's UUID, and a name such as 3g.40gb.
	parent, profile string
}

// String returns an entry of a ResourceSlice.
func (d draDevice) String() string {
	const both = "productName: {string: NVIDIA H100 80GB HBM3}, brand: {string: Nvidia}, architecture: {string: Hopper}, cudaComputeCapability: {version: 9.0.0}, " +
		"driverVersion: {version: 580.65.6}, cudaDriverVersion: {version: 13.0.0}, resource.kubernetes.io/pcieRoot: {string: 'pci0000:00'}"
	if d.parent == "" {
		return fmt.Sprintf("{name: %s, attributes: {type: {string: gpu}, uuid: {string: %s}, %s}, capacity: {memory: {value: 81559Mi}}}", d.name, d.uuid, both)
	}
	return fmt.Sprintf("{name: %s, attributes: {type: {string: mig}, uuid: {string: %s}, parentUUID: {string: %s}, profile: {string: %s}, %s}, capacity: {memory: {value: 40448Mi}, multiprocessors: {value: '60'}}}",
		d.name, d.uuid, d.parent, d.profile, both)
}

// offer replaces the devices that a node's driver lists, as its kubelet plugin does: one pool per
// node, with a new generation.
func (c *cluster) offer(t *testing.T, node string, generation int, devices ...draDevice) {
	t.Helper()
	once, _ := c.defined.LoadOrStore("DeviceClasses", &sync.Once{})
	once.(*sync.Once).Do(func() {
		for _, kind := range []string{"gpu", "mig"} { // as in the driver's chart
			c.put(t, "", documents(t, fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: %[1]s.nvidia.com}
spec: {selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == '%[1]s'"}}]}
`, kind))[0])
		}
	})
	text := make([]string, len(devices))
	for i, d := range devices {
		text[i] = d.String()
	}
	owner := c.get(t, "v1", "Node", "", node)
	c.apply(t, "", fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: %[1]s-gpu.nvidia.com, %[2]s}
spec: {driver: gpu.nvidia.com, nodeName: %[1]s, pool: {name: %[1]s, generation: %[3]d, resourceSliceCount: 1}, devices: [%[4]s]}
`, node, controlledBy(owner), generation, strings.Join(text, ", ")))
}

// claim creates a ResourceClaim for devices of a DeviceClass, gpu.nvidia.com or mig.nvidia.com.
func (c *cluster) claim(t *testing.T, namespace, name, class string, count int) {
	t.Helper()
	c.apply(t, namespace, fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: %s}
spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: %s, allocationMode: ExactCount, count: %d}}]}}
`, name, class, count))
}

// claimPod creates a pod whose container main has the devices of a claim, and waits until the
// scheduler has allocated them and the pod runs. It returns the pool and the devices.
func (c *cluster) claimPod(t *testing.T, namespace, name, claim, node string) (pool string, devices []string) {
	t.Helper()
	c.apply(t, namespace, strings.NewReplacer("spec: {", "spec: {resourceClaims: [{name: gpus, resourceClaimName: "+claim+"}], ",
		"image: none", "image: none, resources: {claims: [{name: gpus}]}").Replace(barePod(name, nobody, node)))
	c.awaitPods(t, namespace, "app="+name, 1)
	o := c.get(t, "resource.k8s.io/v1", "ResourceClaim", namespace, claim)
	for i := 0; ; i++ {
		device := o.at("status", "allocation", "devices", "results", i, "device")
		if device == "" {
			slices.Sort(devices)
			return pool, devices
		}
		devices, pool = append(devices, device), o.at("status", "allocation", "devices", "results", i, "pool")
	}
}
