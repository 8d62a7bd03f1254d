package rawtest_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
)

// series scans body and returns the name and labels of its samples, in order.
func series(t *testing.T, body []byte) []string {
	t.Helper()
	b := raw.Batch{Body: body, Dict: raw.NewDict()}
	new(raw.Scanner).Scan(&b)
	if b.Skipped > 0 {
		t.Errorf("%d malformed lines", b.Skipped)
	}
	var out []string
	for _, s := range b.Samples {
		out = append(out, b.Dict.Family(s.Family).Name+b.Dict.Block(s.Labels))
	}
	return out
}

func TestBody(t *testing.T) {
	for _, c := range []struct {
		entities, families int
		has                string
	}{
		{0, 0, ""},
		{8, 4, `DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="7",UUID="GPU-`},
		{112, 60, `device="nvidia15",modelName="NVIDIA H100 80GB HBM3",GPU_I_PROFILE="1g.10gb",GPU_I_ID="13",Hostname="`},
		{1024, 2, `pci_bus_id="00000003:FF:00.0"`},
		{1, 70, `DCGM_FI_DEV_X69{gpu="0"`},
	} {
		one := series(t, rawtest.Body(c.entities, c.families, 1))
		distinct := map[string]bool{}
		for _, s := range one {
			distinct[s] = true
		}
		if want := c.entities * c.families; len(one) != want || len(distinct) != want {
			t.Errorf("%dx%d: %d samples of %d series, want %d", c.entities, c.families, len(one), len(distinct), want)
		}
		if !strings.Contains(strings.Join(slices.Collect(maps.Keys(distinct)), "\n"), c.has) {
			t.Errorf("%dx%d: no series has %s", c.entities, c.families, c.has)
		}
		two := series(t, rawtest.Body(c.entities, c.families, 2))
		if c.families > 3 && slices.Equal(one, two) {
			t.Errorf("%dx%d: another seed gives the same order", c.entities, c.families)
		}
		slices.Sort(one)
		slices.Sort(two)
		if !slices.Equal(one, two) {
			t.Errorf("%dx%d: another seed gives other series", c.entities, c.families)
		}
	}
	if !bytes.Equal(rawtest.Body(3, 9, 5), rawtest.Body(3, 9, 5)) {
		t.Error("one seed gives two bodies")
	}
}
