package translate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// TestRendering renders single samples.
func TestRendering(t *testing.T) {
	const labels, other = `gpu="0",UUID="GPU-0"`, `{gpu="1",UUID="GPU-1"}`
	for name, test := range map[string]struct {
		versions   []Version
		body, want string
	}{
		"a new name gives the old one": {[]Version{V48},
			`DCGM_FI_DEV_SM_CLOCK_HERTZ{` + labels + `} 1.98e+09`,
			"DCGM_FI_DEV_SM_CLOCK{" + labels + "} 1980\n"},
		"blank and impossible readings are absent": {[]Version{V48},
			"DCGM_FI_DEV_GPU_TEMP_CELSIUS{" + labels + "} 9223372036854775794\nDCGM_FI_DEV_MEMORY_UTIL_RATIO{" + labels + "} 7\nDCGM_FI_DEV_BOARD_POWER_WATTS{" + labels + "} NaN\nDCGM_FI_DEV_FB_USED_BYTES{" + labels + "} -5\nDCGM_FI_PROF_PCIE_TX_BYTES{" + labels + "} -5", ""},
		"a family that the source has is left out for all rows": {[]Version{V48},
			"DCGM_FI_DEV_GPU_TEMP{" + labels + "} 40\nDCGM_FI_DEV_GPU_TEMP_CELSIUS{gpu=\"1\",UUID=\"GPU-1\"} 50", ""},
		"a value that would be a blank in the unit is absent": {[]Version{V48},
			"DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL{" + labels + "} 9.3e15", ""},
		"a ratio of unknown unit is absent": {[]Version{V48},
			"DCGM_FI_DEV_GPU_UTIL_RATIO{" + labels + "} 1", ""},
		"of the same series the first stands": {[]Version{V48},
			"DCGM_FI_DEV_GPU_TEMP_CELSIUS{" + labels + "} 40\nDCGM_FI_DEV_GPU_TEMP_CELSIUS{gpu=\"0\", UUID=\"GPU-0\"} 41",
			"DCGM_FI_DEV_GPU_TEMP{" + labels + "} 40\n"},
		"pods that share a device keep their own values, and other labels stay": {[]Version{V1},
			`DCGM_FI_DEV_GPU_UTIL{` + labels + `,container="c",namespace="n",pod="a",vgpu="0",team="x"} 30` + "\n" +
				`DCGM_FI_DEV_GPU_UTIL{` + labels + `,container="c",namespace="n",pod="b",vgpu="1",team="y"} 40`,
			`dcgm_gpu_utilization{gpu="0",uuid="GPU-0",container_name="c",pod_name="a",pod_namespace="n",vgpu="0",team="x"} 30` + "\n" +
				`dcgm_gpu_utilization{gpu="0",uuid="GPU-0",container_name="c",pod_name="b",pod_namespace="n",vgpu="1",team="y"} 40` + "\n"},
		"instances have the board's readings that the source gives them": {[]Version{V49},
			`DCGM_FI_DEV_POWER_USAGE{` + labels + `,GPU_I_PROFILE="1g.10gb",GPU_I_ID="3",Hostname="n",hpc_job="7"} 200`,
			`DCGM_FI_DEV_BOARD_POWER_WATTS{` + labels + `,GPU_I_PROFILE="1g.10gb",GPU_I_ID="3",hostname="n",hpc_job="7"} 200` + "\n"},
		"a name that two versions share has the labels of the first": {[]Version{V2, V48},
			`DCGM_FI_DEV_GPU_TEMP_CELSIUS{` + labels + `,pci_bus_id="0:1",hostname="n"} 40` + "\n" + `DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{` + labels + `,pci_bus_id="0:1",hostname="n"} 4`,
			`DCGM_FI_DEV_GPU_TEMP{` + labels + `,Hostname="n"} 40` + "\n" + `DCGM_FI_DEV_CLOCKS_EVENT_REASONS{` + labels + `,pci_bus_id="0:1",hostname="n"} 4` + "\n"},
		"rows of links are not ours": {[]Version{V49},
			`DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL{nvlink="0",gpu="0",gpu_uuid="GPU-0"} 4`, ""},
		"what follows from others stands on their rows": {[]Version{V48},
			"DCGM_FI_DEV_FB_USED_BYTES{" + labels + ",pod=\"p\",vgpu=\"0\"} 1048576\nDCGM_FI_DEV_FB_FREE_BYTES{" + labels + ",pod=\"p\"} 2097152\nDCGM_FI_DEV_FB_RESERVED_BYTES{" + labels + ",pod=\"p\"} 1048576",
			"DCGM_FI_DEV_FB_USED{" + labels + ",pod=\"p\",vgpu=\"0\"} 1\nDCGM_FI_DEV_FB_FREE{" + labels + ",pod=\"p\"} 2\nDCGM_FI_DEV_FB_RESERVED{" + labels + ",pod=\"p\"} 1\nDCGM_FI_DEV_FB_TOTAL{" + labels + ",pod=\"p\",vgpu=\"0\"} 4\n"},
		"the sum of both directions of NVLink stands on the rows of one": {[]Version{V48},
			"dcgm_fi_prof_nvlink_tx_bytes{" + labels + ",a=\"1\"} 1024000\ndcgm_fi_prof_nvlink_rx_bytes{" + labels + ",a=\"2\"} 2048000",
			"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL{" + labels + ",a=\"1\"} 3\nDCGM_FI_PROF_NVLINK_TX_BYTES{" + labels + ",a=\"1\"} 1024000\nDCGM_FI_PROF_NVLINK_RX_BYTES{" + labels + ",a=\"2\"} 2048000\n"},
		"a board without a sensor in its memory": {[]Version{V48},
			"DCGM_FI_DEV_MEMORY_TEMP_CELSIUS{" + labels + "} 0\nDCGM_FI_DEV_GPU_TEMP_CELSIUS{" + labels + "} 0", "DCGM_FI_DEV_GPU_TEMP{" + labels + "} 0\n"},
		"a name with an empty value is left out, all its values": {[]Version{V48},
			"DCGM_FI_DEV_GPU_TEMP_CELSIUS{" + labels + ",team=\"x\",team=\"\"} 40", "DCGM_FI_DEV_GPU_TEMP{" + labels + "} 40\n"},
		"a namespace without a pod is nobody's": {[]Version{V48},
			"DCGM_FI_DEV_GPU_TEMP_CELSIUS{" + labels + ",container=\"c\",namespace=\"s\"} 40", "DCGM_FI_DEV_GPU_TEMP{" + labels + "} 40\n"},
		"absent values are no series, so the next one stands": {[]Version{V48},
			"DCGM_FI_DEV_GPU_TEMP_CELSIUS{" + labels + "} NaN\nDCGM_FI_DEV_GPU_TEMP_CELSIUS{gpu=\"0\", UUID=\"GPU-0\"} 41", "DCGM_FI_DEV_GPU_TEMP{" + labels + "} 41\n"},
		"families of fewer and of more rows": {[]Version{V48},
			"DCGM_FI_DEV_GPU_TEMP_CELSIUS{" + labels + "} 40\nDCGM_FI_DEV_GPU_TEMP_CELSIUS" + other + " 41\nDCGM_FI_DEV_MEMORY_TEMP_CELSIUS{" + labels + "} 42\n" +
				"DCGM_FI_DEV_BOARD_POWER_WATTS{" + labels + "} 43\nDCGM_FI_DEV_BOARD_POWER_WATTS" + other + " 44\n",
			"DCGM_FI_DEV_POWER_USAGE{" + labels + "} 43\nDCGM_FI_DEV_POWER_USAGE" + other + " 44\n" +
				"DCGM_FI_DEV_GPU_TEMP{" + labels + "} 40\nDCGM_FI_DEV_GPU_TEMP" + other + " 41\nDCGM_FI_DEV_MEMORY_TEMP{" + labels + "} 42\n"},
		"the first blank is a blank": {[]Version{V1},
			"DCGM_FI_DEV_XID_ERRORS{" + labels + "} 2147483632\nDCGM_FI_DEV_XID_ERRORS{gpu=\"1\",UUID=\"GPU-1\"} 2147483631",
			"dcgm_xid_errors{gpu=\"1\",uuid=\"GPU-1\"} 2147483631\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReader(t, Options{Compat: test.versions})
			var got strings.Builder
			for line := range strings.Lines(r.render(test.body + "\n")) {
				if line[0] != '#' {
					got.WriteString(line)
				}
			}
			if got.String() != test.want {
				t.Errorf("rendered\n%swant\n%s", got.String(), test.want)
			}
		})
	}
}

// A sample with an old timestamp of its own is no reading, and is not rendered.
func TestOldSamplesAreNotRendered(t *testing.T) {
	for age, want := range map[time.Duration]int{time.Minute: 1, time.Hour: 0} {
		r := translated(t, Options{Compat: []Version{V48}}, `DCGM_FI_DEV_GPU_TEMP_CELSIUS{gpu="0",UUID="GPU-0"} 40 1000000`)
		r.batch.At = time.UnixMilli(1000000).Add(age)
		r.tr.Translate(&r.frame, &r.batch, &r.report)
		var rendition Rendition
		r.tr.Render(&rendition, &r.frame, &r.batch)
		if got := len(r.tr.Rendered()); got != want {
			t.Errorf("%d families of a sample %v old, want %d", got, age, want)
		}
	}
}

// TestOldSamplesBesideOthers: of several families, only what is old is absent. A total that is old
// follows from its parts, but not if another row of it is new.
func TestOldSamplesBesideOthers(t *testing.T) {
	const labels, other, link = `{gpu="0",UUID="GPU-0"} `, `{gpu="0",UUID="GPU-0",other="0"} `, `{gpu="0",UUID="GPU-0",nvlink="0"} `
	const parts = "DCGM_FI_DEV_FB_FREE_BYTES" + labels + "2097152\nDCGM_FI_DEV_FB_RESERVED_BYTES" + labels + "1048576 1000000000000\n"
	const used, total = "DCGM_FI_DEV_FB_USED_BYTES" + other + "1048576\n", "DCGM_FI_DEV_FB_CAPACITY_BYTES"
	const want = "DCGM_FI_DEV_FB_USED" + other + "1\nDCGM_FI_DEV_FB_FREE" + labels + "2\nDCGM_FI_DEV_FB_RESERVED" + labels + "1\nDCGM_FI_DEV_FB_TOTAL"
	for _, test := range []struct{ body, want string }{
		{used + total + labels + "9437184 1000\n" + parts, want + other + "4\n"},
		{total + labels + "9437184\n" + used + parts, want + labels + "9\n"},
		{total + labels + "9437184\n" + total + link + "1 1000\n" + used + parts, want + labels + "9\n"},
		{total + labels + "9437184\n" + used + total + labels + "5242880 1000\n" + parts, want + labels + "9\n"},
		{"DCGM_FI_DEV_SM_CLOCK_HERTZ" + labels + "1e9 1000\nDCGM_FI_DEV_MEMORY_CLOCK_HERTZ" + labels + "2e9\n", "DCGM_FI_DEV_MEM_CLOCK" + labels + "2000\n"},
		{"DCGM_FI_DEV_SM_CLOCK_HERTZ" + labels + "1e9\nDCGM_FI_DEV_MEMORY_CLOCK_HERTZ" + labels + "2e9 1000\n", "DCGM_FI_DEV_SM_CLOCK" + labels + "1000\n"},
	} {
		r := translated(t, Options{Compat: []Version{V48}}, test.body)
		r.batch.At = time.UnixMilli(1_000_000_000_000)
		r.tr.Translate(&r.frame, &r.batch, &r.report)
		var rendition Rendition
		r.tr.Render(&rendition, &r.frame, &r.batch)
		var series []byte
		for family := range rendition.Len() {
			series = rendition.AppendFamily(series, family, false, func(int) bool { return true })
		}
		if string(series) != test.want {
			t.Errorf("rendered\n%swant\n%s", series, test.want)
		}
	}
}

// TestChosenFamilies: if the user chose what of the source is passed on, that alone is the source's
// own text: other families are rendered, even under their own names.
func TestChosenFamilies(t *testing.T) {
	const labels = "{gpu=\"0\",UUID=\"GPU-0\"} "
	const body = "DCGM_FI_PROF_SM_ACTIVE" + labels + "0.5\nDCGM_FI_DEV_GPU_TEMP" + labels + "40\n"
	choose := func([]byte, *raw.Batch) []byte { return nil }
	for _, test := range []struct {
		versions []Version
		whole    bool
		chosen   func([]byte, *raw.Batch) []byte
		families []string
		want     []string
	}{
		{[]Version{V48}, false, nil, nil, nil},
		{[]Version{V48}, false, choose, nil, []string{"DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_PROF_SM_ACTIVE"}},
		{[]Version{V48}, false, choose, []string{"DCGM_FI_DEV_GPU_TEMP"}, []string{"DCGM_FI_PROF_SM_ACTIVE"}},
		{[]Version{V48}, true, choose, []string{"DCGM_FI_DEV_GPU_TEMP"}, []string{"DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_PROF_SM_ACTIVE"}},
		{[]Version{V1}, false, choose, []string{"nobody_knows"}, []string{"dcgm_fi_prof_sm_active", "dcgm_gpu_temp"}},
	} {
		r := newReader(t, Options{Compat: test.versions, CompatAll: test.whole})
		r.read(body)
		r.batch.Chosen, r.batch.Families = test.chosen, test.families
		var rendition Rendition
		if r.tr.Render(&rendition, &r.frame, &r.batch); !slices.Equal(r.tr.Rendered(), test.want) {
			t.Errorf("%q are chosen of %v: %q are rendered, want %q", test.families, test.versions, r.tr.Rendered(), test.want)
		}
	}
}

// TestRenditionIsReused: what a Rendition held before does not show, whatever is read next.
func TestRenditionIsReused(t *testing.T) {
	const a, b, pod = `{gpu="0",UUID="A"}`, `{gpu="1",UUID="B"}`, `{gpu="0",UUID="A",pod="p"}`
	row := func(family string, blocks ...string) (rows string) {
		for i, block := range blocks {
			rows += fmt.Sprintf("%s%s %d\n", family, block, 40+i)
		}
		return rows
	}
	parts := func(blocks ...string) string {
		return row("DCGM_FI_DEV_FB_USED_BYTES", blocks...) + row("DCGM_FI_DEV_FB_FREE_BYTES", blocks...) + row("DCGM_FI_DEV_FB_RESERVED_BYTES", blocks...)
	}
	opts := Options{Compat: []Version{V48, V1}}
	r := newReader(t, opts)
	var rendition Rendition
	for i, step := range []struct {
		body string
		anew bool // in another Dict
	}{
		{row("DCGM_FI_DEV_GPU_TEMP", a, b) + "# HELP DCGM_FI_DEV_FB_TOTAL Total.\n", false},
		{row("DCGM_FI_DEV_GPU_TEMP_CELSIUS", a), false},
		{parts(a, b) + row("DCGM_FI_DEV_FB_CAPACITY_BYTES", a, b), false},
		{parts(a, pod, b), false},
		{parts(a), false},
		{row("DCGM_FI_DEV_GPU_TEMP", a, b) + "# HELP DCGM_FI_DEV_FB_TOTAL Total.\n", false},
		{row("DCGM_FI_DEV_GPU_TEMP_CELSIUS", b), true},
		{parts(b), true},
	} {
		if step.anew {
			r.batch = raw.Batch{Dict: raw.NewDict()}
		}
		fresh := translated(t, opts, step.body)
		var want Rendition
		fresh.tr.Render(&want, &fresh.frame, &fresh.batch)
		r.read(step.body)
		r.tr.Render(&rendition, &r.frame, &r.batch)
		shown := func(int) bool { return true }
		for family := range want.Len() {
			if got, want := rendition.AppendFamily(nil, family, true, shown), want.AppendFamily(nil, family, true, shown); string(got) != string(want) {
				t.Errorf("step %d: rendered\n%swant\n%s", i, got, want)
			}
			if rendition.Begun(family) != want.Begun(family) {
				t.Errorf("step %d: %s is begun: %t", i, want.families[family].name, !want.Begun(family))
			}
		}
	}
}

// TestRendered: the names are sorted, and of the latest reading. A list of them stays as it is.
func TestRendered(t *testing.T) {
	const clock, temperature = "DCGM_FI_DEV_SM_CLOCK_HERTZ{gpu=\"0\",UUID=\"A\"} 1e9\n", "DCGM_FI_DEV_GPU_TEMP_CELSIUS{gpu=\"0\",UUID=\"A\"} 40\n"
	const power = "DCGM_FI_DEV_BOARD_POWER_WATTS{gpu=\"0\",UUID=\"A\"} 70\n"
	r := newReader(t, Options{Compat: []Version{V48}})
	var first []string
	for i, step := range []struct {
		body string
		want []string
	}{
		{clock + power + temperature, []string{"DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_SM_CLOCK"}},
		{temperature + power + clock, []string{"DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_SM_CLOCK"}},
		{power, []string{"DCGM_FI_DEV_POWER_USAGE"}},
		{"", nil},
		{clock, []string{"DCGM_FI_DEV_SM_CLOCK"}},
	} {
		r.render(step.body)
		got := r.tr.Rendered()
		if !slices.Equal(got, step.want) {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
		if i == 0 {
			first = got
		}
		if i == 1 && &got[0] != &first[0] {
			t.Error("the list was made anew without a change")
		}
	}
	if len(first) != 3 || first[0] != "DCGM_FI_DEV_GPU_TEMP" {
		t.Errorf("a list changed after it was handed out: %q", first)
	}
}
