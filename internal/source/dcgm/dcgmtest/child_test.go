package dcgmtest_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

func TestHang(t *testing.T) {
	s := node("4.6.0", dcgmtest.Boards(1)...)
	s.Failures = []dcgmtest.Failure{{Kind: dcgmtest.Hang, After: 2, Bytes: 3, IgnoreTerm: true}}
	c := start(t, dcgmtest.Install(t, s), "dmon -e 155 -d 1")
	buf := make([]byte, 0, 512) // for two header lines, two samples and three bytes
	for want := 4*(16+18+1) + 3; len(buf) < want; {
		n, err := c.out.Read(buf[len(buf):cap(buf)])
		if err != nil {
			t.Fatal(err)
		}
		buf = buf[:len(buf)+n]
	}
	if !strings.HasSuffix(string(buf), "\nGPU") {
		t.Errorf("%q", buf)
	}
	for range 20 {
		c.signal(syscall.SIGTERM)
	}
	c.signal(syscall.SIGKILL)
	if lines, status := c.rest(); status.Signal() != syscall.SIGKILL || lines != nil {
		t.Errorf("status %v after %q", status, lines)
	}
}

func TestDie(t *testing.T) {
	s := node("4.6.0", dcgmtest.Boards(1)...)
	s.Failures = []dcgmtest.Failure{{Kind: dcgmtest.Die, After: 3}}
	lines, status := start(t, dcgmtest.Install(t, s), "dmon -e 155 -d 1").rest()
	if !status.Signaled() || status.Signal() != syscall.SIGKILL || len(lines) != 5 {
		t.Errorf("status %v after %q", status, lines)
	}
}

// TestScenarioChanges changes values and the MIG instances of a board while dmon
// runs: dmon shows the new values, and keeps its entities.
func TestScenarioChanges(t *testing.T) {
	s := node("4.6.0", dcgmtest.Boards(1)[0].Cut(2))
	exe := dcgmtest.Install(t, s)
	c := start(t, exe, "dmon -e 155 -d 5 -i 0,i:0,i:1")
	c.until("GPU-I 1")
	s.Readings = []dcgmtest.Reading{{Field: 155, Value: 123.456}}
	s.Write(t, dcgmtest.Beside(exe))
	c.until("GPU 0           123.456")
	s.GPUs = []dcgmtest.GPU{dcgmtest.Boards(1)[0].Cut(1)}
	s.Write(t, dcgmtest.Beside(exe))
	c.until("GPU-I 1         N/A")
	c.until("GPU-I 0         123.456")
	s.Failures = []dcgmtest.Failure{{Kind: dcgmtest.HostEngineDies}}
	s.Write(t, dcgmtest.Beside(exe))
	if _, status := c.rest(); status.ExitStatus() != 235 {
		t.Errorf("exit %d", status.ExitStatus())
	}
	s.Failures = nil
	s.Write(t, dcgmtest.Beside(exe))
	if got := runExe(t, exe, "dmon -e 155 -c 1 -i 0,i:0,i:1"); !strings.Contains(got.stderr, "adding GPU_I 1") {
		t.Errorf("a new start still has the old instances: %+v", got)
	}
}

func TestFakeGoesWithItsScenario(t *testing.T) {
	exe := dcgmtest.Install(t, node("4.6.0", dcgmtest.Boards(1)...))
	c := start(t, exe, "dmon -e 155 -d 10")
	c.until("GPU 0")
	if err := os.Remove(dcgmtest.Beside(exe)); err != nil {
		t.Fatal(err)
	}
	if _, status := c.rest(); status.ExitStatus() != 97 {
		t.Errorf("exit %d", status.ExitStatus())
	}
	if got := runExe(t, exe, "dmon -e 155"); got.code != 97 || !strings.Contains(got.stderr, "write one") {
		t.Errorf("without a scenario: %+v", got)
	}
}

func TestStartLog(t *testing.T) {
	s := node("4.6.0", dcgmtest.Boards(1)...)
	s.StartLog = filepath.Join(t.TempDir(), "starts")
	if starts := dcgmtest.Starts(t, s.StartLog); starts != nil {
		t.Errorf("before any: %v", starts)
	}
	exe := dcgmtest.Install(t, s)
	runExe(t, exe, "dmon -e 155 -c 1")
	runExe(t, exe, "discovery -l")
	starts := dcgmtest.Starts(t, s.StartLog)
	if len(starts) != 2 || starts[0].PID == starts[1].PID || strings.Join(starts[0].Args, " ") != "dmon -e 155 -c 1" {
		t.Errorf("%+v", starts)
	}
}

// TestLosses loses two of four boards for three samples.
func TestLosses(t *testing.T) {
	s := node("4.6.0", dcgmtest.Boards(4)...)
	s.GPUs[2] = s.GPUs[2].Cut(1)
	s.Failures = []dcgmtest.Failure{
		{Kind: dcgmtest.GPULost, GPU: 1, After: 2, Until: 5}, {Kind: dcgmtest.GPULost, GPU: 2, After: 2, Until: 5},
	}
	sample := map[string]int{}
	for line := range strings.Lines(run(t, s, "dmon -e 155,250 -c 8 -d 1 -i 0,1,2,3,i:14").stdout) {
		words := strings.Fields(line)
		if !strings.HasPrefix(line, "GPU") {
			continue
		}
		entity := words[0] + " " + words[1]
		tick := sample[entity]
		sample[entity]++
		gone := entity != "GPU 0" && entity != "GPU 3" && tick >= 2 && tick < 5
		if got := words[2] == "N/A" && words[3] == "N/A"; got != gone {
			t.Errorf("sample %d: %s", tick, line)
		}
	}
	if len(sample) != 5 || sample["GPU-I 14"] != 8 {
		t.Errorf("samples %v", sample)
	}
}

func TestGarbage(t *testing.T) {
	s := node("4.6.0", dcgmtest.Boards(2)...)
	s.Readings = []dcgmtest.Reading{{Value: 1}}
	s.Failures = []dcgmtest.Failure{
		{Kind: dcgmtest.Garbage, Text: "\x00what\n", After: 1, Until: 2}, {Kind: dcgmtest.GluedRows, After: 2, Until: 3},
	}
	row0, row1 := "GPU 0           1.000             ", "GPU 1           1.000             "
	equal(t, run(t, s, "dmon -e 155 -c 3 -d 1").stdout,
		header155+row0+"\n"+row1+"\n"+"\x00what\n"+row0+"\n"+row1+"\n"+row0+row1+"\n")
}
