package translate

import (
	"fmt"
	"os"
	"testing"

	c "github.com/kpulse/kpulse-proxy/internal/canonical"
)

// claimedRow is a row of a board that names the pod of a claimed MIG device.
func claimedRow(gpu, pod, profile, uuid string) string {
	return allocated(gpu, fmt.Sprintf(`pod="%s",dra_claim_name="claim",dra_mig_profile="%s",dra_mig_device_uuid="%s"`, pod, profile, uuid))
}

// instanceOf is a row of an instance, with a profile, that names no holder.
func instanceOf(gpu, id, profile string) string {
	return temp(fmt.Sprintf(`gpu="%s",UUID="GPU-%s",GPU_I_ID="%s",GPU_I_PROFILE="%s"`, gpu, gpu, id, profile), 40)
}

// TestClaimsOfInstances: a pod that claims a MIG device holds the instance, if it is known
// which one that is, and never the board.
func TestClaimsOfInstances(t *testing.T) {
	small, large := instanceOf("0", "1", "1g.5gb"), instanceOf("0", "2", "3g.20gb")
	twin := instanceOf("0", "3", "1g.5gb")
	for _, test := range []struct {
		name, body string
		want       []c.Allocation
	}{
		{"the only one of the size", claimedRow("0", "a", "3G.20gb", "MIG-1") + small + large, []c.Allocation{onPod(2, "a")}},
		{"instances first", small + large + claimedRow("0", "a", "1g.5gb", "MIG-1"), []c.Allocation{onPod(1, "a")}},
		{"two of the size", claimedRow("0", "a", "1g.5gb", "MIG-1") + small + large + twin, nil},
		{"none of the size", claimedRow("0", "a", "7g.40gb", "MIG-1") + small, nil},
		{"no instances at all", claimedRow("0", "a", "1g.5gb", "MIG-1"), nil},
		{"the only one at all", claimedRow("0", "a", "", "MIG-1") + small, []c.Allocation{onPod(1, "a")}},
		{"beside a row that claims nothing", allocated("0", ``) + claimedRow("0", "a", "", "MIG-1") + small, []c.Allocation{onPod(1, "a")}},
		{"a shared claim", claimedRow("0", "a", "1g.5gb", "MIG-1") + claimedRow("0", "b", "1g.5gb", "MIG-1") + small, []c.Allocation{onPod(1, "a"), onPod(1, "b")}},
		{"of another board", claimedRow("1", "a", "1g.5gb", "MIG-1") + small, nil},
		{"a claim of a board", allocated("0", `pod="a",dra_claim_name="claim",dra_device_name="gpu-0"`) + small, []c.Allocation{onPod(0, "a")}},
		{"the row of the instance", temp(`gpu="0",UUID="GPU-0",GPU_I_ID="1",GPU_I_PROFILE="1g.5gb",pod="a",dra_mig_profile="3g.20gb"`, 40) + large, []c.Allocation{onPod(1, "a")}},
		{"both rows", claimedRow("0", "a", "1g.5gb", "MIG-1") + allocated("0/1", `pod="a"`), []c.Allocation{onPod(1, "a")}},
		{"renamed by Prometheus", allocated("0", `exported_pod="a",dra_mig_profile="1g.5gb"`) + small, []c.Allocation{onPod(1, "a")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newReader(t, Options{})
			r.read(test.body)
			r.checkHolds(test.want...)
			set := r.frame.AllocationSet
			if r.read(test.body); r.frame.AllocationSet != set {
				t.Error("another allocationSet")
			}
		})
	}
}

// TestClaimsInACapture: what dcgm-exporter 4.8.2 with --kubernetes-enable-dra writes for boards
// and instances.
func TestClaimsInACapture(t *testing.T) {
	body, err := os.ReadFile("../../testdata/captures/dra-mig.prom")
	if err != nil {
		t.Fatal(err)
	}
	r := newReader(t, Options{})
	r.read(string(body))
	got := map[string]string{}
	for _, a := range r.frame.AllocationSet.Allocations {
		d := &r.frame.Topology.Devices[a.Device]
		got[a.Pod] = d.GPU + "/" + d.Instance
	}
	if want := "map[chat-0:3/0 chat-1:3/0 train-0:1/ tune-0:0/2]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
	if u := r.frame.Row(0)[c.GraphicsEngineActive]; u != 0.62 {
		t.Errorf("the board's own reading is %v", u)
	}
}
