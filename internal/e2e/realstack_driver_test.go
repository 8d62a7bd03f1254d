package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestRealStackMIGUncut: boards in MIG mode without instances are read whole, in all series. Only
// the driver is tested: over the mock, which has no instance profiles, the host engine does not
// start, because it queries profiles forever.
func TestRealStackMIGUncut(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"h100", "a100"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			n := newRealNode(t, "", profile, "mode_current: disabled", "mode_current: enabled", "mode_pending: disabled", "mode_pending: enabled")
			boards := n.boards(t)
			if mode := boards[7].at("mig.mode_current"); mode != "enabled" {
				t.Fatalf("MIG mode is %v", mode)
			}
			c := n.startNVML(t)
			awaitTruth(t, c, "nvml", boards)
			if _, body := page(t, c, "/metrics"); strings.Contains(body, "mig_instance=") {
				t.Error("there are instances")
			}
			if log := c.Logged(); strings.Contains(log, "MIG") {
				t.Errorf("the log mentions MIG:\n%s", log)
			}
		})
	}
}

// playedProcess is a process in the boards' YAML: "C" computes, "G" draws.
type playedProcess struct {
	pid, mebibytes int
	kind           string
}

// playedProcesses returns the processes in a board's YAML.
func (b boardYAML) playedProcesses() (all []playedProcess) {
	list, _ := b.at("processes").([]any)
	for _, entry := range list {
		p, _ := entry.(map[string]any)
		pid, _ := p["pid"].(int)
		mebibytes, _ := p["used_memory_mib"].(int)
		kind, _ := p["type"].(string)
		all = append(all, playedProcess{pid, mebibytes, kind})
	}
	return all
}

// withProcesses returns a node of 8 boards, each with a process that draws, except board 5, which
// has two that compute: one runs, one has exited.
func withProcesses(t *testing.T) (n *realNode, running int) {
	t.Helper()
	running = linger(t, []string{"train.py"})
	own := fmt.Sprintf("  uuid: GPU-01000100-0000-0000-0000-000000000005\n  processes: [{pid: %d, type: C, used_memory_mib: 3072}, {pid: %d, type: C, used_memory_mib: 17}]", running, 1<<22+5)
	return newRealNode(t, dcgm4, "h100",
		"  uuid: GPU-01000100-0000-0000-0000-000000000005", own,
		"processes: []", fmt.Sprintf("processes: [{pid: %d, type: G, used_memory_mib: 1}]", 1<<22+1)), running
}

// TestRealStackProcesses: the driver's processes are those in the boards' YAML.
func TestRealStackProcesses(t *testing.T) {
	t.Parallel()
	n, running := withProcesses(t)
	kinds := map[string]string{"C": "compute", "G": "graphics"}
	commands := map[int]string{running: "sh"}
	var want []string
	for _, b := range n.boards(t) {
		for _, p := range b.playedProcesses() {
			want = append(want, fmt.Sprint(b.index, b.at("uuid"), p.pid, kinds[p.kind], p.mebibytes*mebibyte, commands[p.pid]))
		}
	}
	if len(want) != 9 {
		t.Fatalf("the YAML has %d processes", len(want))
	}
	c := n.startNVML(t, "--collector.processes")
	awaitPage(t, c, "/metrics", 200, present(7, 1))
	body := awaitPage(t, c, "/api/v1/processes", 200, `"sh"`) // a busy machine may take longer than is waited for
	var answer processAnswer
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Incomplete != "" {
		t.Fatalf("%v\n%s", err, body)
	}
	var got []string
	for _, p := range answer.Processes {
		got = append(got, fmt.Sprint(p.GPU, p.UUID, p.PID, p.Kind, p.Memory, p.Command))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestRealStackProcessesNeedNvidiaSMI: dcgmi and the host engine do not list processes. The proxy
// reports that nvidia-smi, which the stack lacks, is missing.
func TestRealStackProcessesNeedNvidiaSMI(t *testing.T) {
	t.Parallel()
	n, _ := withProcesses(t)
	if path, err := exec.LookPath("nvidia-smi"); err == nil {
		t.Skipf("%s lists the processes of this machine", path)
	}
	n.startEngine(t)
	c := n.startDCGM(t, "--collector.processes")
	awaitPage(t, c, "/metrics", 200, present(7, 1))
	if code, body := page(t, c, "/api/v1/processes"); code == http.StatusOK || !strings.Contains(body, "nvidia-smi, which lists processes, was not found") {
		t.Errorf("%d %s", code, body)
	}
}
