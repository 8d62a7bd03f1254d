package expose

import (
	"fmt"
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// sourceFamily is a family with series of sources.
type sourceFamily struct {
	header
	// always is set where the series are there even if the source could not be
	// read.
	always bool
	lines  []sourceLine
}

// sourceLine is one series that a source can have in a family.
type sourceLine struct {
	tail  string
	value func(*reading) float64 // NaN where the source has no such series
	// stream is the one whose series it is, nil if it is the source's own.
	stream func(*canonical.Source) *canonical.Stream
}

// sourceFamilies returns the families of sources, but for source_info, in the
// order of the exposition.
func sourceFamilies() []sourceFamily {
	up := sourceLine{tail: tail(), value: func(r *reading) float64 { return indicator(r.failure == nil) }}
	return []sourceFamily{
		newSourceFamily(upFamily, true, up),
		sourceGauge(readDurationFamily, func(r *reading) float64 { return r.source.Took.Seconds() }),
		sourceGauge(lastReadFamily, func(r *reading) float64 { return unixSeconds(r.source.At) }),
		sourceGauge(periodFamily, period),
		sourceGauge(unchangedFamily, unchanged),
		sourceGauge(devicesFamily, func(r *reading) float64 { return float64(r.snapshot.Frame.Len()) }),
		sourceGauge(samplesFamily, func(r *reading) float64 { return float64(r.source.Samples) }),
		newSourceFamily(missingFamily, false, missingLines()...),
		sourceGauge(unknownFamily, func(r *reading) float64 { return float64(len(r.source.UnknownFamilies)) }),
		sourceCounter(skippedFamily, func(s *canonical.Source) uint64 { return s.SkippedLines }),
		newSourceFamily(droppedValuesFamily, true, droppedLines()...),
		sourceCounter(clampedFamily, func(s *canonical.Source) uint64 { return s.ClampedValues }),
		sourceCounter(droppedFamiliesFamily, func(s *canonical.Source) uint64 { return s.DroppedFamilies }),
		sourceCounter(droppedSeriesFamily, func(s *canonical.Source) uint64 { return s.DroppedSeries }),
		sourceCounter(droppedAllocationsFamily, func(s *canonical.Source) uint64 { return s.DroppedAllocations }),
		streamCounter(restartsFamily, func(s *canonical.Stream) uint64 { return s.Restarts }),
		streamCounter(ticksFamily, func(s *canonical.Stream) uint64 { return s.Ticks }),
		streamCounter(evictedFamily, func(s *canonical.Stream) uint64 { return s.Evicted }),
	}
}

func newSourceFamily(f family, always bool, lines ...sourceLine) sourceFamily {
	return sourceFamily{newHeader(families[f]), always, lines}
}

// sourceGauge is a family with one series of each source that could be read.
func sourceGauge(f family, value func(*reading) float64) sourceFamily {
	return newSourceFamily(f, false, sourceLine{tail: tail(), value: value})
}

// sourceCounter is a family with one series of each source.
func sourceCounter(f family, value func(*canonical.Source) uint64) sourceFamily {
	return newSourceFamily(f, true, sourceLine{tail: tail(), value: func(r *reading) float64 { return float64(value(r.source)) }})
}

// streamCounter is a family with one series of each stream of each source.
func streamCounter(f family, value func(*canonical.Stream) uint64) sourceFamily {
	var lines []sourceLine
	for i := range canonical.MaxStreams {
		stream := func(s *canonical.Source) *canonical.Stream { return &s.Streams[i] }
		lines = append(lines, sourceLine{tail: tail(), stream: stream, value: func(r *reading) float64 {
			if r.source.Streams[i].Name == "" {
				return math.NaN()
			}
			return float64(value(&r.source.Streams[i]))
		}})
	}
	return newSourceFamily(f, true, lines...)
}

// unixSeconds is t in Unix time, to the microsecond.
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

// missingLines are a series for each family that devices can give, there if the
// source misses it.
func missingLines() []sourceLine {
	var lines []sourceLine
	for f := range canonical.NumFields {
		name := canonical.Fields[f].Name
		if f > 0 && canonical.Fields[f-1].Name == name {
			continue
		}
		lines = append(lines, sourceLine{tail: tail(fmt.Sprintf("field=%q", name)), value: func(r *reading) float64 {
			for _, missing := range r.source.Missing {
				if canonical.Fields[missing].Name == name {
					return 1
				}
			}
			return math.NaN()
		}})
	}
	return lines
}

func droppedLines() []sourceLine {
	var lines []sourceLine
	for reason, word := range canonical.DropReasons {
		lines = append(lines, sourceLine{tail: tail(fmt.Sprintf("reason=%q", word)), value: func(r *reading) float64 {
			return float64(r.source.DroppedValues[reason])
		}})
	}
	return lines
}
