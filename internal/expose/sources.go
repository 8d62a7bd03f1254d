package expose

import (
	"fmt"
	"math"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// sourceFamily is a family with series of sources.
type sourceFamily struct {
	Series
	header
	// full: the lean form lacks the family; the proxy's own telemetry has it.
	full bool
	// always is set if the series exist even if the source could not be read.
	always bool
	// tails distinguish the series of a source; nil is one series.
	tails []string
	fill  sourceFiller
	thin  sourceFiller // leaves out of what fill set what the lean form omits; nil for nothing
	// label appends further labels of the i-th series; nil appends none.
	label func(dst []byte, s *canonical.Source, i int) []byte
}

// sourceFiller sets the values of a source's series in a family, one for each tail; NaN means
// no series.
type sourceFiller func(values []float64, r *outcome)

// sourceFamilies returns the families of sources that the form has.
func (f Form) sourceFamilies() []sourceFamily {
	list := slices.DeleteFunc(sourceFamilies(), func(one sourceFamily) bool { return f.excludes(one.name) || one.full && !f.Full })
	for i := range list {
		if f.Full {
			list[i].thin = nil
		}
	}
	return list
}

// sourceFamilies returns the families of sources in the order of the exposition.
func sourceFamilies() []sourceFamily {
	list := []sourceFamily{
		{Series: Series{"source_up", canonical.Gauge, sourceLabels, "1 if the source could be read for this scrape, else 0."},
			always: true, fill: ofReading(func(r *outcome) float64 { return indicator(r.failure == nil) })},
		{Series: Series{"source_read_duration_seconds", canonical.Gauge, sourceLabels, "How long the served reading took."},
			fill: ofSource(func(s *canonical.Source) float64 { return s.Took.Seconds() })},
		{Series: Series{"source_last_read_timestamp_seconds", canonical.Gauge, sourceLabels, "When the served reading was requested, in Unix time."},
			fill: ofSource(func(s *canonical.Source) float64 { return unixSeconds(s.At) })},
		{Series: Series{"source_period_seconds", canonical.Gauge, sourceLabels, "Time between two readings of a streaming source."},
			full: true, fill: ofSource(func(s *canonical.Source) float64 { return unlessZero(s.Period.Seconds()) })},
		{Series: Series{"source_unchanged_seconds", canonical.Gauge, sourceLabels,
			"How long no value of the source has changed, if it gives power, energy or temperature; after some minutes its exporter has " +
				"most likely stopped collecting."},
			fill: ofSource(unchanged)},
		{Series: Series{"source_devices", canonical.Gauge, sourceLabels, "GPUs and MIG instances in the reading."},
			fill: ofReading(func(r *outcome) float64 { return float64(r.snapshot.Frame.Len()) })},
		{Series: Series{"source_shared_devices", canonical.Gauge, sourceLabels,
			"GPUs and MIG instances in the reading that an earlier source has too; the series come from the earlier source."},
			full: true, fill: ofReading(func(r *outcome) float64 { return float64(r.shared) })},
		{Series: Series{"source_samples", canonical.Gauge, sourceLabels, "Samples in the reading."},
			full: true, fill: ofSource(func(s *canonical.Source) float64 { return float64(s.Samples) })},
		{Series: Series{"source_field_missing", canonical.Gauge, sourceLabels + ",field",
			"1 for a reading that real utilization, class or the first five health conditions need and that no device gave."},
			tails: missingTails(), fill: fillMissing()},
		{Series: Series{"source_unknown_families", canonical.Gauge, sourceLabels,
			"Families named like the exporter's that kpulse-proxy does not know; the landing page lists them."},
			fill: ofSource(func(s *canonical.Source) float64 { return float64(len(s.UnknownFamilies)) })},
		{Series: Series{"source_skipped_lines_total", canonical.Counter, sourceLabels, "Lines that are not valid exposition."},
			always: true, fill: ofSource(func(s *canonical.Source) float64 { return float64(s.SkippedLines) })},
		{Series: Series{"source_dropped_values_total", canonical.Counter, sourceLabels + ",reason",
			"Values that were not translated, by reason."},
			always: true, tails: droppedTails(), fill: fillDropped, thin: thinDropped},
		{Series: Series{"source_clamped_values_total", canonical.Counter, sourceLabels, "Values slightly out of range that were set to the nearest limit."},
			full: true, always: true, fill: ofSource(func(s *canonical.Source) float64 { return float64(s.ClampedValues) })},
		{Series: Series{"source_dropped_families_total", canonical.Counter, sourceLabels, "Upstream families named kpulse_* that were dropped."},
			full: true, always: true, fill: ofSource(func(s *canonical.Source) float64 { return float64(s.DroppedFamilies) })},
		{Series: Series{"source_dropped_series_total", canonical.Counter, sourceLabels, "Samples of devices beyond --series-limit, which are not translated."},
			always: true, fill: ofSource(func(s *canonical.Source) float64 { return float64(s.DroppedSeries) })},
		{Series: Series{"source_dropped_allocations_total", canonical.Counter, sourceLabels, "Allocations beyond --series-limit, for which no counters are kept."},
			full: true, always: true, fill: ofSource(func(s *canonical.Source) float64 { return float64(s.DroppedAllocations) })},
	}
	for _, f := range streamFamilies() {
		list = append(list, sourceFamily{Series: f.Series, full: f.full, always: true,
			tails: make([]string, canonical.MaxStreams), fill: f.fill(), label: appendStream})
	}
	list = append(list, sourceFamily{Series: Series{"source_info", canonical.Gauge, sourceLabels + ",aggregation,version",
		"How the source reads: each value is a point in time or the average of a window; always 1."},
		fill: ofReading(func(*outcome) float64 { return 1 }), label: appendSourceInfo})
	for i := range list {
		f := &list[i]
		f.header = newHeader(f.Series)
		if f.tails == nil {
			f.tails = make([]string, 1)
		}
		for j := range f.tails {
			if f.tails[j] == "" {
				f.tails[j] = tail("")
			}
		}
	}
	return list
}

// streamFamily is a family with a series for each stream of a source; NaN means no series.
type streamFamily struct {
	Series
	full  bool // as in sourceFamily
	value func(*canonical.Stream) float64
}

func streamFamilies() []streamFamily {
	return []streamFamily{
		{Series{"source_restarts_total", canonical.Counter, streamLabels, "Times the stream was started again."}, false,
			func(s *canonical.Stream) float64 { return float64(s.Restarts) }},
		{Series{"source_ticks_total", canonical.Counter, streamLabels, "Complete ticks that the stream delivered."}, false,
			func(s *canonical.Stream) float64 { return float64(s.Ticks) }},
		{Series{"source_ticks_missed_total", canonical.Counter, streamLabels,
			"Ticks that were due after the stream's first one and did not come; a slightly late tick is not missed."}, false,
			func(s *canonical.Stream) float64 { return float64(s.Missed) }},
		{Series{"source_last_missed_tick_timestamp_seconds", canonical.Gauge, streamLabels, "When the latest missed tick was due, in Unix time."}, true,
			func(s *canonical.Stream) float64 { return unixSeconds(s.MissedAt) }},
		{Series{"source_ticks_evicted_total", canonical.Counter, streamLabels, "Ticks that newer ones replaced before they were read."}, false,
			func(s *canonical.Stream) float64 { return float64(s.Evicted) }},
		{Series{"source_read_bytes_total", canonical.Counter, streamLabels, "Bytes of text read from the stream."}, true,
			func(s *canonical.Stream) float64 { return unlessZero(float64(s.Bytes)) }},
	}
}

func (f *streamFamily) fill() sourceFiller {
	value := f.value
	return func(values []float64, r *outcome) {
		for i := range r.source.Streams {
			values[i] = math.NaN()
			if stream := &r.source.Streams[i]; stream.Name != "" {
				values[i] = value(stream)
			}
		}
	}
}

// write renders one family of all sources.
func (f *sourceFamily) write(o *output, readings []outcome) {
	values := o.scratch(len(f.tails))
	headed := false
	for i := range readings {
		r := &readings[i]
		if r.snapshot == nil && !f.always {
			continue
		}
		if f.fill(values, r); f.thin != nil {
			f.thin(values, r)
		}
		for j, v := range values {
			if !canonical.Given(v) {
				continue
			}
			o.buf = append(f.begin(o.buf, &headed), o.sources.at(i)...)
			if f.label != nil {
				o.buf = f.label(o.buf, r.source, j)
			}
			o.buf = append(o.buf, f.tails[j]...)
			o.buf = append(exposition.AppendFloat(o.buf, v), '\n')
		}
	}
	o.flushIfFull()
}

func ofReading(value func(*outcome) float64) sourceFiller {
	return func(values []float64, r *outcome) { values[0] = value(r) }
}

func ofSource(value func(*canonical.Source) float64) sourceFiller {
	return func(values []float64, r *outcome) { values[0] = value(r.source) }
}

// unlessZero returns NaN for 0, which means no value.
func unlessZero(v float64) float64 {
	if v == 0 {
		return math.NaN()
	}
	return v
}

func unchanged(s *canonical.Source) float64 {
	if s.ChangedAt.IsZero() {
		return math.NaN()
	}
	return wholeSeconds(max(0, s.At.Sub(s.ChangedAt)))
}

// missingTails returns a tail for each family of fields.
func missingTails() (list []string) {
	for f := range canonical.NumFields {
		if beginsFamily(f) {
			list = append(list, tail(fmt.Sprintf("field=%q", canonical.Fields[f].Name)))
		}
	}
	return list
}

// fillMissing returns a filler of 1 for each family of which the source lacks a field.
func fillMissing() sourceFiller {
	var at [canonical.NumFields]int // the index of a field's family
	families := 0
	for f := range canonical.NumFields {
		if beginsFamily(f) {
			families++
		}
		at[f] = families - 1
	}
	return func(values []float64, r *outcome) {
		fillNaN(values)
		for _, f := range r.source.Missing {
			values[at[f]] = 1
		}
	}
}

func droppedTails() (list []string) {
	for _, word := range canonical.DropReasons {
		list = append(list, tail(fmt.Sprintf("reason=%q", word)))
	}
	return list
}

func fillDropped(values []float64, r *outcome) {
	for reason, n := range r.source.DroppedValues {
		values[reason] = float64(n)
	}
}

// thinDropped leaves out the reasons for which no value was dropped, and serves young counts as 0.
func thinDropped(values []float64, r *outcome) {
	for reason, v := range values {
		shown, born := r.source.Drops.Count(uint(reason), v)
		if values[reason] = shown; !born {
			values[reason] = math.NaN()
		}
	}
}
