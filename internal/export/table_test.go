package export

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// snapshot has a busy board, and a MIG instance with its implied board.
func snapshot() *View {
	var s canonical.Snapshot
	s.Frame.Shape(&canonical.Topology{Devices: []canonical.Device{
		{Hostname: "n1", GPU: "0", UUID: "GPU-a", Model: "NVIDIA H100"},
		{Hostname: "n1", GPU: "1", UUID: "GPU-b", Implied: true},
		{Hostname: "n1", GPU: "1", UUID: "GPU-b", Instance: "7", Profile: "1g.10gb", Board: 1},
	}})
	busy := s.Frame.Row(0)
	busy[canonical.NVMLUtilization] = 0.97
	busy[canonical.SMActive] = 0.805
	busy[canonical.FramebufferUsed] = 3 << 29
	busy[canonical.FramebufferTotal] = 80 << 30
	busy[canonical.Power] = 412.4
	busy[canonical.PowerLimit] = 700
	busy[canonical.Temperature] = 0 // a reading, unlike an absent one
	s.Frame.Row(1)[canonical.PowerLimit] = 400
	s.Frame.Row(2)[canonical.FramebufferUsed] = 1 << 29
	s.Verdicts = []canonical.Verdict{
		{RealUtilization: 0.66, Class: canonical.TensorHeavyCompute, Health: canonical.HealthOK},
		{RealUtilization: math.NaN(), Class: canonical.ClassUnknown, Health: canonical.HealthWarn},
		{RealUtilization: math.NaN(), Class: canonical.ClassUnknown, Health: canonical.HealthUnknown},
	}
	for _, i := range []int{1, 2} { // the findings of an instance are ignored
		s.Verdicts[i].Findings.Set(canonical.CondPCIeReplay, canonical.Raised)
		s.Verdicts[i].Findings.Set(canonical.CondPowerBrake, canonical.Raised)
		s.Verdicts[i].Findings.Set(canonical.CondXIDFatal, canonical.Clear)
	}
	return &View{Snapshot: &s}
}

func TestTable(t *testing.T) {
	const want = `
HOST  GPU  MODEL          REAL  CLASS                 HEALTH  GPU-UTIL  SM   TENSOR  DRAM  MEMORY        POWER      TEMP  MEM-TEMP  CONDITIONS
n1    0    NVIDIA H100    66%   tensor_heavy_compute  ok      97%       80%  --      --    1.5/80.0 GiB  412/700 W  0 °C  --        --
n1    1    --             --    --                    warn    --        --   --      --    --            --/400 W   --    --        pcie_replay,power_brake
n1    1:7    MIG 1g.10gb  --    unknown               --      --        --   --      --    0.5 GiB       --         --    --        --
`
	var out strings.Builder
	if err := Table(&out, snapshot()); err != nil {
		t.Fatal(err)
	}
	if got := "\n" + out.String(); got != want {
		t.Errorf("got%swant%s", got, want)
	}
}

func TestTableOfNothing(t *testing.T) {
	var out strings.Builder
	if err := Table(&out, &View{Snapshot: &canonical.Snapshot{}}); err != nil || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("got %q, %v; want the titles alone", out.String(), err)
	}
}

// closed is a pipe whose reader has gone.
type closed struct{}

var errClosed = errors.New("closed")

func (closed) Write([]byte) (int, error) { return 0, errClosed }

func TestTableReportsErrors(t *testing.T) {
	if err := Table(closed{}, snapshot()); !errors.Is(err, errClosed) {
		t.Errorf("got %v", err)
	}
}
