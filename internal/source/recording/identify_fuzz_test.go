package recording

import (
	"errors"
	"fmt"
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
	f.Add("gpu_id,power_w,uuid\n0:1,1,\"a\\\"\"\"\n\n0,,\n")
	f.Add("timestamp,gpu_id,pcie_replay_rate_s\n1,0,\n2,0,3\n2,1,\n9,1,1e300\n")
	member := string(new(packer).pack(header{Version: version}, []byte("up 1\n")))
	f.Add(member + member[:len(member)-9] + member)
	f.Fuzz(func(t *testing.T, text string) {
		play, err := identify("f", []byte(text))
		if err != nil {
			e, is := errors.AsType[*source.Error](err)
			if !is || e.Remedy == "" || strings.ContainsFunc(e.Cause, unicode.IsControl) {
				t.Errorf("%q is refused with %v", text, err)
			}
			return
		}
		play.settle()
		if play.length < 1 || play.length > len(text) || play.times != nil && len(play.times) != play.length {
			t.Fatalf("%q has %d ticks, %d times", text, play.length, len(play.times))
		}
		var first []string
		b := raw.Batch{Dict: raw.NewDict()}
		for n := range 2 * play.length {
			b.Reset()
			b.At = time.Unix(int64(n), 0)
			play.fill(n%play.length, &b)
			if csv := isCSV([]byte(strings.SplitN(text, "\n", 2)[0])); csv && b.Skipped > 0 || play.gap(n%play.length) <= 0 {
				t.Fatalf("tick %d of %q:\n%s", n, text, b.Body)
			}
			if n < play.length {
				first = append(first, fmt.Sprint(values(&b)))
			} else if again := fmt.Sprint(values(&b)); again != first[n%play.length] && !strings.Contains(text, csvReplayRate) {
				t.Fatalf("tick %d of %q: %s, then %s", n, text, first[n%play.length], again)
			}
		}
	})
}
