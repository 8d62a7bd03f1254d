package translate

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
)

// While families and rows stay the same, a rendition and its text allocate nothing.
func TestSteadyRenditionAllocatesNothing(t *testing.T) {
	bodies := map[string]string{
		"boards":    string(rawtest.Body(8, 60, 1)),
		"instances": string(rawtest.Body(112, 60, 1)),
		"pods":      withPods(rawtest.Body(16, 60, 1), 3),
		"base":      testdata(t, "exporter-4.9-base-units.prom"),
		"shared":    testdata(t, "time-slicing-two-pods.prom"),
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			r := translated(t, Options{Compat: everyVersion}, body)
			all := func(int) bool { return true }
			var rendition Rendition
			text := make([]byte, 0, 16<<20)
			steady := func() {
				r.tr.Translate(&r.frame, &r.batch, &r.report)
				r.tr.Render(&rendition, &r.frame, &r.batch)
				text = text[:0]
				for family := range rendition.Len() {
					text = rendition.AppendFamily(text, family, true, all)
				}
			}
			if n := testing.AllocsPerRun(10, steady); n != 0 {
				t.Errorf("%v allocations", n)
			}
			if len(text) == 0 || len(r.tr.Rendered()) == 0 {
				t.Error("nothing is rendered")
			}
		})
	}
}

// TestRendering renders single samples.
func TestRendering(t *testing.T) {
	const labels = `gpu="0",UUID="GPU-0"`
	for name, test := range map[string]struct {
		versions   []Version
		body, want string
	}{
		"a new name gives the old one": {[]Version{V48},
			`DCGM_FI_DEV_SM_CLOCK_HERTZ{` + labels + `} 1.98e+09`,
			"DCGM_FI_DEV_SM_CLOCK{" + labels + "} 1980\n"},
		"blank and impossible readings are absent": {[]Version{V48},
			"DCGM_FI_DEV_GPU_TEMP_CELSIUS{" + labels + "} 9223372036854775794\nDCGM_FI_DEV_MEMORY_UTIL_RATIO{" + labels + "} 7\nDCGM_FI_DEV_BOARD_POWER_WATTS{" + labels + "} NaN", ""},
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

// TestRenditionIsSmall: rows, and values in SI, are there once, whatever the number of versions
// and families, unless there are many orders of rows.
func TestRenditionIsSmall(t *testing.T) {
	row := func(gpus ...int) (rows string) {
		for _, gpu := range gpus {
			rows += fmt.Sprintf("FAMILY{gpu=\"%[1]d\",UUID=\"GPU-%[1]d\"} 40\n", gpu)
		}
		return rows
	}
	for name, test := range map[string]struct {
		groups             []string
		rows, values, runs int
	}{
		"one family":                   {[]string{row(0, 1)}, 2, 2, 2},
		"the same rows":                {[]string{row(0, 1), row(0, 1)}, 2, 4, 4},
		"other rows":                   {[]string{row(0, 1), row(1, 0)}, 4, 4, 4},
		"the first rows again":         {[]string{row(0, 1), row(1, 0), row(0, 1)}, 4, 6, 6},
		"the eighth rows again":        {[]string{row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7), row(7)}, 8, 9, 18},
		"the ninth are not remembered": {[]string{row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7), row(8), row(8), row(0)}, 10, 11, 22},
	} {
		names := []string{
			"dcgm_gpu_temp", "dcgm_power_usage", "dcgm_xid_errors", "dcgm_pcie_replay_counter", "dcgm_retired_pages_dbe", "dcgm_retired_pages_sbe",
			"dcgm_retired_pages_pending", "dcgm_memory_temp", "dcgm_nvlink_replay_error_count_total", "dcgm_nvlink_recovery_error_count_total",
			"dcgm_nvlink_flit_crc_error_count_total",
		}
		var body strings.Builder
		for i, group := range test.groups {
			body.WriteString(strings.ReplaceAll(group, "FAMILY", names[i]))
		}
		r := translated(t, Options{Compat: []Version{V2, V49}}, body.String())
		var rendition Rendition
		r.tr.Render(&rendition, &r.frame, &r.batch)
		if rows, values, runs := len(rendition.rows.blocks), len(rendition.values), len(rendition.runs); rows != test.rows || values != test.values || runs != test.runs {
			t.Errorf("%s: %d rows, %d values, %d runs; want %d, %d, %d", name, rows, values, runs, test.rows, test.values, test.runs)
		}
	}
}

// TestEveryFamilyBegins: a family of a version is begun if the source has it.
func TestEveryFamilyBegins(t *testing.T) {
	for _, v := range everyVersion {
		quantities, _ := newQuantities()
		for i := range quantities {
			name := quantities[i].worded[v].name
			if name == "" {
				continue
			}
			r := translated(t, Options{Compat: []Version{v}}, name+"{gpu=\"0\",UUID=\"A\"} 1\n")
			var rendition Rendition
			r.tr.Render(&rendition, &r.frame, &r.batch)
			for family := range rendition.Len() {
				f := &rendition.families[family]
				if f.name == "" {
					t.Fatalf("family %d of %s has no name", family, f.version)
				}
				if is := f.version == v && f.name == name; rendition.Begun(family) != is {
					t.Errorf("%s of %s is begun by %s: %t", f.name, f.version, name, !is)
				}
			}
		}
	}
}

// TestRenderingAfterCompaction: families and texts that the Dict forgets are gone, and ids that it
// assigns again mean what they mean now.
func TestRenderingAfterCompaction(t *testing.T) {
	const clock, temperature = "DCGM_FI_DEV_SM_CLOCK_HERTZ{gpu=\"9\",UUID=\"Z\"} 1e9\n", "DCGM_FI_DEV_GPU_TEMP_CELSIUS{gpu=\"0\",UUID=\"A\"} 40\n"
	r := newReader(t, Options{Compat: []Version{V48}})
	r.render(clock + temperature)
	d := r.batch.Dict
	family, block := d.FamilyID([]byte("DCGM_FI_DEV_SM_CLOCK_HERTZ")), d.BlockID([]byte(`{gpu="9",UUID="Z"}`))
	d.Compact(func(id uint32) bool { return id != family }, func(id uint32) bool { return id != block })
	if got, want := r.render(temperature), rendered(t, V48, temperature); got != want {
		t.Errorf("rendered\n%swant\n%s", got, want)
	}
	if n := len(r.tr.compat.blocks[V48]); n != 1 {
		t.Errorf("%d texts are kept, want 1", n)
	}
}

// TestOwnNamesAreRendered: readings under the user's names have the exporter's, too; substitutes
// do not.
func TestOwnNamesAreRendered(t *testing.T) {
	r := newReader(t, Options{Compat: []Version{V48}, Rows: []Row{
		{Field: canonical.Power, Unit: Watts, Names: []string{"acme_power"}},
		{Field: canonical.SMActive, Unit: Percent, Names: []string{"acme_sm"}},
		{Field: canonical.Temperature, Unit: Celsius, Fallback: true, Names: []string{"acme_hotspot"}},
	}})
	got := seriesOf(t, r.render("acme_power{gpu=\"0\",UUID=\"A\"} 12\nacme_sm{gpu=\"0\",UUID=\"A\"} 43\nacme_hotspot{gpu=\"0\",UUID=\"A\"} 90\n"))
	want := map[string]float64{`DCGM_FI_DEV_POWER_USAGE UUID="A" gpu="0"`: 12, `DCGM_FI_PROF_SM_ACTIVE UUID="A" gpu="0"`: 0.43}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Versions that are not asked for cost nothing and render nothing.
func TestNoCompat(t *testing.T) {
	r := translated(t, Options{}, testdata(t, "v4.9.prom"))
	if r.tr.Render(&Rendition{}, &r.frame, &r.batch) || r.tr.Rendered() != nil {
		t.Error("something is rendered")
	}
	for _, word := range []string{"", "4", "3", "4.80", "latest"} {
		if v, err := ParseVersion(word); err == nil {
			t.Errorf("%q is %v", word, v)
		}
	}
	for _, v := range everyVersion {
		if got, err := ParseVersion(v.String()); got != v || err != nil {
			t.Errorf("%v reads as %v, %v", v, got, err)
		}
	}
}

// A value in SI, written in any unit, reads back: exactly if it was a short decimal in some
// unit of the field, else to about the last bit.
func FuzzWrite(f *testing.F) {
	f.Add(57.0, uint8(0), uint8(0))
	f.Add(15152422.938, uint8(26), uint8(3))
	f.Add(math.Nextafter(0.1, 1), uint8(4), uint8(1))
	f.Add(1e299, uint8(9), uint8(2))
	quantities, _ := newQuantities()
	f.Fuzz(func(t *testing.T, v float64, n, version uint8) {
		q := &quantities[int(n)%len(quantities)]
		w := q.worded[version%uint8(numVersions)]
		if w.name == "" || v-v != 0 || v < 0 || v > 1e15 {
			return
		}
		rule := newRule(q.field, w.unit, 0)
		written := rule.write(v)
		if again := written * rule.times / rule.per; again != v && math.Abs(again-v) > 4e-16*v && v > 1e-290 {
			t.Errorf("%v is written as %v of %s, which reads as %v", v, written, w.unit, again)
		}
		whole := math.Floor(v)
		if si := whole * rule.times / rule.per; rule.write(si) != whole && whole < 1<<50 {
			t.Errorf("%v %s reads as %v, which is written as %v", whole, w.unit, si, rule.write(si))
		}
	})
}

// Whatever the labels and numbers, a rendition reads back as the reading was, except for NUL
// in a label, which is written as U+FFFD.
func FuzzRender(f *testing.F) {
	f.Add(`gpu="0",UUID="GPU-0",pod="a"`, `gpu="0",UUID="GPU-0",pod="b",hpc_job="1"`, 57.0, 100.0, uint8(1))
	f.Add(`gpu="1",uuid="x\"",GPU_I_ID="2",Hostname="\\"`, `gpu="1",gpu_uuid="x",entity="GPU 1"`, 0.5, 1.0, uint8(2))
	f.Add(`GPU="1",UUID="y",exported_pod="p",pod_name="q"`, `gpu="1",UUID="y",container="c"`, 1e9, 3.0, uint8(3))
	f.Add(`gpu="0",uuid="z",a="",a="1",a="2"`, `gpu="1",UUID="y"`, 6.0, 3.0, uint8(2))
	f.Fuzz(func(t *testing.T, first, second string, a, b float64, version uint8) {
		if strings.ContainsAny(first+second, "\n\r\x00") {
			return
		}
		// Within every range, since a workload whose readings are all refused is not rendered,
		// and whole, since other numbers read back to about the last bit: see FuzzWrite.
		a, b = math.Floor(math.Mod(math.Abs(a), 100)), math.Floor(math.Mod(math.Abs(b), 100))
		if a != a || b != b {
			return
		}
		v := Version(version % uint8(numVersions))
		var body strings.Builder
		for _, name := range []string{"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_SM_CLOCK_HERTZ", "dcgm_fb_used", "DCGM_FI_DEV_FB_USED_BYTES", "DCGM_FI_PROF_SM_ACTIVE"} {
			body.WriteString(name + "{" + first + "} " + rounded(a) + "\n" + name + "{" + second + "} " + rounded(b) + "\n")
		}
		r := newReader(t, Options{Compat: []Version{v}, CompatAll: true})
		text := r.render(body.String())
		if text == "" || !everyDeviceNamed(r) {
			return
		}
		r.checkReadsBack(v, text)
	})
}

// everyDeviceNamed reports whether all devices have a uuid. Without one, rows of dmon are of
// no device to an exporter's readers.
func everyDeviceNamed(r *reader) bool {
	for i := range r.frame.Topology.Devices {
		if r.frame.Topology.Devices[i].UUID == "" {
			return false
		}
	}
	return true
}

// rounded writes a number with the six decimals of an exporter.
func rounded(v float64) string { return strconv.FormatFloat(v, 'f', 6, 64) }

// A rendition that is being served does not change while later readings add pods and GPUs.
func TestRenditionsDoNotChange(t *testing.T) {
	row := func(n int) string {
		return fmt.Sprintf("DCGM_FI_DEV_GPU_TEMP_CELSIUS{gpu=\"%[1]d\",UUID=\"GPU-%[1]d\",pod=\"p%[1]d\"} %[1]d\n", n)
	}
	r := newReader(t, Options{Compat: []Version{V48, V1}})
	body := row(1)
	want := r.render(body)
	var served, next Rendition
	r.read(body)
	r.tr.Render(&served, &r.frame, &r.batch)
	text := func() (text string) {
		for family := range served.Len() {
			text += string(served.AppendFamily(nil, family, true, func(int) bool { return true }))
		}
		return text
	}
	done := make(chan bool)
	go func() {
		defer close(done)
		for range 100 {
			if got := text(); got != want {
				t.Errorf("served\n%swant\n%s", got, want)
				return
			}
		}
	}()
	for n := range 100 {
		body += row(2 + n)
		r.read(body)
		r.tr.Render(&next, &r.frame, &r.batch)
	}
	<-done
	if got := text(); got != want {
		t.Errorf("served\n%swant\n%s", got, want)
	}
}

// Families with the same rows share them. Families with other rows, more of them than are
// compared, and families with a row twice still have the values of their own rows.
func TestRowsAreShared(t *testing.T) {
	names := []string{
		"DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_MEM_CLOCK", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_MEMORY_TEMP", "DCGM_FI_DEV_POWER_USAGE",
		"DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_MEM_COPY_UTIL", "DCGM_FI_DEV_ENC_UTIL",
		"DCGM_FI_DEV_DEC_UTIL", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
	}
	const gpus = 13
	for _, step := range []int{0, 1} { // rows in one order, and in another for each family
		var body strings.Builder
		want := map[string]float64{}
		for i, name := range names {
			for j := range gpus + 1 { // the last is the first again, with another value
				gpu := (j + i*step) % gpus
				fmt.Fprintf(&body, "%s{gpu=\"%d\",UUID=\"GPU-%d\"} %d\n", name, gpu, gpu, 40+i+j)
				if series := fmt.Sprintf(`%s UUID="GPU-%d" gpu="%d"`, name, gpu, gpu); j < gpus {
					want[series] = float64(40 + i + j)
				}
			}
		}
		if got := seriesOf(t, rendered(t, V48, body.String())); !maps.Equal(got, want) {
			t.Errorf("rows shifted by %d: %v, want %v", step, got, want)
		}
	}
}
