package holders

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	c "github.com/kpulse/kpulse-proxy/internal/canonical"
)

// node returns two boards, the second cut into two instances of one size and one of another.
func node() *c.Topology {
	return &c.Topology{Devices: []c.Device{
		{GPU: "0", UUID: "GPU-a", Board: 0},
		{GPU: "1", UUID: "GPU-B", Board: 1},
		{GPU: "1", UUID: "GPU-B", Instance: "1", Profile: "2g.20gb", Board: 1},
		{GPU: "1", UUID: "GPU-B", Instance: "7", Profile: "1g.10gb", Board: 1},
		{GPU: "1", UUID: "GPU-B", Instance: "8", Profile: "1g.10gb", Board: 1},
	}}
}

// pod returns the container main of a pod in namespace n.
func pod(name string) c.Workload { return c.Workload{Namespace: "n", Pod: name, Container: "main"} }

// bench is a Feed with its inputs.
type bench struct {
	t       *testing.T
	kubelet *Kubelet
	feed    *Feed
	frame   c.Frame
}

func newBench(t *testing.T, opts FeedOptions) *bench {
	b := &bench{t: t, kubelet: NewKubelet(KubeletOptions{Logger: slog.New(slog.DiscardHandler)})}
	b.feed = b.kubelet.Feed(opts)
	return b
}

// says makes the kubelet say that pods have devices, each as pod=device id.
func (b *bench) says(words ...string) {
	b.t.Helper()
	var l listed
	for _, word := range words {
		name, id, _ := strings.Cut(word, "=")
		r, ok := parseDeviceID(id)
		if !ok {
			b.t.Fatalf("%q is not a device", id)
		}
		l.holds = append(l.holds, hold{pod(name), r})
	}
	b.kubelet.publish(&l)
}

// tell sets the allocations that the source reports.
func (b *bench) tell(t *c.Topology, told ...c.Allocation) {
	set := &c.AllocationSet{Holders: make([]int, len(t.Devices)), Allocations: told}
	for _, a := range told {
		set.Holders[a.Device]++
	}
	b.frame.Topology, b.frame.AllocationSet = t, set
}

// check attributes, and compares the holders with lines such as 0 n/p/main.
func (b *bench) check(want ...string) {
	b.t.Helper()
	b.feed.Attribute(&b.frame)
	var got []string
	for _, a := range b.frame.AllocationSet.Allocations {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%d %s %s", a.Device, strings.Trim(a.Namespace+"/"+a.Pod+"/"+a.Container, "/"), a.Job)))
	}
	if !slices.Equal(got, want) {
		b.t.Errorf("held by %q, want %q", got, want)
	}
}

func told(device int, w c.Workload) c.Allocation { return c.Allocation{Device: device, Workload: w} }

func TestKubeletsPodsOnDevices(t *testing.T) {
	mine := func(*c.Device) bool { return true }
	for _, x := range []struct {
		name  string
		holds []string
		want  []string
	}{
		{"boards by uuid", []string{"p=GPU-A", "q=GPU-b"}, []string{"0 n/p/main", "1 n/q/main"}},
		{"time slices", []string{"p=GPU-a::0", "p=GPU-a::1", "q=GPU-a::2"}, []string{"0 n/p/main", "0 n/q/main"}},
		{"minor numbers", []string{"p=nvidia0", "q=nvidia1/gi7", "r=nvidia1/gi1/vgpu2"}, []string{"0 n/p/main", "2 n/r/main", "3 n/q/main"}},
		{"old MIG ids", []string{"p=MIG-GPU-b/8/0"}, []string{"4 n/p/main"}},
		{"known MIG devices", []string{"p=MIG-x", "q=MIG-y::7"}, []string{"3 n/p/main", "4 n/q/main"}},
		{"a MIG device of which the board is known", []string{"p=MIG-two"}, nil},
		{"no such device", []string{"p=GPU-c", "q=nvidia7", "r=MIG-GPU-b/3/0", "s=MIG-z"}, nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			b := newBench(t, FeedOptions{Mine: mine, MIGPlaces: func() []c.MIGPlace { return twoMIGDevices }})
			b.tell(node())
			b.says(x.holds...)
			b.check(x.want...)
			found := len(x.want)
			if got, unmatched, _ := b.kubelet.Devices(); (found == 0) != (got == 0) || got+unmatched != len(b.kubelet.current.Load().holds) {
				t.Errorf("%d matched, %d unmatched, of %d", got, unmatched, found)
			}
		})
	}
}

var twoMIGDevices = []c.MIGPlace{
	{UUID: "MIG-x", Board: "GPU-b", Instance: "7"}, {UUID: "MIG-Y", Board: "GPU-B", Instance: "8"}, {UUID: "MIG-other", Board: "GPU-other", Instance: "8"},
	{UUID: "MIG-two", Board: "GPU-B", Profile: "2g.20gb"},
}

// TestIndexesOfOtherMachines: a number alone never names a board of another node.
func TestIndexesOfOtherMachines(t *testing.T) {
	b := newBench(t, FeedOptions{Mine: func(d *c.Device) bool { return d.GPU == "1" }})
	b.tell(node())
	b.says("p=nvidia0", "q=nvidia1", "r=GPU-a")
	b.check("0 n/r/main", "1 n/q/main")
	if _, got, _ := b.kubelet.Devices(); got != 1 {
		t.Errorf("%d unmatched", got)
	}
}

// TestSourceGoesFirst: the kubelet completes the source's holders, and does not contradict
// them.
func TestSourceGoesFirst(t *testing.T) {
	p, q, job := pod("p"), pod("q"), c.Workload{Job: "17"}
	bare := c.Workload{Namespace: "n", Pod: "p"}
	host := c.Workload{Container: "c"}
	both := c.Workload{Namespace: "n", Pod: "p", Container: "main", Job: "17"}
	for _, x := range []struct {
		name  string
		told  []c.Workload
		holds []string
		want  []string
	}{
		{"the same", []c.Workload{p}, []string{"p=GPU-a"}, []string{"0 n/p/main"}},
		{"one that shares", []c.Workload{q}, []string{"p=GPU-a", "q=GPU-a"}, []string{"0 n/q/main", "0 n/p/main"}},
		{"another", []c.Workload{q}, []string{"p=GPU-a"}, []string{"0 n/q/main"}},
		{"one of them is another", []c.Workload{p, q}, []string{"p=GPU-a", "r=GPU-a"}, []string{"0 n/p/main", "0 n/q/main"}},
		{"without a container", []c.Workload{bare}, []string{"p=GPU-a"}, []string{"0 n/p"}},
		{"a job in a pod", []c.Workload{job}, []string{"p=GPU-a"}, []string{"0 n/p/main 17"}},
		{"jobs and pods", []c.Workload{job}, []string{"p=GPU-a", "q=GPU-a"}, []string{"0  17"}},
		{"a job whose pod is told", []c.Workload{both}, []string{"p=GPU-a"}, []string{"0 n/p/main 17"}},
		{"a container of the host", []c.Workload{host}, []string{"p=GPU-a"}, []string{"0 c"}},
		{"nothing from the kubelet", []c.Workload{p}, nil, []string{"0 n/p/main"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			b := newBench(t, FeedOptions{})
			var all []c.Allocation
			for _, w := range x.told {
				all = append(all, told(0, w))
			}
			b.tell(node(), all...)
			b.says(x.holds...)
			b.check(x.want...)
		})
	}
}

// TestUsesStayWithTheirOwners: the source's holders keep their uses.
func TestUsesStayWithTheirOwners(t *testing.T) {
	b := newBench(t, FeedOptions{})
	b.tell(node(), told(0, pod("q")), told(3, pod("m")))
	b.frame.Uses = []c.Use{{NVMLUtilization: 0.5, Framebuffer: 1}, {NVMLUtilization: 0.25, Framebuffer: 2}}
	b.says("p=GPU-a", "q=GPU-a", "r=GPU-b")
	b.check("0 n/q/main", "0 n/p/main", "1 n/r/main", "3 n/m/main")
	if u := b.frame.Uses; len(u) != 4 || u[0].NVMLUtilization != 0.5 || c.Given(u[1].NVMLUtilization) || c.Given(u[2].Framebuffer) || u[3].Framebuffer != 2 {
		t.Errorf("uses %v", u)
	}
	if got := b.frame.AllocationSet.Holders; !slices.Equal(got, []int{2, 1, 0, 1, 0}) {
		t.Errorf("holders %v", got)
	}
}

// TestLimitOfAllocations: each allocation beyond the limit is counted once when it is left
// out.
func TestLimitOfAllocations(t *testing.T) {
	b := newBench(t, FeedOptions{Limit: 2})
	b.tell(node(), told(4, pod("m")))
	first := b.frame.AllocationSet
	b.says("p=GPU-a", "q=GPU-a")
	b.check("0 n/p/main", "4 n/m/main")
	if got := b.frame.AllocationSet.Holders[0]; got != 2 || b.frame.LeftOutAllocations != 1 {
		t.Errorf("%d holders, %d left out", got, b.frame.LeftOutAllocations)
	}
	b.frame.AllocationSet, b.frame.LeftOutAllocations = first, 0
	b.says("r=GPU-a", "p=GPU-a", "q=GPU-a")
	b.check("0 n/p/main", "4 n/m/main")
	if b.frame.LeftOutAllocations != 1 {
		t.Errorf("%d more left out", b.frame.LeftOutAllocations)
	}
}

// TestNothingNewAllocatesNothing also checks that equal inputs give the same set.
func TestNothingNewAllocatesNothing(t *testing.T) {
	b := newBench(t, FeedOptions{MIGPlaces: func() []c.MIGPlace { return twoMIGDevices }})
	b.tell(node(), told(0, pod("q")))
	b.frame.Uses = []c.Use{{}}
	incoming := b.frame.AllocationSet
	b.says("p=GPU-a", "q=GPU-a")
	b.feed.Attribute(&b.frame)
	made := b.frame.AllocationSet
	if n := testing.AllocsPerRun(100, func() {
		b.frame.AllocationSet, b.frame.Uses = incoming, b.frame.Uses[:1]
		b.feed.Attribute(&b.frame)
	}); n != 0 || b.frame.AllocationSet != made {
		t.Errorf("%v allocations, the same set: %v", n, b.frame.AllocationSet == made)
	}
	b.frame.AllocationSet = incoming
	b.says("p=GPU-a", "q=GPU-a", "r=GPU-elsewhere")
	if b.feed.Attribute(&b.frame); b.frame.AllocationSet != made {
		t.Error("a pod elsewhere makes another set")
	}
	b.says()
	b.frame.AllocationSet = incoming
	if b.feed.Attribute(&b.frame); b.frame.AllocationSet != incoming {
		t.Error("without a pod the set is not the source's")
	}
}
