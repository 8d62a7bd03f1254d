package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/recording"
)

// exportFile returns what --export writes of a file, and how long it took.
func exportFile(t *testing.T, file string, flags ...string) (string, time.Duration) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), itself(t), append([]string{"--backend=replay", "--source=" + file, "--export=all"}, flags...)...)
	cmd.Env = []string{"HOME=" + t.TempDir()}
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	begun := time.Now()
	if err := cmd.Run(); err != nil || log.Len() > 0 {
		t.Fatalf("%v\n%s", err, &log)
	}
	return out.String(), time.Since(begun)
}

// timesOf returns the first cell of each row, without repetition.
func timesOf(csv string) (times []string) {
	for row := range strings.Lines(csv) {
		if at, _, _ := strings.Cut(row, ","); at != "timestamp" && !slices.Contains(times, at) {
			times = append(times, at)
		}
	}
	return times
}

// TestExportOfARecordingDoesNotWait: half a minute of readings takes a moment, and is of
// the times at which they were taken.
func TestExportOfARecordingDoesNotWait(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kpulse.rec")
	const period, total = 100 * time.Millisecond, 30 * time.Second
	play(t, func() (source.Source, error) { return recording.Record(demo(period), file, recording.Options{}) }, period, total, func(time.Time, []byte) {})
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := recording.Parse(text)
	if err != nil || len(rec.Asked) < 300 {
		t.Fatalf("%d readings are recorded: %v", len(rec.Asked), err)
	}
	var want []string
	for _, asked := range rec.Asked {
		hundredths := rec.Start.Add(asked).UnixMilli() / 10
		want = append(want, fmt.Sprintf("%d.%02d", hundredths/100, hundredths%100))
	}
	first, took := exportFile(t, file)
	if got := timesOf(first); !slices.Equal(got, want) {
		t.Errorf("%d readings of %s, want %d of %s", len(got), got, len(want), want)
	}
	if took > total/2 {
		t.Errorf("it took %s for readings of %s", took, total)
	}
	if second, _ := exportFile(t, file); second != first {
		t.Error("another run writes something else")
	}
}

// TestExportOfPagesDoesNotWait: saved pages end when their file was written, and --poll
// keeps the pace.
func TestExportOfPagesDoesNotWait(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pages.prom")
	var pages strings.Builder
	for i := range 60 {
		fmt.Fprintf(&pages, "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-a\"} %d\n# EOF\n", 30+i)
	}
	if err := os.WriteFile(file, []byte(pages.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	written := time.Unix(1700000059, 0)
	if err := os.Chtimes(file, written, written); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 60 {
		want = append(want, fmt.Sprintf("%d.00", 1700000000+i))
	}
	first, took := exportFile(t, file)
	if got := timesOf(first); !slices.Equal(got, want) || took > 30*time.Second {
		t.Errorf("in %s: %s", took, got)
	}
	if second, _ := exportFile(t, file); second != first {
		t.Error("another run writes something else")
	}
	paced, took := exportFile(t, file, "--poll=0.1")
	if rows := len(timesOf(paced)); rows != 60 || took < 5900*time.Millisecond {
		t.Errorf("%d readings in %s at a poll of 100 ms", rows, took)
	}
}
