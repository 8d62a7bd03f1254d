// Package recording keeps the answers of a source in a file, reading by reading, to
// play them again byte for byte. Recorder writes such a file, Parse and Player read
// it.
//
// A recording is text. It begins with First and comments; records follow, and
// the first one describes the source. A record is an opening line, a text if the
// opening line announces one, and a line `end` with the CRC-32C, in hex, of the
// opening line with its line feed and the text:
//
//	source "NAME" "BACKEND" "AGGREGATION" "PERIOD" "HOST" "START"
//	reading WHEN TOOK BYTES [full] [missed N]
//	failed WHEN TOOK KIND "CAUSE"
//	end 1a2b3c4d
//
// WHEN and TOOK are in seconds: from START to the request, and from the request
// to its answer. BYTES is the length of the text. N readings before this one
// were not written because the disk was too slow.
//
// Expositions repeat themselves, so the text of a reading is written as edits. Each
// line gets a number when it first occurs, beginning with 1 in a reading that is
// `full`, and its latest content is remembered:
//
//	+TEXT       a new line; "TEXT" in quotes if it contains unprintable characters
//	@N E E E …  edits of line N and those after it. Each E is one of
//	  =         the line unchanged; =K for K lines
//	  V or "V"  the line with V in place of its value, which follows the series
//
// The series of a line ends with its last `} `, else with its first blank. A
// text that does not end in a line feed is one byte shorter than its lines.
//
// A writer that is killed leaves at most one incomplete record, at the end, which
// is not played. The first reading of each file and some later ones are full, so
// that a recording stays readable if a part of it is lost.
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

// anyVersion is the prefix of the first line in every version of the format.
const anyVersion = "# kpulse-proxy recording "

// comments follow the first line, for people who find the file.
const comments = `# Play it: kpulse-proxy --backend=replay --source=FILE
# source NAME BACKEND AGGREGATION PERIOD HOST START
# reading WHEN TOOK BYTES: the answer of the source, WHEN seconds after START. A full one numbers its lines from 1, others continue.
#   +LINE is new and gets the next number. @N goes to line N: = unchanged, =K for K lines, else its new value.
# failed WHEN TOOK KIND CAUSE: the read failed. end CRC: the record is complete.
`

// Recording is a recorded file, checked to be complete except for a torn end.
type Recording struct {
	// Source is the name of the recorded source, Caps what is known about it:
	// Backend, Aggregation, Period, and Host, which is the machine's name if the
	// source was local.
	Source string
	Caps   source.Caps
	// Start is the origin of all times of the recording.
	Start time.Time
	// Asked lists the times of the requests that gave a reading, in the order
	// of the recording. The clock may have been set back in between.
	Asked []time.Duration
	// Begun and Ended are the times of the first and the last request, failed ones
	// included.
	Begun, Ended time.Duration
	// Failed counts the reads that failed, Missed the readings that were not
	// written.
	Failed, Missed int
	// Torn is the number of the line at which an incomplete record begins, 0 if
	// the last record is complete.
	Torn int

	text    []byte
	from    position        // of the first reading
	gaps    []time.Duration // between readings with none failed or missing in between
	failing bool            // the last record is a failure
}

// Damage is an error in the middle of a recording.
type Damage struct {
	Line int    // counted from 1
	What string // one line
}

// Error returns the line and the text.
func (d *Damage) Error() string { return fmt.Sprintf("line %d: %s", d.Line, d.What) }

// Is reports whether text claims to be a recording, of any version.
func Is(text []byte) bool { return bytes.HasPrefix(text, []byte(anyVersion)) }

// Parse reads a whole recording, and keeps text. It drops a torn record at the
// end; any other error is a *Damage. A recording may contain no reading.
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

// Play returns a Player of rec, positioned before its first reading. Several may play at a time.
func (rec *Recording) Play() *Player {
	return &Player{rec: rec, position: rec.from, table: crcTable()}
}

// Spacing is the time from one reading to the next: the period of a stream, else
// the 90th percentile of the gaps without failed reads or missing readings; 0 if
// there is no such gap.
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
