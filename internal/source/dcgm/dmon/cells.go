package dmon

import (
	"bytes"
	"encoding/binary"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// cells reads the cells of a row into b, from an index of its line on. It returns false, and adds nothing, unless the row
// has one for each column or none at all, and each is a number, absent, or was cut short by dmon. A row with fewer does
// not show which it lacks: DCGM before 4.0 closes the gap.
func (p *Parser) cells(b *raw.Batch, line []byte, label uint32, at int) bool {
	columns, first, cut := p.layout.columns, len(b.Samples), 0
	i := 0
	for at = skipBlanks(line, at); at < len(line) && i < len(columns); at = skipBlanks(line, at) {
		v, end, ok := number(line, at)
		switch c := &columns[i]; {
		case ok && (end == len(line) || isBlank(line[end])):
			if c.known {
				b.Samples = append(b.Samples, raw.Sample{Family: c.family, Labels: label, Value: v})
			}
		default:
			cell := token(line, at)
			end = at + len(cell)
			if bytes.HasSuffix(cell, []byte("...")) {
				cut = 1
			} else if !isAbsent(cell) {
				b.Samples = b.Samples[:first]
				return false
			}
		}
		at = end
		i++
	}
	if at < len(line) || i > 0 && i < len(columns) || len(columns) == 0 {
		b.Samples = b.Samples[:first]
		return false
	}
	b.Skipped += cut
	return true
}

// isAbsent reports whether a cell marks a missing reading: N/A, or what C++ prints for floats that are not finite numbers.
func isAbsent(cell []byte) bool {
	if bytes.Equal(cell, []byte("N/A")) {
		return true
	}
	cell = bytes.TrimPrefix(cell, []byte{'-'})
	return bytes.EqualFold(cell, []byte("NAN")) || bytes.EqualFold(cell, []byte("INF"))
}

// eightBlanks is eight spaces as a 64-bit word.
const eightBlanks = 0x2020202020202020

// skipBlanks returns the index of the first character from at on that is not blank; most of a row is padding.
func skipBlanks(line []byte, at int) int {
	for at+8 <= len(line) && binary.LittleEndian.Uint64(line[at:]) == eightBlanks {
		at += 8
	}
	for at < len(line) && isBlank(line[at]) {
		at++
	}
	return at
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func isDigit(c byte) bool { return c-'0' <= 9 }

// token returns the characters from at up to the next blank.
func token(line []byte, at int) []byte {
	end := at
	for end < len(line) && !isBlank(line[end]) {
		end++
	}
	return line[at:end]
}
