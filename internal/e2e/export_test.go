package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// exported runs the program, which must succeed, and returns its rows and its stderr.
func exported(t *testing.T, env []string, args ...string) (rows [][]string, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, itself(t), args...)
	cmd.Env = env
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", args, err, &log)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows, log.String()
}

// saved writes rows to a file.
func saved(t *testing.T, rows [][]string) string {
	t.Helper()
	var text bytes.Buffer
	if err := csv.NewWriter(&text).WriteAll(rows); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "export.csv")
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// someTicks returns the --export output of a source's first ticks, then stops the program.
func someTicks(t *testing.T, env []string, rows int, args ...string) [][]string {
	t.Helper()
	cmd := exec.Command(itself(t), args...)
	cmd.Env = env
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	var text strings.Builder
	lines := bufio.NewScanner(out)
	for n := 0; n <= rows && lines.Scan(); n++ {
		text.WriteString(lines.Text() + "\n")
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // the rest is complete too
		text.WriteString(lines.Text() + "\n")
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("after SIGTERM: %v\n%s", err, &log)
	}
	all, err := csv.NewReader(strings.NewReader(text.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// agree compares the cells of two exports, except times and workloads, which are not readings, and
// scores of rounded readings, which may differ by less than off.
func agree(t *testing.T, a, b [][]string, off float64) {
	t.Helper()
	if len(a) != len(b) || !slices.Equal(a[0], b[0]) {
		t.Fatalf("%d rows of %v\n%d rows of %v", len(a), a[0], len(b), b[0])
	}
	for i := range a[1:] {
		for k, name := range a[0] {
			x, y := a[i+1][k], b[i+1][k]
			same := x == y || name == "timestamp" || name == "workloads"
			if x == "" && strings.HasSuffix(name, "_rate_s") {
				same = true // over an outage, as of a stream on a busy machine, of which a CSV says nothing
			}
			if name == "real_util_pct" && !same {
				p, errP := strconv.ParseFloat(x, 64)
				q, errQ := strconv.ParseFloat(y, 64)
				same = errP == nil && errQ == nil && math.Abs(p-q) < off
			}
			if !same {
				t.Errorf("row %d, GPU %s: %s is %s, and was %s", i+1, a[i+1][1], name, y, x)
			}
		}
	}
}

// TestExportPlaysTheSame: an export that is played and exported again keeps its values and times.
func TestExportPlaysTheSame(t *testing.T) {
	t.Parallel()
	for _, columns := range []string{"all", "all+"} {
		first := someTicks(t, nil, 55, "--backend=replay", "--poll=0.1", "--export="+columns)
		if len(first) < 56 || len(first[0]) < 34 {
			t.Fatalf("%d rows", len(first))
		}
		again, stderr := exported(t, nil, "--backend=replay", "--source="+saved(t, first), "--export="+columns)
		agree(t, first, again, 0.0101)
		if stderr != "" {
			t.Errorf("stderr: %s", stderr)
		}
		third, _ := exported(t, nil, "--backend=replay", "--poll=0.2", "--source="+saved(t, again), "--export="+columns)
		agree(t, again, third, 0)
		for i := range min(len(first), len(again), len(third)) {
			if was := first[i][0]; again[i][0] != was || third[i][0] != was {
				t.Errorf("row %d is of %s, and was of %s; played at another pace, of %s", i, again[i][0], was, third[i][0])
			}
		}
	}
}

// TestExportOfCaptures: every dialect, boards and instances, and impossible values.
func TestExportOfCaptures(t *testing.T) {
	t.Parallel()
	for _, file := range captureFiles(t, "*.prom") {
		switch filepath.Base(file) {
		case "cpus-alone.prom": // there is no GPU
			continue
		case "hpc-jobs.prom", "amd-guest.prom": // rows of boards without readings, which are no boards when they are played
			continue
		}
		first, _ := exported(t, nil, "--backend=replay", "--poll=0.1", "--source="+file, "--export=all+")
		again, _ := exported(t, nil, "--backend=replay", "--poll=0.1", "--source="+saved(t, first), "--export=all+")
		if len(first) < 2 {
			t.Errorf("%s: no row", file)
		}
		agree(t, first, again, 0.0101)
	}
}

// TestExportOfDCGMI: readings of dcgmi have three decimals and survive to the last digit, also on a
// partitioned board.
func TestExportOfDCGMI(t *testing.T) {
	t.Parallel()
	exe := dcgmtest.Install(t, dcgmtest.Scenario{Seed: 5, GPUs: []dcgmtest.GPU{dcgmtest.Boards(2)[0], dcgmtest.Boards(2)[1].Cut(2)}})
	env := []string{"PATH=" + filepath.Dir(exe), "SLURM_JOB_ID=4711", "OMPI_COMM_WORLD_RANK=3"}
	first := someTicks(t, env, 20, "--backend=dcgm", "--export=all+")
	again, _ := exported(t, env, "--backend=replay", "--source="+saved(t, first), "--export=all+")
	agree(t, first, again, 0)
	for name, want := range map[string]string{"job_id": "4711", "job_rank": "3", "model": "H100"} {
		if at := slices.Index(first[0], name); at < 0 || first[1][at] != want {
			t.Errorf("%s is not %s in %v", name, want, first[1])
		}
	}
}

// TestAddressInUse: if the address is taken, the error names the flag that changes it.
func TestAddressInUse(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, itself(t), "--backend=replay", "--web.listen-address="+taken.Addr().String()).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "address already in use; another program listens there") || !strings.Contains(string(out), "--web.listen-address=:PORT") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestExportOfAnExporter: --export of an exporter has only the selected GPUs.
func TestExportOfAnExporter(t *testing.T) {
	t.Parallel()
	u := startUpstream(func() ([]byte, error) {
		return []byte("DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-a\"} 40\nDCGM_FI_DEV_GPU_TEMP{gpu=\"2\",UUID=\"GPU-c\"} 42\n"), nil
	})
	t.Cleanup(u.stop)
	rows := someTicks(t, nil, 2, "--source="+u.url+"/metrics", "--poll=1", "--gpus=GPU-c", "--export=gpu_id,gpu_temp_c")
	if len(rows) < 3 || slices.ContainsFunc(rows[1:], func(r []string) bool { return r[0] != "2" || r[1] != "42.0000" }) {
		t.Errorf("%v", rows)
	}
}

// TestOnceOfASelection: --gpus by index, range and prefix of a UUID, for a source that does not
// select itself; a board includes its instances.
func TestOnceOfASelection(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ gpus, want string }{
		{"0,2-3", "0 2 3"},
		{"7", "7 7:1 7:3 7:9"},
		{"GPU-5d0e0002", "1"},
		{"gpu-5D0E0001-3c41", "0"},
		{"MIG-GPU-5d0e0008-8098-4fac-afb6-72e3d5c69177/3", "7:3"},
		{"all", "0 1 2 3 4 5 6 7 7:1 7:3 7:9"},
		{"", "0 1 2 3 4 5 6 7 7:1 7:3 7:9"}, // a demo ignores a job's environment
	} {
		env := []string{"CUDA_VISIBLE_DEVICES=1"}
		args := []string{"--backend=replay", "--once", "--export=gpu_id"}
		if c.gpus != "" {
			args = append(args, "--gpus="+c.gpus)
		}
		rows, stderr := exported(t, env, args...)
		var ids []string
		for _, r := range rows[1:] {
			ids = append(ids, r[0])
		}
		if got := strings.Join(ids, " "); got != c.want || stderr != "" {
			t.Errorf("--gpus=%s: %s, want %s; stderr: %s", c.gpus, got, c.want, stderr)
		}
	}
}

// TestOnceAsJSON: the table as numbers.
func TestOnceAsJSON(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(itself(t), "--backend=replay", "--once", "--json")
	cmd.Env = []string{"SLURM_JOB_ID=12", "PMI_RANK=3"}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Schema  int
		Source  struct{ Backend string }
		Job     map[string]string
		Devices []map[string]any
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Schema != 1 || len(doc.Devices) != 11 || doc.Source.Backend != "replay" || doc.Job["job_id"] != "12" || doc.Job["rank"] != "3" {
		t.Errorf("%+v", doc)
	}
	for _, d := range doc.Devices {
		_, scored := d["gpu_real_utilization_ratio"].(float64)
		if implied := d["gpu"] == "7" && d["mig_instance"] == nil; scored == implied {
			t.Errorf("GPU %v %v: %v", d["gpu"], d["mig_instance"], d["gpu_real_utilization_ratio"])
		}
	}
}

// exportFile returns the --export output for a file, all columns of KempnerPulse unless flags name
// others, and how long it took: at most patience.
func exportFile(t *testing.T, file string, flags ...string) (string, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if !slices.ContainsFunc(flags, func(f string) bool { return strings.HasPrefix(f, "--export=") }) {
		flags = append(flags, "--export=all")
	}
	cmd := exec.CommandContext(ctx, itself(t), append([]string{"--backend=replay", "--source=" + file}, flags...)...)
	cmd.Env = []string{"HOME=" + t.TempDir()}
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	begun := time.Now()
	if err := cmd.Run(); err != nil || log.Len() > 0 {
		t.Fatalf("%v\n%s", err, &log)
	}
	return out.String(), time.Since(begun)
}
