package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/recording"
)

// captureDir is the directory of the shared captures: expositions of every dialect, and dmon
// output.
const captureDir = "../../testdata/captures"

// captureFiles returns the captures whose name matches pattern.
func captureFiles(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(captureDir, pattern))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d captures match %s (%v)", len(files), pattern, err)
	}
	return files
}

// TestGolden compares the output for each capture, and for the demo, with testdata/golden (-update
// rewrites it): our part of /metrics, --once, --once --json and --export. The diff shows changed
// names, labels, order, units and values; the tests of the layers and the reference check that the
// values are right.
func TestGolden(t *testing.T) {
	t.Parallel()
	names := []string{""}
	for _, file := range captureFiles(t, "*") {
		names = append(names, filepath.Base(file))
	}
	for _, name := range names {
		flags, golden := []string{"--source=" + name, "--poll=0"}, name
		switch {
		case name == "":
			flags, golden = []string{"--backend=replay", "--poll=24h"}, "demo"
		case filepath.Ext(name) == ".dmon":
			flags = []string{"--backend=replay", "--source=" + name, "--poll=24h"}
		}
		t.Run(golden, func(t *testing.T) {
			t.Parallel()
			var page strings.Builder
			page.WriteString("-- /metrics --\n" + goldenMetrics(t, flags))
			if strings.Contains(flags[len(flags)-1], "--poll") {
				flags = flags[:len(flags)-1]
			}
			for _, more := range []string{"--once", "--once --json", "--export=all --once", "--export=all --poll=100ms"} {
				if !strings.Contains(more, "--poll") || filepath.Ext(name) == ".dmon" {
					page.WriteString("-- " + more + " --\n" + goldenOutput(t, append(strings.Fields(more), flags...)))
				}
			}
			compareGolden(t, golden+".golden", page.String())
		})
	}
}

// goldenCommand returns kpulse-proxy, run in captureDir without an environment.
func goldenCommand(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, itself(t), args...)
	cmd.Dir, cmd.Env = captureDir, []string{"HOME=" + t.TempDir()}
	return cmd
}

// goldenMetrics returns our part of the first scrape.
func goldenMetrics(t *testing.T, flags []string) string {
	t.Helper()
	c, err := startChild(goldenCommand(t.Context(), t, append(flags, "--web.listen-address=127.0.0.1:0")...), filepath.Join(t.TempDir(), "log"))
	if err != nil {
		return "(it does not start)\n"
	}
	defer c.Cmd.Process.Kill()
	var answer []byte
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		res, err := http.Get(c.URL + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		answer, err = io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode == http.StatusOK {
			break
		}
		answer = fmt.Appendf(nil, "status %d\n%s", res.StatusCode, answer)
	}
	// The upstream's part may have duplicate series.
	if at := bytes.Index(answer, []byte("# HELP kpulse_")); at >= 0 {
		if err := checkExposition(answer[at:]); err != nil {
			t.Error(err)
		}
	}
	return reviewable(answer)
}

// changing matches samples that differ between runs.
var changing = regexp.MustCompile(`^kpulse_(source_read_duration_seconds|source_last_read_timestamp_seconds|build_info)\{`)

// reviewable returns our nonzero samples of an exposition, and the number of zeros.
func reviewable(exposition []byte) string {
	var kept strings.Builder
	zeros := 0
	for line := range strings.Lines(string(exposition)) {
		switch {
		case !strings.HasPrefix(line, "kpulse_"), changing.MatchString(line):
		case strings.HasSuffix(line, " 0\n"):
			zeros++
		default:
			kept.WriteString(line)
		}
	}
	return fmt.Sprintf("%s(%d samples are 0)\n", &kept, zeros)
}

// volatile matches the time of a reading in the table, JSON and CSV.
var volatile = regexp.MustCompile(`(?m)\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC|"at": "[^"]*"|^\d{10}\.\d\d`)

// goldenOutput returns the output of a run, without the time of the reading.
func goldenOutput(t *testing.T, args []string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := goldenCommand(ctx, t, args...)
	stdout, err := cmd.Output()
	text := volatile.ReplaceAllString(string(stdout), "TIME")
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return text + "(" + exit.Error() + ")\n"
	} else if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestGoldenOverTime does so for some minutes of simulated time, with the demo and dmon captures:
// counters, events, and series that appear and disappear.
func TestGoldenOverTime(t *testing.T) {
	for _, test := range []struct {
		name  string
		open  func() (source.Source, error)
		total time.Duration
	}{
		{"demo", func() (source.Source, error) { return demo(time.Second), nil }, 5 * time.Minute},
		{"dmon-mig.dmon", func() (source.Source, error) {
			return recording.Open(filepath.Join(captureDir, "dmon-mig.dmon"), recording.Options{Period: time.Second, Loop: true})
		}, 30 * time.Second},
		{"dmon-profiling.dmon", func() (source.Source, error) {
			return recording.Open(filepath.Join(captureDir, "dmon-profiling.dmon"), recording.Options{Period: time.Second, Loop: true})
		}, 30 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			var last string
			play(t, test.open, time.Second, test.total, func(_ time.Time, exposition []byte) { last = reviewable(exposition) })
			compareGolden(t, test.name+".over-time.golden", strings.ReplaceAll(last, captureDir+"/", ""))
		})
	}
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wanted, gotten := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range wanted {
		if i >= len(gotten) || wanted[i] != gotten[i] {
			t.Errorf("%s differs from line %d on:\nwant %s\ngot  %s\n(-update rewrites it)", path, i+1, wanted[i], strings.Join(gotten[min(i, len(gotten)):min(i+1, len(gotten))], ""))
			return
		}
	}
	if len(gotten) > len(wanted) {
		t.Errorf("%s lacks line %d and what follows: %s", path, len(wanted)+1, gotten[len(wanted)])
	}
}
