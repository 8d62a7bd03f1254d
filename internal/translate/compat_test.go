package translate

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	c "github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// everyVersion lists all versions.
var everyVersion = []Version{V1, V2, V48, V49}

// rendered returns all of a body in the words of a version, even what the body itself has.
func rendered(t testing.TB, v Version, body string) string {
	t.Helper()
	r := newReader(t, Options{Compat: []Version{v}, CompatAll: true})
	return r.render(body)
}

// render reads a body, and returns its rendition.
func (r *reader) render(body string) string {
	r.t.Helper()
	r.read(body)
	var rendition Rendition
	if !r.tr.Render(&rendition, &r.frame, &r.batch) {
		r.t.Fatal("nothing is rendered")
	}
	var text []byte
	for family := range rendition.Len() {
		text = rendition.AppendFamily(text, family, true, func(int) bool { return true })
	}
	return string(text)
}

// seriesOf returns the values of a text by series, with the labels in order and without
// empty ones.
func seriesOf(t testing.TB, text string) map[string]float64 {
	t.Helper()
	list := map[string]float64{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		end := strings.LastIndexByte(line, ' ')
		if line == "" || line[0] == '#' {
			continue
		}
		name, block, _ := strings.Cut(line[:end], "{")
		labels := exposition.ParseLabels("{"+block, nil)
		slices.SortFunc(labels, func(a, b exposition.Label) int { return cmp.Compare(a.Name, b.Name) })
		for _, l := range labels {
			if l.Value != "" {
				name += " " + l.Name + "=" + strconv.Quote(l.Value)
			}
		}
		value, err := strconv.ParseFloat(line[end+1:], 64)
		if _, twice := list[name]; twice || err != nil {
			t.Errorf("%s: twice %v, %v", line, twice, err)
		}
		list[name] = value
	}
	return list
}

// Every row of the dialect with the exporter's names has a name and a unit in the versions
// that have such names: otherwise it could not be served under its old name.
func TestEveryRowHasAnInverse(t *testing.T) {
	quantities, ofRow := newQuantities()
	rules, err := newRuleSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range dialect {
		row, q := &dialect[i], &quantities[ofRow[i]]
		for _, name := range row.Names {
			for _, v := range everyVersion {
				if (v == V1) != strings.HasPrefix(name, oldPrefix) || v != V1 && !strings.HasPrefix(name, newPrefix) {
					continue
				}
				w := q.worded[v]
				if w.name == "" || w.unit == "" || w.unit == percentOrRatio {
					t.Errorf("%s: %s says %q in %q", name, v, w.name, w.unit)
				}
			}
		}
	}
	for _, v := range everyVersion {
		seen := map[string]bool{}
		for i := range quantities {
			w := quantities[i].worded[v]
			if w.name == "" {
				continue
			}
			if rule := rules.byName[w.name]; seen[w.name] || rule == nil || rule.quantity != i {
				t.Errorf("%s: %s is %+v, not quantity %d (said twice: %v)", v, w.name, rule, i, seen[w.name])
			}
			seen[w.name] = true
		}
	}
}

// The names before and since the renames of DCGM 4.6 are those of 4.8 and 4.9, unless 4.9
// has a base unit. The list is NVIDIA's.
func TestVersionsUseTheirNames(t *testing.T) {
	list, err := os.ReadFile("../../testdata/dcgm-renames.tsv")
	if err != nil {
		t.Fatal(err)
	}
	renames := 0
	for line := range strings.Lines(string(list)) {
		columns := strings.Fields(line)
		if len(columns) != 3 || columns[0] == "#" {
			continue
		}
		rules, _ := newRuleSet(nil)
		rule := rules.byName[columns[1]]
		if rule == nil || rule.quantity < 0 {
			continue
		}
		renames++
		q := rules.quantities[rule.quantity]
		if got := q.worded[V2].name; got != columns[1] {
			t.Errorf("2.x says %s, want %s", got, columns[1])
		}
		if got := q.worded[V49]; got.name != columns[2] && got.unit == q.worded[V48].unit {
			t.Errorf("4.9 says %s, want %s", got.name, columns[2])
		}
	}
	if renames < 15 {
		t.Errorf("%d renames looked at", renames)
	}
}

// worded returns the fields that a version has names for.
func worded(v Version) (fields [c.NumFields]bool) {
	quantities, _ := newQuantities()
	for i := range quantities {
		fields[quantities[i].field] = fields[quantities[i].field] || quantities[i].worded[v].name != ""
	}
	return fields
}

// checkReadsBack reads text, which is the reading in r in the words of a version, and
// compares devices, workloads and values.
func (r *reader) checkReadsBack(v Version, text string) {
	r.t.Helper()
	again := translated(r.t, Options{}, text)
	fields, index := worded(v), indexOf(again.frame.Topology.Devices)
	for i := range r.frame.Topology.Devices {
		d := &r.frame.Topology.Devices[i]
		row := r.frame.Row(i)
		at, ok := index[keyOf(d)]
		for f, said := range fields {
			if !said || !c.Given(row[f]) {
				continue
			}
			if !ok {
				r.t.Fatalf("%s has no %+v", v, *d)
			}
			if got := again.frame.Row(at)[f]; got != row[f] {
				r.t.Errorf("%s: %s of %s is %v, want %v", v, c.Fields[f].Name, d.UUID+" "+d.Instance, got, row[f])
			}
		}
	}
	workloads := func(r *reader) (list []string) {
		for _, a := range r.frame.AllocationSet.Allocations {
			d := &r.frame.Topology.Devices[a.Device]
			list = append(list, d.UUID+"/"+d.Instance+"/"+a.Namespace+"/"+a.Pod+"/"+a.Container+"/"+a.Job)
		}
		slices.Sort(list)
		return list
	}
	if got, want := workloads(again), workloads(r); !slices.Equal(got, want) {
		r.t.Errorf("%s: workloads %q, want %q", v, got, want)
	}
}

// quantityBody returns a value of every quantity that a version has a name for, in its
// unit, on a board, on a MIG instance and on a board that two pods share.
func quantityBody(v Version) string {
	rows := []string{
		`gpu="0",UUID="GPU-0",pci_bus_id="0:1",device="nvidia0",modelName="M \\ \"q\"",hostname="n",hpc_job="7",app="x"`,
		`gpu="1",UUID="GPU-1",device="nvidia1",GPU_I_PROFILE="1g.10gb",GPU_I_ID="3",Hostname="n",pod="p",namespace="s",container="c"`,
		`gpu="2",UUID="GPU-2",exported_pod="a",exported_namespace="s",exported_container="c",pod="exporter",namespace="gpu",vgpu="0"`,
		`gpu="2",UUID="GPU-2",exported_pod="b",exported_namespace="s",exported_container="c",pod="exporter",namespace="gpu",vgpu="1"`,
	}
	var body strings.Builder
	quantities, _ := newQuantities()
	for i := range quantities {
		w := quantities[i].worded[v]
		if w.name == "" {
			continue
		}
		body.WriteString(v.header(&quantities[i]))
		rule := newRule(quantities[i].field, w.unit, 0)
		for n, row := range rows {
			value := float64(1 + (i*7+n*13)%97)
			if w.unit == Ratio {
				value /= 100
			}
			if rule.highest == 1 && w.unit != Ratio && w.unit != Percent {
				value = float64(n % 2)
			}
			body.WriteString(w.name + "{" + row + "} " + strconv.FormatFloat(value, 'g', -1, 64) + "\n")
		}
	}
	return body.String()
}

// Captures of exporters read back from each version too. Families that the exporter itself
// serves are not rendered.
func TestCapturesReadBack(t *testing.T) {
	for _, g := range goldens {
		t.Run(g.file, func(t *testing.T) {
			body := testdata(t, g.file)
			for _, v := range everyVersion {
				r := newReader(t, Options{Compat: []Version{v}, CompatAll: true})
				text := r.render(body)
				if strings.Contains(body, "uuid=") || strings.Contains(body, "UUID=") {
					r.checkReadsBack(v, text)
				}
				rest := newReader(t, Options{Compat: []Version{v}}).render(body)
				own := "\n" + body
				for series := range seriesOf(t, rest) {
					name, _, _ := strings.Cut(series, " ")
					if strings.Contains(own, "\n"+name+"{") {
						t.Errorf("%s: %s is served by the exporter itself", v, name)
					}
				}
			}
		})
	}
}

// Rendering in one version and then in another is the same as rendering in the other at once:
// no label, row or digit is lost on the way.
func TestThereAndBack(t *testing.T) {
	bodies := map[string]string{"quantities of 4.8": quantityBody(V48), "quantities of 4.9": quantityBody(V49), "every-field.prom": testdata(t, "every-field.prom")}
	for _, g := range goldens {
		bodies[g.file] = testdata(t, g.file)
	}
	for name, body := range bodies {
		for _, way := range [][2]Version{{V49, V48}, {V48, V49}} {
			want := seriesOf(t, rendered(t, way[1], body))
			got := seriesOf(t, rendered(t, way[1], rendered(t, way[0], body)))
			if strings.Contains(body, "entity=") {
				continue // without a uuid, rows of dmon are of no device to an exporter's readers
			}
			if !maps.Equal(got, want) {
				t.Errorf("%s by way of %s: %d series, want %d:\n%v\nwant\n%v", name, way[0], len(got), len(want), got, want)
			}
		}
	}
}

// TestNamesIn: a name is that of the version, and left out if it is there already.
func TestNamesIn(t *testing.T) {
	for _, test := range []struct {
		version  Version
		families string
		want     string
	}{
		{V49, "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_SM_UTIL_RATIO"},
		{V49, "DCGM_FI_PROF_SM_ACTIVE DCGM_FI_PROF_SM_UTIL_RATIO", ""},
		{V48, "dcgm_fi_prof_sm_active dcgm_fb_used DCGM_FI_DEV_FB_USED_BYTES nobody_knows", "DCGM_FI_DEV_FB_USED DCGM_FI_PROF_SM_ACTIVE"},
		{V1, "DCGM_FI_DEV_FB_TOTAL nvlink_limit_bytes_per_second", ""},
	} {
		if got := NamesIn(test.version, strings.Fields(test.families)); !slices.Equal(got, strings.Fields(test.want)) {
			t.Errorf("%s in %s: %q, want %q", test.families, test.version, got, test.want)
		}
	}
}
