package holders

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec of the kubelet
	"google.golang.org/grpc/mem"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// FuzzWatch: whatever events an API server sends, pods that are read have an address, and the
// others are errors or nothing.
func FuzzWatch(f *testing.F) {
	f.Add([]byte(`{"type":"ADDED","object":{"metadata":{"name":"e","uid":"1","resourceVersion":"7"},"spec":{"nodeName":"n","containers":[{"ports":[{"name":"metrics","containerPort":9401}]}]},"status":{"phase":"Running","podIP":"10.0.0.1"}}}`), "")
	f.Add([]byte(`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"8"}}}{"type":"ERROR","object":{"code":410}}`), "metrics")
	f.Add([]byte(`{"type":"DELETED","object":{"metadata":{"deletionTimestamp":"x"},"status":{"podIP":"fe80::1%eth0"}}}`), "0")
	f.Add([]byte(`{"type":"ERROR","object":[]}{"type":"ADDED","object":null}`), "99999")
	f.Fuzz(func(t *testing.T, body []byte, port string) {
		w := &watcher{change: func(p *podObject, _ bool) {
			if e, ok := p.exporter(port); ok && !e.Address.Addr().IsValid() {
				t.Errorf("%s has the address %v", body, e.Address)
			}
		}}
		decoder := json.NewDecoder(bytes.NewReader(body))
		for {
			var e event
			if decoder.Decode(&e) != nil {
				return
			}
			if err := w.take(&e); err != nil && err.Error() == "" {
				t.Errorf("%s fails without a word", body)
			}
		}
	})
}

// FuzzSlices: whatever devices an API server publishes, those that are known are ours, and have the
// UUID of a board or an instance, in lower case.
func FuzzSlices(f *testing.F) {
	f.Add([]byte(`[{"spec":{"driver":"gpu.nvidia.com","pool":{"name":"n","generation":2},"devices":[{"name":"gpu-0","attributes":{"uuid":{"string":"GPU-1A"}}},{"name":"m","basic":{"attributes":{"gpu.nvidia.com/type":{"string":"mig"},"profile":{"string":"1g.10gb+me"}}}}]}}]`))
	f.Add([]byte(`[{"spec":{"driver":"gpu.nvidia.com","pool":{"generation":-1},"devices":[{"attributes":{"uuid":{"string":"MIG-"}}}]}},{"spec":{"devices":[null]}}]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var all []resourceSlice
		if json.Unmarshal(body, &all) != nil {
			return
		}
		for at, r := range devicesOf(all) {
			if at.driver != draDriver || !strings.HasPrefix(r.uuid, gpuPrefix) && !strings.HasPrefix(r.uuid, migPrefix) {
				t.Errorf("%+v is %+v", at, r)
			}
			if strings.HasPrefix(r.uuid, gpuPrefix) && (r.isMIG() || r.uuid != strings.ToLower(r.uuid)) {
				t.Errorf("the board %+v is %+v", at, r)
			}
		}
	})
}

// FuzzPodResources: whatever a kubelet answers, holders have a pod, and what they hold is named.
func FuzzPodResources(f *testing.F) {
	answer := &podresources.ListPodResourcesResponse{PodResources: []*podresources.PodResources{{
		Name: "p", Namespace: "n", Containers: []*podresources.ContainerResources{{
			Name:             "c",
			Devices:          []*podresources.ContainerDevices{{ResourceName: "nvidia.com/gpu", DeviceIds: []string{idBoard, idBoard + "::1", "nvidia0", "x"}}},
			DynamicResources: []*podresources.DynamicResource{{ClaimName: "c", ClaimNamespace: "n", ClaimResources: []*podresources.ClaimResource{{DriverName: draDriver, PoolName: "p", DeviceName: "gpu-0"}}}},
		}},
	}}}
	codec := encoding.GetCodecV2("proto")
	said, err := codec.Marshal(answer)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(said.Materialize())
	f.Add([]byte{0x0a, 0x00})
	f.Fuzz(func(t *testing.T, body []byte) {
		answer := &podresources.ListPodResourcesResponse{}
		if codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(body)}, answer) != nil {
			return
		}
		l := read(answer)
		for _, h := range l.holds {
			if h.Pod == "" || h.uuid == "" && h.minor == "" {
				t.Errorf("%+v is held by nobody, or is nothing", h)
			}
		}
		for _, c := range l.claims {
			if c.Pod == "" || c.device.device == "" || c.device.driver != draDriver {
				t.Errorf("the claim %+v is nobody's, or of nothing", c)
			}
		}
	})
}
