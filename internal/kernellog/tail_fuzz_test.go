package kernellog

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// FuzzTail: however the kernel cuts the log into reads, each whole line that fits the buffer is
// returned, and each longer one is reported once.
func FuzzTail(f *testing.F) {
	f.Add("6,1,2,-;NVRM: Xid\n SUBSYSTEM=pci\n\n6,2", uint8(7), uint8(40))
	f.Add("0123456\n01234567\n012345678\n0123456", uint8(3), uint8(8))
	f.Add(strings.Repeat("x", 50)+"\ny\n"+strings.Repeat("z", 9), uint8(0), uint8(9))
	f.Add("\n\n\x00\n\xff", uint8(255), uint8(1))
	f.Fuzz(func(t *testing.T, text string, step, size uint8) {
		var want []string
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			switch {
			case len(line) >= max(1, int(size)):
				want = append(want, "too long")
			case i < len(lines)-1: // the last has no end yet
				want = append(want, line)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		log, err := openTail(os.DevNull, cancel)
		if err != nil {
			t.Fatal(err)
		}
		defer log.close()
		log.buf = make([]byte, max(1, size))
		rest := text
		log.system = func(_ int, buf []byte) (int, error) {
			n := copy(buf[:min(len(buf), 1+int(step))], rest)
			rest = rest[n:]
			return n, nil
		}
		var got []string
		for {
			line, err := log.next(ctx)
			if errors.Is(err, context.Canceled) {
				break
			}
			if errors.Is(err, errTooLong) {
				line, err = []byte("too long"), nil
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(line))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, read by %d into %d bytes: got %q, want %q", text, 1+int(step), max(1, size), got, want)
		}
	})
}
