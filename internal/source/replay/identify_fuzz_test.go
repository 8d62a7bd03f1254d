package replay

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// FuzzIdentify: any file is refused with a cause of one printable line, which lies in the file, or
// played to its end, twice the same.
func FuzzIdentify(f *testing.F) {
	f.Add("#Entity   GRACT        SMACT        \nID                                  \nGPU 0     N/A          0.500        \nGPU 0     0.1          7\n")
	f.Add("#Entity   GRACT\nError setting watches. Result: x\n")
	f.Add("a 1\n# EOF\n\n# EOF\nb 2\n")
	f.Add("# HELP a b\n# EOF\n# EOF")
	f.Add("a 1\r\n")
	f.Add("\x1f\x8b")
	f.Add(twoTicks)
	f.Fuzz(func(t *testing.T, text string) {
		play, _, err := identify("f", []byte(text))
		if err != nil {
			e, is := errors.AsType[*source.Error](err)
			if !is || e.Remedy == "" || strings.ContainsFunc(e.Cause, unicode.IsControl) {
				t.Errorf("%q is refused with %v", text, err)
			}
			return
		}
		first := playedOut(t, play, len(text))
		play.rewind()
		if again := playedOut(t, play, len(text)); again != first || first == 0 {
			t.Errorf("%q has %d ticks, then %d", text, first, again)
		}
	})
}

// playedOut plays a track to its end and returns its number of ticks.
func playedOut(t *testing.T, play track, most int) (ticks int) {
	t.Helper()
	b := raw.Batch{Dict: raw.NewDict()}
	for at := time.Unix(0, 0); ; ticks++ {
		b.Reset()
		b.At = at
		if err := play.next(&b); errors.Is(err, io.EOF) {
			return ticks
		}
		if ticks > most {
			t.Fatal("it does not end")
		}
	}
}
