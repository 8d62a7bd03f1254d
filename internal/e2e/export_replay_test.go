package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/recording"
)

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

// timesOf returns the first cell of each row, without repetition.
func timesOf(csv string) (times []string) {
	for row := range strings.Lines(csv) {
		if at, _, _ := strings.Cut(row, ","); at != "timestamp" && !slices.Contains(times, at) {
			times = append(times, at)
		}
	}
	return times
}

// TestExportOfARecordingDoesNotWait: exporting five minutes of readings takes a moment, and keeps
// their times.
func TestExportOfARecordingDoesNotWait(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kpulse.rec")
	const period, total = time.Second, 5 * time.Minute
	play(t, func() (source.Source, error) { return recording.Record(demo(period), file, nil) }, period, total, func(time.Time, []byte) {})
	var want []string
	for _, at := range recordedTimes(t, file) {
		want = append(want, fmt.Sprintf("%d.%02d", at.Unix(), at.UnixMilli()/10%100))
	}
	if len(want) < 300 {
		t.Fatalf("%d readings are recorded", len(want))
	}
	first, _ := exportFile(t, file) // without waiting five minutes
	if got := timesOf(first); !slices.Equal(got, want) {
		t.Errorf("%d readings of %s, want %d of %s", len(got), got, len(want), want)
	}
	if second, _ := exportFile(t, file); second != first {
		t.Error("another run writes a different export")
	}
}

// recordedTimes returns the times in the header lines of a recording, as zcat shows them.
func recordedTimes(t *testing.T, file string) (times []time.Time) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range regexp.MustCompile(`(?m)^# kpulse-proxy recording .*"at":"([^"]+)"`).FindAllSubmatch(text, -1) {
		taken, err := time.Parse(time.RFC3339Nano, string(at[1]))
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, taken)
	}
	return times
}

// savedPages writes n pages to a file; the time of the file is that of the last page.
func savedPages(t *testing.T, n int) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pages.prom")
	var pages strings.Builder
	for i := range n {
		fmt.Fprintf(&pages, "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-a\"} %d\n# EOF\n", i%90)
	}
	if err := os.WriteFile(file, []byte(pages.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	written := time.Unix(1700000000+int64(n)-1, 0)
	if err := os.Chtimes(file, written, written); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestExportOfPagesDoesNotWait: the last page has the time of the file, and --poll sets the pace.
func TestExportOfPagesDoesNotWait(t *testing.T) {
	t.Parallel()
	const pages = 300 // a second each: more than patience
	file := savedPages(t, pages)
	var want []string
	for i := range pages {
		want = append(want, fmt.Sprintf("%d.00", 1700000000+i))
	}
	first, _ := exportFile(t, file)
	if got := timesOf(first); !slices.Equal(got, want) {
		t.Errorf("%d readings: %s", len(got), got)
	}
	if second, _ := exportFile(t, file); second != first {
		t.Error("another run writes a different export")
	}
	paced, took := exportFile(t, savedPages(t, 60), "--poll=0.1")
	if rows := len(timesOf(paced)); rows != 60 || took < 5900*time.Millisecond {
		t.Errorf("%d readings in %s at a poll of 100 ms", rows, took)
	}
}
