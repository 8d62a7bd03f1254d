package replay

import (
	"bytes"
	"io"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dmon"
)

// dmonTrack plays the output of dcgmi dmon.
type dmonTrack struct {
	text   []byte
	at     int
	parser dmon.Parser
}

// newDmonTrack refuses a text without a single row of a GPU: dmon prints its
// header first and may fail after that.
func newDmonTrack(path string, text []byte) (*dmonTrack, error) {
	t := &dmonTrack{text: dropCutCell(text)}
	b := &raw.Batch{Dict: raw.NewDict()}
	line, message, messageAt := 0, []byte(nil), 0
	for l := range bytes.Lines(t.text) {
		line++
		before := b.Skipped
		t.parser.Line(b, l)
		if t.parser.Rows() > 0 {
			t.rewind()
			return t, nil
		}
		if b.Skipped > before && (message == nil || bytes.HasPrefix(bytes.TrimSpace(l), []byte("Error"))) {
			message, messageAt = l, line
		}
	}
	const remedy = "capture it again while dcgmi dmon runs without an error: dcgmi dmon -e 1002,1004,1005,1001 > capture.dmon"
	if message != nil {
		return nil, refusal(path, messageAt, "a dcgmi dmon header but no row of a GPU; dcgmi printed "+quote(message), remedy)
	}
	return nil, refusal(path, line, "the text ends after a dcgmi dmon header without a row of a GPU", remedy)
}

// next reads up to the line that begins another tick. Text after the last row of
// all belongs to the last tick; a tick needs a row.
func (t *dmonTrack) next(b *raw.Batch) error {
	for t.at < len(t.text) {
		end := len(t.text)
		if n := bytes.IndexByte(t.text[t.at:], '\n'); n >= 0 {
			end = t.at + n + 1
		}
		if line := t.text[t.at:end]; dmon.IsHeader(line) {
			t.parser.ShowEmpty = countsAlone(line)
		}
		if !t.parser.Line(b, t.text[t.at:end]) {
			return nil
		}
		t.at = end
	}
	if t.parser.Rows() == 0 {
		return io.EOF
	}
	t.parser.Next()
	return nil
}

// profilingColumns are the columns of DCGM's profiling module (dcgm_fields.h, 1001 to 1016).
var profilingColumns = []string{
	"GRACT", "SMACT", "SMOCC", "TENSO", "DRAMA", "FP64A", "FP32A", "FP16A", "PCITX", "PCIRX", "NVLTX", "NVLRX", "TIMMA", "THMMA", "TDFMA", "INTAC",
}

// countsAlone reports whether a header names only profiling columns. If the module does
// not work, their rows contain only N/A although the GPUs are present. If there are device
// columns too, such a row means a lost GPU.
func countsAlone(header []byte) bool {
	columns := bytes.Fields(bytes.TrimLeft(header, " \t#"))[1:] // after the word Entity
	return !slices.ContainsFunc(columns, func(name []byte) bool { return !slices.Contains(profilingColumns, string(name)) })
}

func (t *dmonTrack) rewind() {
	t.at = 0
	t.parser.Reset()
}

// dropCutCell cuts a number off the very end of text: a capture that was cut
// short may end within it. dmon prints floats with three decimals, so a float
// that has them is complete.
func dropCutCell(text []byte) []byte {
	word := text[bytes.LastIndexAny(text, " \t\r\n")+1:]
	n := len(word)
	if n == 0 || bytes.IndexByte([]byte("-0123456789"), word[0]) < 0 || n > 4 && word[n-4] == '.' {
		return text
	}
	return text[:len(text)-n]
}
