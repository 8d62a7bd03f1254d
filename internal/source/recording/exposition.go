package recording

import (
	"bytes"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// newExpositions splits text into saved /metrics pages, each of which must contain a sample.
func newExpositions(path string, text []byte) (*track, error) {
	var pages [][]byte
	scratch, scanner := &raw.Batch{Dict: raw.NewDict()}, &raw.Scanner{}
	start, line, first := 0, 0, 1
	add := func(end int) error {
		page := text[start:end]
		if len(bytes.TrimSpace(page)) == 0 {
			return nil
		}
		scratch.Body = append(scratch.Body[:0], page...)
		scanner.Scan(scratch)
		if scratch.Meaningful == 0 {
			return refusePage(path, page, first)
		}
		pages = append(pages, page)
		return nil
	}
	at := 0
	for l := range bytes.Lines(text) {
		line++
		if string(bytes.TrimSpace(l)) == "# EOF" {
			if err := add(at); err != nil {
				return nil, err
			}
			start, first = at+len(l), line+1
		}
		at += len(l)
	}
	if err := add(len(text)); err != nil {
		return nil, err
	}
	if len(pages) == 0 {
		return nil, refusal(path, line, "nothing but end marks", accepted)
	}
	scanner = &raw.Scanner{}
	return &track{caps: source.Caps{Aggregation: source.Window}, length: len(pages), fill: func(n int, b *raw.Batch) {
		b.Body = append(b.Body[:0], pages[n]...) // a copy, as the Batch belongs to its reader
		scanner.Scan(b)
		b.Stamps = b.Stamps[:0] // a replay has its own times
	}}, nil
}

// refusePage refuses a page, which begins at line, and names its first line that should be a sample.
func refusePage(path string, page []byte, line int) error {
	for l := range bytes.Lines(page) {
		if text := bytes.TrimSpace(l); len(text) > 0 && text[0] != '#' {
			if bytes.HasSuffix(l, []byte("\r\n")) {
				return refusal(path, line, quote(l)+" ends in CRLF, which Prometheus does not read", `convert it: sed -i 's/\r$//' `+path)
			}
			return refusal(path, line, quote(l)+" is neither a metric nor output of dcgmi dmon", accepted)
		}
		line++
	}
	return refusal(path, line-1, "there are comments but no metric", accepted)
}
