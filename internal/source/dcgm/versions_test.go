package dcgm_test

import (
	"fmt"
	"os/exec"
	"slices"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// The tables of every release, printed by a program that was written without a look at the
// parsers.
func TestReleases(t *testing.T) {
	s := dcgmtest.Scenario{GPUs: dcgmtest.Boards(4)}
	s.GPUs[1] = s.GPUs[1].Cut(3)
	s.GPUs[3] = s.GPUs[3].Cut(7)
	exe := dcgmtest.Install(t, s)
	run := func(args ...string) []byte {
		out, err := exec.CommandContext(t.Context(), exe, args...).Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return out
	}
	for _, version := range []string{"3.3.9", "4.2.3", "4.4.2", "4.6.0"} {
		s.Version = version
		s.Write(t, dcgmtest.Beside(exe))
		n := dcgm.Parse(&dcgm.Outputs{Discovery: run("discovery", "-l"), Hierarchy: run("discovery", "-c")})
		var got, want []string
		for _, d := range n.Devices {
			got = append(got, fmt.Sprintf("%s %s %s %s %v/%s/%d", d.GPU, d.UUID, d.Model, d.PCIBusID, d.Inactive, d.Instance, d.Entity))
		}
		for _, g := range s.GPUs {
			board := fmt.Sprintf("%d %s %s %s false", g.Index, g.UUID, g.Name, g.BusID)
			want = append(want, fmt.Sprintf("%s//%d", board, g.Index))
			for _, i := range g.Instances {
				want = append(want, fmt.Sprintf("%s/%d/%d", board, i.ID, i.Entity))
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", version, got, want)
		}
	}
}

// The tables of our fields and of dcgmi's were written independently.
func TestFieldsAreThoseOfDCGM(t *testing.T) {
	release, before := dcgmtest.Scenario{Version: "4.6.0"}.Release(), dcgmtest.Scenario{Version: "4.0.0"}.Release()
	for _, f := range dcgm.Fields {
		if !f.InDmon() {
			continue
		}
		want, ok := dcgmtest.FieldByID(release, f.ID)
		if !ok || f.Column != want.Column || f.Float != want.Float || (f.Stream == dcgm.ProfilingStream) != dcgmtest.Profiling(f.ID) {
			t.Errorf("%+v, but dcgmi has %+v", f, want)
		}
		if _, old := dcgmtest.FieldByID(before, f.ID); f.Recent == old && !f.Unprintable {
			t.Errorf("%d is Recent: %v, in DCGM 4.0: %v", f.ID, f.Recent, old)
		}
	}
}
