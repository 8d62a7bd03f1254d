package recording

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// batch returns the next reading of s.
func batch(s *endless) *raw.Batch {
	b := &raw.Batch{}
	_ = s.Read(context.Background(), b)
	return b
}

// The player never panics, and what it plays can be recorded and played again.
func FuzzParse(f *testing.F) {
	text, _ := small(f)
	f.Add(text, false)
	f.Add(bytes.Replace(text, []byte("@1"), []byte("@2"), 1), true)
	f.Add([]byte(First), true)
	f.Fuzz(func(t *testing.T, text []byte, mend bool) {
		if mend {
			text = withChecksums(text)
		}
		rec, err := Parse(text)
		if err != nil {
			return
		}
		bodies := &endless{}
		for _, r := range rest(t, rec.Play()) {
			if r.Failure == "" {
				bodies.bodies = append(bodies.bodies, r.Body)
			}
		}
		if len(bodies.bodies) != len(rec.Asked) {
			t.Fatalf("%d readings, then %d", len(rec.Asked), len(bodies.bodies))
		}
		w := newWriter(bodies, "")
		var again []byte
		for range bodies.bodies {
			again = w.reading(again, batch(bodies), 0)
		}
		if len(again) == 0 {
			return
		}
		_, all := play(t, again)
		for i, r := range all {
			if !bytes.Equal(r.Body, bodies.bodies[i]) {
				t.Fatalf("reading %d is %q, and again %q", i, bodies.bodies[i], r.Body)
			}
		}
	})
}

// withChecksums corrects the checksums of text, so that a fuzzer gets past
// them.
func withChecksums(text []byte) []byte {
	lines := bytes.SplitAfter(text, []byte("\n"))
	for range 100 {
		_, err := Parse(bytes.Join(lines, nil))
		damage, ok := errors.AsType[*Damage](err)
		if !ok {
			break
		}
		_, crc, ok := strings.Cut(damage.What, "its checksum is ")
		if !ok {
			break
		}
		lines[damage.Line-1] = []byte("end " + crc + "\n")
	}
	return bytes.Join(lines, nil)
}
