//go:build linux

package dcgmi

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgmi/dcgmitest"
)

// The bytes that were read are those that the same commands print to anybody.
func TestBytesRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dcgmitest.Scenario{Failures: []dcgmitest.Failure{{Kind: dcgmitest.Hang, Command: "dmon", After: 3}}})
	w.until("a reading", func(_ *raw.Batch, err error) bool { return err == nil })
	eventually(t, "three samples of each", func() bool {
		return w.stream(device).Ticks == 3 && w.stream(profiling).Ticks == 3
	})
	for stream, word := range map[int]string{device: "-e 100,", profiling: "-e 1001,"} {
		got := w.stream(stream).Bytes
		args := slices.Clone(w.starts(word)[0].Args)
		args[slices.Index(args, "-c")+1] = "3"
		out, err := exec.Command(w.exe, args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		if want := uint64(len(out)); got != want || strings.Count(string(out), "GPU ") != 2*3 {
			t.Errorf("%s: %d bytes, want %d", word, got, want)
		}
	}
}
