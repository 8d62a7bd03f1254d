package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// TestExportKeepsPercents: real_util_pct equals KempnerPulse's to the last digit, even if a
// fraction times a hundred would round differently.
func TestExportKeepsPercents(t *testing.T) {
	t.Parallel()
	var text, want strings.Builder
	text.WriteString("#Entity   SMACT        TENSO        DRAMA        GRACT        \nID                                                                 \n")
	want.WriteString("gpu_id,real_util_pct\n")
	rows := 0
	for n := 0; rows < 200 && n < 1e6; n++ {
		// Three decimals, as dmon prints them, in no particular order.
		sm, tensor, dram, engine := n*7919%1001, n*104729%1001, n*1299709%1001, n*15485863%1001
		percent := 0.0 // the sum as in KempnerPulse's present layer
		for _, in := range []struct {
			weight float64
			mille  int
		}{{.35, sm}, {.35, tensor}, {.20, dram}, {.10, engine}} {
			percent += float64(in.weight * float64(float64(in.mille)/1000*100))
		}
		kept := fmt.Sprintf("%.2f", percent)
		if kept == fmt.Sprintf("%.2f", percent/100*100) {
			continue
		}
		rows++
		fmt.Fprintf(&text, "GPU 0     %-13.3f%-13.3f%-13.3f%-13.3f\n", float64(sm)/1000, float64(tensor)/1000, float64(dram)/1000, float64(engine)/1000)
		fmt.Fprintf(&want, "0,%s\n", kept)
	}
	if rows < 200 {
		t.Fatalf("only %d rows round in two ways", rows)
	}
	file := filepath.Join(t.TempDir(), "ties.dmon")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	exportedRows, _ := exported(t, nil, "--backend=replay", "--source="+file, "--export=gpu_id,real_util_pct")
	for _, row := range exportedRows {
		fmt.Fprintln(&got, strings.Join(row, ","))
	}
	if got.String() != want.String() {
		t.Errorf("got\n%swant\n%s", got.String(), want.String())
	}
}

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

// TestExportEndsWithItsSource: an exporter or a host engine that never comes back ends the
// export, with the remedy.
func TestExportEndsWithItsSource(t *testing.T) {
	t.Parallel()
	scenario := dcgmtest.Scenario{GPUs: dcgmtest.Boards(1)}
	exe := dcgmtest.Install(t, scenario)
	u := startUpstream(func() ([]byte, error) { return []byte(oneGPU), nil })
	t.Cleanup(u.stop)
	for _, c := range []struct {
		args string
		lose func()
		want string
	}{
		{"--source=" + u.url + "/metrics --poll=1", u.stop, "no reading within 2s: .*connection refused; "},
		{"--backend=dcgm", func() {
			scenario.Failures = []dcgmtest.Failure{{Kind: dcgmtest.HostEngineDies}, {Kind: dcgmtest.HostEngineDown}}
			scenario.Write(t, dcgmtest.Beside(exe))
		}, "no reading within 1.1s: .*host engine.*; "},
	} {
		cmd := exec.CommandContext(t.Context(), itself(t), append(strings.Fields(c.args), "--export=gpu_id", "--export.timeout=1s")...)
		cmd.Env = []string{"PATH=" + filepath.Dir(exe)}
		var log bytes.Buffer
		cmd.Stderr = &log
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		lines.Scan() // the header
		if !lines.Scan() || lines.Text() != "0" {
			t.Fatalf("%s: %q\n%s", c.args, lines.Text(), &log)
		}
		c.lose()
		for lines.Scan() { // until it ends
		}
		err = cmd.Wait()
		if cmd.ProcessState.ExitCode() != 1 || !regexp.MustCompile(c.want).MatchString(log.String()) {
			t.Errorf("%s: %v, stderr %s", c.args, err, &log)
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
	if url := atOwnAddress(t, u.url); url != "" {
		sources = append(sources, "--source="+url+"/metrics")
	}
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
	script := "#!/bin/sh\ncase $1 in --query-gpu=*) echo '0, " + uuid + ", 00000000:20:00.0, 580.1, NVIDIA H100 80GB HBM3';; esac\n"
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// atOwnAddress serves another URL at a non-loopback address of this machine; it returns "" if there
// is none.
func atOwnAddress(t *testing.T, upstream string) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	for _, a := range addresses {
		ip, _, err := net.ParseCIDR(a.String())
		if err != nil || !ip.IsGlobalUnicast() {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort(ip.String(), "0"))
		if err != nil {
			continue
		}
		target, err := url.Parse(upstream)
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: httputil.NewSingleHostReverseProxy(target), ReadHeaderTimeout: patience}
		go server.Serve(listener)
		t.Cleanup(func() { server.Close() })
		return "http://" + listener.Addr().String()
	}
	return ""
}
