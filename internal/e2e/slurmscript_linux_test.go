package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// jobScript is deploy/slurm/kpulse-jobs with fake programs instead of Slurm's and NVIDIA's.
type jobScript struct{ dir string }

// newJobScript puts shell scripts with these names first in the PATH.
func newJobScript(t *testing.T, programs map[string]string) jobScript {
	t.Helper()
	for _, name := range []string{"flock", "ps"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err, "; apt-get install util-linux procps")
		}
	}
	s := jobScript{t.TempDir()}
	if err := os.Mkdir(s.dir+"/bin", 0o755); err != nil {
		t.Fatal(err)
	}
	programs["logger"] = `echo "$*" >>"$D/log"`
	for name, text := range programs {
		if err := os.WriteFile(filepath.Join(s.dir, "bin", name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// command returns a call of the script, which is killed with its children after a minute.
func (s jobScript) command(t *testing.T, call string, environ ...string) *exec.Cmd {
	t.Helper()
	script, err := filepath.Abs("../../deploy/slurm/kpulse-jobs")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "/bin/sh", script, call)
	cmd.Env = slices.Concat(environ, []string{"PATH=" + s.dir + "/bin:" + os.Getenv("PATH"), "KPULSE_JOBS_CONFIG=/none", "KPULSE_JOBS_PROC=" + s.dir,
		"KPULSE_HPC_JOB_MAPPING_DIR=" + s.dir + "/map", "KPULSE_HPC_JOB_INFO_DIR=" + s.dir + "/info", "D=" + s.dir})
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// run runs the script and returns its log.
func (s jobScript) run(t *testing.T, call string, environ ...string) string {
	t.Helper()
	out, err := s.command(t, call, environ...).CombinedOutput()
	if err != nil {
		t.Errorf("kpulse-jobs %s: %v\n%s", call, err, out)
	}
	logged, _ := os.ReadFile(s.dir + "/log")
	return string(logged)
}

// jobOn returns the environment of a prolog.
func jobOn(id, gpus string, more ...string) []string {
	return append(more, "SLURM_JOB_ID="+id, "SLURM_JOB_GPUS="+gpus, "SLURM_JOB_USER=ada", "SLURM_JOB_ACCOUNT=physics", "SLURM_JOB_PARTITION=gpu")
}

func (s jobScript) want(t *testing.T, gpu, jobs string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "map", gpu))
	if got := strings.Join(strings.Fields(string(text)), " "); got != jobs {
		t.Errorf("on GPU %s: jobs %q, want %q (%v)", gpu, got, jobs, err)
	}
}

// TestJobsWhileSlurmIsAsked: while the controller does not answer, jobs that begin or end are still
// recorded.
func TestJobsWhileSlurmIsAsked(t *testing.T) {
	t.Parallel()
	hang := `: >"$D/asked"; while [ ! -e "$D/answer" ]; do sleep 0.1; done; exit 1`
	s := newJobScript(t, map[string]string{"squeue": hang, "scontrol": hang, "timeout": `shift; exec "$@"`})
	s.run(t, "begin", jobOn("1", "0")...)
	sweep := s.command(t, "sweep", "KPULSE_JOBS_GRACE=0")
	if err := sweep.Start(); err != nil {
		t.Fatal(err)
	}
	awaitTrue(t, "Slurm is asked", func() bool { _, err := os.Stat(s.dir + "/asked"); return err == nil })
	s.run(t, "begin", jobOn("2", "0-1")...)
	s.want(t, "1", "2")
	s.run(t, "end", jobOn("2", "0-1")...)
	s.want(t, "1", "")
	s.want(t, "0", "1")
	if err := os.WriteFile(s.dir+"/answer", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sweep.Wait(); err != nil {
		t.Error(err)
	}
	s.want(t, "0", "1")
}

// TestJobsThatRunAgain: a sweep queries a job's previous run; the job, which begins again
// meanwhile, stays.
func TestJobsThatRunAgain(t *testing.T) {
	t.Parallel()
	s := newJobScript(t, map[string]string{"squeue": `: >"$D/asked"; while [ ! -e "$D/answer" ]; do sleep 0.1; done; echo 1 COMPLETED 0 gpu physics`, "timeout": `shift; exec "$@"`})
	s.run(t, "begin", jobOn("1", "0")...)
	s.run(t, "begin", jobOn("3", "0")...)
	sweep := s.command(t, "sweep", "KPULSE_JOBS_GRACE=0")
	if err := sweep.Start(); err != nil {
		t.Fatal(err)
	}
	awaitTrue(t, "Slurm is asked", func() bool { _, err := os.Stat(s.dir + "/asked"); return err == nil })
	s.run(t, "begin", jobOn("1", "1", "SLURM_JOB_RESTART_COUNT=1")...)
	if err := os.WriteFile(s.dir+"/answer", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sweep.Wait(); err != nil {
		t.Error(err)
	}
	s.want(t, "1", "1")
	s.want(t, "0", "") // Slurm does not know job 3
}

// TestJobsNeverFail: whatever breaks, the script exits with 0 and logs the cause.
func TestJobsNeverFail(t *testing.T) {
	t.Parallel()
	t.Run("a directory that it cannot write to", func(t *testing.T) {
		s := newJobScript(t, map[string]string{})
		if err := os.WriteFile(s.dir+"/info", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if out := s.run(t, "begin", jobOn("1", "0")...); !strings.Contains(out, "cannot write") {
			t.Errorf("logged %q", out)
		}
	})
	t.Run("a lock that cannot be opened", func(t *testing.T) {
		s := newJobScript(t, map[string]string{})
		if err := os.MkdirAll(s.dir+"/info/.lock", 0o755); err != nil {
			t.Fatal(err)
		}
		if out := s.run(t, "begin", jobOn("1", "0")...); !strings.Contains(out, "cannot write") {
			t.Errorf("logged %q", out)
		}
	})
	t.Run("an nvidia-smi that hangs", func(t *testing.T) {
		s := newJobScript(t, map[string]string{"nvidia-smi": "exec sleep 3600", "timeout": "exit 124"})
		out := s.run(t, "begin", jobOn("1", "0", "CUDA_VISIBLE_DEVICES=MIG-1,MIG-2")...)
		if !strings.Contains(out, "MIG-2 is not known") {
			t.Errorf("logged %q", out)
		}
	})
}

// TestJobsThatEnded: Slurm's answer about a job decides, or its age if Slurm does not answer.
func TestJobsThatEnded(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, squeue, environ string
		stays                 bool
	}{
		{"runs", "echo 7 RUNNING 1 gpu physics", "", true},
		{"ends", "echo 7 COMPLETING 1 gpu physics", "", true},
		{"ended", "echo 7 COMPLETED 1 gpu physics", "", false},
		{"runs again elsewhere", "echo 7 RUNNING 2 gpu physics", "", false},
		{"waits to run again", "echo 7 PENDING 2 gpu physics", "", false},
		{"is not known", "echo slurm_load_jobs error: Invalid job id specified; exit 1", "", false},
		{"is not known, of a known array", "echo 8 RUNNING 0 gpu physics", "", false},
		{"Slurm does not answer", "echo Unable to contact slurm controller; exit 1", "", true},
		{"Slurm does not answer, and it is old", "exit 1", "KPULSE_JOBS_MAX_AGE=0", false},
		{"Slurm is not to be asked", "echo 7 COMPLETED 1 gpu physics", "KPULSE_JOBS_ASK=0", true},
		{"is new", "echo 7 COMPLETED 1 gpu physics", "KPULSE_JOBS_GRACE=3600", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newJobScript(t, map[string]string{"squeue": test.squeue})
			s.run(t, "begin", jobOn("7", "0", "SLURM_JOB_RESTART_COUNT=1")...)
			s.run(t, "sweep", "KPULSE_JOBS_GRACE=0", test.environ)
			want := ""
			if test.stays {
				want = "7"
			}
			s.want(t, "0", want)
		})
	}
	t.Run("jobs that were never queried", func(t *testing.T) {
		s := newJobScript(t, map[string]string{"squeue": `for id in 1 2 3 4; do echo $id RUNNING 0 gpu physics; done`})
		for _, id := range []string{"1", "2", "3", "4"} {
			s.run(t, "begin", jobOn(id, "0", "KPULSE_JOBS_GRACE=0", "KPULSE_JOBS_MAX_AGE=0")...)
		}
		s.want(t, "0", "1 2 3 4")
	})
}

// TestDrainReasons: the reason of a drain says what to do and why for each GPU that is crit, and is cut
// between words.
func TestDrainReasons(t *testing.T) {
	t.Parallel()
	var reasons []string
	for _, gpu := range strings.Split("01234567", "") {
		reasons = append(reasons, "reboot_node GPU "+gpu+": fatal XID 79, GPU hot 96°C")
	}
	for _, test := range []struct{ answer, want string }{
		{"CRITICAL - " + reasons[1] + "\ncrit  GPU 1  GPU-b  reboot_node  xid_fatal=crit  -\nok    GPU 0  GPU-a  none  -  -", reasons[1]},
		{"CRITICAL - " + strings.Join(reasons, "; "), strings.Join(reasons[:4], "; ") + "; ..."},
	} {
		for _, script := range []string{"kpulse-prolog", "kpulse-healthcheck"} {
			s := newJobScript(t, map[string]string{"kpulse-proxy": `printf '%s\n' "$ANSWER"; exit 2`, "scontrol": `for word; do echo "$word" >>"$D/asked"; done`})
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "../../deploy/slurm/"+script)
			cmd.Env = jobOn("1", "0", "PATH="+s.dir+"/bin:"+os.Getenv("PATH"), "D="+s.dir, "ANSWER="+test.answer)
			out, _ := cmd.CombinedOutput() // the prolog fails
			asked, err := os.ReadFile(s.dir + "/asked")
			if _, reason, _ := strings.Cut(string(asked), "Reason=kpulse-proxy: "); err != nil || reason != test.want+"\n" {
				t.Errorf("%s: %q, want %q; %v\n%s", script, reason, test.want, err, out)
			}
			if logged, err := os.ReadFile(s.dir + "/log"); err != nil || !strings.Contains(string(logged), test.answer) {
				t.Errorf("%s logged %q, %v", script, logged, err)
			}
		}
	}
}

// TestNHC: NHC's check fails on a GPU that is crit, with the reason cut to 200 bytes, and on unknown health only if it is told
// to. NHC defines die and log, and resets the PATH; it is not a package of Debian.
func TestNHC(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../deploy/health.md")
	if err != nil || !strings.Contains(string(page), "\necho '* || check_kpulse_gpus' >> /etc/nhc/nhc.conf\n") {
		t.Fatalf("health.md does not call the check: %v", err)
	}
	const reason = "reboot_node GPU 3: fatal XID 79"
	for _, test := range []struct{ code, answer, require, want string }{
		{"0", "OK - 8 GPUs", "1", "rc 0\n"},
		{"1", "WARNING - GPU 1: hot", "1", "rc 0\n"},
		{"2", "a note\nCRITICAL - " + reason + "\ncrit  GPU 3", "0", "die 1 check_kpulse_gpus: " + reason + "\nrc 1\n"},
		{"2", "CRITICAL - " + strings.Repeat("x", 200), "0", "die 1 check_kpulse_gpus: " + strings.Repeat("x", 200) + "\nrc 1\n"},
		{"2", "CRITICAL - " + strings.Repeat("x", 201), "0", "die 1 check_kpulse_gpus: " + strings.Repeat("x", 197) + "...\nrc 1\n"},
		{"2", "flag provided but not defined", "0", "log check_kpulse_gpus: health is not known: flag provided but not defined\nrc 0\n"},
		{"3", "UNKNOWN - no proxy", "0", "log check_kpulse_gpus: health is not known: UNKNOWN - no proxy\nrc 0\n"},
		{"3", "UNKNOWN - no proxy", "1", "log check_kpulse_gpus: health is not known: UNKNOWN - no proxy\ndie 1 check_kpulse_gpus: the health of the GPUs is not known\nrc 1\n"},
	} {
		s := newJobScript(t, map[string]string{"kpulse-proxy": `[ "$*" = "check health --show-all --timeout=10s" ] || exit 7; printf '%s\n' "$ANSWER"; exit "$CODE"`})
		cmd := exec.CommandContext(t.Context(), "bash", "-c", `die() { echo "die $*"; }; log() { echo "log $*"; }; . ../../deploy/slurm/kpulse.nhc; check_kpulse_gpus; echo "rc $?"`)
		cmd.Env = jobOn("1", "0", "PATH="+s.dir+"/bin:"+os.Getenv("PATH"), "ANSWER="+test.answer, "CODE="+test.code, "KPULSE_REQUIRE="+test.require)
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != test.want {
			t.Errorf("exit %s with %.40q: %v\n%s\nwant\n%s", test.code, test.answer, err, out, test.want)
		}
	}
}

// TestHealthBeforeAJob: the health check of a job's GPUs uses Slurm's ids, except for MIG devices:
// those ids do not name boards.
func TestHealthBeforeAJob(t *testing.T) {
	t.Parallel()
	for cuda, want := range map[string]string{"0": "unset", "GPU-1": "unset", "MIG-1,MIG-2": "MIG-1,MIG-2"} {
		s := newJobScript(t, map[string]string{"kpulse-proxy": `echo "${CUDA_VISIBLE_DEVICES-unset} $SLURM_JOB_GPUS $*" >"$D/asked"`})
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "../../deploy/slurm/kpulse-prolog")
		cmd.Env = jobOn("1", "0", "PATH="+s.dir+"/bin:"+os.Getenv("PATH"), "D="+s.dir, "CUDA_VISIBLE_DEVICES="+cuda)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		if asked, err := os.ReadFile(s.dir + "/asked"); err != nil || !strings.HasPrefix(string(asked), want+" 0 check health") {
			t.Errorf("CUDA_VISIBLE_DEVICES=%s: %q, %v", cuda, asked, err)
		}
	}
}
