package export

import (
	"errors"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

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

// TestNarrowTable leaves columns out until the lines fit, the least needed first.
func TestNarrowTable(t *testing.T) {
	for _, test := range []struct {
		width         int
		titles, lacks string
	}{
		{200, "HOST GPU MODEL REAL CLASS HEALTH GPU-UTIL SM TENSOR DRAM MEMORY POWER TEMP MEM-TEMP CONDITIONS", ""},
		{145, "HOST GPU MODEL REAL CLASS HEALTH GPU-UTIL SM TENSOR DRAM MEMORY POWER TEMP CONDITIONS", "MEM-TEMP"},
		{80, "GPU REAL CLASS HEALTH GPU-UTIL CONDITIONS", "MEM-TEMP DRAM TENSOR SM HOST MODEL TEMP POWER MEMORY"},
		{20, "GPU REAL CLASS HEALTH GPU-UTIL", "MEM-TEMP DRAM TENSOR SM HOST MODEL TEMP POWER MEMORY CONDITIONS"},
	} {
		v := snapshot()
		v.Width = test.width
		var out strings.Builder
		left, err := Table(&out, v)
		first, _, _ := strings.Cut(out.String(), "\n")
		if got := strings.Join(strings.Fields(first), " "); err != nil || got != test.titles || strings.Join(left, " ") != test.lacks {
			t.Errorf("%d: %s, without %v (%v)", test.width, got, left, err)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSpace(line)); n > max(test.width, 60) {
				t.Errorf("%d: %d columns: %s", test.width, n, line)
			}
		}
	}
}

func TestTable(t *testing.T) {
	const want = `
HOST  GPU  MODEL          REAL  CLASS                 HEALTH  GPU-UTIL  SM   TENSOR  DRAM  MEMORY        POWER      TEMP  MEM-TEMP  CONDITIONS
n1    0    NVIDIA H100    66%   tensor_heavy_compute  ok      97%       80%  --      --    1.5/80.0 GiB  412/700 W  0 °C  --        --
n1    1    --             --    --                    warn    --        --   --      --    --            --/400 W   --    --        pcie_replay,power_brake
n1    1:7    MIG 1g.10gb  --    unknown               --      --        --   --      --    0.5 GiB       --         --    --        --
`
	var out strings.Builder
	if _, err := Table(&out, snapshot()); err != nil {
		t.Fatal(err)
	}
	if got := "\n" + out.String(); got != want {
		t.Errorf("got%swant%s", got, want)
	}
}

func TestTableOfNothing(t *testing.T) {
	var out strings.Builder
	if _, err := Table(&out, &View{Snapshot: &canonical.Snapshot{}}); err != nil || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("got %q, %v; want the titles alone", out.String(), err)
	}
}

// closed is a pipe whose reader has gone.
type closed struct{}

var errClosed = errors.New("closed")

func (closed) Write([]byte) (int, error) { return 0, errClosed }

func TestTableReportsErrors(t *testing.T) {
	if _, err := Table(closed{}, snapshot()); !errors.Is(err, errClosed) {
		t.Errorf("got %v", err)
	}
}
