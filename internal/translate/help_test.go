package translate

import (
	"strings"
	"testing"
)

// TestRenderedHelp: families of the exporter's counters files, up to 4.8, have its HELP; all
// others have ours, which says so.
func TestRenderedHelp(t *testing.T) {
	quantities, _ := newQuantities()
	of48 := map[string]bool{}
	for i := range quantities {
		q := &quantities[i]
		name := q.worded[V48].name
		of48[name] = true
		for v := range numVersions {
			own, known := exporterHelp[name]
			help := q.help(v)
			if known = known && v != V49; known != (help == own) || known == strings.HasSuffix(help, renderedMark) {
				t.Errorf("%s of %s has the help %q", q.worded[v].name, v, help)
			}
			if strings.Contains(help, ". (") || strings.Contains(help, ".;") {
				t.Errorf("the help %q has a full stop within a sentence", help)
			}
			if (strings.Contains(help, "%") || strings.Contains(help, "percent")) != (q.worded[v].unit == Percent) {
				t.Errorf("%s of %s, in %s, has the help %q", q.worded[v].name, v, q.worded[v].unit, help)
			}
		}
	}
	for name := range exporterHelp {
		if !of48[name] {
			t.Errorf("%s is not a family of 4.8", name)
		}
	}
}

// HELP and TYPE appear once and in the words of the version. A family is begun if the source
// has its HELP, even without a sample.
func TestRenderedHeaders(t *testing.T) {
	const sample = "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL{gpu=\"0\",UUID=\"GPU-0\"} 2\nDCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL{gpu=\"1\",UUID=\"GPU-1\"} 3\n"
	r := newReader(t, Options{Compat: []Version{V48}})
	want := "# HELP DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION Total energy consumption since boot (in mJ).\n" +
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
