package recording

import (
	"bytes"
	"hash/crc32"
	"strconv"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// fullAfter sets when a full reading is due: when the edits since the last one
// exceed fullAfter times its size. Full readings are thus a ninth of a recording,
// and at most nine times the lines of a full one are remembered, some of them
// long gone.
const fullAfter = 8

// writer turns readings into the records of one file after another. In steady
// state it allocates nothing.
type writer struct {
	preface []byte // comments, and the first record up to the start of the file
	record  int    // where in preface that record begins
	encoder *encoder
	table   *crc32.Table

	begun    bool      // the file has its preface
	start    time.Time // of the file
	fullSize int       // of the last full reading as written, 0 before the first of a file
	edits    int       // bytes written since then
}

// newWriter returns a writer for the readings of src. host is the name of the
// machine that src reads, "" if unknown.
func newWriter(src source.Source, host string) *writer {
	w := &writer{encoder: newEncoder(), table: crcTable()}
	w.preface = []byte(First + "\n" + comments)
	w.record = len(w.preface)
	w.preface = append(w.preface, "source "...)
	caps := src.Caps()
	for _, word := range []string{src.Name(), caps.Backend, string(caps.Aggregation), caps.Period.String(), host} {
		w.preface = append(strconv.AppendQuote(w.preface, word), ' ')
	}
	return w
}

// crcTable returns the table of CRC-32C, for which processors have an instruction.
func crcTable() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// nextFile makes the next record the first of a file.
func (w *writer) nextFile() { w.begun = false }

// resume makes the next reading a full one, because the record before it was lost.
func (w *writer) resume() { w.fullSize = 0 }

// begin appends the preface of a file whose times are relative to start, if the
// file has none yet.
func (w *writer) begin(dst []byte, start time.Time) []byte {
	if w.begun {
		return dst
	}
	w.begun, w.start, w.fullSize = true, start, 0
	record := len(dst) + w.record
	dst = append(append(dst, w.preface...), '"')
	dst = append(start.UTC().AppendFormat(dst, time.RFC3339Nano), "\"\n"...)
	return w.end(dst, record, nil)
}

// end appends the end line of the record that begins at dst[record:] and whose
// text decodes to body.
func (w *writer) end(dst []byte, record int, body []byte) []byte {
	line := bytes.IndexByte(dst[record:], '\n') + 1
	crc := crc32.Update(0, w.table, dst[record:record+line])
	crc = crc32.Update(crc, w.table, body)
	dst = append(dst, "end "...)
	for shift := 28; shift >= 0; shift -= 4 {
		dst = append(dst, "0123456789abcdef"[crc>>shift&0xf])
	}
	return append(dst, '\n')
}

// reading appends the record of b. missed is the number of readings lost before it.
func (w *writer) reading(dst []byte, b *raw.Batch, missed int) []byte {
	dst = w.begin(dst, b.At)
	record := len(dst)
	dst = w.times(append(dst, "reading "...), b.At, b.Took)
	dst = strconv.AppendInt(append(dst, ' '), int64(len(b.Body)), 10)
	full := w.fullSize == 0 || w.edits > fullAfter*w.fullSize
	if full {
		dst = append(dst, " full"...)
	}
	if missed > 0 {
		dst = strconv.AppendInt(append(dst, " missed "...), int64(missed), 10)
	}
	dst = w.encoder.encode(append(dst, '\n'), b.Body, full)
	dst = w.end(dst, record, b.Body)
	if full {
		w.fullSize, w.edits = len(dst)-record, 0
	} else {
		w.edits += len(dst) - record
	}
	return dst
}

// failed appends the record of a read that failed.
func (w *writer) failed(dst []byte, asked time.Time, took time.Duration, err *source.Error) []byte {
	dst = w.begin(dst, asked)
	record := len(dst)
	dst = w.times(append(dst, "failed "...), asked, took)
	dst = append(append(append(dst, ' '), err.Failure...), ' ')
	dst = append(strconv.AppendQuote(dst, err.Cause), '\n')
	return w.end(dst, record, nil)
}

// times appends when the source was asked and how long it took.
func (w *writer) times(dst []byte, asked time.Time, took time.Duration) []byte {
	dst = append(appendSeconds(dst, asked.Sub(w.start)), ' ')
	return appendSeconds(dst, took)
}

// appendSeconds appends d in seconds, with nine decimals.
func appendSeconds(dst []byte, d time.Duration) []byte {
	ns := uint64(d)
	if d < 0 {
		dst = append(dst, '-')
		ns = -ns
	}
	dst = strconv.AppendUint(dst, ns/1e9, 10)
	point := len(dst)
	dst = strconv.AppendUint(dst, 1e9+ns%1e9, 10) // the leading 1 keeps the zeros
	dst[point] = '.'
	return dst
}
