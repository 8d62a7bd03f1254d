package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// A recording is a sequence of gzip members, one for each reading: a line with a header, and the
// exposition byte for byte. `zcat FILE` shows all of it. Members do not depend on each other: the
// rest of the file plays if one is damaged, or was cut because the program was killed or the disk
// was full, and files can be joined with cat.

// prefix begins the first line of a member; the header follows as JSON.
const prefix = "# kpulse-proxy recording "

// version of the format.
const version = 2

// magic begins a gzip member (RFC 1952), deflated.
var magic = []byte("\x1f\x8b\x08")

// maxReading limits a reading, in bytes, so that a damaged file cannot exhaust the memory.
const maxReading = 256 << 20

// header describes a reading and its source.
type header struct {
	Version int `json:"version"`
	// At is when the source was asked, Took how long it took to answer.
	At   time.Time     `json:"at"`
	Took time.Duration `json:"took_ns"`
	// Backend, Aggregation, Period and Host are those of the source's Caps. Host is the
	// machine's name if the source was local.
	Backend     string             `json:"backend"`
	Aggregation source.Aggregation `json:"aggregation"`
	Period      time.Duration      `json:"period_ns"`
	Host        string             `json:"host"`
}

// packer writes members, reusing its memory.
type packer struct {
	out  bytes.Buffer
	gzip *gzip.Writer
}

// pack returns a member, which is valid until the next call.
func (p *packer) pack(h header, body []byte) []byte {
	p.out.Reset()
	if p.gzip == nil {
		p.gzip = gzip.NewWriter(&p.out)
	}
	p.gzip.Reset(&p.out)
	line, _ := json.Marshal(h) // no field of a header can fail
	// A bytes.Buffer takes everything.
	_, _ = p.gzip.Write(append(append([]byte(prefix), line...), '\n'))
	_, _ = p.gzip.Write(body)
	_ = p.gzip.Close()
	return p.out.Bytes()
}

// unpack reads the member at the beginning of text, appends its exposition to body, and returns
// the member's size.
func unpack(body, text []byte) (h header, _ []byte, size int, err error) {
	rest := bytes.NewReader(text)
	r, err := gzip.NewReader(rest)
	if err != nil {
		return h, body, 0, err
	}
	r.Multistream(false)
	out := bytes.NewBuffer(body[:0])
	if _, err := out.ReadFrom(io.LimitReader(r, maxReading+1)); err != nil {
		return h, body, 0, err
	}
	line, body, _ := bytes.Cut(out.Bytes(), newline)
	line, ours := bytes.CutPrefix(line, []byte(prefix))
	if !ours {
		return h, body, 0, fmt.Errorf("a gzip member begins with %s", quote(line))
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return h, body, 0, err
	}
	if h.Version != version || len(body) > maxReading {
		return h, body, 0, fmt.Errorf("a reading of %d bytes in version %d of the format", len(body), h.Version)
	}
	return h, body, len(text) - rest.Len(), nil
}

// isRecording reports whether text begins with a member.
func isRecording(text []byte) bool {
	r, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return false
	}
	begin := make([]byte, len(prefix))
	_, err = io.ReadFull(r, begin)
	return err == nil && string(begin) == prefix
}

// recorded plays a recording.
type recorded struct {
	text    []byte
	offsets []int
	body    []byte
	scanner raw.Scanner
}

// newRecorded refuses a recording without a complete reading. It unpacks all of it once.
func newRecorded(path string, text []byte) (*track, error) {
	r := &recorded{text: text}
	t := &track{fill: r.fill}
	for at := 0; at < len(text); {
		h, body, size, err := unpack(r.body, text[at:])
		if err != nil {
			if t.broken == "" {
				t.broken = fmt.Sprintf("at byte %d: %v", at, err)
			}
			next := bytes.Index(text[at+1:], magic)
			if next < 0 {
				break
			}
			at += 1 + next
			continue
		}
		if r.body = body; len(t.times) == 0 {
			t.caps = source.Caps{Backend: h.Backend, Aggregation: h.Aggregation, Period: h.Period, Host: h.Host}
		}
		t.times, r.offsets = append(t.times, h.At.Local()), append(r.offsets, at)
		at += size
	}
	if t.length = len(t.times); t.length == 0 {
		return nil, refusal(path, 1, "the recording contains no complete reading", "record for longer, from a source that answers")
	}
	return t, nil
}

// fill shifts the timestamps of samples to the time of the replay, so that a sample is as old as
// it was.
func (r *recorded) fill(n int, b *raw.Batch) {
	h, body, _, err := unpack(r.body, r.text[r.offsets[n]:])
	if err != nil {
		panic(err) // newRecorded has unpacked it
	}
	r.body = body
	b.Took, b.Body = h.Took, append(b.Body[:0], body...)
	r.scanner.Scan(b)
	later := b.At.Sub(h.At).Milliseconds()
	for i := range b.Stamps {
		b.Stamps[i].Millis += later
	}
}
