package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// jobs is the script for Slurm with fake programs, as a fault runs it.
func (w *world) jobs(programs map[string]string) jobScript { return newJobScript(w.T, programs) }

// calls runs the script with each environment, all at once.
func (s jobScript) calls(w *world, call string, environs ...[]string) {
	w.Helper()
	var all sync.WaitGroup
	for _, environ := range environs {
		cmd := s.command(w.T, call, append(environ, "KPULSE_JOBS_ASK=0")...)
		all.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				w.Errorf("kpulse-jobs %s: %v\n%s", call, err, out)
			}
		})
	}
	all.Wait()
}

// holds checks the jobs on a GPU, and the files of jobs.
func (s jobScript) holds(w *world, gpu string, want, files []string) {
	w.Helper()
	text, _ := os.ReadFile(filepath.Join(s.dir, "map", gpu))
	if got := slices.Sorted(slices.Values(strings.Fields(string(text)))); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		w.Errorf("on GPU %s: %d jobs %q, want %d", gpu, len(got), got, len(want))
	}
	there, _ := filepath.Glob(s.dir + "/info/[0-9]*")
	for i, file := range there {
		there[i] = filepath.Base(file)
	}
	if slices.Sort(there); !slices.Equal(there, slices.Sorted(slices.Values(files))) {
		w.Errorf("files of %d jobs %q, want %d", len(there), there, len(files))
	}
}

// busy keeps two cores busy until the end of the test.
func (w *world) busy() {
	w.Helper()
	for range 2 {
		loop := exec.Command("/bin/sh", "-c", "while :; do :; done")
		loop.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := loop.Start(); err != nil {
			w.Fatal(err)
		}
		w.Cleanup(func() { _ = loop.Process.Kill(); _ = loop.Wait() })
	}
}

// folders is a program that reads the folders of jobs, of the job 7 of ada.
var folders = fault{flags: []string{"--hpc-job-info-dir=info"}, files: map[string]string{"info/7": "user=ada\n"}}

// holdsSeven is an exporter whose GPU the job 7 holds.
var holdsSeven = says(strings.ReplaceAll(reading(during), "}", `,hpc_job="7"}`))

// jobFaults are those of the script that notes the jobs of Slurm. The program beside it serves all the time.
func jobFaults() []fault {
	well := seen{says: []string{temperature(during)}}
	row := func(does string, inflict func(*world)) fault { return fault{does: does, begin: inflict, seen: well} }
	refused := func(does string, begin func(*world), why string) fault {
		f := folders
		f.does, f.begin, f.exporter = does, begin, holdsSeven
		f.seen = seen{says: well.says, lacks: []string{`hpc_user="ada"`}, log: []string{"cannot read the job info directory info: " + why}, page: []string{why}}
		return f
	}
	return []fault{
		refused("others may write to the folder of jobs that the program reads", func(w *world) {
			if err := os.Chmod(filepath.Join(w.dir, "info"), 0o777); err != nil {
				w.Fatal(err)
			}
			w.until(func() string { return w.logs("others may write to it") })
		}, "others may write to it"),
		refused("the folder of jobs that the program reads is replaced by a link", func(w *world) {
			if err := os.Rename(filepath.Join(w.dir, "info"), filepath.Join(w.dir, "else")); err != nil {
				w.Fatal(err)
			}
			if err := os.Symlink("else", filepath.Join(w.dir, "info")); err != nil {
				w.Fatal(err)
			}
			w.until(func() string { return w.logs("it is a link") })
		}, "it is a link"),
		row("a hundred jobs begin at once, and end at once", func(w *world) {
			s := w.jobs(map[string]string{})
			w.busy()
			var ids []string
			var environs [][]string
			for i := range 100 {
				id := strconv.Itoa(i + 1)
				ids, environs = append(ids, id), append(environs, jobOn(id, "0-1"))
			}
			s.calls(w, "begin", environs...)
			s.holds(w, "0", ids, ids)
			s.holds(w, "1", ids, ids)
			s.calls(w, "end", environs...)
			s.holds(w, "0", nil, nil)
			s.holds(w, "1", nil, nil)
		}),
		row("a process holds the lock, and a job begins", func(w *world) {
			s := w.jobs(map[string]string{"flock": `[ -e "$D/free" ] && exec /usr/bin/flock "$@"; exit 1`})
			s.calls(w, "begin", jobOn("7", "0"))
			s.holds(w, "0", nil, []string{"7"})
			if log, _ := os.ReadFile(s.dir + "/log"); !strings.Contains(string(log), s.dir+"/info/.lock for 30 s") {
				w.Errorf("logged %q", log)
			}
			if err := os.WriteFile(s.dir+"/free", nil, 0o600); err != nil {
				w.Fatal(err)
			}
			s.calls(w, "sweep", nil)
			s.holds(w, "0", []string{"7"}, []string{"7"})
		}),
		row("a prolog never ran", func(w *world) {
			s := w.jobs(map[string]string{"squeue": `[ "$5" != R ] || echo 7 gpu physics ada; [ "$5" != R ] || echo 8 gpu physics eve`,
				"scontrol": `case $* in
*hostnames*) echo n1; echo n2 ;;
*" 7") printf 'JobId=7 JobName=x\n   JOB_GRES=gpu:2\n     Nodes=n[1-2] CPU_IDs=0 Mem=0 GRES=gpu:h100:2(IDX:0,2-3)\n   Command=x\n' ;;
*" 8") printf 'JobId=8 JobName=x\n     Nodes=n2 CPU_IDs=0 Mem=0 GRES=gpu:h100:1(IDX:1)\n     Nodes=n2 CPU_IDs=0 Mem=0 GRES=gpu:h100:4(IDX:0-3)\n' ;;
esac`})
			s.run(w.T, "sweep", "SLURMD_NODENAME=n2")
			for gpu, want := range map[string][]string{"0": {"7"}, "1": nil, "2": {"7"}, "3": {"7"}} { // what a user forges is not believed
				s.holds(w, gpu, want, []string{"7"})
			}
			if text, _ := os.ReadFile(s.dir + "/info/7"); !strings.HasPrefix(string(text), "user=ada\naccount=physics\npartition=gpu\n") {
				w.Errorf("job 7 is %q", text)
			}
		}),
		row("a user names a process as Slurm does", func(w *world) {
			s := w.jobs(map[string]string{"ps": `case $* in *ruid*) echo '  1000 slurmstepd: [7.batch]' ;; esac; echo 'slurmstepd: [7.batch]'`})
			s.calls(w, "begin", jobOn("7", "0"))
			s.run(w.T, "sweep", "KPULSE_JOBS_GRACE=0", "KPULSE_JOBS_ASK=0", "KPULSE_JOBS_MAX_AGE=0")
			s.holds(w, "0", nil, nil)
		}),
		row("the disk is full when a job ends", func(w *world) {
			if os.Getuid() != 0 {
				w.Skip("mounts a file system: as root")
			}
			s := w.jobs(map[string]string{"squeue": "echo 7 RUNNING 0 gpu physics"})
			if err := os.Mkdir(s.dir+"/map", 0o755); err != nil {
				w.Fatal(err)
			}
			if err := syscall.Mount("none", s.dir+"/map", "tmpfs", 0, "size=64k,mode=0755"); err != nil {
				w.Skip("cannot mount a file system: ", err)
			}
			w.Cleanup(func() { _ = syscall.Unmount(s.dir+"/map", 0) })
			s.calls(w, "begin", jobOn("7", "0"))
			s.calls(w, "begin", jobOn("8", "0-1"))
			fill, err := os.Create(s.dir + "/map/.full")
			for err == nil {
				_, err = fill.Write(make([]byte, 4096))
			}
			_ = fill.Close()
			s.calls(w, "end", jobOn("7", "0"))
			s.holds(w, "0", []string{"7", "8"}, []string{"7", "8"})
			_ = os.Remove(s.dir + "/map/.full")
			s.calls(w, "end", jobOn("7", "0"))
			s.holds(w, "0", []string{"8"}, []string{"8"})
		}),
		row("others may write to the folders of jobs, or they are links", func(w *world) {
			for _, folder := range []string{"map", "info"} {
				for does, change := range map[string]func(dir string) error{
					"others may write":  func(dir string) error { return os.Chmod(dir, 0o777) },
					"a group may write": func(dir string) error { return os.Chmod(dir, 0o775) },
					"a link":            func(dir string) error { return os.Symlink(dir+".else", dir) },
				} {
					s := w.jobs(map[string]string{})
					dir := filepath.Join(s.dir, folder)
					made := dir
					if does == "a link" {
						made += ".else"
					}
					err := os.Mkdir(made, 0o755)
					if err == nil {
						err = change(dir)
					}
					if err != nil {
						w.Fatal(err)
					}
					s.calls(w, "begin", jobOn("7", "0"))
					log, _ := os.ReadFile(s.dir + "/log")
					if found, _ := filepath.Glob(s.dir + "/map*/0"); found != nil || !strings.Contains(string(log), fmt.Sprintf("cannot write to %s safely", dir)) {
						w.Errorf("%s of %s: %q, logged %q", does, folder, found, log)
					}
				}
			}
		}),
	}
}
