package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// marked is a variable that all processes of a world have in their environment.
const marked = "FAULT_SUITE_WORLD="

// startDriven starts a program that drives a dcgmi of one GPU, ten samples a second. dcgmi dmon
// first runs the file that breaksDcgmi writes.
func startDriven(t *testing.T, f fault) *world {
	t.Helper()
	w := &world{T: t, fault: f, dir: t.TempDir(), url: "dcgmi@" + dcgmtest.FarHost}
	w.dcgmi = dcgmtest.Wrap(t, measures(before), `[ -e "$0.fault" ] && [ "$1" = dmon ] && . "$0.fault"`+"\nexec \"$0.real\" \"$@\"\n")
	for name, text := range f.files {
		w.write(name, text)
	}
	w.finally = w.leavesNoProcess
	w.start([]string{"PATH=" + filepath.Dir(w.dcgmi), marked + w.dir}, append([]string{"--backend=dcgm", "--poll=100ms", "--dcgm.host=" + dcgmtest.FarHost}, f.flags...)...)
	return w
}

// measures returns a node with a GPU of this temperature, and its failures.
func measures(celsius int, failures ...dcgmtest.Failure) dcgmtest.Scenario {
	gpus := dcgmtest.Boards(1)
	gpus[0].UUID = "GPU-1"
	return dcgmtest.Scenario{GPUs: gpus, Readings: []dcgmtest.Reading{{Field: 150, Value: float64(celsius)}}, Failures: failures}
}

// fails makes dcgmi fail like this from its next sample on.
func fails(failures ...dcgmtest.Failure) func(*world) {
	return func(w *world) {
		w.Helper()
		measures(during, failures...).Write(w, dcgmtest.Beside(w.dcgmi+".real"))
	}
}

// breaksDcgmi kills the running dcgmi; its successors run this script first. They alone report the
// temperature of the fault: a reading of the killed one does not pass for theirs.
func breaksDcgmi(script string) func(*world) {
	return func(w *world) {
		w.Helper()
		if err := os.WriteFile(w.dcgmi+".fault", []byte(script), 0o600); err != nil {
			w.Fatal(err)
		}
		w.signal(syscall.SIGKILL)
		fails()(w)
	}
}

// mends undoes fails and breaksDcgmi.
func mends(w *world) {
	w.Helper()
	measures(after).Write(w, dcgmtest.Beside(w.dcgmi+".real"))
	_ = os.Remove(w.dcgmi + ".fault")
}

// signal sends a signal to the children of the program.
func (w *world) signal(sig syscall.Signal) {
	w.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", w.child.Cmd.Process.Pid))
	if err != nil || lists == nil {
		w.Fatal("cannot see the children of the program: ", err)
	}
	for _, list := range lists {
		pids, _ := os.ReadFile(list)
		for _, pid := range strings.Fields(string(pids)) {
			if n, err := strconv.Atoi(pid); err == nil {
				_ = syscall.Kill(n, sig) // it may just have ended
			}
		}
	}
}

// leavesNoProcess waits until no process started by the program is left.
func (w *world) leavesNoProcess() {
	w.Helper()
	w.until(func() string {
		environments, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, file := range environments {
			if env, err := os.ReadFile(file); err == nil && strings.Contains(string(env), marked+w.dir+"\x00") {
				command, _ := os.ReadFile(filepath.Dir(file) + "/cmdline")
				return fmt.Sprintf("a process is left: %q", command)
			}
		}
		return ""
	})
}

// down is a dcgmi without readings, with its error.
func down(kind source.Failure, says ...string) seen {
	return seen{status: 502, kind: kind, says: says}
}

func childFaults() []fault {
	failure := func(kind dcgmtest.Kind) dcgmtest.Failure { return dcgmtest.Failure{Kind: kind} }
	hung := down(source.Broken, "hangs, no row for", "was ended")
	return []fault{
		{does: "dcgmi is killed, again and again", begin: fails(failure(dcgmtest.Die)), seen: down(source.Broken, "was killed by a signal (killed)")},
		{does: "dcgmi exits with status 0 at once", begin: fails(failure(dcgmtest.Exit)), seen: down(source.Broken, "ended with exit status 0")},
		{does: "the host engine dies", begin: fails(failure(dcgmtest.HostEngineDies), failure(dcgmtest.HostEngineDown)), seen: down(source.HostEngineUnavailable, "systemctl start nvidia-dcgm")},
		{does: "the host engine has no data", begin: fails(failure(dcgmtest.NoData)), seen: down(source.Broken, "the host engine has no readings of these GPUs")},
		{does: "dcgmi hangs", begin: fails(failure(dcgmtest.Hang)), seen: hung},
		{does: "dcgmi hangs, and ignores SIGTERM", begin: fails(dcgmtest.Failure{Kind: dcgmtest.Hang, IgnoreTerm: true}), seen: hung},
		{does: "dcgmi is suspended", begin: func(w *world) { w.signal(syscall.SIGSTOP) }, end: func(w *world) { w.signal(syscall.SIGCONT) },
			seen: seen{status: 502, says: []string{"has been silent for"}}},
		{does: "dcgmi prints garbage between its rows", begin: fails(dcgmtest.Failure{Kind: dcgmtest.Garbage, Text: "\x1b[31mwhat is this\xff\n"}), seen: seen{says: []string{temperature(during)}, lacks: []string{"what is this"}}},
		{does: "dcgmi floods its stderr", begin: breaksDcgmi("yes flood >&2 &\n"), seen: seen{says: []string{temperature(during)}, lacks: []string{"flood\nflood"}}},
		{does: "dcgmi leaves a process that holds its output", begin: breaksDcgmi("sleep 1000 &\nexit 0\n"), seen: down(source.Broken, "ended with exit status 0")},
		{does: "dcgmi is removed", begin: func(w *world) { w.moves(w.dcgmi, w.dcgmi+".away") }, end: func(w *world) { w.moves(w.dcgmi+".away", w.dcgmi) }, seen: down(source.HostEngineUnavailable, "was not found", "datacenter-gpu-manager")},
		{does: "dcgmi can no longer be executed", begin: func(w *world) { w.mode(0o600) }, end: func(w *world) { w.mode(0o755) }, seen: down(source.HostEngineUnavailable, "was not found", "executable for this user")},
		{does: "dcgmi is replaced by a file that is not a program", begin: func(w *world) {
			w.moves(w.dcgmi, w.dcgmi+".away")
			w.write(filepath.Base(w.dcgmi), "\x00\x01\x02")
			w.moves(filepath.Join(w.dir, filepath.Base(w.dcgmi)), w.dcgmi)
			w.mode(0o755)
		}, end: func(w *world) { w.moves(w.dcgmi+".away", w.dcgmi) }, seen: down(source.HostEngineUnavailable, "cannot be started", "see what it is: file")},
		{does: "the GPU falls off the bus", begin: fails(dcgmtest.Failure{Kind: dcgmtest.GPULost, GPU: 0}), seen: seen{says: []string{went}, lacks: []string{"kpulse_gpu_temperature_celsius{"}}},
		{does: "the job directory disappears", flags: []string{"--hpc-job-mapping-dir=jobs"}, files: map[string]string{"jobs/0": "4711\n"}, begin: and(removes("jobs"), fails()), seen: seen{says: []string{temperature(during), `kpulse_gpu_allocations{hostname="n",gpu="0",uuid="GPU-1"} 0`}}},
	}
}

// moves renames a file and kills the running dcgmi.
func (w *world) moves(from, to string) {
	w.Helper()
	if err := os.Rename(from, to); err != nil {
		w.Fatal(err)
	}
	w.signal(syscall.SIGKILL)
}

// mode sets the permissions of dcgmi and kills the running one.
func (w *world) mode(mode os.FileMode) {
	w.Helper()
	if err := os.Chmod(w.dcgmi, mode); err != nil {
		w.Fatal(err)
	}
	w.signal(syscall.SIGKILL)
}
