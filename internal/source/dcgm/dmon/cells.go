package dmon

import (
	"bytes"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// cells reads the cells of a row into b. It returns false, and adds nothing, if
// they do not fit the header.
func (p *Parser) cells(b *raw.Batch, line []byte, label uint32, start, end int) bool {
	n := len(b.Samples)
	fits, bad := p.aligned(b, line, label, start, end)
	if !fits {
		b.Samples = b.Samples[:n]
		if fits, bad = p.counted(b, line, label, end); !fits {
			b.Samples = b.Samples[:n]
			return false
		}
	}
	if bad {
		b.Skipped++
	}
	return true
}

// aligned reads the cells of a row at origin from an index on, by position: each begins exactly at its column, with only blanks in
// between, so an empty cell is unambiguous. bad is true if a cell cannot be read.
func (p *Parser) aligned(b *raw.Batch, line []byte, label uint32, origin, from int) (fits, bad bool) {
	columns := p.layout.columns
	if !p.layout.aligned || len(columns) == 0 ||
		!blankUntil(line, from, min(origin+columns[0].start, len(line))) {
		return false, false
	}
	values := 0
	for i := range columns {
		c := &columns[i]
		start, stop := origin+c.start, len(line)
		if start >= len(line) {
			return values == 0 || !p.layout.closesGaps, bad
		}
		if i+1 < len(columns) && origin+columns[i+1].start < stop {
			stop = origin + columns[i+1].start
			if !isBlank(line[stop-1]) {
				return false, false
			}
		}
		if line[start] == ' ' {
			if !blankUntil(line, start, stop) {
				return false, false
			}
			continue
		}
		values++
		v, end, ok := number(line[:stop], start)
		switch {
		case ok && blankUntil(line, end, stop):
			if c.known {
				b.Samples = append(b.Samples, raw.Sample{Family: c.family, Labels: label, Value: v})
			}
		case !isAbsent(trimRight(line[start:stop])):
			bad = true
		}
	}
	return true, bad
}

// counted reads cells by order, for layouts whose columns do not line up
// (right-aligned or overflowing ones, or blanks lost in copying): there must be
// one for each column, and each must look like a cell.
func (p *Parser) counted(b *raw.Batch, line []byte, label uint32, at int) (fits, bad bool) {
	columns := p.layout.columns
	i := 0
	for at += leadingBlanks(line[at:]); at < len(line); at += leadingBlanks(line[at:]) {
		if i == len(columns) {
			return false, false
		}
		cell := token(line, at)
		v, end, ok := number(line[:at+len(cell)], at)
		switch c := &columns[i]; {
		case ok && end == at+len(cell):
			if c.known {
				b.Samples = append(b.Samples, raw.Sample{Family: c.family, Labels: label, Value: v})
			}
		case bytes.HasSuffix(cell, []byte("...")):
			bad = true
		case !isAbsent(cell):
			return false, false
		}
		at += len(cell)
		i++
	}
	return len(columns) > 0 && (i == 0 || i == len(columns)), bad
}

// isAbsent reports whether a cell marks a missing reading: N/A, or what C++ prints for
// floats that are not finite numbers.
func isAbsent(cell []byte) bool {
	if bytes.Equal(cell, []byte("N/A")) {
		return true
	}
	if len(cell) > 0 && cell[0] == '-' {
		cell = cell[1:]
	}
	return bytes.EqualFold(cell, []byte("NAN")) || bytes.EqualFold(cell, []byte("INF"))
}
