package translate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	c "github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestVirtualGPUs: dcgm-exporter writes the device's row first and then, for utilization and
// memory, what each pod uses. The device's row is its reading, in any order, and the others are
// uses.
func TestVirtualGPUs(t *testing.T) {
	row := func(family, labels string, v int) string {
		return fmt.Sprintf("%s{gpu=\"0\",UUID=\"A\"%s} %d\n", family, labels, v)
	}
	const util, used, temp = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_GPU_TEMP"
	const a, b = `,container="c",namespace="n",pod="a",pod_uid="1",vgpu="0"`, `,container="c",namespace="n",pod="b",pod_uid="2",vgpu="1"`
	lines := []string{
		row(util, "", 90), row(util, a, 60), row(util, b, 20),
		row(used, "", 3000), row(used, a, 1000), row(used, b, 500),
		row(temp, a, 50), row(temp, b, 50),
	}
	orders := [][]int{{0, 1, 2, 3, 4, 5, 6, 7}, {1, 2, 0, 4, 5, 3, 6, 7}, {1, 0, 2, 4, 3, 5, 6, 7}, {6, 4, 3, 1, 2, 0, 5, 7}}
	r := newReader(t, Options{})
	for _, order := range orders {
		var body string
		for _, i := range order {
			body += lines[i]
		}
		r.read(body)
		r.checkRow(0, readings{c.NVMLUtilization: 0.9, c.FramebufferUsed: 3000 << 20, c.Temperature: 50})
		r.checkHolds(
			c.Allocation{Workload: c.Workload{Namespace: "n", Pod: "a", Container: "c"}},
			c.Allocation{Workload: c.Workload{Namespace: "n", Pod: "b", Container: "c"}})
		if !slices.Equal(r.frame.Uses, []c.Use{{NVMLUtilization: 0.6, Framebuffer: 1000 << 20}, {NVMLUtilization: 0.2, Framebuffer: 500 << 20}}) {
			t.Errorf("uses %v of\n%s", r.frame.Uses, body)
		}
	}
	if n := testing.AllocsPerRun(20, func() { r.tr.Translate(&r.frame, &r.batch, &r.report) }); n != 0 {
		t.Errorf("a steady reading allocates %v times", n)
	}
	r.read(lines[0] + lines[1] + lines[3])
	if len(r.frame.Uses) != 1 || r.frame.Uses[0].NVMLUtilization != 0.6 {
		t.Errorf("uses %v of one", r.frame.Uses)
	}
	r.read(lines[0])
	r.checkHolds()
	if len(r.frame.Uses) != 0 {
		t.Errorf("uses %v of none", r.frame.Uses)
	}
}

// TestPodsWithoutTheirDevice: if the device's own row is lost, its reading does not depend on
// the order of its pods' rows.
func TestPodsWithoutTheirDevice(t *testing.T) {
	const idle, busy = `DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="A",pod="a"} 0
DCGM_FI_DEV_FB_USED{gpu="0",UUID="A",pod="a"} 100
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="A",pod="a"} 50
`, `DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="A",pod="b"} 80
DCGM_FI_DEV_FB_USED{gpu="0",UUID="A",pod="b"} 300
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="A",pod="b"} 50
`
	for _, body := range []string{idle + busy, busy + idle} {
		translated(t, Options{}, body).checkRow(0, readings{c.NVMLUtilization: 0.8, c.Temperature: 50})
	}
}

// TestTheDevicesRowIsLost: whichever name the family has, the device is as utilized as its busiest
// pod. Rows that differ in other labels than those of workloads are no pods: the first counts.
func TestTheDevicesRowIsLost(t *testing.T) {
	const idle, busy = `DCGM_FI_DEV_GPU_UTIL_RATIO{gpu="0",UUID="A",pod="a"} 0.2` + "\n", `DCGM_FI_DEV_GPU_UTIL_RATIO{gpu="0",UUID="A",pod="b"} 0.8` + "\n"
	for _, body := range []string{idle + busy, busy + idle} {
		translated(t, Options{}, body).checkRow(0, readings{c.NVMLUtilization: 0.8})
	}
	r := translated(t, Options{}, idle+strings.ReplaceAll(busy, `pod="b"`, `pod="a",modelName="M"`))
	r.checkRow(0, readings{c.NVMLUtilization: 0.2})
	checkUses(t, r, "of one pod")
}

// TestSharingComesAndGoes: while no device is shared, there are no uses, whatever there was before.
func TestSharingComesAndGoes(t *testing.T) {
	alone, own := sharedRow(sharedUtil, firstPod, 40), sharedRow(sharedUtil, "", 90)
	both := own + alone + sharedRow(sharedUtil, secondPod, 20)
	const other = "DCGM_FI_DEV_GPU_UTIL{gpu=\"1\",UUID=\"B\",pod=\"x\"} 5\n"
	first, second := c.Use{NVMLUtilization: 0.4, Framebuffer: absent}, c.Use{NVMLUtilization: 0.2, Framebuffer: absent}
	r := newReader(t, Options{})
	for _, step := range []struct {
		body string
		want []c.Use
	}{
		{other, nil},
		{alone, nil},
		{both, []c.Use{first, second}},
		{both + other, []c.Use{first, second, c.NoUse}},
		{other + alone, nil},
		{both + sharedRow(sharedUtil, sidecar, 40), []c.Use{{NVMLUtilization: 0.2, Framebuffer: absent}, {NVMLUtilization: 0.2, Framebuffer: absent}, second}},
		{both, []c.Use{first, second}},
		{"", nil},
	} {
		r.read(step.body)
		checkUses(t, r, step.body, step.want...)
	}
}

// TestUsesOfSeveralDevices: what the exporter sees on one device says nothing about another.
func TestUsesOfSeveralDevices(t *testing.T) {
	var body string
	for gpu, v := range [][3]int{{90, 0, 0}, {50, 30, 10}} {
		for i, pod := range []string{"", firstPod, secondPod} {
			body += strings.NewReplacer("0", strconv.Itoa(gpu), "A", string(rune('A'+gpu))).Replace(`DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="A"`) + pod + fmt.Sprintf("} %d\n", v[i])
		}
	}
	checkUses(t, translated(t, Options{}, body), "of two devices", c.NoUse, c.NoUse,
		c.Use{NVMLUtilization: 0.3, Framebuffer: absent}, c.Use{NVMLUtilization: 0.1, Framebuffer: absent})
}

// TestUsesUnderTheNewName: the use of a pod has the unit of the device's reading, and may
// show which that is.
func TestUsesUnderTheNewName(t *testing.T) {
	const body = `DCGM_FI_DEV_GPU_UTIL_RATIO{gpu="0",UUID="A",pod="a"} %v
DCGM_FI_DEV_GPU_UTIL_RATIO{gpu="0",UUID="A",pod="b"} 0
DCGM_FI_DEV_GPU_UTIL_RATIO{gpu="0",UUID="A"} 1
`
	r := translated(t, Options{}, fmt.Sprintf(body, 1))
	checkUses(t, r, "not known", c.NoUse, c.Use{NVMLUtilization: 0, Framebuffer: absent})
	r.checkRow(0, readings{})
	r.checkDropped(Report{Dropped: dropped(0, 0, 0, 1)})
	r = translated(t, Options{}, fmt.Sprintf(body, 0.6))
	checkUses(t, r, "a ratio", c.Use{NVMLUtilization: 0.6, Framebuffer: absent}, c.Use{NVMLUtilization: 0, Framebuffer: absent})
	r.checkRow(0, readings{c.NVMLUtilization: 1})
	r = translated(t, Options{}, fmt.Sprintf(body, 60))
	checkUses(t, r, "percent", c.Use{NVMLUtilization: 0.6, Framebuffer: absent}, c.Use{NVMLUtilization: 0, Framebuffer: absent})
}

// checkUses compares what the allocations of a reading used. NaN equals NaN.
func checkUses(t *testing.T, r *reader, what string, want ...c.Use) {
	t.Helper()
	if fmt.Sprint(r.frame.Uses) != fmt.Sprint(want) {
		t.Errorf("%s: uses %v, want %v", what, r.frame.Uses, want)
	}
}

// sharedRow is a row of dcgm-exporter 4.8.2 for a GPU or MIG instance that pods share.
func sharedRow(family, labels string, v int) string {
	return fmt.Sprintf("%s{gpu=\"0\",UUID=\"A\"%s} %d\n", family, labels, v)
}

const (
	sharedUtil, sharedMemory = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED"

	firstPod   = `,container="c",namespace="n",pod="a",pod_uid="1",vgpu="0",hpc_job=""`
	secondPod  = `,container="c",namespace="n",pod="b",pod_uid="2",vgpu="1"`
	secondSlot = `,container="c",namespace="n",pod="a",pod_uid="1",vgpu="2"`
	sidecar    = `,container="d",namespace="n",pod="a",pod_uid="1",vgpu="3"`
)

// TestCopiesAreNoUses: without a row of the device itself, those of pods repeat its value,
// or one read a moment later.
func TestCopiesAreNoUses(t *testing.T) {
	r := translated(t, Options{}, sharedRow(sharedUtil, firstPod, 40)+sharedRow(sharedUtil, secondPod, 41)+
		sharedRow(sharedMemory, firstPod, 2000)+sharedRow(sharedMemory, secondPod, 2000)+sharedRow("DCGM_FI_DEV_GPU_TEMP", "", 50))
	checkUses(t, r, "copies", c.NoUse, c.NoUse)
	r.checkRow(0, readings{c.NVMLUtilization: 0.41, c.FramebufferUsed: 2000 << 20, c.Temperature: 50})
	r.read(sharedRow(sharedUtil, "", 40) + sharedRow(sharedUtil, `,hpc_job="1"`, 40) + sharedRow(sharedUtil, `,hpc_job="2"`, 40))
	checkUses(t, r, "of jobs", c.NoUse, c.NoUse)
}

// TestUnseenProcesses: 0 for each pod is no reading if the exporter sees no processes.
func TestUnseenProcesses(t *testing.T) {
	const nameless = `,container="c",namespace="n",pod="a",pod_uid="",vgpu="0"`
	zero := c.Use{}
	for _, test := range []struct {
		name         string
		pod          string
		util, memory int // of the device
		first        [2]int
		want         []c.Use
	}{
		{"idle", firstPod, 0, 600, [2]int{0, 0}, []c.Use{zero, zero}},
		{"of one", firstPod, 80, 9000, [2]int{40, 3000}, []c.Use{{NVMLUtilization: 0.4, Framebuffer: 3000 << 20}, zero}},
		{"busy and full", firstPod, 87, 17531, [2]int{0, 0}, []c.Use{c.NoUse, c.NoUse}},
		{"full", firstPod, 0, 17531, [2]int{0, 0}, []c.Use{{NVMLUtilization: 0, Framebuffer: absent}, {NVMLUtilization: 0, Framebuffer: absent}}},
		{"a device that is not known", firstPod, 101, 1 << 40, [2]int{0, 0}, []c.Use{c.NoUse, c.NoUse}},
		{"a pod without UID", nameless, 0, 600, [2]int{0, 0}, []c.Use{c.NoUse, zero}},
	} {
		body := sharedRow(sharedUtil, "", test.util) + sharedRow(sharedUtil, test.pod, test.first[0]) + sharedRow(sharedUtil, secondPod, 0) +
			sharedRow(sharedMemory, "", test.memory) + sharedRow(sharedMemory, test.pod, test.first[1]) + sharedRow(sharedMemory, secondPod, 0)
		checkUses(t, translated(t, Options{}, body), test.name, test.want...)
	}
}

// TestContainersOfAPod: each container, and each slot of it, has what the pod used.
func TestContainersOfAPod(t *testing.T) {
	var body string
	for i, pod := range []string{"", firstPod, secondPod, secondSlot, sidecar} {
		body += sharedRow(sharedUtil, pod, []int{87, 40, 25, 40, 40}[i]) + sharedRow(sharedMemory, pod, []int{9000, 3072, 1024, 3072, 3072}[i])
	}
	want := []c.Use{{NVMLUtilization: 0.2, Framebuffer: 1536 << 20}, {NVMLUtilization: 0.25, Framebuffer: 1024 << 20}, {NVMLUtilization: 0.2, Framebuffer: 1536 << 20}}
	r := translated(t, Options{}, body)
	checkUses(t, r, "two containers", want...)
	if n := testing.AllocsPerRun(20, func() { r.tr.Translate(&r.frame, &r.batch, &r.report) }); n != 0 {
		t.Errorf("a steady reading allocates %v times", n)
	}
	checkUses(t, translated(t, Options{MaxAllocations: 2}, body), "one left out", want[:2]...)
}

// TestUsesOfInstances: for MIG instances the exporter gives only memory.
func TestUsesOfInstances(t *testing.T) {
	const instance = `,GPU_I_ID="1",GPU_I_PROFILE="3g.40gb"`
	var body string
	for i, pod := range []string{"", firstPod, secondPod} {
		body += sharedRow(sharedMemory, instance+pod, []int{5000, 3000, 1000}[i])
	}
	r := translated(t, Options{}, body+sharedRow("DCGM_FI_DEV_GPU_TEMP", instance+firstPod, 50))
	checkUses(t, r, "memory", c.Use{NVMLUtilization: absent, Framebuffer: 3000 << 20}, c.Use{NVMLUtilization: absent, Framebuffer: 1000 << 20})
}
