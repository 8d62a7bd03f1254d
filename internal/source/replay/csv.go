package replay

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
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
	text   []byte
	layout csvLayout
	times  []float64 // of the ticks, in seconds since 1970; nil without timestamps
	pace   time.Duration
	torn   int // the line that was not written to its end and is not played, or 0

	reader  *csv.Reader
	behind  []csvRow
	rows    []csvRow    // of the tick that is played
	later   []csvRow    // and of the one after it
	spare   [][]float64 // values of rows that are done with
	n       int         // ticks given since the start or rewind
	at      time.Time
	counts  map[csvKey]float64 // PCIe replays summed up
	labels  [][]byte           // of the rows
	scanner raw.Scanner
}

// isCSV tells whether a line is the header of our CSV: names of columns with commas
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

// newCSVTrack refuses a text with a row that cannot be understood, or without any.
func newCSVTrack(path string, text []byte) (*csvTrack, error) {
	t := &csvTrack{text: text, counts: map[csvKey]float64{}}
	if whole := bytes.LastIndexByte(text, '\n') + 1; whole < len(text) {
		t.text, t.torn = text[:whole], 1+bytes.Count(text, newline)
	}
	if line := notUTF8(t.text); line > 0 {
		return nil, refusal(path, line, "a byte that is no UTF-8, which no label may hold", "write the file again as UTF-8")
	}
	t.reader = t.open()
	header, err := t.reader.Read()
	if err != nil {
		return nil, refusal(path, 1, "the text ends within its header", accepted)
	}
	if t.layout, err = newCSVLayout(header); err != nil {
		return nil, refusal(path, 1, err.Error(), "export it with that column: kpulse-proxy --export=all")
	}
	if err := t.check(path); err != nil {
		return nil, err
	}
	t.rewind()
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

func (t *csvTrack) open() *csv.Reader {
	r := csv.NewReader(bytes.NewReader(t.text))
	r.ReuseRecord = true
	return r
}

// check reads the text once, for what is wrong in it and for when its ticks were.
func (t *csvTrack) check(path string) error {
	const remedy = "play what --export wrote, as it wrote it"
	ticks, now := 0, ""
	seen := map[csvKey]bool{}
	for {
		row, err := t.row()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			line, what := t.complaint(err)
			return refusal(path, line, what, remedy)
		}
		switch again := seen[row.key()]; {
		case ticks > 0 && again && t.layout.has(csvTimestamp) && row.text[csvTimestamp] == now:
			line, _ := t.reader.FieldPos(0)
			return refusal(path, line, "GPU "+row.text[csvGPU]+" has a second row at "+now+", as if there were several nodes",
				"export with --export=all+, which tells them apart")
		case ticks == 0 || t.layout.has(csvTimestamp) && row.text[csvTimestamp] != now || again:
			ticks++
			now = row.text[csvTimestamp]
			clear(seen)
			if t.layout.has(csvTimestamp) {
				t.times = append(t.times, row.time)
			}
		}
		seen[row.key()] = true
		t.spare = append(t.spare, row.values)
	}
	if ticks == 0 {
		return refusal(path, 1, "a header but no whole row", "export for longer")
	}
	t.pace = spacingOf(t.times)
	return nil
}

// complaint says what is wrong, and in which line.
func (t *csvTrack) complaint(err error) (line int, what string) {
	if e, ok := errors.AsType[*csv.ParseError](err); ok {
		return max(e.Line, 1), e.Err.Error()
	}
	line, _ = t.reader.FieldPos(0)
	return line, err.Error()
}

// spacingOf is the usual time from one tick to the next: the median. Without two
// that rise it is not known.
func spacingOf(times []float64) time.Duration {
	var gaps []float64
	for i := 1; i < len(times); i++ {
		if gap := times[i] - times[i-1]; gap > 0 {
			gaps = append(gaps, gap)
		}
	}
	if len(gaps) == 0 {
		return defaultPeriod
	}
	slices.Sort(gaps)
	return secondsOf(gaps[len(gaps)/2])
}

// longestGap bounds the time between two ticks: whoever joined two files does not
// want to wait for the days between them.
const longestGap = time.Hour

// secondsOf is a duration in the hundredths that timestamps have.
func secondsOf(s float64) time.Duration {
	if s >= longestGap.Seconds() {
		return longestGap
	}
	return time.Duration(s*1e9 + 0.5).Round(10 * time.Millisecond)
}

// sayTorn tells of a row that was torn.
func (t *csvTrack) sayTorn(path string, logger *slog.Logger) {
	if t.torn > 0 {
		logger.Warn("the CSV ends in a row that was not written to its end; it is not played", "file", path, "line", t.torn)
	}
}

// caps: nothing tells what a reading stands for, so no more is claimed than the
// least.
func (t *csvTrack) caps() source.Caps {
	return source.Caps{Aggregation: source.Window, Period: t.pace}
}

// row returns the next row, or io.EOF. A header that comes again, of files that
// were joined, is no row.
func (t *csvTrack) row() (csvRow, error) {
	for {
		record, err := t.reader.Read()
		if err != nil {
			return csvRow{}, err
		}
		if !t.layout.isHeader(record) {
			return t.layout.parse(record, t.values())
		}
	}
}

// values returns room for the values of a row.
func (t *csvTrack) values() []float64 {
	n := len(t.spare)
	if n == 0 {
		return make([]float64, len(t.layout.readings))
	}
	values := t.spare[n-1]
	t.spare = t.spare[:n-1]
	return values
}

// tick reads the rows of the next tick into dst. There are none at the end.
func (t *csvTrack) tick(dst []csvRow) []csvRow {
	dst = append(dst[:0], t.behind...)
	t.behind = t.behind[:0]
	for {
		row, err := t.row()
		if err != nil { // the end: the text was checked
			return dst
		}
		if len(dst) > 0 && t.opens(dst, &row) {
			t.behind = append(t.behind, row)
			return dst
		}
		dst = append(dst, row)
	}
}

// opens tells whether row is of another tick than rows.
func (t *csvTrack) opens(rows []csvRow, row *csvRow) bool {
	if t.layout.has(csvTimestamp) {
		return rows[0].text[csvTimestamp] != row.text[csvTimestamp]
	}
	return slices.ContainsFunc(rows, func(r csvRow) bool { return r.key() == row.key() })
}

// next writes the page of the next tick.
func (t *csvTrack) next(b *raw.Batch) error {
	if len(t.later) == 0 {
		return io.EOF
	}
	for i := range t.rows {
		t.spare = append(t.spare, t.rows[i].values)
	}
	t.rows, t.later = t.later, t.tick(t.rows)
	t.count(b.At)
	t.label()
	b.Body = t.page(b.Body[:0])
	t.scanner.Scan(b)
	t.n++
	return nil
}

// count turns rates of PCIe replays into a counter, which is what an exporter has.
// A rate tells of the time since the tick before, so that the counter was known
// then too.
func (t *csvTrack) count(at time.Time) {
	if t.layout.rate < 0 {
		return
	}
	passed := at.Sub(t.at).Seconds()
	for i := range t.rows {
		r := &t.rows[i]
		rate := &r.values[t.layout.rate]
		later := slices.ContainsFunc(t.later, func(l csvRow) bool { return l.key() == r.key() && l.values[t.layout.rate] >= 0 })
		if *rate >= 0 && t.n > 0 {
			t.counts[r.key()] += *rate * passed
		}
		if *rate >= 0 || later {
			*rate = t.counts[r.key()]
		}
	}
	t.at = at
}

// gap is the time from the tick given last to the one that follows it.
func (t *csvTrack) gap() time.Duration {
	if t.n < 1 || t.n >= len(t.times) || t.times[t.n] <= t.times[t.n-1] {
		return t.pace
	}
	return secondsOf(t.times[t.n] - t.times[t.n-1])
}

func (t *csvTrack) rewind() {
	t.reader = t.open()
	_, _ = t.reader.Read() // the header
	t.behind, t.n = t.behind[:0], 0
	t.later = t.tick(t.later)
}

// latest is the last timestamp, in seconds, that is taken for one: in the year 8307.
// JSON knows none after 9999.
const latest = 2e11

func (t *csvTrack) instant() time.Time {
	if len(t.times) == 0 {
		return time.Time{}
	}
	seconds := min(t.times[t.n%len(t.times)], latest)
	return time.UnixMicro(int64(math.Round(seconds * 1e6))) // no float64 of today tells more
}

// length is 0, not known, without timestamps.
func (t *csvTrack) length() int { return len(t.times) }

// label writes the label block of each row. A board of which the CSV says nothing
// but what its instances share was not read itself: an exporter would have told
// that with an instance, and so do we.
func (t *csvTrack) label() {
	for len(t.labels) < len(t.rows) {
		t.labels = append(t.labels, nil)
	}
	for i := range t.rows {
		r := &t.rows[i]
		if t.layout.has(csvStatus) && r.text[csvStatus] == "" && r.text[csvInstance] == "" {
			if part := slices.IndexFunc(t.rows, func(o csvRow) bool { return o.partOf(r) }); part >= 0 {
				r = &t.rows[part]
			}
		}
		t.labels[i] = r.appendLabels(t.labels[i][:0])
	}
}

// page appends the families that have a value, each with its rows.
func (t *csvTrack) page(dst []byte) []byte {
	for k, c := range t.layout.readings {
		for i := range t.rows {
			if v := t.rows[i].values[k]; v == v {
				dst = append(append(dst, csvReadings[c.reading].family...), t.labels[i]...)
				dst = append(csvReadings[c.reading].append(append(dst, ' '), v), '\n')
			}
		}
	}
	return dst
}

// partOf tells whether r is an instance of that board.
func (r *csvRow) partOf(board *csvRow) bool {
	return r.text[csvInstance] != "" && r.text[csvGPU] == board.text[csvGPU] &&
		cmp.Or(r.text[csvUUID], board.text[csvUUID]) == board.text[csvUUID] && r.text[csvHostname] == board.text[csvHostname]
}

// errNoGPU is what a header lacks without which no row can be placed.
var errNoGPU = fmt.Errorf("the header lacks %s", csvTexts[csvGPU].column)
