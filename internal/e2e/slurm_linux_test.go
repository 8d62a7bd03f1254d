package e2e

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/e2e/ports"
	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// slurmNode is a real Slurm with one node of two GPUs, set up according to deploy/slurm/README.md.
type slurmNode struct {
	dir, mapping, info string
	controller, node   *process
	more               []string // of the environment of our scripts
}

// startSlurm runs Slurm's daemons until the test ends. Without them, or without root, the test is
// skipped, or fails with KPULSE_REQUIRE_SLURM. Our scripts have more in their environment.
func startSlurm(t *testing.T, more ...string) *slurmNode {
	t.Helper()
	slow.Test(t, "slurmctld, slurmd, slurm-client and munge, as root")
	var missing error
	for _, name := range []string{"munged", "slurmctld", "slurmd", "sbatch", "flock"} {
		if _, err := exec.LookPath(name); err != nil {
			missing = err
		}
	}
	if os.Getuid() != 0 {
		missing = fmt.Errorf("slurmd wants to be root")
	}
	if missing != nil && os.Getenv("KPULSE_REQUIRE_SLURM") != "" {
		t.Fatal(missing)
	}
	if missing != nil {
		t.Skip(missing, "; apt-get install slurmctld slurmd slurm-client munge")
	}
	dir, err := os.MkdirTemp("", "ks") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	s := &slurmNode{dir: dir, mapping: filepath.Join(dir, "run/job-mapping"), info: filepath.Join(dir, "run/job-info"), more: more}
	s.write(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	startProcess(t, exec.Command("munged", "--foreground", "--force", "--num-threads=2", "--key-file="+dir+"/munge/key", "--socket="+dir+"/munge.sock",
		"--pid-file="+dir+"/munge/pid", "--seed-file="+dir+"/munge/seed"), dir+"/munged.log")
	awaitTrue(t, "munged answers", func() bool { _, err := os.Stat(dir + "/munge.sock"); return err == nil })
	s.controller = startProcess(t, s.command("slurmctld", "-D"), dir+"/slurmctld.log")
	s.startNode(t)
	t.Cleanup(func() { // jobs outlive slurmd
		_ = s.command("scancel", "-f", "-u", "root,nobody").Run()
		s.killSteps()
		if t.Failed() {
			t.Logf("slurmctld:\n%s\nslurmd:\n%s", s.controller.output(), s.node.output())
		}
	})
	awaitTrue(t, "the node is idle", func() bool {
		out, _ := s.command("sinfo", "-h", "-o", "%t").Output()
		return string(out) == "idle\n"
	})
	return s
}

func (s *slurmNode) startNode(t *testing.T) {
	t.Helper()
	s.node = startProcess(t, s.command("slurmd", "-D", "-N", "localhost"), s.dir+"/slurmd.log")
}

// write writes Slurm's configuration, device files, and our scripts.
func (s *slurmNode) write(t *testing.T) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	must(os.Chmod(s.dir, 0o755)) // jobs run as others
	for _, name := range []string{"munge", "state", "spool", "dev", "bin", "prolog.d", "epilog.d"} {
		must(os.Mkdir(filepath.Join(s.dir, name), 0o755))
	}
	must(os.Chmod(s.dir+"/munge", 0o700))
	must(os.WriteFile(s.dir+"/munge/key", []byte(strings.Repeat("kpulse-proxy", 11)), 0o600))
	for i := range 2 {
		must(syscall.Mknod(fmt.Sprintf("%s/dev/nvidia%d", s.dir, i), syscall.S_IFCHR|0o600, 195<<8|i))
		must(os.MkdirAll(fmt.Sprintf("%s/proc/driver/nvidia/gpus/0000:0%d:00.0", s.dir, i), 0o755))
		must(os.WriteFile(fmt.Sprintf("%s/proc/driver/nvidia/gpus/0000:0%d:00.0/information", s.dir, i), fmt.Appendf(nil, "GPU UUID: \t GPU-%d\nDevice Minor: \t %d\n", i, i), 0o644))
	}
	must(os.CopyFS(s.dir+"/deploy", os.DirFS("../../deploy/slurm"))) // readable for other users
	must(os.Symlink(s.dir+"/deploy/kpulse-jobs", s.dir+"/bin/kpulse-jobs"))
	for script, of := range map[string]string{"prolog.d/10-kpulse-jobs": "kpulse-job-prolog", "epilog.d/90-kpulse-jobs": "kpulse-job-epilog", "taskprolog": "kpulse-task-prolog"} {
		must(os.WriteFile(filepath.Join(s.dir, script), fmt.Appendf(nil, "#!/bin/sh\nexport '%s'\nexec %s/deploy/%s\n", strings.Join(s.environment(), "' '"), s.dir, of), 0o755))
	}
	must(os.Chmod(s.dir+"/proc", 0o755))
	must(os.WriteFile(s.dir+"/gres.conf", fmt.Appendf(nil, "NodeName=localhost Name=gpu File=%s/dev/nvidia[0-1]\nNodeName=localhost Name=shard Count=8\n", s.dir), 0o600))
	host, err := os.Hostname()
	must(err)
	port1, err := ports.Free()
	must(err)
	port2, err := ports.Free()
	must(err)
	must(os.WriteFile(s.dir+"/slurm.conf", []byte(strings.NewReplacer("DIR", s.dir, "HOST", host,
		"PORT1", port1, "PORT2", port2).Replace(slurmConf)), 0o644))
}

// slurmConf is slurm.conf. Its last four lines are those of README.md. A requeued job waits until
// its credential has expired, two minutes by default.
const slurmConf = `ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=PORT1
SlurmdPort=PORT2
AuthType=auth/munge
AuthInfo=socket=DIR/munge.sock,cred_expire=20
SlurmUser=root
StateSaveLocation=DIR/state
SlurmdSpoolDir=DIR/spool
SlurmctldPidFile=DIR/slurmctld.pid
SlurmdPidFile=DIR/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
MpiDefault=none
KillWait=1
GresTypes=gpu,shard
SlurmdParameters=config_overrides
SlurmdTimeout=300
NodeName=localhost NodeHostname=HOST NodeAddr=127.0.0.1 CPUs=8 Gres=gpu:2,shard:8
PartitionName=gpu Nodes=localhost Default=YES MaxTime=INFINITE
Prolog=DIR/prolog.d/*
Epilog=DIR/epilog.d/*
PrologFlags=Alloc
TaskProlog=DIR/taskprolog
`

// environment returns the environment of our scripts.
func (s *slurmNode) environment() []string {
	return append([]string{
		"PATH=" + s.dir + "/bin:" + os.Getenv("PATH"), "SLURM_CONF=" + s.dir + "/slurm.conf", "KPULSE_JOBS_CONFIG=" + s.dir + "/none", "KPULSE_JOBS_PROC=" + s.dir + "/proc",
		"KPULSE_HPC_JOB_MAPPING_DIR=" + s.mapping, "KPULSE_HPC_JOB_INFO_DIR=" + s.info,
	}, s.more...)
}

// command returns a command of Slurm, or kpulse-jobs.
func (s *slurmNode) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command("env", append(append(s.environment(), name), args...)...)
	cmd.Env = []string{}
	return cmd
}

// must runs a command and returns its output.
func (s *slurmNode) must(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := s.command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// submit submits a job of the user nobody and returns its id.
func (s *slurmNode) submit(t *testing.T, args ...string) string {
	t.Helper()
	return s.must(t, "sbatch", append([]string{"--parsable", "--uid=nobody", "-D", "/", "-o", "/dev/null", "--wrap", "exec sleep 3600"}, args...)...)
}

// jobs returns the jobs in a GPU's mapping file.
func (s *slurmNode) jobs(gpu string) string {
	text, err := os.ReadFile(filepath.Join(s.mapping, gpu))
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

// killSteps kills the jobs as a power loss would.
func (s *slurmNode) killSteps() {
	_ = s.node.cmd.Process.Kill()
	<-s.node.done
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == s.controller.cmd.Process.Pid {
			continue
		}
		process, err := os.FindProcess(pid) // before reading its environment: ids are reused
		if err != nil {
			continue
		}
		if environ, _ := os.ReadFile(dir + "/environ"); strings.Contains(string(environ), "SLURM_CONF="+s.dir+"/") {
			_ = process.Kill()
		}
		_ = process.Release()
	}
}

// infoOf returns a pattern for allocation_info of a job on a GPU.
func infoOf(job, gpu, account string) string {
	return fmt.Sprintf(`kpulse_allocation_info\{[^}]*gpu="%s",[^}]*hpc_job="%s",hpc_user="nobody",hpc_account="%s",hpc_partition="gpu"[^}]*\} 1`, gpu, job, account)
}

// TestSlurm runs jobs through our prolog and epilog in a real Slurm. Their seconds are counted with
// job, user and account.
func TestSlurm(t *testing.T) {
	t.Parallel()
	s := startSlurm(t)
	if err := os.MkdirAll(s.mapping, 0o755); err != nil {
		t.Fatal(err)
	}
	exe := dcgmtest.Install(t, dcgmtest.Scenario{Seed: 7, GPUs: dcgmtest.Boards(2)})
	proxy := startDCGM(t, exe, "--hpc-job-mapping-dir="+s.mapping, "--hpc-job-info-dir="+s.info)
	seconds := func(job string) float64 {
		t.Helper()
		_, body := page(t, proxy, "/metrics")
		samples, err := parseExposition([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, v := range samplesOf(samples, "kpulse_allocation_seconds_total", map[string]string{"hpc_job": job}) {
			sum += v
		}
		return sum
	}

	first := s.submit(t, "--gres=gpu:1", "--account=physics")
	awaitPage(t, proxy, "/metrics", 200, infoOf(first, "0", "physics"))
	awaitTrue(t, "the job has seconds", func() bool { return seconds(first) > 0 })
	s.must(t, "scancel", first)
	awaitTrue(t, "the epilog frees the GPU", func() bool { return s.jobs("0") == "" })
	awaitPage(t, proxy, "/metrics?series=full", 200, `kpulse_gpu_allocations\{[^}]*gpu="0"[^}]*\} 0`)
	if seconds(first) == 0 {
		t.Error("the seconds ended with the job")
	}

	t.Run("tasks of an array share a GPU", func(t *testing.T) {
		last := s.submit(t, "--gres=shard:2", "--account=bio", "--array=3-4") // also the array's id
		n, _ := strconv.Atoi(last)
		other := strconv.Itoa(n + 1)
		awaitPage(t, proxy, "/metrics", 200, infoOf(last, "0", "bio"))
		awaitPage(t, proxy, "/metrics", 200, infoOf(other, "0", "bio"))
		awaitPage(t, proxy, "/metrics?series=full", 200, `kpulse_gpu_allocations\{[^}]*gpu="0"[^}]*\} 2`)
		s.must(t, "scancel", last+"_3")
		awaitTrue(t, "one job has left", func() bool { return s.jobs("0") == last })
		s.must(t, "scancel", last)
		awaitTrue(t, "both jobs have left", func() bool { return s.jobs("0") == "" })
	})

	t.Run("a task is told its GPUs", func(t *testing.T) {
		if got := s.must(t, "srun", "-Q", "-D", "/", "--gres=gpu:2", "sh", "-c", "echo $KPULSE_GPUS"); got != "GPU-0,GPU-1" {
			t.Errorf("KPULSE_GPUS=%s", got)
		}
	})

	t.Run("what a user may do", func(t *testing.T) { forgeAndLock(t, s) })
	t.Run("requeue", func(t *testing.T) { requeue(t, s, proxy, seconds) })
	t.Run("a node dies", func(t *testing.T) { dieAndSweep(t, s, proxy) })
}

// TestSlurmReports runs three jobs on two GPUs: one uses both, one uses one, and one hangs in a collective from its third part on. The
// epilog logs what it finds, and a Prometheus server has the same later, to a scrape interval.
func TestSlurmReports(t *testing.T) {
	t.Parallel()
	binary := prometheusBinary(t)
	address := freeAddress(t)
	s := startSlurm(t, "KPULSE_JOBS_REPORT=log", "KPULSE_JOBS_REPORT_FLAGS=--url=http://"+address)
	log := s.dir + "/log"
	if err := os.WriteFile(s.dir+"/bin/logger", []byte("#!/bin/sh\necho \"$*\" >>"+log+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(s.mapping, 0o755); err != nil {
		t.Fatal(err)
	}
	var does [2]atomic.Value
	exporter := startUpstream(func() ([]byte, error) {
		var page []byte
		for gpu := range does {
			v := map[string][6]float64{"works": {95, 60000, 600, .95, .8, .6}, "idles": {0, 500, 80, 0, 0, 0}, "hangs": {100, 60000, 130, 1, .1, 0}}[does[gpu].Load().(string)]
			for i, family := range []string{"DEV_GPU_UTIL", "DEV_FB_USED", "DEV_POWER_USAGE", "PROF_GR_ENGINE_ACTIVE", "PROF_SM_ACTIVE", "PROF_PIPE_TENSOR_ACTIVE"} {
				page = fmt.Appendf(page, "DCGM_FI_%s{gpu=\"%d\",UUID=\"GPU-%d\",modelName=\"NVIDIA H100\",Hostname=\"n\",hpc_job=\"%s\"} %v\n", family, gpu, gpu, s.jobs(strconv.Itoa(gpu)), v[i])
			}
			page = fmt.Appendf(page, "DCGM_FI_PROF_DRAM_ACTIVE{gpu=\"%d\",UUID=\"GPU-%d\",Hostname=\"n\"} %v\n", gpu, gpu, v[4]/2)
		}
		return page, nil
	})
	defer exporter.stop()
	set := func(first, second string) { does[0].Store(first); does[1].Store(second) }
	set("idles", "idles")
	startProxy(t, itself(t), "--source="+exporter.url+"/metrics", "--source.min-interval=0s", "--hpc-job-info-dir="+s.info, "--web.listen-address="+address, "--series.birth=1s")
	server := startPrometheus(t, binary, map[string]string{"n": address}, nil)
	server.await(t, "kpulse_gpu_info")
	for _, job := range []struct {
		name        string
		parts       [3][2]string
		idle, hangs float64 // shares of the time of both GPUs, and of its last part
		advice      string
	}{
		{"busy", [3][2]string{{"works", "works"}, {"works", "works"}, {"works", "works"}}, 0, 0, "healthy"},
		{"half idle", [3][2]string{{"works", "idles"}, {"works", "idles"}, {"works", "idles"}}, .5, 0, "unused_gpus"},
		{"hung", [3][2]string{{"works", "works"}, {"works", "works"}, {"hangs", "hangs"}}, 0, 1, "launch_bound"},
	} {
		const part, scrape = 6 * time.Second, 1.
		set(job.parts[0][0], job.parts[0][1])
		id := s.submit(t, "--gres=gpu:2", "--account=physics")
		awaitTrue(t, "the prolog notes the job", func() bool { return s.jobs("1") == id })
		begin := time.Now()
		var last time.Time
		for _, does := range job.parts {
			set(does[0], does[1])
			last = time.Now()
			time.Sleep(part)
		}
		s.must(t, "scancel", id)
		awaitTrue(t, "the epilog forgets the job", func() bool { return s.jobs("0")+s.jobs("1") == "" })
		seconds, hanging := time.Since(begin).Seconds(), time.Since(last).Seconds()
		kept := ""
		awaitTrue(t, "the epilog keeps a report", func() bool {
			text, _ := os.ReadFile(log)
			kept = regexp.MustCompile("kpulse: job " + id + " held .*\n").FindString(string(text))
			return kept != ""
		})
		t.Logf("%s, %.1f s: %s", job.name, seconds, kept)
		if !strings.Contains(kept, " GPU-hours on 2 GPUs, ") || !strings.HasSuffix(kept, "; advice: "+job.advice+"\n") {
			t.Errorf("%s: %s, want %s", job.name, kept, job.advice)
		}
		set("idles", "idles")
		server.await(t, fmt.Sprintf(`sum(last_over_time(kpulse_allocation_class_seconds_total{hpc_job="%s"}[1m])) > 0.99 * sum(last_over_time(kpulse_allocation_seconds_total{hpc_job="%[1]s"}[1m])) `+
			`unless on () count(kpulse_allocation_info{hpc_job="%[1]s"})`, id)) // a class begins as 0
		r := reportOn(t, 0, "--prometheus.url="+server.url, id)
		const tolerance = 2 * scrape // at its begin, and at its end
		for what, off := range map[string]float64{
			"held": 3600*r.Sum.Held/2 - seconds, "idle": 3600*r.Sum.Classes["idle"]/2 - job.idle*seconds, "hanging": 3600*r.Sum.Classes["busy_low_sm_use"]/2 - job.hangs*hanging,
		} {
			if math.Abs(off) > tolerance {
				t.Errorf("%s: seconds %s are off by %v: %+v", job.name, what, off, r)
			}
		}
		if r.User != "nobody" || r.advice() != job.advice {
			t.Errorf("%s: of %s, advice %s, want %s", job.name, r.User, r.advice(), job.advice)
		}
	}
}

// forgedName is a job name that scontrol prints before the fields that it imitates.
const forgedName = "x Account=forged JobState=COMPLETED Restarts=9"

// forgeAndLock: a job's name does not change its account, and no user can prevent jobs from being
// recorded.
func forgeAndLock(t *testing.T, s *slurmNode) {
	lock := exec.Command("flock", s.info+"/.lock", "sleep", "3600")
	lock.Dir = "/"
	lock.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if err := lock.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(-lock.Process.Pid, syscall.SIGKILL); _ = lock.Wait() }()
	job := s.submit(t, "--gres=gpu:1", "-J", forgedName)
	awaitTrue(t, "the job is recorded", func() bool { return s.jobs("0") == job })
	if text, err := os.ReadFile(filepath.Join(s.info, job)); err != nil || !strings.Contains(string(text), "\naccount=\n") {
		t.Errorf("%v of a job without an account:\n%s", err, text)
	}
	s.must(t, "scancel", job)
	awaitTrue(t, "the epilog frees the GPU", func() bool { return s.jobs("0") == "" })
}

// requeue: the job keeps its id, and its seconds continue.
func requeue(t *testing.T, s *slurmNode, proxy *child, seconds func(string) float64) {
	job := s.submit(t, "--gres=gpu:2", "--account=physics", "--requeue")
	awaitPage(t, proxy, "/metrics", 200, infoOf(job, "1", "physics"))
	awaitTrue(t, "the job has seconds", func() bool { return seconds(job) > 0 })
	s.must(t, "scontrol", "requeue", job)
	awaitTrue(t, "the epilog frees both GPUs", func() bool { return s.jobs("0")+s.jobs("1") == "" })
	awaitPage(t, proxy, "/metrics?series=full", 200, `kpulse_gpu_allocations\{[^}]*gpu="1"[^}]*\} 0`)
	was := seconds(job)
	awaitTrue(t, "it runs again", func() bool { return s.jobs("0") == job && s.jobs("1") == job })
	awaitPage(t, proxy, "/metrics", 200, infoOf(job, "1", "physics"))
	awaitTrue(t, "its seconds continue", func() bool { return seconds(job) > was })
	if text, err := os.ReadFile(filepath.Join(s.info, job)); err != nil || !strings.Contains(string(text), "\nrestarts=1\n") {
		t.Errorf("%v of the second run:\n%s", err, text)
	}
	s.must(t, "scancel", job)
	awaitTrue(t, "the epilog frees both GPUs", func() bool { return s.jobs("0")+s.jobs("1") == "" })
}

// dieAndSweep: slurmd and the steps are killed, so no epilog runs. A sweep leaves a running job
// alone, and removes one that ended from its GPU.
func dieAndSweep(t *testing.T, s *slurmNode, proxy *child) {
	sweep := func() { s.must(t, "env", "KPULSE_JOBS_GRACE=0", "kpulse-jobs", "sweep") }
	job := s.submit(t, "--gres=gpu:1", "--account=physics", "-J", forgedName)
	awaitPage(t, proxy, "/metrics", 200, infoOf(job, "0", "physics"))
	sweep()
	if s.jobs("0") != job {
		t.Error("the sweep removed a running job")
	}
	s.killSteps()
	sweep()
	if s.jobs("0") != job {
		t.Error("the sweep removed a job that runs according to Slurm")
	}
	s.must(t, "scontrol", "update", "NodeName=localhost", "State=DOWN", "Reason=died")
	awaitTrue(t, "Slurm gives the job up", func() bool {
		return !strings.Contains(s.must(t, "scontrol", "-o", "show", "job", job), "JobState=RUNNING")
	})
	if s.jobs("0") != job {
		t.Error("the job is gone without a sweep")
	}
	sweep()
	if s.jobs("0") != "" {
		t.Errorf("job %s is still there", s.jobs("0"))
	}
	awaitPage(t, proxy, "/metrics?series=full", 200, `kpulse_gpu_allocations\{[^}]*gpu="0"[^}]*\} 0`)
}

// TestRealStackSlurm: NVIDIA's exporter reads the mapping of Slurm's prolog, and treats no other
// file in the directory as a job.
func TestRealStackSlurm(t *testing.T) {
	t.Parallel()
	n := startRealNode(t, dcgm4, "h100")
	s := startSlurm(t)
	if err := os.MkdirAll(s.mapping, 0o755); err != nil {
		t.Fatal(err)
	}
	exporter := n.startExporter(t, "", nil, "--hpc-job-mapping-dir="+s.mapping)
	proxy := n.startBehind(t, exporter, "--hpc-job-info-dir="+s.info)
	first := s.submit(t, "--gres=shard:2", "--account=physics")
	second := s.submit(t, "--gres=shard:2", "--account=bio")
	awaitPage(t, proxy, "/metrics", 200, infoOf(first, "0", "physics"))
	awaitPage(t, proxy, "/metrics", 200, infoOf(second, "0", "bio"))
	if err := os.WriteFile(filepath.Join(s.mapping, ".new.1"), []byte("torn-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must(t, "scancel", first)
	awaitTrue(t, "the job has left", func() bool { return s.jobs("0") == second })
	body := awaitPage(t, proxy, "/metrics?series=full", 200, `kpulse_gpu_allocations\{[^}]*gpu="0"[^}]*\} 1\n`)
	if !strings.Contains(body, `hpc_job="`+second+`"`) || strings.Contains(body, "torn-file") {
		t.Errorf("no job %s, or a partial file:\n%.2000s", second, body)
	}
	s.must(t, "scancel", second)
	awaitPage(t, proxy, "/metrics?series=full", 200, `kpulse_gpu_allocations\{[^}]*gpu="0"[^}]*\} 0\n`)
}
