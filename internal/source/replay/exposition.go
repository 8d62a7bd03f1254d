package replay

import (
	"bytes"
	"io"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// expositionTrack plays saved /metrics pages.
type expositionTrack struct {
	bodies  [][]byte
	at      int
	scanner raw.Scanner
}

// newExpositionTrack splits text into bodies, each of which must contain a sample.
func newExpositionTrack(path string, text []byte) (*expositionTrack, error) {
	t := &expositionTrack{}
	scratch := &raw.Batch{Dict: raw.NewDict()}
	var scanner raw.Scanner
	start, line, first := 0, 0, 1
	add := func(end int) error {
		body := text[start:end]
		if len(bytes.TrimSpace(body)) == 0 {
			return nil
		}
		scratch.Body = append(scratch.Body[:0], body...)
		scanner.Scan(scratch)
		if scratch.Meaningful == 0 {
			return refuseBody(path, body, first)
		}
		t.bodies = append(t.bodies, body)
		return nil
	}
	for at := 0; at < len(text); {
		l := text[at:]
		if n := bytes.IndexByte(l, '\n'); n >= 0 {
			l = l[:n+1]
		}
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
	if len(t.bodies) == 0 {
		return nil, refusal(path, line, "nothing but end marks", accepted)
	}
	return t, nil
}

// refuseBody refuses body, which begins at line, and names its first line that should be a sample.
func refuseBody(path string, body []byte, line int) error {
	for l := range bytes.Lines(body) {
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

// next copies the body: the Batch belongs to its reader, which may write to it.
func (t *expositionTrack) next(b *raw.Batch) error {
	if t.at == len(t.bodies) {
		return io.EOF
	}
	b.Body = append(b.Body[:0], t.bodies[t.at]...)
	t.scanner.Scan(b)
	b.Stamps = b.Stamps[:0] // a replay has its own times
	t.at++
	return nil
}

func (t *expositionTrack) rewind() { t.at = 0 }

func (t *expositionTrack) length() int { return len(t.bodies) }
