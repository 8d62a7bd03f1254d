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

// csvTrack plays what --export wrote, or KempnerPulse's --export, as expositions of
// a dcgm-exporter 4.8: the readings alone, an empty cell being none. Rows of one
// timestamp are one tick; where there are no timestamps a tick ends before the
// device that comes again.
type csvTrack struct {
	layout csvLayout
	ticks  []csvTick
	pace   time.Duration // the usual time from one tick to the next
	torn   int           // the line that was not written to its end and is not played, or 0

	n       int // ticks given since the start or rewind
	at      time.Time
	counts  map[csvKey]float64 // PCIe replays summed up
	replays []float64          // of the rows of a tick
	labels  [][]byte           // of the rows of a tick
	scanner raw.Scanner
}

// csvTick is the rows of one tick.
type csvTick struct {
	time float64 // in seconds since 1970, of a layout with timestamps
	rows []csvRow
}

// isCSV reports whether a line is the header of our CSV: names of columns with commas
// between them, of which we know one at least.
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

// newCSVTrack refuses a text with a row that cannot be parsed, or without any.
func newCSVTrack(path string, text []byte) (*csvTrack, error) {
	t := &csvTrack{counts: map[csvKey]float64{}}
	if whole := bytes.LastIndexByte(text, '\n') + 1; whole < len(text) {
		t.torn = 1 + bytes.Count(text, newline)
		text = text[:whole]
	}
	if line := notUTF8(text); line > 0 {
		return nil, refusal(path, line, "a byte that is not UTF-8, which no label may hold", "write the file again as UTF-8")
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

// notUTF8 returns the first line that is no UTF-8, 0 if all are.
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
	const remedy = "play what --export wrote, as it wrote it"
	now, devices, seen := "", map[csvTexts]*csvIdentity{}, map[csvKey]bool{}
	for {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return refuseRecord(path, err, remedy)
		}
		if t.layout.isHeader(record) { // of files that were joined
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
		return refusal(path, 1, "a header but no whole row", "export for longer")
	}
	return nil
}

// refuseRecord refuses what is no CSV, in the line that err names.
func refuseRecord(path string, err error, remedy string) error {
	line := 1
	if e, ok := errors.AsType[*csv.ParseError](err); ok {
		line, err = max(e.Line, 1), e.Err
	}
	return refusal(path, line, err.Error(), remedy)
}

// spacing is the usual time from one tick to the next: the median. Without two that
// rise it is not known.
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

// secondsOf is a duration in the hundredths that timestamps have.
func secondsOf(s float64) time.Duration {
	if s >= longestGap.Seconds() {
		return longestGap
	}
	return time.Duration(s*1e9 + 0.5).Round(10 * time.Millisecond)
}

// warnTorn logs that a row was torn.
func (t *csvTrack) warnTorn(path string, logger *slog.Logger) {
	if t.torn > 0 {
		logger.Warn("the CSV ends in a row that was not written to its end; it is not played", "file", path, "line", t.torn)
	}
}

// caps returns the weakest claims, because a CSV does not say what a reading stands for.
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

// count turns rates of PCIe replays into a counter, which is what an exporter has.
// A rate is that since the tick before, so that the counter was known then too.
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

// labelsOf returns the label block of a device. A board that has no reading but what
// its instances share was not read itself: an exporter gives that with an instance,
// and so do we.
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

// gap is the time from the tick given last to the one that follows it.
func (t *csvTrack) gap() time.Duration {
	if t.n < 1 || t.n >= len(t.ticks) || t.ticks[t.n].time <= t.ticks[t.n-1].time {
		return t.pace
	}
	return secondsOf(t.ticks[t.n].time - t.ticks[t.n-1].time)
}

func (t *csvTrack) rewind() { t.n = 0 }

// latest is the last timestamp, in seconds, that is taken for one: in the year 8307.
// JSON knows none after 9999.
const latest = 2e11

func (t *csvTrack) instant() time.Time {
	if !t.layout.has(csvTimestamp) {
		return time.Time{}
	}
	seconds := min(t.ticks[t.n%len(t.ticks)].time, latest)
	return time.UnixMicro(int64(math.Round(seconds * 1e6))) // as exact as a float64 of today is
}

func (t *csvTrack) length() int {
	if !t.layout.has(csvTimestamp) {
		return 0
	}
	return len(t.ticks)
}
