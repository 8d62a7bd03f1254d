package translate

import (
	"strings"
	"testing"
)

// A board's fabric comes from labels of any row, and its clique also from values, of the
// board or of an instance. The topology changes with the clique.
func TestFabric(t *testing.T) {
	const clique = "DCGM_FI_DEV_FABRIC_CLIQUE_ID"
	value := func(labels, v string) string { return clique + "{" + labels + "} " + v + "\n" }
	a, cut := `gpu="0",UUID="A"`, `gpu="1",UUID="B",GPU_I_ID="3",GPU_I_PROFILE="1g.10gb"`
	labelled := `,DCGM_FI_DEV_FABRIC_CLUSTER_UUID="11-22",` + clique + `="7"`
	r := newReader(t, Options{})
	for i, step := range []struct{ body, want string }{
		{temp(a, 40), "/"},
		{temp(a+labelled, 40), "11-22/7"},
		{temp(a+labelled, 40) + value(a+labelled, "8"), "11-22/7"}, // the label goes first
		{temp(a, 40) + value(`nvswitch="1"`, "3"), "/"},
		{temp(a, 40) + value(a, "0"), "/0"},
		{"TMPTR{gpu=\"0\",entity=\"GPU 0\"} 40\nFMCID{gpu=\"0\",entity=\"GPU 0\"} 5\n", "/5"},
		{value(a, "4294967294") + temp(a, 40), "/4294967294"},
		{value(a, "5") + temp(a, 40) + value(a+`,pod="p",namespace="n"`, "5"), "/5"},
		{temp(a, 40) + value(a+`,pod="p",namespace="n"`, "6") + value(a, "6"), "/6"},
		{value(a, "9223372036854775794") + temp(a, 40), "/"}, // the vendor's blank
		{value(a, "2147483632") + temp(a, 40), "/"},
		{value(a, "-1") + temp(a, 40), "/"},
		{value(a, "1.5") + temp(a, 40), "/"},
		{value(a, "NaN") + temp(a, 40), "/"},
		{value(a, "+Inf") + temp(a, 40), "/"},
		{value(a, "00000000-0000-0000-0000-000000000001") + temp(a, 40), "/"}, // malformed
		{temp(a, 40) + temp(cut, 50) + value(cut, "3"), "/ /3 /"},
		{temp(a, 40) + temp(cut, 50), "/ / /"},
		{temp(a, 40) + temp(cut+labelled, 50), "/ 11-22/7 11-22/7"},
	} {
		r.read(step.body)
		before := r.frame.Topology
		var got []string
		for _, d := range before.Devices {
			got = append(got, d.Cluster+"/"+d.Clique)
		}
		if g := strings.Join(got, " "); g != step.want {
			t.Errorf("step %d: %q, want %q", i, g, step.want)
		}
		if r.read(step.body); r.frame.Topology != before || len(r.report.UnknownFamilies) > 0 {
			t.Errorf("step %d: the topology changes without cause, or %q are unknown", i, r.report.UnknownFamilies)
		}
		if n := testing.AllocsPerRun(5, func() { r.tr.Translate(&r.frame, &r.batch, &r.report) }); n != 0 {
			t.Errorf("step %d: %v allocations", i, n)
		}
	}
}
