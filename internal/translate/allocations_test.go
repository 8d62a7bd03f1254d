package translate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	c "github.com/kpulse/kpulse-proxy/internal/canonical"
)

// allocated returns a line of a GPU ("0") or of an instance of it ("0/7") with further labels.
func allocated(device, labels string) string {
	gpu, instance, isInstance := strings.Cut(device, "/")
	if isInstance {
		instance = fmt.Sprintf(`,GPU_I_ID="%s",GPU_I_PROFILE="1g.5gb"`, instance)
	}
	return temp(fmt.Sprintf(`gpu="%s",UUID="GPU-%s"%s,%s`, gpu, gpu, instance, labels), 40)
}

func podOn(device, pod string) string { return allocated(device, `pod="`+pod+`"`) }

// onPod is the allocation of a device to a pod.
func onPod(device int, pod string) c.Allocation {
	return c.Allocation{Device: device, Workload: c.Workload{Pod: pod}}
}

// TestAllocations checks the allocations over sequences of readings.
func TestAllocations(t *testing.T) {
	type step struct {
		body string
		want []c.Allocation
	}
	job := func(device int, pod, job string) c.Allocation {
		return c.Allocation{Device: device, Workload: c.Workload{Pod: pod, Job: job}}
	}
	tests := []struct {
		name  string
		steps []step
	}{
		{"nobody", []step{{allocated("0", `pod=""`), nil}}},
		{"no devices", []step{{"", nil}, {podOn("0", "a"), []c.Allocation{onPod(0, "a")}}, {"", nil}}},
		{"rows of several families, and of several containers", []step{{
			podOn("0", "a") + `DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-0",pod="a"} 1` + "\n" + allocated("0", `pod="a",container="x"`) + allocated("0", `pod="a",container="y"`),
			[]c.Allocation{
				onPod(0, "a"),
				{Workload: c.Workload{Pod: "a", Container: "x"}},
				{Workload: c.Workload{Pod: "a", Container: "y"}},
			},
		}}},
		{"time slicing", []step{{
			podOn("0", "c") + podOn("0", "a") + podOn("0", "b") + podOn("1", "c"),
			[]c.Allocation{onPod(0, "c"), onPod(0, "a"), onPod(0, "b"), onPod(1, "c")},
		}}},
		{"replicas of one container", []step{{
			allocated("0", `pod="a",vgpu="0"`) + allocated("0", `pod="a",vgpu="1"`), []c.Allocation{onPod(0, "a")},
		}}},
		{"rows of a device beside those of its pods", []step{{
			allocated("0", `pod=""`) + allocated("0", `pod_uid=""`) + podOn("0", "a"), []c.Allocation{onPod(0, "a")},
		}}},
		{"instances, and a board that nobody holds", []step{{
			allocated("0", ``) + podOn("0/7", "a") + podOn("0/7", "b") + allocated("0/8", `pod=""`) + podOn("0/9", "a"),
			[]c.Allocation{onPod(1, "a"), onPod(1, "b"), onPod(3, "a")},
		}}},
		{"instances of an implied board", []step{{
			podOn("1/9", "b") + podOn("1/8", "a"), []c.Allocation{onPod(1, "a"), onPod(2, "b")},
		}}},
		{"the job is on the board and on its instances", []step{{
			allocated("0", `hpc_job="7"`) + allocated("0/1", `hpc_job="7"`), []c.Allocation{job(0, "", "7"), job(1, "", "7")},
		}}},
		{"several jobs", []step{{
			allocated("0", `hpc_job="8"`) + allocated("0", `hpc_job="7"`) + allocated("1", `hpc_job="8"`),
			[]c.Allocation{job(0, "", "8"), job(0, "", "7"), job(1, "", "8")},
		}}},
		{"several jobs of pods", []step{{
			allocated("0", `pod="a",hpc_job="7"`) + allocated("0", `pod="a",hpc_job="8"`) + allocated("0", `pod="b",hpc_job="7"`),
			[]c.Allocation{job(0, "a", "7"), job(0, "a", "8"), job(0, "b", "7")},
		}}},
		{"births, deaths and a return", []step{
			{podOn("0", "a"), []c.Allocation{onPod(0, "a")}},
			{podOn("0", "b") + podOn("0", "a"), []c.Allocation{onPod(0, "a"), onPod(0, "b")}},
			{podOn("0", "b"), []c.Allocation{onPod(0, "b")}},
			{podOn("0", "a") + podOn("0", "b"), []c.Allocation{onPod(0, "b"), onPod(0, "a")}},
			{allocated("0", ``), nil},
		}},
		{"a hand-over", []step{
			{podOn("0", "a") + podOn("1", "b"), []c.Allocation{onPod(0, "a"), onPod(1, "b")}},
			{podOn("0", "b") + podOn("1", "a"), []c.Allocation{onPod(0, "b"), onPod(1, "a")}},
		}},
		{"a device in front comes and goes", []step{
			{podOn("1", "b") + podOn("1", "a"), []c.Allocation{onPod(0, "b"), onPod(0, "a")}},
			{podOn("0", "c") + podOn("1", "a") + podOn("1", "b"), []c.Allocation{onPod(0, "c"), onPod(1, "b"), onPod(1, "a")}},
			{podOn("1", "a") + podOn("1", "b"), []c.Allocation{onPod(0, "b"), onPod(0, "a")}},
		}},
		{"rows that are of no GPU", []step{{
			allocated("0", ``) + temp(`nvlink="0",gpu="0",UUID="GPU-0",pod="a"`, 1) + temp(`gpu="0",UUID="GPU-0",GPU_I_ID="1",GPU_CI_ID="0",pod="a"`, 1), nil,
		}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newReader(t, Options{})
			for _, step := range test.steps {
				r.read(step.body)
				r.checkHolds(step.want...)
			}
		})
	}
}

// The order of families, and of pods on a device, varies from scrape to scrape. That is no
// change.
func TestAllocationsIgnoreTheOrderOfLines(t *testing.T) {
	var lines []string
	for gpu := range 4 {
		for pod := range 3 {
			labels := fmt.Sprintf(`{gpu="%d",UUID="GPU-%d",pod="p%d",namespace="n%d"} 1`+"\n", gpu, gpu, pod, pod%2)
			lines = append(lines, "DCGM_FI_DEV_GPU_TEMP"+labels, "DCGM_FI_DEV_SM_CLOCK"+labels)
		}
	}
	r := newReader(t, Options{})
	r.read(strings.Join(lines, ""))
	topology, allocationSet := r.frame.Topology, r.frame.AllocationSet
	if len(allocationSet.Allocations) != 12 {
		t.Fatalf("%d allocations", len(allocationSet.Allocations))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		rng.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		r.read(strings.Join(lines, ""))
		if r.frame.AllocationSet != allocationSet || r.frame.Topology != topology {
			t.Fatal("another allocationSet or topology")
		}
	}
	// A new allocation in the first line comes last on its device, and the old list is
	// not written to.
	old := slices.Clone(allocationSet.Allocations)
	r.read(podOn("2", "new") + strings.Join(lines, ""))
	if r.frame.AllocationSet == allocationSet || r.frame.Topology != topology {
		t.Fatal("the same allocationSet, or another topology")
	}
	r.checkHolds(slices.Insert(slices.Clone(old), 9, onPod(2, "new"))...)
	if !slices.Equal(allocationSet.Allocations, old) || len(allocationSet.Holders) != 4 {
		t.Error("a published allocationSet was written to")
	}
}

// Kind and Name come from the first row that gives them, and stay, whatever later
// rows give.
func TestOwnerStays(t *testing.T) {
	r := newReader(t, Options{})
	r.read(podOn("0", "a") + allocated("0", `pod="a",ray_io_cluster="first"`) + allocated("0", `pod="a",ray_io_cluster="second"`))
	want := onPod(0, "a")
	want.Kind, want.Name = "RayCluster", "first"
	r.checkHolds(want)
	allocationSet := r.frame.AllocationSet
	for _, body := range []string{podOn("0", "a"), allocated("0", `pod="a",ray_io_cluster="second"`)} {
		r.read(body)
		r.checkHolds(want)
		if r.frame.AllocationSet != allocationSet {
			t.Error("another allocationSet")
		}
	}
	// After the pod was gone, it is described again; what a later reading adds counts too.
	r.read(allocated("0", ``))
	r.read(podOn("0", "a"))
	r.checkHolds(onPod(0, "a"))
	r.read(allocated("0", `pod="a",ray_io_cluster="second"`))
	want.Name = "second"
	r.checkHolds(want)
}

// Beyond the limit, the latest allocations are left out, and each is counted once each
// time it appears.
func TestMaxAllocations(t *testing.T) {
	r := newReader(t, Options{MaxAllocations: 2})
	steps := []struct {
		pods    string
		want    string
		dropped uint64
	}{
		{"a b", "a b", 0},
		{"c a d b", "a b", 2},
		{"d c b a", "a b", 0},
		{"c a d b e", "a b", 1},
		{"b c d", "b c", 0}, // c came before d
		{"d", "d", 0},
		{"d a b", "d a", 1}, // b came again
		{"", "", 0},
	}
	for _, step := range steps {
		var body strings.Builder
		body.WriteString(allocated("0", ``) + allocated("1", ``))
		for pod := range strings.FieldsSeq(step.pods) {
			body.WriteString(podOn("1", pod))
		}
		r.read(body.String())
		var got []string
		for _, a := range r.frame.AllocationSet.Allocations {
			got = append(got, a.Pod)
		}
		if strings.Join(got, " ") != step.want || r.report.DroppedAllocations != step.dropped {
			t.Errorf("%q: %q, %d dropped; want %q, %d", step.pods, got, r.report.DroppedAllocations, step.want, step.dropped)
		}
		if n := len(strings.Fields(step.pods)); !slices.Equal(r.frame.AllocationSet.Holders, []int{0, n}) {
			t.Errorf("%q: holders %v", step.pods, r.frame.AllocationSet.Holders)
		}
	}
}

// When ids are reassigned, holders stay what they were.
func TestDictCompactsUnderHolders(t *testing.T) {
	r := newReader(t, Options{MaxAllocations: 2})
	r.read(podOn("0", "gone") + podOn("0", "a"))
	r.read(podOn("0", "b") + podOn("0", "a") + podOn("0", "c"))
	allocationSet := r.frame.AllocationSet
	gone := r.batch.Dict.BlockID([]byte(`{gpu="0",UUID="GPU-0",pod="gone"}`))
	r.batch.Dict.Compact(func(uint32) bool { return true }, func(id uint32) bool { return id != gone })
	r.read(podOn("0", "c") + podOn("0", "b") + podOn("0", "a"))
	if r.frame.AllocationSet != allocationSet || r.report.DroppedAllocations != 0 {
		t.Errorf("another allocationSet %+v, %d dropped", r.frame.AllocationSet, r.report.DroppedAllocations)
	}
	if len(r.tr.variants) != 3 {
		t.Errorf("%d variants, want 3", len(r.tr.variants))
	}
}

// The topology has the node's name, with or without devices.
func TestHostnameOfTheTopology(t *testing.T) {
	tests := []struct {
		name  string
		opts  Options
		empty string
		full  string
	}{
		{"the node's name wins", Options{NodeName: "node", FallbackHost: "url"}, "node", "node"},
		{"the first board's", Options{FallbackHost: "url"}, "url", "label"},
		{"none known", Options{}, "", "label"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newReader(t, test.opts)
			for step, body := range []string{"", temp(`gpu="0",UUID="A",Hostname="label"`, 1) + temp(`gpu="1",UUID="B",Hostname="mabel"`, 1), ""} {
				r.read(body)
				if want := []string{test.empty, test.full, test.empty}[step]; r.frame.Topology.Hostname != want {
					t.Errorf("reading %d: %q, want %q", step, r.frame.Topology.Hostname, want)
				}
			}
		})
	}
	r := translated(t, Options{FallbackHost: "url"}, temp(`gpu="0",UUID="A"`, 1))
	if got := r.frame.Topology.Hostname; got != "url" {
		t.Errorf("no label: %q", got)
	}
	topology := r.frame.Topology
	r.read(temp(`gpu="0",UUID="A",Hostname="label"`, 1))
	if r.frame.Topology == topology || r.frame.Topology.Hostname != "label" {
		t.Errorf("the hostname changed, the topology is %+v", r.frame.Topology)
	}
}

// TestOneAllocation: a limit of one is a limit.
func TestOneAllocation(t *testing.T) {
	r := translated(t, Options{MaxAllocations: 1}, podOn("0", "a")+podOn("0", "b"))
	if got := r.frame.AllocationSet.Allocations; !slices.Equal(got, []c.Allocation{onPod(0, "a")}) || r.report.DroppedAllocations != 1 {
		t.Errorf("%+v, %d dropped", got, r.report.DroppedAllocations)
	}
}
