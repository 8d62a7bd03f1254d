package dcgm

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

const (
	// noiseTime is how long the output may contain no answer before that is reported, or
	// before a command that should end is killed.
	noiseTime = time.Second
	// mostNoise is how many bytes without a row end a child.
	mostNoise = 1 << 20
	// longestQuote limits what is kept of a line, in bytes.
	longestQuote = 1 << 10
)

// errNoise ends a child that prints endlessly, and no rows.
var errNoise = errors.New("it was stopped after a mebibyte of such output")

// noise is the output of a child that is not a row.
type noise struct {
	bytes int       // since the last row
	since time.Time // when it was first seen before the first row, zero for none
	told  bool      // the receiver's noisy was called
	dmons bool      // there was a header
}

// header records a header. A header that names fields is dmon's: the output before it and on
// stderr is a banner, and the first row may take longer.
func (r *receiver) header(line []byte) {
	if !r.parser.Reads() {
		r.other(line)
		return
	}
	if r.noise.since, r.noise.dmons = (time.Time{}), true; r.lastRow.IsZero() {
		r.otherLines.clear()
	}
}

// other records a line, or the beginning of one, that is not a row.
func (r *receiver) other(line []byte) {
	r.noise.bytes += len(line)
	_, _ = r.otherLines.Write(line[:min(len(line), longestQuote)])
	if len(line) > longestQuote {
		_, _ = r.otherLines.Write([]byte{'\n'})
	}
}

// checkNoise reports what the child printed if it has printed nothing else for noiseTime: it
// may still recover, or continue like this for a long time.
func (r *receiver) checkNoise(now time.Time) {
	if r.noise.told || !r.lastRow.IsZero() {
		return
	}
	text := r.otherLines.String() + string(r.buf[:min(r.n, longestQuote)])
	if r.beside != nil && !r.noise.dmons {
		text = r.beside() + text
	}
	switch {
	case errorLine(text) == "":
	case r.noise.since.IsZero():
		r.noise.since = now
	case now.Sub(r.noise.since) >= noiseTime:
		r.noise.told = true
		r.noisy(text)
	}
}

// nextLook returns when to call checkNoise again, the zero Time for never.
func (r *receiver) nextLook(now time.Time) time.Time {
	switch {
	case r.noise.told || !r.lastRow.IsZero():
		return time.Time{}
	case r.noise.since.IsZero():
		return now.Add(noiseTime)
	}
	return r.noise.since.Add(noiseTime)
}

// noisyError explains a command that printed a text instead of an answer.
func noisyError(command, stream, text string, err error) *source.Error {
	e := &source.Error{
		Failure: source.Broken,
		Cause:   command + " prints nothing that can be read, but " + strconv.Quote(errorLine(text)),
		Remedy:  "see what it prints: dcgmi dmon -e 100 -c 1; and whether it is NVIDIA's dcgmi, 2.3 or later: command -v dcgmi; dcgmi --version",
		Err:     err,
	}
	if knownEnding(noStatus, text) != nil {
		e = refused(command, stream, noStatus, 0, text)
	}
	if errors.Is(err, errNoise) {
		e.Cause += "; " + err.Error()
	}
	return e
}

// isAnswer reports whether output contains a line as printed by the dcgmi commands that
// end by themselves.
func isAnswer(output []byte) bool {
	for line := range bytes.Lines(output) {
		line = bytes.TrimSpace(line)
		if bytes.HasPrefix(line, []byte("|")) || bytes.HasPrefix(line, []byte("+-")) || bytes.Contains(line, []byte("found")) ||
			bytes.Contains(line, []byte("rror")) || bytes.Contains(line, []byte("version")) {
			return true
		}
	}
	return false
}
