package translate

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

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
			r := translated(t, Options{Compat: slices.Concat(everyVersion, []Version{Jobstats})}, body)
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
	for _, word := range []string{"", "4", "4.", "5", "4.80", "4.10", "v4.8", "latest"} {
		if v, err := ParseVersion(word); err == nil {
			t.Errorf("%q is %v", word, v)
		}
	}
	for word, want := range map[string]Version{"1": V1, "1.7.2": V1, "2.4": V2, "3": V2, "3.3.9": V2, "4.0": V48, "4.5.2": V48, "4.9.0": V49, "jobstats": Jobstats} {
		if v, err := ParseVersion(word); v != want || err != nil {
			t.Errorf("%s is %v, %v", word, v, err)
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
