//go:build linux

package dcgm

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// The number of bytes read is that of the output of the same commands.
func TestBytesRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dcgmtest.Scenario{Failures: []dcgmtest.Failure{{Kind: dcgmtest.Hang, Command: "dmon", After: 3}}})
	w.until("a reading", func(_ *raw.Batch, err error) bool { return err == nil })
	for stream, word := range map[int]string{device: "-e 100,", profiling: "-e 1001,"} {
		eventually(t, "three samples", func() bool { return w.stream(stream).Ticks >= 3 })
		args := slices.Clone(w.starts(word)[0].Args)
		args[slices.Index(args, "-c")+1] = "3"
		out, err := exec.Command(w.exe, args...).Output()
		if err != nil || strings.Count(string(out), "GPU ") != 2*3 {
			t.Fatalf("%v: %s", err, out)
		}
		// A hanging child is restarted, and prints the same.
		eventually(t, fmt.Sprintf("%d bytes for each three samples of %s", len(out), word), func() bool {
			got := w.stream(stream)
			return got.Ticks%3 == 0 && got.Bytes == got.Ticks/3*uint64(len(out))
		})
	}
}
