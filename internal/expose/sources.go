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
}

// sourceFamilies returns the families of sources, but for source_info, in the
// order of the exposition.
func sourceFamilies() []sourceFamily {
	up := sourceLine{tail(), func(r *reading) float64 { return indicator(r.failure == nil) }}
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
	}
}

func newSourceFamily(f family, always bool, lines ...sourceLine) sourceFamily {
	return sourceFamily{newHeader(families[f]), always, lines}
}

// sourceGauge is a family with one series of each source that could be read.
func sourceGauge(f family, value func(*reading) float64) sourceFamily {
	return newSourceFamily(f, false, sourceLine{tail(), value})
}

// sourceCounter is a family with one series of each source.
func sourceCounter(f family, value func(*canonical.Source) uint64) sourceFamily {
	return newSourceFamily(f, true, sourceLine{tail(), func(r *reading) float64 { return float64(value(r.source)) }})
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
		lines = append(lines, sourceLine{tail(fmt.Sprintf("field=%q", name)), func(r *reading) float64 {
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
		lines = append(lines, sourceLine{tail(fmt.Sprintf("reason=%q", word)), func(r *reading) float64 {
			return float64(r.source.DroppedValues[reason])
		}})
	}
	return lines
}
