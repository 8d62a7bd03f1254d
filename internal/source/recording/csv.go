package recording

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// csvText plays the CSV of --export, ours or KempnerPulse's, as expositions of a dcgm-exporter
// 4.8: readings only, and none for an empty cell. Rows with the same timestamp are one tick;
// without timestamps, a tick ends before a device that recurs.
type csvText struct {
	header   []string
	texts    [numCSVTexts]int // columns, or none
	readings []csvCell
	ticks    [][]csvRow
	devices  map[csvTexts]*csvIdentity
	counts   map[[2]string]*csvCount
	at       time.Time // of the tick before
	scanner  raw.Scanner
}

// csvCell is a column with a reading.
type csvCell struct {
	csvReading
	at int
}

// none is no column.
const none = -1

// csvRow is one device at one tick.
type csvRow struct {
	device *csvIdentity
	values []float64 // of the readings, in the units of their columns; NaN for none
}

// csvIdentity is what the rows of a device share while its texts stay the same.
type csvIdentity struct {
	texts  csvTexts // without the timestamp; any status is "known"
	labels []byte   // the label block
	*csvCount
}

// csvCount sums up the PCIe replays of a device from their rate. There is one for each device.
type csvCount struct {
	replays float64
	counted bool // a row has the rate
}

// isCSV reports whether a line is the header of our CSV.
func isCSV(line []byte) bool {
	return slices.Contains(strings.Split(strings.TrimSpace(string(line)), ","), csvColumns[csvGPU].name)
}

// newCSV refuses a text without rows, or with a row that it cannot parse.
func newCSV(path string, text []byte) (*track, error) {
	t := &track{caps: source.Caps{Aggregation: source.Window}}
	if whole := bytes.LastIndexByte(text, '\n') + 1; whole < len(text) {
		t.broken = fmt.Sprintf("line %d is an incomplete row", 1+bytes.Count(text, newline))
		text = text[:whole]
	}
	if !utf8.Valid(text) {
		return nil, refusal(path, 1, "the text is not UTF-8, as labels must be", "write the file again as UTF-8")
	}
	reader := csv.NewReader(bytes.NewReader(text))
	reader.ReuseRecord = true
	header, err := reader.Read()
	if err != nil {
		return nil, refusal(path, 1, "the text ends within its header", accepted)
	}
	c := newCSVText(header)
	if len(c.readings) == 0 {
		return nil, refusal(path, 1, "no column of the header is a reading, such as "+csvReadings()[0].column, "export with such columns: kpulse-proxy --export=all")
	}
	for now := ""; ; {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		line := 1
		if e, ok := errors.AsType[*csv.ParseError](err); ok {
			line, err = max(e.Line, 1), e.Err
		} else if !slices.Equal(record, c.header) { // which joined files repeat
			line, _ = reader.FieldPos(0)
			now, err = c.add(t, record, now)
		}
		if err != nil {
			return nil, refusal(path, line, err.Error(), "play the unchanged output of --export=all+, whose rows name their nodes")
		}
	}
	if t.length, t.fill = len(c.ticks), c.fill; t.length == 0 {
		return nil, refusal(path, 1, "a header but no complete row", "export for longer")
	}
	return t, nil
}

// newCSVText reads a header. Of columns with the same name the first counts.
func newCSVText(header []string) *csvText {
	c := &csvText{header: slices.Clone(header), devices: map[csvTexts]*csvIdentity{}, counts: map[[2]string]*csvCount{}}
	for i, column := range csvColumns {
		c.texts[i] = slices.Index(header, column.name)
	}
	for _, r := range csvReadings() {
		if at := slices.Index(header, r.column); at >= 0 && !(r.column == csvReplayRate && slices.Contains(header, csvReplayTotal)) {
			c.readings = append(c.readings, csvCell{r, at})
		}
	}
	return c
}

// add adds a row to the last tick, whose timestamp is now, or to another one, and returns the row's
// timestamp. A second row of a device begins another tick, even with the same timestamp: two ticks may
// come within a hundredth of a second.
func (c *csvText) add(t *track, record []string, now string) (stamp string, err error) {
	texts, values, err := c.parse(record)
	if err != nil {
		return "", err
	}
	stamp = texts[csvTimestamp]
	row := csvRow{c.device(texts), values}
	for i, cell := range c.readings {
		row.device.counted = row.device.counted || cell.column == csvReplayRate && values[i] >= 0
	}
	last := len(c.ticks) - 1
	again := last >= 0 && slices.ContainsFunc(c.ticks[last], func(r csvRow) bool { return r.device.csvCount == row.device.csvCount })
	switch timed := c.texts[csvTimestamp] != none; {
	case last >= 0 && !again && (!timed || stamp == now):
		c.ticks[last] = append(c.ticks[last], row)
		return stamp, nil
	case timed:
		at, err := csvNumber(csvColumns[csvTimestamp].name, stamp)
		if !(at >= 0 && at <= latest) {
			return "", cmp.Or(err, fmt.Errorf("%s is %q, which is not a time", csvColumns[csvTimestamp].name, stamp))
		}
		// Microseconds are the precision of a float64 for present times.
		t.times = append(t.times, time.UnixMicro(int64(math.Round(at*1e6))))
	}
	c.ticks = append(c.ticks, []csvRow{row})
	return stamp, nil
}

// latest limits timestamps, in seconds since 1970: it is in the year 8307. JSON has no time after
// the year 9999.
const latest = 2e11

// device returns the device with a row's texts.
func (c *csvText) device(texts csvTexts) *csvIdentity {
	texts[csvTimestamp] = ""
	if texts[csvStatus] != "" {
		texts[csvStatus] = "known"
	}
	d := c.devices[texts]
	if d == nil {
		key := [2]string{cmp.Or(texts[csvUUID], texts[csvGPU]), texts[csvInstance]}
		if c.counts[key] == nil {
			c.counts[key] = &csvCount{}
		}
		d = &csvIdentity{texts, texts.appendLabels(nil), c.counts[key]}
		c.devices[texts] = d
	}
	return d
}

// fill writes the page of tick n.
func (c *csvText) fill(n int, b *raw.Batch) {
	rows := c.ticks[n]
	for k, cell := range c.readings {
		for _, r := range rows {
			v := r.values[k]
			if cell.column == csvReplayRate && r.device.counted {
				// A rate covers the time since the previous tick; an exporter has a counter.
				if v >= 0 && n > 0 {
					r.device.replays += v * b.At.Sub(c.at).Seconds()
				}
				v = r.device.replays
			}
			if !math.IsNaN(v) {
				b.Body = append(append(b.Body, cell.family...), c.labels(r.device, rows)...)
				b.Body = append(cell.append(append(b.Body, ' '), v), '\n')
			}
		}
	}
	c.at = b.At
	c.scanner.Scan(b)
}

// labels returns the label block of a device. A board whose only readings are those that its
// instances share was not read itself: like an exporter, it gets the labels of an instance.
func (c *csvText) labels(d *csvIdentity, rows []csvRow) []byte {
	if c.texts[csvStatus] != none && d.texts[csvStatus] == "" && d.texts[csvInstance] == "" {
		for _, r := range rows {
			part := r.device.texts
			if part[csvInstance] != "" && part[csvGPU] == d.texts[csvGPU] && part[csvHostname] == d.texts[csvHostname] {
				return r.device.labels
			}
		}
	}
	return d.labels
}

// parse reads a row. Errors name the column.
func (c *csvText) parse(record []string) (texts csvTexts, values []float64, err error) {
	for t, column := range c.texts {
		if column != none {
			texts[t] = record[column]
		}
	}
	// 7:1 is instance 1 of GPU 7.
	gpu, instance, _ := strings.Cut(texts[csvGPU], ":")
	texts[csvGPU], texts[csvInstance] = gpu, cmp.Or(texts[csvInstance], instance)
	if gpu == "" {
		return texts, nil, fmt.Errorf("%s is empty", csvColumns[csvGPU].name)
	}
	values = make([]float64, len(c.readings))
	for i, cell := range c.readings {
		if values[i], err = csvNumber(cell.column, record[cell.at]); err != nil {
			return texts, nil, err
		}
	}
	return texts, values, nil
}

// csvNumber reads a cell; an empty one is NaN.
func csvNumber(column, cell string) (float64, error) {
	if cell == "" {
		return math.NaN(), nil
	}
	v, err := strconv.ParseFloat(cell, 64)
	if err != nil || strings.Trim(cell, "0123456789+-.eE") != "" {
		return 0, fmt.Errorf("%s is %s, which is not a number", column, quote([]byte(cell)))
	}
	return v, nil
}

// append appends a value of the column in the unit of the family. It rounds away the error of a
// factor that is not a binary fraction: a float64 always keeps 15 digits.
func (c *csvReading) append(dst []byte, v float64) []byte {
	return strconv.AppendFloat(dst, v*c.times/c.over, 'g', 15, 64)
}

// appendLabels appends the label block of a device.
func (t *csvTexts) appendLabels(dst []byte) []byte {
	dst = append(dst, '{')
	for i, value := range t {
		if csvWord(i) == csvModelName && value == "" {
			value = t[csvModel]
		}
		if label := csvColumns[i].label; label != "" && value != "" {
			dst = append(exposition.AppendLabel(dst, label, value), ',')
		}
	}
	if t[csvUUID] == "" { // a row without a UUID is a device by its entity
		dst = append(exposition.AppendLabel(dst, "entity", "GPU "+t[csvGPU]), ',')
	}
	dst[len(dst)-1] = '}'
	return dst
}
