package translate

import (
	"testing"
)

// HELP and TYPE appear once and in the words of the version. A family is begun if the source
// has its HELP, even without a sample.
func TestRenderedHeaders(t *testing.T) {
	const sample = "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL{gpu=\"0\",UUID=\"GPU-0\"} 2\nDCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL{gpu=\"1\",UUID=\"GPU-1\"} 3\n"
	r := newReader(t, Options{Compat: []Version{V48}})
	want := "# HELP DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION Energy used by the board since the driver was loaded (in mJ); rendered by kpulse-proxy.\n" +
		"# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\nDCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"0\",UUID=\"GPU-0\"} 2000\n" +
		"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"1\",UUID=\"GPU-1\"} 3000\n"
	if got := r.render(sample); got != want {
		t.Errorf("rendered\n%swant\n%s", got, want)
	}
	var rendition Rendition
	r.read("# HELP DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION Energy.\n" + sample)
	r.tr.Render(&rendition, &r.frame, &r.batch)
	begun := 0
	for family := range rendition.Len() {
		if rendition.Begun(family) {
			begun++
			none := func(int) bool { return false }
			if got := rendition.AppendFamily(nil, family, true, none); len(got) > 0 {
				t.Errorf("%s is rendered of a device that is not shown", got)
			}
		}
	}
	if begun != 1 {
		t.Errorf("%d families are begun by the source, want 1", begun)
	}
	// Nothing of the source itself is served.
	r = translated(t, Options{Compat: []Version{V48}, CompatAll: true}, "# HELP DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION Energy.\n"+sample)
	r.tr.Render(&rendition, &r.frame, &r.batch)
	for family := range rendition.Len() {
		if rendition.Begun(family) {
			t.Errorf("%s is begun by a source that is not served", rendition.families[family].name)
		}
	}
}
