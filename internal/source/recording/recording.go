// Package recording keeps the answers of a source in a file, reading by reading, so
// that they can be played again bit for bit. Recorder writes such a file, Parse
// and Player read it.
//
// A recording is text. It begins with First and comments; then come records, the
// first of which describes the source. A record is an opening line, a text where
// the opening line announces one, and a line `end` with the CRC-32C, in hex, of
// the opening line with its line feed and the text:
//
//	source "NAME" "BACKEND" "AGGREGATION" "PERIOD" "HOST" "START"
//	reading WHEN TOOK BYTES [full] [missed N]
//	failed WHEN TOOK KIND "CAUSE"
//	end 1a2b3c4d
//
// WHEN and TOOK are seconds: from START to when the source was asked, and from
// there to its answer. BYTES is the length of the text. N readings before this
// one were not written because the disk was too slow.
//
// Expositions repeat themselves, so the text of a reading is written as edits. Every
// line is numbered when it first occurs, from 1 on after a reading that is
// `full`, and remembered as it last was:
//
//	+TEXT       a line that is new; "TEXT" with quotes where it would not show
//	@N E E E …  what becomes of line N and those after it. E is one of
//	  =         the line as it was; =K that many lines
//	  V or "V"  the line with the value V: with V for what follows its series
//
// The series of a line is the line up to the last `} `, else up to its first
// blank. A text that does not end in a line feed is one byte shorter than its
// lines.
//
// A writer that is killed leaves at most one incomplete record, at the end, which
// is not played. Every file begins with a full reading, and others
// follow, so that a recording stays readable if a part of it is lost.
package recording

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// First is the first line of every recording, without its line feed.
const First = "# kpulse-proxy recording 1"

// anyVersion begins the first line, whatever the version of the format.
const anyVersion = "# kpulse-proxy recording "

// comments follow the first line, for who finds the file.
const comments = `# Play it: kpulse-proxy --backend=replay --source=FILE
# source NAME BACKEND AGGREGATION PERIOD HOST START
# reading WHEN TOOK BYTES: what the source said, WHEN seconds after START. A full one numbers its lines from 1, others go on.
#   +LINE is new and gets the next number. @N goes to line N: = as it was, =K so many lines, else its new value.
# failed WHEN TOOK KIND CAUSE: it could not be read. end CRC: the record is whole.
`

// Recording is a recorded file that was found to be complete, except for a torn end.
type Recording struct {
	// Source is the name of what was recorded, Caps what is known about it:
	// Backend, Aggregation, Period, and in Host the name of the machine if it was
	// local.
	Source string
	Caps   source.Caps
	// Start is the origin of all times of the recording.
	Start time.Time
	// Asked lists when the source was asked for each reading that it gave, in
	// the order of the recording. Clocks may have been set back in between.
	Asked []time.Duration
	// Begun and Ended are when the first and the last record were asked for, those
	// that failed included.
	Begun, Ended time.Duration
	// Failed counts the reads that failed, Missed the readings that were not
	// written.
	Failed, Missed int
	// Torn is the number of the line at which an unfinished record begins, 0 if
	// the last one is complete.
	Torn int

	text    []byte
	from    position        // of the first reading
	gaps    []time.Duration // from a reading to the next, where none failed or is missing
	failing bool            // the last record is a failure
}

// Damage is an error in the middle of a recording.
type Damage struct {
	Line int    // counted from 1
	What string // one line
}

// Error returns both.
func (d *Damage) Error() string { return fmt.Sprintf("line %d: %s", d.Line, d.What) }

// Is reports whether text claims to be a recording, of any version.
func Is(text []byte) bool { return bytes.HasPrefix(text, []byte(anyVersion)) }

// Parse reads the whole of a recording, which it keeps. A record at the end that
// was torn is left out; anything else that is wrong gives a *Damage. A recording
// may hold no reading.
func Parse(text []byte) (*Recording, error) {
	first, _, _ := bytes.Cut(text, []byte("\n"))
	if string(first) != First {
		return nil, &Damage{1, fmt.Sprintf("%q is another version of the format", first)}
	}
	rec := &Recording{text: text}
	p := rec.Play()
	err := p.source(rec)
	rec.from = p.position
	var r Reading
	for n := 0; err == nil; n++ {
		if err = p.Next(&r); err == nil {
			rec.count(&r, n == 0)
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		return rec, nil
	case hasEnd(text[p.record.at:]):
		return nil, err
	}
	rec.Torn = p.record.line + 1
	rec.text = text[:p.record.at]
	rec.from.at = min(rec.from.at, len(rec.text))
	return rec, nil
}

// count adds r, which may be the first record.
func (rec *Recording) count(r *Reading, first bool) {
	if first {
		rec.Begun = r.Asked
	}
	if r.Failure == "" && r.Missed == 0 && !first && !rec.failing {
		rec.gaps = append(rec.gaps, max(r.Asked-rec.Ended, 0))
	}
	rec.Ended = r.Asked
	rec.Missed += r.Missed
	if rec.failing = r.Failure != ""; rec.failing {
		rec.Failed++
		return
	}
	rec.Asked = append(rec.Asked, r.Asked)
}

// Play returns a Player of rec, positioned before its first reading. Any number of them may play
// at a time.
func (rec *Recording) Play() *Player {
	return &Player{rec: rec, position: rec.from, table: crcTable()}
}

// Spacing is the time from one reading to the next: the period of a stream, else
// the 90th percentile of the gaps in which no read failed and no reading is
// missing; 0 if there is no such gap.
func (rec *Recording) Spacing() time.Duration {
	if rec.Caps.Period > 0 || len(rec.gaps) == 0 {
		return max(rec.Caps.Period, 0)
	}
	gaps := slices.Sorted(slices.Values(rec.gaps))
	return gaps[(len(gaps)*9-1)/10]
}

// hasEnd reports whether a record ends in text.
func hasEnd(text []byte) bool {
	for l := range bytes.Lines(text) {
		if _, ok := endOf(bytes.TrimSuffix(l, []byte("\n"))); ok && l[len(l)-1] == '\n' {
			return true
		}
	}
	return false
}

// endOf returns the checksum of a line that ends a record.
func endOf(l []byte) (crc uint32, ok bool) {
	hex, ok := bytes.CutPrefix(l, []byte("end "))
	if !ok || len(hex) != 8 || bytes.ContainsAny(hex, "ABCDEF") {
		return 0, false
	}
	n, err := strconv.ParseUint(string(hex), 16, 32)
	return uint32(n), err == nil
}
