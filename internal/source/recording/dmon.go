package recording

import (
	"bytes"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dmon"
)

// dmonText plays the output of dcgmi dmon.
type dmonText struct {
	text   []byte
	at     int
	parser dmon.Parser
}

// newDmon refuses a text without a single row of a GPU: dmon prints its header first and may fail
// after that. It drops a last line without its end, as a capture that was cut may end in a number.
func newDmon(path string, text []byte) (*track, error) {
	d := &dmonText{text: text[:bytes.LastIndexByte(text, '\n')+1]}
	ticks := 0
	for b := (&raw.Batch{Dict: raw.NewDict()}); d.next(b); b.Reset() {
		ticks++
	}
	if ticks == 0 {
		return nil, refuseDmon(path, d.text)
	}
	return &track{caps: source.Caps{Aggregation: source.Point}, length: ticks, fill: d.fill}, nil
}

// refuseDmon refuses a text without rows, and quotes the error that dcgmi printed in their place.
func refuseDmon(path string, text []byte) error {
	what, line := "the text ends after a dcgmi dmon header without a row of a GPU", 0
	for l := range bytes.Lines(text) {
		if line++; bytes.HasPrefix(bytes.TrimSpace(l), []byte("Error")) {
			what = "a dcgmi dmon header but no row of a GPU; dcgmi printed " + quote(l)
			break
		}
	}
	return refusal(path, line, what, "capture it again while dcgmi dmon runs without an error: dcgmi dmon -e 1002,1004,1005,1001 > capture.dmon")
}

func (d *dmonText) fill(n int, b *raw.Batch) {
	if n == 0 {
		d.at = 0
		d.parser.Reset()
	}
	d.next(b)
}

// next reads up to the line that begins another tick, and returns false at the end. Text after the
// last row of all belongs to the last tick; a tick needs a row.
func (d *dmonText) next(b *raw.Batch) bool {
	for d.at < len(d.text) {
		line := d.text[d.at : d.at+bytes.IndexByte(d.text[d.at:], '\n')+1]
		if dmon.IsHeader(line) {
			d.parser.ShowEmpty = profilesOnly(line)
		}
		if !d.parser.Line(b, line) {
			return true
		}
		d.at += len(line)
	}
	if d.parser.Rows() == 0 {
		return false
	}
	d.parser.Next()
	return true
}

// profilingColumns are the columns of DCGM's profiling module (dcgm_fields.h, 1001 to 1016).
var profilingColumns = []string{
	"GRACT", "SMACT", "SMOCC", "TENSO", "DRAMA", "FP64A", "FP32A", "FP16A", "PCITX", "PCIRX", "NVLTX", "NVLRX", "TIMMA", "THMMA", "TDFMA", "INTAC",
}

// profilesOnly reports whether a header names only profiling columns. If the module does
// not work, their rows contain only N/A although the GPUs are present. If there are device
// columns too, such a row means a lost GPU.
func profilesOnly(header []byte) bool {
	columns := bytes.Fields(bytes.TrimLeft(header, " \t#"))[1:] // after the word Entity
	return !slices.ContainsFunc(columns, func(name []byte) bool { return !slices.Contains(profilingColumns, string(name)) })
}
