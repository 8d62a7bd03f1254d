package e2e

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/exporter"
	"github.com/kpulse/kpulse-proxy/internal/source/recording"
)

// TestRecordingPlaysTheSame records a minute of the demo and of an exporter's file, plays the
// recordings, and compares the expositions scrape by scrape.
func TestRecordingPlaysTheSame(t *testing.T) {
	for _, c := range []struct {
		name string
		open func() (source.Source, error)
	}{
		{"demo", func() (source.Source, error) { return demo(time.Second), nil }},
		{"exporter", func() (source.Source, error) {
			return exporter.New(captureDir+"/time-slicing-two-pods.prom", exporter.Options{MaxBody: 1 << 20})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "kpulse.rec")
			const every, total = time.Second, time.Minute
			recorded := expositions(t, func() (source.Source, error) {
				src, err := c.open()
				if err != nil {
					return nil, err
				}
				return recording.Record(src, file, nil)
			}, every, total)
			played := expositions(t, func() (source.Source, error) { return recording.Open(file, recording.Options{Loop: true}) }, every, total)
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

// expositions plays a source and returns the scrapes, without the lines about the source itself.
func expositions(t *testing.T, open func() (source.Source, error), every, total time.Duration) (all []string) {
	t.Helper()
	play(t, open, every, total, func(_ time.Time, exposition []byte) {
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
