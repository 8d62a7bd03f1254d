package expose

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// sourceFamily is a family with series of sources.
type sourceFamily struct {
	header
	// always is set if the series exist even if the source could not be read.
	always bool
	// tails distinguish the series of a source.
	tails []string
	fill  sourceFiller
	// ofStreams is set if there is a series for each stream of the source, in order.
	ofStreams bool
}

// sourceFiller sets the values of a source's series in a family, one for each tail; NaN means
// no series.
type sourceFiller func(values []float64, r *reading)

// sourceFamilies returns the families of sources, except for source_info, in
// the order of the exposition.
func sourceFamilies() []sourceFamily {
	return []sourceFamily{
		newSourceFamily(upFamily, true, alone(), fillUp),
		sourceGauge(readDurationFamily, func(r *reading) float64 { return r.source.Took.Seconds() }),
		sourceGauge(lastReadFamily, func(r *reading) float64 { return unixSeconds(r.source.At) }),
		sourceGauge(periodFamily, period),
		sourceGauge(unchangedFamily, unchanged),
		sourceGauge(devicesFamily, func(r *reading) float64 { return float64(r.snapshot.Frame.Len()) }),
		sourceGauge(sharedDevicesFamily, func(r *reading) float64 { return float64(r.shared) }),
		sourceGauge(samplesFamily, func(r *reading) float64 { return float64(r.source.Samples) }),
		missingFields(),
		sourceGauge(unknownFamily, func(r *reading) float64 { return float64(len(r.source.UnknownFamilies)) }),
		sourceCounter(skippedFamily, func(s *canonical.Source) uint64 { return s.SkippedLines }),
		newSourceFamily(droppedValuesFamily, true, droppedTails(), fillDropped),
		sourceCounter(clampedFamily, func(s *canonical.Source) uint64 { return s.ClampedValues }),
		sourceCounter(droppedFamiliesFamily, func(s *canonical.Source) uint64 { return s.DroppedFamilies }),
		sourceCounter(droppedSeriesFamily, func(s *canonical.Source) uint64 { return s.DroppedSeries }),
		sourceCounter(droppedAllocationsFamily, func(s *canonical.Source) uint64 { return s.DroppedAllocations }),
		streamCounter(restartsFamily, func(s *canonical.Stream) uint64 { return s.Restarts }),
		streamCounter(ticksFamily, func(s *canonical.Stream) uint64 { return s.Ticks }),
		streamCounter(missedFamily, func(s *canonical.Stream) uint64 { return s.Missed }),
		streamFamily(lastMissedFamily, lastMissed),
		streamCounter(evictedFamily, func(s *canonical.Stream) uint64 { return s.Evicted }),
		streamFamily(bytesFamily, readBytes),
	}
}

// lastMissed returns when the last missed tick of a stream was due, NaN if none was missed.
func lastMissed(s *canonical.Stream) float64 {
	if s.MissedAt.IsZero() {
		return math.NaN()
	}
	return unixSeconds(s.MissedAt)
}

// readBytes returns how many bytes of text were read from a stream, NaN if it gives no text.
func readBytes(s *canonical.Stream) float64 {
	if s.Bytes == 0 {
		return math.NaN()
	}
	return float64(s.Bytes)
}

func newSourceFamily(f family, always bool, tails []string, fill sourceFiller) sourceFamily {
	return sourceFamily{header: newHeader(families[f]), always: always, tails: tails, fill: fill}
}

// sourceGauge returns a family with one series for each source that could be read.
func sourceGauge(f family, value func(*reading) float64) sourceFamily {
	return newSourceFamily(f, false, alone(), func(values []float64, r *reading) {
		values[0] = value(r)
	})
}

// sourceCounter returns a family with one series for each source.
func sourceCounter(f family, value func(*canonical.Source) uint64) sourceFamily {
	return newSourceFamily(f, true, alone(), func(values []float64, r *reading) {
		values[0] = float64(value(r.source))
	})
}

// streamCounter returns a family with one series for each stream of each source.
func streamCounter(f family, value func(*canonical.Stream) uint64) sourceFamily {
	return streamFamily(f, func(s *canonical.Stream) float64 { return float64(value(s)) })
}

// streamFamily is like streamCounter, with float values; NaN means no series.
func streamFamily(f family, value func(*canonical.Stream) float64) sourceFamily {
	family := newSourceFamily(f, true, slices.Repeat(alone(), canonical.MaxStreams), func(values []float64, r *reading) {
		for i := range r.source.Streams {
			values[i] = math.NaN()
			if stream := &r.source.Streams[i]; stream.Name != "" {
				values[i] = value(stream)
			}
		}
	})
	family.ofStreams = true
	return family
}

func fillUp(values []float64, r *reading) { values[0] = indicator(r.failure == nil) }

// unixSeconds returns t in Unix time, to the microsecond.
func unixSeconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

func period(r *reading) float64 {
	if r.source.Period == 0 {
		return math.NaN()
	}
	return r.source.Period.Seconds()
}

func unchanged(r *reading) float64 {
	if r.source.ChangedAt.IsZero() {
		return math.NaN()
	}
	return wholeSeconds(max(0, r.source.At.Sub(r.source.ChangedAt)))
}

// missingFields returns the family with a 1 for each device family of which the source lacks a
// field.
func missingFields() sourceFamily {
	var tails []string
	var at [canonical.NumFields]int // the index of a field's family
	for f := range canonical.NumFields {
		if beginsFamily(f) {
			tails = append(tails, tail(fmt.Sprintf("field=%q", canonical.Fields[f].Name)))
		}
		at[f] = len(tails) - 1
	}
	return newSourceFamily(missingFamily, false, tails, func(values []float64, r *reading) {
		fillNaN(values)
		for _, f := range r.source.Missing {
			values[at[f]] = 1
		}
	})
}

func droppedTails() []string {
	var tails []string
	for _, word := range canonical.DropReasons {
		tails = append(tails, tail(fmt.Sprintf("reason=%q", word)))
	}
	return tails
}

func fillDropped(values []float64, r *reading) {
	for reason, n := range r.source.DroppedValues {
		values[reason] = float64(n)
	}
}
