package dcgm_test

import (
	"fmt"
	"os/exec"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgmi/dcgmitest"
)

// The tables of every release, as a program prints them that was written without
// a look at the parsers.
func TestReleases(t *testing.T) {
	s := dcgmitest.Scenario{GPUs: dcgmitest.Boards(4), Switches: 2, ConnectX: 1, CPUs: 1}
	s.GPUs[1] = s.GPUs[1].Cut(3)
	s.GPUs[3] = s.GPUs[3].Cut(7)
	exe := dcgmitest.Install(t, s)
	run := func(args ...string) []byte {
		out, err := exec.CommandContext(t.Context(), exe, args...).Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return out
	}
	for _, version := range []string{"3.3.9", "4.2.3", "4.4.2", "4.6.0"} {
		s.Version = version
		s.Write(t, dcgmitest.Beside(exe))
		n := dcgm.Parse(&dcgm.Outputs{Discovery: run("discovery", "-l"), Hierarchy: run("discovery", "-c")})
		if len(n.Boards) != len(s.GPUs) {
			t.Fatalf("%s: %d boards", version, len(n.Boards))
		}
		for i, want := range s.GPUs {
			got := n.Boards[i]
			if got.Entity != want.Index || got.UUID != want.UUID || got.Model != want.Name || got.PCIBusID != want.BusID || got.Inactive {
				t.Errorf("%s: %+v, want %+v", version, got, want)
			}
			var is, wants []string
			for _, instance := range got.Instances {
				is = append(is, fmt.Sprint(instance.Entity, instance.ID, instance.Computes))
			}
			for _, instance := range want.Instances {
				wants = append(wants, fmt.Sprint(instance.Entity, instance.ID, len(instance.Compute)))
			}
			if fmt.Sprint(is) != fmt.Sprint(wants) {
				t.Errorf("%s: instances %v of GPU %d, want %v", version, is, i, wants)
			}
		}
	}
}
