// Package raw is the vocabulary of readings: what a source gave, in its own words. It also has the
// scanner that turns the text exposition format into a Batch without copying and, once the series
// are known, without allocating.
package raw

import (
	"bytes"
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// Sample is one value of one series. Family and Labels index the Batch's Dict.
type Sample struct {
	Family uint32
	Labels uint32
	Value  float64
}

// Stamp is a sample's own timestamp.
type Stamp struct {
	Sample int   // the index in the Batch's Samples
	Millis int64 // since 1970
}

// Event counts how often something happened to a device, whose label block in the Batch's Dict is Labels. Family and Code
// are the source's own numbers, Count is 0 if nothing happened.
type Event struct {
	Family, Labels, Code uint32
	Count                uint64
}

// XID counts one error code of the driver as reported to a source.
type XID struct {
	// Labels is a label block of the board in the Batch's Dict. Code is 0 for a board
	// without XIDs.
	Labels, Code uint32
	// Count is the number since the source began to listen, Last the time of the latest.
	Count uint64
	Last  time.Time
}

// Span is a half-open byte range [Start, End) of a Batch's Body: whole lines, with their newlines.
type Span struct{ Start, End int }

// Batch is one reading. The reader owns it and reuses its memory: nothing of a Batch
// is valid after the next Read into it.
type Batch struct {
	// At is when the source was asked; Took is how long it took to answer.
	At   time.Time
	Took time.Duration

	// Body is the exposition as the source sent it, empty if it gives readings in another form.
	Body []byte
	// Samples are in the order of the source. A series may occur more than once.
	Samples []Sample
	// Stamps are those of the few samples that have one, in their order.
	Stamps []Stamp
	// Dict resolves the ids in Samples. It is shared by all Batches of a source.
	// If a later Scan changes its Generation, the ids are void.
	Dict *Dict
	// XIDs are those that the driver reported to the source one by one, by board. Exposition
	// writes them too, so that a recording has them.
	XIDs []XID

	Transfer
	Lines
	Rendering
}

// Transfer describes how the Body of a Batch came.
type Transfer struct {
	// ContentType is what the source calls the Body, and Landed where its redirects led,
	// both fit to be shown and "" for none.
	ContentType, Landed string
	// Unfinished is set if a last line without its end, which may be incomplete, was left out
	// of Body.
	Unfinished bool
}

// Lines describes the lines in the Body of a Batch.
type Lines struct {
	// Omit lists, in ascending order and merged where adjacent, the lines of Body that must not be
	// passed on: those for which a Prometheus server refuses a scrape, which Skipped counts, and
	// those of families with our own prefix, which OwnFamilies counts (a proxy behind a proxy).
	Omit                 []Span
	Skipped, OwnFamilies int
	// Excess is set if the body has more families, label sets or samples than any
	// exporter, and was not read to its end.
	Excess bool
	// Meaningful counts the lines with content: samples, HELP and TYPE.
	// A body with Skipped lines and nothing Meaningful is not an exposition.
	Meaningful int
}

// Rendering makes the exposition of a Batch without a Body. Its functions may be called from any
// goroutine until the next Read into the Batch.
type Rendering struct {
	// Exposition appends the text that an exporter would have sent for the Samples.
	// It is nil if Body is that text, and if there is none.
	Exposition func(dst []byte, b *Batch) []byte
	// Own appends the Samples that no exporter has, for recordings; nil is none.
	Own func(dst []byte, b *Batch) []byte
	// Chosen appends the part of Exposition that the user chose to pass on, and the Events;
	// nil is all of Exposition.
	Chosen func(dst []byte, b *Batch) []byte
	// Families are the names of the families that Chosen writes. They are never written to.
	Families []string
	// Events are for Chosen only, counted as the user's exporter would count them. Errors
	// that a source really received are XIDs.
	Events []Event
}

// Reset empties b, keeping its memory and its Dict.
func (b *Batch) Reset() {
	*b = Batch{
		Body: b.Body[:0], Samples: b.Samples[:0], Stamps: b.Stamps[:0], XIDs: b.XIDs[:0], Dict: b.Dict,
		Lines: Lines{Omit: b.Omit[:0]}, Rendering: Rendering{Events: b.Events[:0]},
	}
}

// AppendText appends the part of a Batch without a Body that is passed on.
func (b *Batch) AppendText(dst []byte) []byte {
	if b.Chosen != nil {
		return b.Chosen(dst, b)
	}
	return b.Exposition(dst, b)
}

// AppendAll appends all of a Batch without a Body: Exposition, and Own.
func (b *Batch) AppendAll(dst []byte) []byte {
	dst = b.Exposition(dst, b)
	if b.Own != nil {
		dst = b.Own(dst, b)
	}
	return dst
}

// HasCRLF reports whether CRLF makes the lines of Body malformed: the first line that is no
// comment would be a sample without its CR.
func (b *Batch) HasCRLF() bool {
	for line := range bytes.Lines(b.Body) {
		if text := bytes.TrimSpace(line); len(text) > 0 && text[0] != '#' {
			line, ends := bytes.CutSuffix(line, []byte("\r\n"))
			return ends && exposition.Next(exposition.View(line), 0).Kind == exposition.Series
		}
	}
	return false
}

// Fingerprint returns a number that changes whenever a series comes or goes or a value
// changes, but not with the order of the Samples, which some exporters shuffle. Only
// fingerprints of one Dict at one Generation can be compared.
func (b *Batch) Fingerprint() uint64 {
	var sum uint64
	for i := range b.Samples {
		s := &b.Samples[i]
		series := (uint64(s.Family)<<32 | uint64(s.Labels)) * golden
		sum += mix(series ^ math.Float64bits(s.Value))
	}
	return sum
}

// golden is 2⁶⁴ over the golden ratio, which puts neighbouring ids far apart.
const golden = 0x9e3779b97f4a7c15

// mix spreads every bit of x over all of the result: the finalizer of MurmurHash3.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
