package app

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRecordingPlaysTheSame records a minute of the demo and of an exporter's
// file, plays the recordings, and compares the expositions scrape by scrape.
func TestRecordingPlaysTheSame(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags []string
	}{
		{"demo", []string{"--backend=replay", "--poll=1s"}},
		{"exporter", []string{"--source=testdata/captures/time-slicing-two-pods.prom", "--poll=0", "--source.min-interval=0s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "kpulse.rec")
			const every, total = time.Second, time.Minute
			recorded := expositions(t, append(c.flags, "--record="+file), every, total)
			played := expositions(t, []string{"--backend=replay", "--source=" + file}, every, total)
			if len(recorded) != 61 || len(played) != len(recorded) {
				t.Fatalf("%d scrapes recorded, %d played", len(recorded), len(played))
			}
			for i := range recorded {
				if recorded[i] == played[i] {
					continue
				}
				theirs := strings.Split(played[i], "\n")
				for n, line := range strings.Split(recorded[i], "\n") {
					if n >= len(theirs) || theirs[n] != line {
						t.Fatalf("scrape %d, line %d:\nrecorded %s\nplayed   %s", i, n, line, theirs[min(n, len(theirs)-1)])
					}
				}
			}
		})
	}
}

// expositions plays and returns what is scraped, without the lines that tell of
// the source rather than of its GPUs.
func expositions(t *testing.T, flags []string, every, total time.Duration) (all []string) {
	t.Helper()
	play(t, flags, every, total, func(_ time.Time, exposition []byte) {
		var kept strings.Builder
		for line := range bytes.Lines(exposition) {
			if !bytes.Contains(line, []byte("kpulse_source_")) {
				kept.Write(line)
			}
		}
		all = append(all, kept.String())
	})
	return all
}
