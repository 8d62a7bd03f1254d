package replay

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/recording"
)

// recordingTrack plays our own recordings. Failed reads give no tick, but their
// time passes.
type recordingTrack struct {
	rec     *recording.Recording
	player  *recording.Player
	reading recording.Reading
	spacing time.Duration // from the last reading to the first when it loops
	n       int           // ticks given since the start or rewind
	scanner raw.Scanner
}

// newRecordingTrack refuses a recording that is damaged or contains no reading.
func newRecordingTrack(path string, text []byte) (*recordingTrack, error) {
	rec, err := recording.Parse(text)
	if damage, ok := errors.AsType[*recording.Damage](err); ok {
		return nil, refusal(path, damage.Line, damage.What,
			fmt.Sprintf("play the part before it: head -n %d %s > whole.recording", damage.Line-1, path))
	}
	if err != nil {
		return nil, err
	}
	if len(rec.Asked) == 0 {
		what := "the recording contains no complete reading"
		if rec.Failed > 0 {
			what += fmt.Sprintf(", only %d that failed", rec.Failed)
		}
		return nil, refusal(path, max(rec.Torn, 1), what, "record for longer, from a source that answers")
	}
	t := &recordingTrack{rec: rec, player: rec.Play(), spacing: rec.Spacing()}
	if t.spacing <= 0 {
		t.spacing = DefaultPeriod
	}
	return t, nil
}

// warnTorn logs a torn record.
func (t *recordingTrack) warnTorn(path string, logger *slog.Logger) {
	if t.rec.Torn > 0 {
		logger.Warn("the recording ends with an incomplete record, which is not played", "file", path, "line", t.rec.Torn)
	}
}

// caps returns what is known about the recorded source.
func (t *recordingTrack) caps() source.Caps {
	caps := t.rec.Caps
	caps.Period = t.spacing
	return caps
}

// next returns the next reading. It shifts the timestamps of samples to the
// time of the replay, so that a sample is as old as it was.
func (t *recordingTrack) next(b *raw.Batch) error {
	t.reading.Body = b.Body[:0]
	for {
		if err := t.player.Next(&t.reading); err != nil {
			return err
		}
		if t.reading.Failure == "" {
			break
		}
	}
	t.n++
	b.Body, b.Took = t.reading.Body, t.reading.Took
	t.scanner.Scan(b)
	later := b.At.Sub(t.rec.Start.Add(t.reading.Asked)).Milliseconds()
	for i := range b.Stamps {
		b.Stamps[i].Millis += later
	}
	return nil
}

// gap returns the time from the last tick to the next. When the recording loops, it
// is the recorded time after the last and before the first reading, and one spacing.
func (t *recordingTrack) gap() time.Duration {
	asked := t.rec.Asked
	if t.n < len(asked) {
		return max(asked[t.n]-asked[t.n-1], 0)
	}
	return max(t.rec.Ended-asked[t.n-1], 0) + max(asked[0]-t.rec.Begun, 0) + t.spacing
}

func (t *recordingTrack) rewind() {
	t.player.Rewind()
	t.n = 0
}

// length returns the number of ticks. Failed reads do not count.
func (t *recordingTrack) length() int { return len(t.rec.Asked) }

func (t *recordingTrack) instant() time.Time {
	return t.rec.Start.Add(t.rec.Asked[t.n%len(t.rec.Asked)]).Local()
}
