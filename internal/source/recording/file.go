package recording

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dmon"
)

// maxFile limits a capture, in bytes, because all of it is kept in memory.
const maxFile = 1 << 30

// accepted ends the refusal of a file that is no capture.
const accepted = "replay plays what --record wrote, saved /metrics pages (each ended by a line `# EOF` if there are several), " +
	"the output of dcgmi dmon and the CSV of --export"

// readFile returns the content of a regular file.
func readFile(path string) (text []byte, err error) {
	info, err := os.Stat(path) // before opening: opening a named pipe waits for its writer
	switch {
	case err != nil:
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		err = fmt.Errorf("%s is not a regular file of at most %d bytes", path, maxFile)
	default:
		text, err = os.ReadFile(path)
	}
	remedy := accepted
	switch {
	case err == nil:
		return text, nil
	case errors.Is(err, fs.ErrNotExist):
		remedy = "check the path in --source or --replay; --backend=replay without them plays the built-in demo"
	case errors.Is(err, fs.ErrPermission):
		remedy = "let the user that runs kpulse-proxy read it: ls -l " + path
	}
	return nil, &source.Error{Failure: source.Unreachable, Cause: err.Error(), Remedy: remedy, Err: err}
}

// newline ends a line.
var newline = []byte{'\n'}

// identify returns the track of text. The first line identifies a recording or CSV. Otherwise a
// dmon header before any # HELP or # TYPE identifies dmon, and anything else must be expositions.
func identify(path string, text []byte) (*track, error) {
	if isRecording(text) {
		return newRecorded(path, text)
	}
	if err := notText(path, text); err != nil {
		return nil, err
	}
	if first, _, _ := bytes.Cut(text, newline); isCSV(first) {
		return newCSV(path, text)
	}
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("# HELP ")) || bytes.HasPrefix(line, []byte("# TYPE ")) {
			break
		}
		if dmon.IsHeader(line) {
			return newDmon(path, text)
		}
	}
	return newExpositions(path, text)
}

// notText refuses a text that is certainly in none of our formats.
func notText(path string, text []byte) error {
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return refusal(path, 1, "the file is empty", accepted)
	case bytes.HasPrefix(text, []byte(prefix)):
		return refusal(path, 1, "a recording that was unpacked, or is of an earlier version", "play the file as --record writes it")
	case bytes.HasPrefix(text, magic):
		return refusal(path, 1, "the file is compressed with gzip", "unpack it first: gunzip -k "+path)
	}
	return nil
}

// refusal is the error of a file that cannot be played.
func refusal(path string, line int, what, remedy string) *source.Error {
	return &source.Error{Failure: source.NotMetrics, Cause: fmt.Sprintf("%s: line %d: %s", path, line, what), Remedy: remedy}
}

// quote quotes the beginning of a line.
func quote(line []byte) string { return fmt.Sprintf("%.120q", bytes.TrimSpace(line)) }
