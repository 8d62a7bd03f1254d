package replay

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// csvLayout is what stands in which column.
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

// csvColumnKnown tells whether we can make something of a column of that name.
func csvColumnKnown(name string) bool {
	return slices.ContainsFunc(csvReadings, func(r csvReading) bool { return r.column == name }) ||
		slices.ContainsFunc(csvTexts[:], func(t struct{ column, label string }) bool { return t.column == name })
}

// newCSVLayout reads a header. Of columns that hold the same the first counts.
func newCSVLayout(header []string) (csvLayout, error) {
	l := csvLayout{header: slices.Clone(header), rate: none}
	for i := range csvTexts {
		l.texts[i] = slices.Index(header, csvTexts[i].column)
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

// csvRow is one device at one tick.
type csvRow struct {
	text   [numCSVTexts]string
	time   float64   // seconds since 1970
	values []float64 // of the layout's readings, in the units of their columns; NaN is none
}

// csvKey tells the devices of a tick apart.
type csvKey struct{ device, instance string }

func (r *csvRow) key() csvKey {
	device := r.text[csvUUID]
	if device == "" {
		device = r.text[csvGPU]
	}
	return csvKey{device, r.text[csvInstance]}
}

// parse reads a row, its values into what is given. Errors name the column.
func (l *csvLayout) parse(record []string, values []float64) (csvRow, error) {
	r := csvRow{values: values}
	for t, column := range l.texts {
		if column != none {
			r.text[t] = record[column]
		}
	}
	// 7:1 is instance 1 of GPU 7.
	gpu, instance, _ := strings.Cut(r.text[csvGPU], ":")
	r.text[csvGPU] = gpu
	if r.text[csvInstance] == "" {
		r.text[csvInstance] = instance
	}
	if gpu == "" {
		return r, fmt.Errorf("%s is empty", csvTexts[csvGPU].column)
	}
	var err error
	if l.has(csvTimestamp) {
		if r.time, err = csvNumber(csvTexts[csvTimestamp].column, r.text[csvTimestamp]); err != nil {
			return r, err
		}
		if !(r.time >= 0) {
			return r, fmt.Errorf("%s is %q, which is no time", csvTexts[csvTimestamp].column, r.text[csvTimestamp])
		}
	}
	for i, c := range l.readings {
		if r.values[i], err = csvNumber(csvReadings[c.reading].column, record[c.column]); err != nil {
			return r, err
		}
	}
	return r, nil
}

// csvNumber reads a cell; an empty one is NaN.
func csvNumber(column, cell string) (float64, error) {
	if cell == "" {
		return math.NaN(), nil
	}
	v, err := strconv.ParseFloat(cell, 64)
	if err != nil || strings.Trim(cell, "0123456789+-.eE") != "" {
		return 0, fmt.Errorf("%s is %s, which is no number", column, quote([]byte(cell)))
	}
	return v, nil
}

// append appends a value of the column as one of the family. What a factor that
// binary fractions cannot hold does to the last digits is rounded away.
func (c *csvReading) append(dst []byte, v float64) []byte {
	const safe = 15 // decimal digits that a float64 holds whatever they are
	factor, digits := c.times/c.over, safe
	if fraction, _ := math.Frexp(factor); fraction == 0.5 {
		digits = -1 // a power of two changes no digit
	}
	return strconv.AppendFloat(dst, v*c.times/c.over, 'g', digits, 64)
}

// appendLabels appends the label block of a device.
func (r *csvRow) appendLabels(dst []byte) []byte {
	dst = append(dst, '{')
	for t, value := range r.text {
		label := csvTexts[t].label
		if csvText(t) == csvModelName && value == "" {
			value = longModel(r.text[csvModel])
		}
		if label == "" || value == "" {
			continue
		}
		dst = append(exposition.AppendLabel(dst, label, value), ',')
	}
	if r.text[csvUUID] == "" {
		// What makes a device of a row without a UUID.
		dst = append(exposition.AppendLabel(dst, "entity", "GPU "+r.text[csvGPU]), ',')
	}
	dst[len(dst)-1] = '}'
	return dst
}

// longModel undoes what makes a word of the models with a number: RTX6000.
func longModel(short string) string {
	if number, ok := strings.CutPrefix(short, "RTX"); ok && number != "" {
		return "RTX " + number
	}
	return short
}
