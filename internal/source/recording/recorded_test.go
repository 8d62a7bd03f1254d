package recording

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// TestRecordedTimes: ticks have the times of the capture at any pace, and these
// rise even if its clock was set back. A capture without times gets those of the
// replay.
func TestRecordedTimes(t *testing.T) {
	back := &answering{caps: source.Caps{Backend: "dcgm", Period: 2 * time.Second}, at: start, answers: []heard{
		{0, "up 1\n", nil}, {2 * time.Second, "up 2\n", nil}, {-time.Hour, "up 3\n", nil}, {3 * time.Second, "up 4\n", nil},
	}}
	played := func(n int) string { return "played" + strings.Repeat(" +1s", n-1) }
	for _, c := range []struct {
		name, path string
		opts       Options
		ticks      int
		want       string // seconds after the start of the capture, or "played" and the steps after that
		took       time.Duration
	}{
		{"a recording", record(t, sixAnswers(), 6), Options{Recorded: true}, 5, "0 1 2 9 10", 10 * time.Second},
		{"a recording that is played faster", record(t, sixAnswers(), 6), Options{Recorded: true, Period: time.Second}, 5, "0 1 2 9 10", 4 * time.Second},
		{"a clock that was set back", record(t, back, 4), Options{Recorded: true}, 4, "0 2 4 7", 7 * time.Second},
		{"CSV", fileOf(t, "timestamp,gpu_id,power_w\n1772366400.00,0,1\n1772366400.29,0,2\n1772366407.31,0,3\n"), Options{Recorded: true, Period: time.Second}, 3, "0 0.29 7.31", 2 * time.Second},
		{"CSV with days between", fileOf(t, "timestamp,gpu_id,power_w\n1772366400,0,1\n1772366401,0,2\n1772539200,0,3\n"), Options{Recorded: true}, 3, "0 1 172800", time.Hour + time.Second},
		{"CSV of a clock that was set back", fileOf(t, "timestamp,gpu_id,power_w\n1772366400,0,1\n1772366401,0,2\n1772366390,0,3\n1772366395,0,4\n"), Options{Recorded: true, Period: time.Second}, 4, "0 1 6 11", 3 * time.Second},
		{"a loop", record(t, sixAnswers(), 6), Options{Recorded: true, Loop: true}, 7, "0 1 2 9 10 11 12", 12 * time.Second},
		{"CSV without times", fileOf(t, "gpu_id,power_w\n0,1\n0,2\n0,3\n"), Options{Recorded: true}, 3, played(3), 2 * time.Second},
		{"expositions", fileOf(t, twoBodies), Options{Recorded: true}, 2, played(2), time.Second},
		{"dmon", fileOf(t, threeSamples), Options{Recorded: true}, 3, played(3), 2 * time.Second},
		{"not requested", record(t, sixAnswers(), 2), Options{}, 2, played(2), time.Second},
		{"with a start", record(t, sixAnswers(), 2), Options{Recorded: true, Start: start.Add(time.Minute)}, 2, "60 61", time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, err := Open(c.path, c.opts)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			begun := time.Now()
			var b raw.Batch
			var stamps []time.Time
			for len(stamps) < c.ticks {
				if err := s.Read(t.Context(), &b); err != nil {
					t.Fatalf("%s: tick %d: %v", c.name, len(stamps), err)
				}
				stamps = append(stamps, b.At)
			}
			took := time.Since(begun)
			got := []string{"played"}
			for i, at := range stamps {
				switch {
				case !stamps[0].Equal(begun):
					got = append(got, strconv.FormatFloat(float64(at.UnixMicro()-start.UnixMicro())/1e6, 'f', -1, 64))
				case i > 0:
					got = append(got, fmt.Sprintf("+%v", at.Sub(stamps[i-1])))
				}
				if i > 0 && !at.After(stamps[i-1]) {
					t.Errorf("%s: tick %d is of %v, and the one before it of %v", c.name, i, at, stamps[i-1])
				}
			}
			if !stamps[0].Equal(begun) {
				got = got[1:]
			}
			if text := strings.Join(got, " "); text != c.want || took != c.took {
				t.Errorf("%s: stamped %s, read in %v; want %s in %v", c.name, text, took, c.want, c.took)
			}
			if err := s.Read(t.Context(), &b); errors.Is(err, io.EOF) == c.opts.Loop {
				t.Errorf("%s: at the end: %v", c.name, err)
			}
		})
	}
}

// TestRecordedPeriod: if the stamps are recorded, the period is the recorded one
// too, at any pace.
func TestRecordedPeriod(t *testing.T) {
	for _, c := range []struct {
		recorded bool
		want     time.Duration
	}{{true, time.Second}, {false, time.Millisecond}} {
		s, err := Open(record(t, sixAnswers(), 6), Options{Recorded: c.recorded, Period: time.Millisecond})
		if err != nil || s.Caps().Period != c.want {
			t.Errorf("with recorded times %v the period is %v, want %v; %v", c.recorded, s.Caps().Period, c.want, err)
		}
	}
}
