package translate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	c "github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
)

// A reading with the devices of the previous one allocates nothing, whatever else it contains.
func TestSteadyReadingAllocatesNothing(t *testing.T) {
	bodies := map[string]string{
		"boards":    string(rawtest.Body(8, 60, 1)),
		"instances": string(rawtest.Body(112, 60, 1)),
		"pods":      withPods(rawtest.Body(16, 60, 1), 3),
		"XIDs": boardA + boardB + xidRow("total", "A", `,xid="48"`, "1") + xidRow("total", "A", `,xid="45"`, "9") + xidRow("window", "B", "", "0") +
			xidRow("total", "C", `,xid="79"`, "1"),
	}
	for _, g := range slices.Concat(goldens, amdGoldens) {
		bodies[g.file] = testdata(t, g.file)
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			r := translated(t, Options{MaxDevices: 40, MaxAllocations: 20}, body)
			if n := testing.AllocsPerRun(10, func() { r.tr.Translate(&r.frame, &r.batch, &r.report) }); n != 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}

// Labels of pods come and go while devices stay: only new blocks are resolved, and the
// topology stays.
func TestPodsChurn(t *testing.T) {
	body := func(step int) string {
		var b strings.Builder
		for gpu := range 8 {
			pod := fmt.Sprintf("steady-%d", gpu)
			if gpu == 3 {
				pod = fmt.Sprintf("churn-%d", step)
			}
			b.WriteString(temp(fmt.Sprintf(`gpu="%d",UUID="GPU-%d",modelName="M",pod="%s"`, gpu, gpu, pod), 40+gpu))
		}
		return b.String()
	}
	r := newReader(t, Options{})
	r.read(body(0))
	topology := r.frame.Topology
	for step := 1; step <= 100; step++ {
		// Resolving a known block again would undo this.
		known := len(r.tr.blocks)
		mark := r.tr.blocks[0]
		r.tr.blocks[0] = r.tr.blocks[1]
		r.read(body(step))
		if r.tr.blocks[0] != r.tr.blocks[1] {
			t.Fatal("a known block was resolved again")
		}
		r.tr.blocks[0] = mark
		if got := len(r.tr.blocks); got != known+1 {
			t.Fatalf("step %d: %d new blocks, want 1", step, got-known)
		}
		r.read(body(step))
		if r.frame.Topology.Generation < topology.Generation || len(r.tr.variants) != 8+step {
			t.Fatalf("step %d: generation %d, %d variants", step, r.frame.Topology.Generation, len(r.tr.variants))
		}
		r.checkRow(3, readings{c.Temperature: 43})
	}
	if n := testing.AllocsPerRun(10, func() { r.tr.Translate(&r.frame, &r.batch, &r.report) }); n != 0 {
		t.Errorf("after pods came and went, a steady reading allocates %v times", n)
	}
}

// When ids are reassigned, nothing of the old ones is left, and devices stay the same.
func TestDictCompacts(t *testing.T) {
	r := newReader(t, Options{})
	first := temp(`gpu="9",UUID="Z"`, 1) + "DCGM_FI_DEV_NOBODY_KNOWS{gpu=\"9\",UUID=\"Z\"} 1\n"
	second := "DCGM_FI_DEV_SM_CLOCK{gpu=\"0\",UUID=\"A\"} 100\nDCGM_FI_DEV_GPU_UTIL_RATIO{gpu=\"0\",UUID=\"A\"} 0.5\n" + temp(`gpu="1",UUID="B"`, 50)
	r.read(first)
	r.read(second)
	topology := r.frame.Topology
	// Forget what only first had: the unknown family, and the block of Z.
	d := r.batch.Dict
	unknown, z := d.FamilyID([]byte("DCGM_FI_DEV_NOBODY_KNOWS")), d.BlockID([]byte(`{gpu="9",UUID="Z"}`))
	d.Compact(func(id uint32) bool { return id != unknown }, func(id uint32) bool { return id != z })
	r.read(second)
	if r.frame.Topology != topology {
		t.Error("the same devices got another topology")
	}
	r.checkRow(0, readings{c.SMClock: 100e6, c.NVMLUtilization: 0.5})
	r.checkRow(1, readings{c.Temperature: 50})
	if len(r.tr.variants) != 2 || len(r.tr.blocks) != 2 {
		t.Errorf("%d variants and %d blocks, want 2 and 2", len(r.tr.variants), len(r.tr.blocks))
	}
	r.read(first)
	if len(r.report.UnknownFamilies) != 1 || r.frame.Topology.Devices[0].UUID != "Z" {
		t.Errorf("after it: %q, %+v", r.report.UnknownFamilies, r.frame.Topology.Devices)
	}

	// A new Dict with fewer ids.
	r.batch = raw.Batch{Dict: raw.NewDict()}
	r.read(temp(`gpu="1",UUID="B"`, 50))
	r.checkRow(0, readings{c.Temperature: 50})
	if len(r.report.UnknownFamilies) != 0 {
		t.Errorf("unknown in the new one: %q", r.report.UnknownFamilies)
	}
}

// TestAnotherDict: a reading in another Dict is that of a new Translator, whatever was read before.
func TestAnotherDict(t *testing.T) {
	lines := []string{
		temp(`gpu="0",UUID="A",pod="p"`, 40), rowOfLink(linkFamilies[0], "A", 1, "1"), xidRow("total", "A", `,xid="48"`, "2"), rowOfLink(linkFamilies[1], "B", 2, "0"),
		"# HELP DCGM_FI_DEV_GPU_UTIL_RATIO (in %)\nDCGM_FI_DEV_GPU_UTIL_RATIO{gpu=\"0\",UUID=\"A\"} 1\n", "DCGM_FI_DEV_FABRIC_CLIQUE_ID{gpu=\"0\",UUID=\"A\"} 3\n",
		"DCGM_FI_DEV_NOBODY_KNOWS{gpu=\"0\",UUID=\"A\"} 1\n", "gpu_lost{gpu=\"2\",UUID=\"C\"} 1\n", temp(`gpu="1",UUID="B",GPU_I_ID="1"`, 50),
	}
	opts := Options{Compat: []Version{V1, V49}, MaxDevices: 9}
	r := newReader(t, opts)
	for step := range 2 * len(lines) {
		body := strings.Join(lines[step/2:], "")
		if step%2 == 1 {
			slices.Reverse(lines)
			body = strings.Join(lines[step/2:], "")
			slices.Reverse(lines)
		}
		r.batch = raw.Batch{Dict: raw.NewDict()}
		got := r.render(body)
		fresh := newReader(t, opts)
		if want := fresh.render(body); got != want {
			t.Errorf("rendered of\n%s%s\nwant %s", body, got, want)
		}
		state := func(r *reader) string {
			top := *r.frame.Topology
			top.Generation = 0
			return fmt.Sprint(top, r.frame.AllocationSet, r.frame.XIDs, r.report.UnknownFamilies, r.report.Dropped, r.tr.Rendered())
		}
		if got, want := state(r), state(fresh); got != want {
			t.Errorf("read of\n%s%s\nwant %s", body, got, want)
		}
		for i := range fresh.frame.Len() {
			if got, want := fmt.Sprint(r.frame.Row(i)), fmt.Sprint(fresh.frame.Row(i)); got != want {
				t.Errorf("row %d of\n%s%s\nwant %s", i, body, got, want)
			}
		}
	}
	// A source without any device, and with new ids, has none.
	r.batch = raw.Batch{Dict: raw.NewDict()}
	r.read("DCGM_FI_DEV_COUNT 0\n")
	r.checkDevices()
	r.checkHolds()
}
