package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// TestSlurmNamesTheNode: within a job, the node has Slurm's name unless another is given; a
// requeued job has its restart count.
func TestSlurmNamesTheNode(t *testing.T) {
	t.Parallel()
	exe := dcgmtest.Install(t, dcgmtest.Scenario{GPUs: dcgmtest.Boards(1)})
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ env, want string }{
		{"HOME=/", own},
		{"SLURMD_NODENAME=gpu07", "gpu07"},
		{"SLURMD_NODENAME=gpu07 NODE_NAME=rack3", "rack3"},
		{"SLURMD_NODENAME=gpu07 KPULSE_NODE_NAME=n1", "n1"},
	} {
		env := append(strings.Fields(c.env), "PATH="+filepath.Dir(exe), "SLURM_RESTART_COUNT=2")
		rows, _ := exported(t, env, "--backend=dcgm", "--once", "--export=hostname,job_restart_count")
		if len(rows) != 2 || rows[1][0] != c.want || rows[1][1] != "2" {
			t.Errorf("%s: %v, want %s", c.env, rows, c.want)
		}
	}
}

// TestKempnerPulseFlags: KempnerPulse's flags have their meaning there.
func TestKempnerPulseFlags(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "one.prom")
	text := `DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="GPU-1"} 1
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu="0",UUID="GPU-1"} 0
DCGM_FI_PROF_DRAM_ACTIVE{gpu="0",UUID="GPU-1"} 0.5
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-1"} 0
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ flag, want string }{
		{"--ai-weights", "45.00"}, {"--hpc-weights", "57.50"}, {"--mem-weights", "55.00"}, {"--preset=mem", "55.00"},
	} {
		rows, _ := exported(t, nil, "--source", file, "--once", c.flag, "--export", "real_util_pct")
		if len(rows) != 2 || rows[1][0] != c.want {
			t.Errorf("%s: %v, want %s", c.flag, rows, c.want)
		}
	}
}

// TestGPUsOfOthersAreLeftOut: in a cgroup or container with only GPU 1 of two, CUDA's GPU 0 is that
// one, and no flag or variable shows the other; this machine's GPUs do not restrict another
// machine's.
func TestGPUsOfOthersAreLeftOut(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/driver/nvidia/gpus"); err == nil {
		t.Skip("the GPUs of this machine are asked, and not the fake nvidia-smi")
	}
	boards := dcgmtest.Boards(2)
	exe := dcgmtest.Install(t, dcgmtest.Scenario{GPUs: boards})
	mine, foreign := smiOf(t, boards[1].UUID), smiOf(t, "GPU-elsewhere")
	u := startUpstream(func() ([]byte, error) {
		return fmt.Appendf(nil, "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=%q} 40\nDCGM_FI_DEV_GPU_TEMP{gpu=\"1\",UUID=%q} 41\n", boards[0].UUID, boards[1].UUID), nil
	})
	t.Cleanup(u.stop)
	sources := []string{"--source=" + u.url + "/metrics", "--backend=dcgm", "--backend=dcgm --dcgm.host=127.0.0.1:5555"}
	for _, c := range []struct{ smi, env, flag, want string }{
		{mine, "CUDA_VISIBLE_DEVICES=0", "", "1"},
		{mine, "SLURM_JOB_GPUS=1-1", "", "1"},
		{mine, "SLURM_STEP_GPUS=1", "", "1"},
		{mine, "HOME=/", "", "1"},
		{mine, "HOME=/", "--show-all", "1"},
		{mine, "HOME=/", "--gpus=0-1", "1"},
		{mine, "NVIDIA_VISIBLE_DEVICES=all", "", "1"},
		{foreign, "HOME=/", "--show-all", "0 1"},
	} {
		for _, source := range sources {
			args := append(strings.Fields(source+" "+c.flag), "--once", "--export=gpu_id")
			rows, _ := exported(t, []string{c.env, "PATH=" + c.smi + ":" + filepath.Dir(exe)}, args...)
			var got []string
			for _, row := range rows[1:] {
				got = append(got, row[0])
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%s %s: GPUs %v, want %s", c.env, args, got, c.want)
			}
		}
	}
	cmd := exec.Command(itself(t), "--source="+u.url+"/metrics", "--once", "--gpus=0")
	cmd.Env = []string{"PATH=" + mine}
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "--gpus=0: this process may not open that GPU") {
		t.Errorf("%v: %s", err, out)
	}
}

// smiOf returns the directory of an nvidia-smi that lists only one board, as in a cgroup.
func smiOf(t *testing.T, uuid string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	script := "#!/bin/sh\ncase $1 in --query-gpu=*) echo '" + uuid + ", 00000000:20:00.0';; esac\n"
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}
