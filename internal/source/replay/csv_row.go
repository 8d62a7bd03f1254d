package replay

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// csvLayout is the meaning of each column.
type csvLayout struct {
	header   []string
	texts    [numCSVTexts]int // columns, or none
	readings []csvCell
	rate     int // the index in readings of the rate of PCIe replays, or none
}

// csvCell is a column with a reading.
type csvCell struct{ column, reading int }

// none is no column.
const none = -1

// csvColumnKnown reports whether a column of that name is a known reading or text.
func csvColumnKnown(name string) bool {
	return slices.ContainsFunc(csvReadings, func(r csvReading) bool { return r.column == name }) ||
		slices.ContainsFunc(csvColumns[:], func(t struct{ column, label string }) bool { return t.column == name })
}

// newCSVLayout reads a header. Of columns with the same name the first counts.
func newCSVLayout(header []string) (csvLayout, error) {
	l := csvLayout{header: slices.Clone(header), rate: none}
	for i := range csvColumns {
		l.texts[i] = slices.Index(header, csvColumns[i].column)
	}
	if !l.has(csvGPU) {
		return l, errNoGPU
	}
	counted := slices.Contains(header, "gpu_pcie_replays_total")
	for i := range csvReadings {
		column := slices.Index(header, csvReadings[i].column)
		isRate := csvReadings[i].column == csvReplayRate
		if column < 0 || isRate && counted {
			continue
		}
		if isRate {
			l.rate = len(l.readings)
		}
		l.readings = append(l.readings, csvCell{column, i})
	}
	if len(l.readings) == 0 {
		return l, fmt.Errorf("no column of the header is a reading, such as %s", csvReadings[0].column)
	}
	return l, nil
}

func (l *csvLayout) has(t csvText) bool { return l.texts[t] != none }

func (l *csvLayout) isHeader(record []string) bool { return slices.Equal(record, l.header) }

// errNoGPU reports a header without the column that identifies devices.
var errNoGPU = fmt.Errorf("the header lacks %s", csvColumns[csvGPU].column)

// csvRow is one device at one tick.
type csvRow struct {
	device *csvIdentity
	values []float64 // of the layout's readings, in the units of their columns; NaN for none
}

// csvIdentity is what the rows of a device share while its texts stay the same.
type csvIdentity struct {
	texts  csvTexts // without the timestamp; any status is "known"
	key    csvKey
	labels []byte // the label block
}

// csvKey identifies a device within a tick.
type csvKey struct{ device, instance string }

// deviceOf returns the device with a row's texts, which it adds to known if it is new.
func deviceOf(known map[csvTexts]*csvIdentity, texts csvTexts) *csvIdentity {
	texts[csvTimestamp] = ""
	if texts[csvStatus] != "" {
		texts[csvStatus] = "known"
	}
	d := known[texts]
	if d == nil {
		d = &csvIdentity{texts: texts, key: csvKey{cmp.Or(texts[csvUUID], texts[csvGPU]), texts[csvInstance]}}
		d.labels = texts.appendLabels(nil)
		known[texts] = d
	}
	return d
}

// partOf reports whether d is an instance of that board.
func (d *csvIdentity) partOf(board *csvIdentity) bool {
	own, whole := &d.texts, &board.texts
	return own[csvInstance] != "" && own[csvGPU] == whole[csvGPU] &&
		cmp.Or(own[csvUUID], whole[csvUUID]) == whole[csvUUID] && own[csvHostname] == whole[csvHostname]
}

// parse reads a row. Errors name the column.
func (l *csvLayout) parse(record []string) (texts csvTexts, at float64, values []float64, err error) {
	for t, column := range l.texts {
		if column != none {
			texts[t] = diag.Unguarded(record[column])
		}
	}
	// 7:1 is instance 1 of GPU 7.
	gpu, instance, _ := strings.Cut(texts[csvGPU], ":")
	texts[csvGPU], texts[csvInstance] = gpu, cmp.Or(texts[csvInstance], instance)
	if gpu == "" {
		return texts, 0, nil, fmt.Errorf("%s is empty", csvColumns[csvGPU].column)
	}
	if l.has(csvTimestamp) {
		if at, err = csvNumber(csvColumns[csvTimestamp].column, texts[csvTimestamp]); err != nil {
			return texts, 0, nil, err
		}
		if !(at >= 0) {
			return texts, 0, nil, fmt.Errorf("%s is %q, which is not a time", csvColumns[csvTimestamp].column, texts[csvTimestamp])
		}
	}
	values = make([]float64, len(l.readings))
	for i, c := range l.readings {
		if values[i], err = csvNumber(csvReadings[c.reading].column, record[c.column]); err != nil {
			return texts, 0, nil, err
		}
	}
	return texts, at, values, nil
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

// append appends a value of the column in the unit of the family. It rounds
// away the error of a factor that is not a binary fraction.
func (c *csvReading) append(dst []byte, v float64) []byte {
	const safe = 15 // decimal digits that a float64 always keeps
	factor, digits := c.times/c.over, safe
	if fraction, _ := math.Frexp(factor); fraction == 0.5 {
		digits = -1 // a power of two changes no digit
	}
	return strconv.AppendFloat(dst, v*c.times/c.over, 'g', digits, 64)
}

// appendLabels appends the label block of a device.
func (t *csvTexts) appendLabels(dst []byte) []byte {
	dst = append(dst, '{')
	for i, value := range t {
		label := csvColumns[i].label
		if csvText(i) == csvModelName && value == "" {
			value = longModel(t[csvModel])
		}
		if label == "" || value == "" {
			continue
		}
		dst = append(exposition.AppendLabel(dst, label, value), ',')
	}
	if t[csvUUID] == "" {
		// A row without a UUID is a device by its entity.
		dst = append(exposition.AppendLabel(dst, "entity", "GPU "+t[csvGPU]), ',')
	}
	dst[len(dst)-1] = '}'
	return dst
}

// longModel restores the blank that the short name of a numbered model lacks: RTX6000.
func longModel(short string) string {
	if number, ok := strings.CutPrefix(short, "RTX"); ok && number != "" {
		return "RTX " + number
	}
	return short
}
