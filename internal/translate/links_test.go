package translate

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// rowOfLink is a row of dcgm-exporter 4.8.2 on GB300.
func rowOfLink(family, uuid string, link int, value string) string {
	return fmt.Sprintf("%s{nvlink=\"%d\",gpu=\"0\",gpu_uuid=%q,pci_bus_id=\"00000000:0A:00.0\",device=\"nvidia0\",model_name=\"NVIDIA GB300 NVL\",hostname=\"n\"} %s\n",
		family, link, uuid, value)
}

// Rows of links give the count of links that are up, and no device.
func TestLinksUp(t *testing.T) {
	const state, status = "DCGM_FI_DEV_NVLINK_GET_STATE", "DCGM_FI_DEV_NVLINK_LINK_STATUS"
	all := ""
	for i := range 18 {
		all += rowOfLink(state, "A", i, "1")
	}
	a, b := temp(`gpu="0",UUID="A"`, 40), temp(`gpu="1",UUID="B"`, 50)
	cut := temp(`gpu="0",UUID="A",GPU_I_ID="3",GPU_I_PROFILE="1g.10gb"`, 50)
	nan := math.NaN()
	r := newReader(t, Options{})
	for i, step := range []struct {
		body string
		want []float64
	}{
		{a + b, []float64{nan, nan}},
		{all, nil},
		{all + a + b, []float64{18, nan}},
		{a + strings.Replace(all, "} 1", "} 0", 1), []float64{17}},
		{a + strings.ReplaceAll(all, "} 1", "} 0"), []float64{0}},
		{a + b + all + rowOfLink(status, "B", 3, "1"), []float64{18, 1}},
		{cut + all, []float64{18, nan}}, // the board is known from its instance alone
		{a + rowOfLink(state, "A", 1, "1") + rowOfLink(state, "A", 1, "1"), []float64{1}},
		{a + rowOfLink(state, "A", 1, "0") + rowOfLink(state, "A", 1, "1"), []float64{0}},
		{a + rowOfLink(state, "A", 1, "9223372036854775794") + rowOfLink(state, "A", 2, "1"), []float64{1}},
		{a + rowOfLink(state, "A", 1, "9223372036854775794"), []float64{nan}},
		{a + rowOfLink(state, "A", 64, "1") + rowOfLink(state, "A", -1, "1") + rowOfLink(state, "", 1, "1"), []float64{nan}},
		{a + strings.Replace(rowOfLink(state, "A", 1, "1"), "gpu=", `nvswitch="2",gpu=`, 1), []float64{nan}},
		{a + rowOfLink("DCGM_FI_DEV_NVLINK_OF_TOMORROW", "A", 1, "1"), []float64{nan}},
		{a + "nvlink_links_active{gpu=\"0\",UUID=\"A\"} 12\n" + all, []float64{12}}, // counted by the source itself
	} {
		r.read(step.body)
		var got []float64
		for d := range r.frame.Len() {
			got = append(got, r.frame.Row(d)[canonical.NVLinksActive])
		}
		if fmt.Sprint(got) != fmt.Sprint(step.want) || len(r.report.UnknownFamilies) > 0 {
			t.Errorf("step %d: %v links, want %v; %q are unknown", i, got, step.want, r.report.UnknownFamilies)
		}
		if n := testing.AllocsPerRun(5, func() { r.tr.Translate(&r.frame, &r.batch, &r.report) }); n != 0 {
			t.Errorf("step %d: %v allocations", i, n)
		}
	}
}
