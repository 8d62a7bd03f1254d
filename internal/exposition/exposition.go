// Package exposition reads and writes the text exposition format of Prometheus
// (text/plain; version=0.0.4). No other package knows the format.
//
// Reading accepts and rejects, to the byte, what Prometheus' textparse.PromParser
// does if it is restarted after each line that it rejects. Nothing is copied: the
// strings of an Entry are parts of the text. textparse takes about twenty times as
// long as this and raw.Scanner, which remembers the last scrape of a source.
package exposition

import (
	"iter"
	"strings"
	"unsafe"
)

// Kind is the kind of an entry of an exposition.
type Kind uint8

// The kinds of entries.
const (
	Malformed Kind = iota // a line that Prometheus' parser rejects
	Comment               // a comment, or an empty line
	Help
	Type
	Series // a sample
)

// Entry is one entry of an exposition: a line, except for newlines within quotes.
type Entry struct {
	Kind Kind
	// Start and End are the indexes in the text of the entry and of the next one.
	Start, End int
	// Name is the name of the metric as written: in a series, blanks before the
	// name are a part of it, as they are for Prometheus. A Quoted name is in
	// quotes, which are not part of Name, and is still escaped.
	Name   string
	Quoted bool
	// Text is that of a HELP, still escaped, or the metric type of a TYPE.
	Text string
	// Labels is the label block of a series with its braces, "" without one.
	// ParseLabels reads it.
	Labels string
	Value  float64
	// Millis is the timestamp of a series in milliseconds since 1970, NoTimestamp
	// if it has none.
	Millis int64
}

// NoTimestamp is the Millis of a sample without a timestamp. Timestamps have no sign.
const NoTimestamp = -1

// MetricName returns the name of the metric, unescaped.
func (e *Entry) MetricName() string {
	if e.Quoted {
		return Unescape(e.Name)
	}
	return e.Name
}

// Entries returns the entries of an exposition in their order.
func Entries(text string) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for i := 0; i < len(text); {
			e := Next(text, i)
			if !yield(e) {
				return
			}
			i = e.End
		}
	}
}

// Next returns the entry of t that begins at i, the start of a line before the end
// of t. A malformed entry ends with its first line.
func Next(t string, i int) Entry {
	e := Entry{Start: i, Millis: NoTimestamp}
	j := SkipBlanks(t, i)
	switch {
	case j == len(t) || t[j] == '\n':
		e.Kind, e.End = Comment, min(j+1, len(t))
	case t[j] == '#':
		e.header(t, j+1)
	case t[j] == '{':
		e.quotedSeries(t, j)
	default:
		e.series(t, j)
	}
	if e.Kind == Malformed {
		return Entry{Start: i, End: NextLine(t, i), Millis: NoTimestamp}
	}
	return e
}

// series reads a sample of t whose metric name, without the blanks before it,
// starts at i.
func (e *Entry) series(t string, i int) {
	end := NameEnd(t, i)
	if end == i {
		return
	}
	e.Name = t[e.Start:end]
	if brace := SkipBlanks(t, end); brace < len(t) && t[brace] == '{' {
		if end = BlockEnd(t, brace); end < 0 {
			return
		}
		e.Labels = t[brace:end]
	}
	e.value(t, end)
}

// quotedSeries reads a sample of t whose label block starts at i and has the
// metric name in it, in quotes.
func (e *Entry) quotedSeries(t string, i int) {
	name, named, end := readBlock(t, i)
	if end < 0 || !named {
		return
	}
	e.Name, e.Quoted, e.Labels = name, true, t[i:end]
	e.value(t, end)
}

// value reads the rest of a sample from i on.
func (e *Entry) value(t string, i int) {
	var ok bool
	if e.Value, e.Millis, e.End, ok = ReadValue(t, i); ok {
		e.Kind = Series
	}
}

// NameEnd returns the index after the unquoted metric name of t at i, which is i
// if there is none.
func NameEnd(t string, i int) int {
	if i == len(t) || !isLetter(t[i]) && t[i] != ':' {
		return i
	}
	for i < len(t) && inName[t[i]] {
		i++
	}
	return i
}

// inName are the bytes that a metric name may have after its first.
var inName = func() (in [256]bool) {
	for c := range in {
		in[c] = isLetter(byte(c)) || isDigit(byte(c)) || c == ':'
	}
	return in
}()

// SkipSeries returns the start of the entry after the series of t at i. It is for a
// series that Prometheus accepts and whose name is not quoted, and costs a fraction
// of Next.
func SkipSeries(t string, i int) int {
	end := NextLine(t, i)
	line := t[i:end]
	if brace := strings.LastIndexByte(line, '}'); brace >= 0 && strings.Count(line[:brace], `"`)%2 == 0 && strings.IndexByte(line[:brace], '\\') < 0 {
		return end // every quote is closed, so the brace closes the block
	}
	if open := strings.IndexByte(line, '{'); open >= 0 {
		// The value of a label may contain a newline.
		if block := BlockEnd(t, i+open); block > 0 {
			return NextLine(t, block)
		}
	}
	return end
}

// NextLine returns the index after the first newline of t from i on, or len(t).
func NextLine(t string, i int) int {
	if n := strings.IndexByte(t[i:], '\n'); n >= 0 {
		return i + n + 1
	}
	return len(t)
}

// SkipBlanks returns the index of the first byte of t from i on that is neither
// a space nor a tab, or len(t).
func SkipBlanks(t string, i int) int {
	for i < len(t) && isBlank(t[i]) {
		i++
	}
	return i
}

// View returns body as a string without copying it. body must not be modified while the string,
// or a part of it, is in use.
func View(body []byte) string { return unsafe.String(unsafe.SliceData(body), len(body)) }

// isLetter reports whether c may start a label name.
func isLetter(c byte) bool { return (c|0x20)-'a' < 26 || c == '_' }

func isDigit(c byte) bool { return c-'0' <= 9 }

func isBlank(c byte) bool { return c == ' ' || c == '\t' }
