package replay

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// csvTrack plays the CSV of --export, ours or KempnerPulse's, as expositions of a
// dcgm-exporter 4.8: readings only, and none for an empty cell. Rows with the same
// timestamp are one tick; without timestamps, a tick ends before a device that
// recurs.
type csvTrack struct {
	layout csvLayout
	ticks  []csvTick
	pace   time.Duration // the usual time from one tick to the next
	torn   int           // the number of an incomplete last line, which is not played, or 0

	n       int // ticks given since the start or rewind
	at      time.Time
	counts  map[csvKey]float64 // totals of PCIe replays
	replays []float64          // of the rows of a tick
	labels  [][]byte           // of the rows of a tick
	scanner raw.Scanner
}

// csvTick is the rows of one tick.
type csvTick struct {
	time float64 // in seconds since 1970, if the layout has timestamps
	rows []csvRow
}

// isCSV reports whether a line is the header of our CSV: column names separated by
// commas, at least one of them known.
func isCSV(line []byte) bool {
	names := strings.Split(strings.TrimSpace(string(line)), ",")
	known := false
	for _, name := range names {
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			return false
		}
		known = known || csvColumnKnown(name)
	}
	return known && len(names) > 1
}

// newCSVTrack refuses a text without rows, or with a row that it cannot parse.
func newCSVTrack(path string, text []byte) (*csvTrack, error) {
	t := &csvTrack{counts: map[csvKey]float64{}}
	if whole := bytes.LastIndexByte(text, '\n') + 1; whole < len(text) {
		t.torn = 1 + bytes.Count(text, newline)
		text = text[:whole]
	}
	if line := notUTF8(text); line > 0 {
		return nil, refusal(path, line, "a byte that is not UTF-8, which no label may contain", "write the file again as UTF-8")
	}
	reader := csv.NewReader(bytes.NewReader(text))
	reader.ReuseRecord = true
	header, err := reader.Read()
	if err != nil {
		return nil, refusal(path, 1, "the text ends within its header", accepted)
	}
	if t.layout, err = newCSVLayout(header); err != nil {
		return nil, refusal(path, 1, err.Error(), "export it with that column: kpulse-proxy --export=all")
	}
	if err := t.parse(path, reader); err != nil {
		return nil, err
	}
	t.pace = t.spacing()
	return t, nil
}

// notUTF8 returns the number of the first line that is not UTF-8, 0 for none.
func notUTF8(text []byte) int {
	line := 0
	for l := range bytes.Lines(text) {
		if line++; !utf8.Valid(l) {
			return line
		}
	}
	return 0
}

var newline = []byte{'\n'}

// parse reads all rows into ticks.
func (t *csvTrack) parse(path string, reader *csv.Reader) error {
	const remedy = "play the unchanged output of --export"
	now, devices, seen := "", map[csvTexts]*csvIdentity{}, map[csvKey]bool{}
	for {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return refuseRecord(path, err, remedy)
		}
		if t.layout.isHeader(record) { // of concatenated files
			continue
		}
		line, _ := reader.FieldPos(0)
		texts, at, values, err := t.layout.parse(record)
		if err != nil {
			return refusal(path, line, err.Error(), remedy)
		}
		row := csvRow{deviceOf(devices, texts), values}
		stamp := texts[csvTimestamp]
		again := seen[row.device.key]
		switch timed := t.layout.has(csvTimestamp); {
		case len(t.ticks) > 0 && again && timed && stamp == now:
			return refusal(path, line, "GPU "+texts[csvGPU]+" has a second row at "+now+", as if there were several nodes",
				"export with --export=all+, whose rows name their nodes")
		case len(t.ticks) == 0 || timed && stamp != now || again:
			t.ticks = append(t.ticks, csvTick{time: at})
			now = stamp
			clear(seen)
		}
		seen[row.device.key] = true
		last := &t.ticks[len(t.ticks)-1]
		last.rows = append(last.rows, row)
	}
	if len(t.ticks) == 0 {
		return refusal(path, 1, "a header but no complete row", "export for longer")
	}
	return nil
}

// refuseRecord refuses a text that is not CSV, at the line that err names.
func refuseRecord(path string, err error, remedy string) error {
	line := 1
	if e, ok := errors.AsType[*csv.ParseError](err); ok {
		line, err = max(e.Line, 1), e.Err
	}
	return refusal(path, line, err.Error(), remedy)
}

// spacing returns the median time between ticks, DefaultPeriod if no timestamp is
// later than the one before.
func (t *csvTrack) spacing() time.Duration {
	var gaps []float64
	for i := 1; i < len(t.ticks); i++ {
		if gap := t.ticks[i].time - t.ticks[i-1].time; gap > 0 {
			gaps = append(gaps, gap)
		}
	}
	if len(gaps) == 0 {
		return DefaultPeriod
	}
	slices.Sort(gaps)
	return secondsOf(gaps[len(gaps)/2])
}

// longestGap bounds the time between two ticks, so that a replay of concatenated files does not
// wait for the days between them.
const longestGap = time.Hour

// secondsOf returns s seconds, rounded to 10 ms, the resolution of timestamps, and at most
// longestGap.
func secondsOf(s float64) time.Duration {
	if s >= longestGap.Seconds() {
		return longestGap
	}
	return time.Duration(s*1e9 + 0.5).Round(10 * time.Millisecond)
}

// warnTorn logs a torn row.
func (t *csvTrack) warnTorn(path string, logger *slog.Logger) {
	if t.torn > 0 {
		logger.Warn("the CSV ends with an incomplete row, which is not played", "file", path, "line", t.torn)
	}
}

// caps returns the weakest claims, because a CSV does not say what a reading represents.
func (t *csvTrack) caps() source.Caps {
	return source.Caps{Aggregation: source.Window, Period: t.pace}
}

// next writes the page of the next tick.
func (t *csvTrack) next(b *raw.Batch) error {
	if t.n == len(t.ticks) {
		return io.EOF
	}
	rows, later := t.ticks[t.n].rows, []csvRow(nil)
	if t.n+1 < len(t.ticks) {
		later = t.ticks[t.n+1].rows
	}
	t.count(b.At, rows, later)
	b.Body = t.page(b.Body[:0], rows)
	t.scanner.Scan(b)
	t.n++
	return nil
}

// count turns rates of PCIe replays into a counter, as an exporter has. A rate
// covers the time since the previous tick, so the counter was known then too.
func (t *csvTrack) count(at time.Time, rows, later []csvRow) {
	if t.layout.rate < 0 {
		return
	}
	passed := at.Sub(t.at).Seconds()
	t.replays = t.replays[:0]
	for _, r := range rows {
		key, rate := r.device.key, r.values[t.layout.rate]
		if rate >= 0 && t.n > 0 {
			t.counts[key] += rate * passed
		}
		if rate >= 0 || slices.ContainsFunc(later, func(l csvRow) bool { return l.device.key == key && l.values[t.layout.rate] >= 0 }) {
			rate = t.counts[key]
		}
		t.replays = append(t.replays, rate)
	}
	t.at = at
}

// page appends the families that have a value, each with its rows.
func (t *csvTrack) page(dst []byte, rows []csvRow) []byte {
	t.labels = t.labels[:0]
	for _, r := range rows {
		t.labels = append(t.labels, t.labelsOf(r.device, rows))
	}
	for k, c := range t.layout.readings {
		for i, r := range rows {
			v := r.values[k]
			if k == t.layout.rate {
				v = t.replays[i]
			}
			if v == v {
				dst = append(append(dst, csvReadings[c.reading].family...), t.labels[i]...)
				dst = append(csvReadings[c.reading].append(append(dst, ' '), v), '\n')
			}
		}
	}
	return dst
}

// labelsOf returns the label block of a device. A board whose only readings are
// those that its instances share was not read itself: like an exporter, it gets the
// labels of an instance.
func (t *csvTrack) labelsOf(d *csvIdentity, rows []csvRow) []byte {
	if t.layout.has(csvStatus) && d.texts[csvStatus] == "" && d.texts[csvInstance] == "" {
		for _, r := range rows {
			if r.device.partOf(d) {
				return r.device.labels
			}
		}
	}
	return d.labels
}

// gap returns the time from the last tick to the next.
func (t *csvTrack) gap() time.Duration {
	if t.n < 1 || t.n >= len(t.ticks) || t.ticks[t.n].time <= t.ticks[t.n-1].time {
		return t.pace
	}
	return secondsOf(t.ticks[t.n].time - t.ticks[t.n-1].time)
}

func (t *csvTrack) rewind() { t.n = 0 }

// latest limits timestamps, in seconds since 1970: it is in the year 8307. JSON has
// no time after the year 9999.
const latest = 2e11

func (t *csvTrack) instant() time.Time {
	if !t.layout.has(csvTimestamp) {
		return time.Time{}
	}
	seconds := min(t.ticks[t.n%len(t.ticks)].time, latest)
	return time.UnixMicro(int64(math.Round(seconds * 1e6))) // the precision of a float64 for present times
}

func (t *csvTrack) length() int {
	if !t.layout.has(csvTimestamp) {
		return 0
	}
	return len(t.ticks)
}
