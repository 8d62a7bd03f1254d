package exporter

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

func TestBodyReaderReadsAll(t *testing.T) {
	for _, n := range []int{0, 1, 511, 512, 513, firstBuffer - 1, firstBuffer, firstBuffer + 1, 300_000} {
		text := lines(n)[:n]
		for name, r := range map[string]func() io.Reader{
			"plain":    func() io.Reader { return bytes.NewReader(text) },
			"halves":   func() io.Reader { return iotest.HalfReader(bytes.NewReader(text)) },
			"data+eof": func() io.Reader { return iotest.DataErrReader(bytes.NewReader(text)) },
		} {
			for _, size := range []int64{-1, int64(n), int64(n) / 2, int64(n) * 2} {
				in := bodyReader{max: int64(n)}
				got, err := in.read(nil, r(), size)
				if err != nil || !bytes.Equal(got, text) || cap(got) == len(got) {
					t.Errorf("%d %s, size %d: %d bytes of %d, %v", n, name, size, len(got), cap(got), err)
				}
				if n == 0 {
					continue
				}
				in = bodyReader{max: int64(n) - 1}
				if got, err := in.read(nil, r(), size); !errors.Is(err, errTooLarge) || len(got) != n {
					t.Errorf("%d %s over the limit: %d bytes, %v", n, name, len(got), err)
				}
			}
		}
	}
	in := bodyReader{max: 1000, discarded: make([]byte, 0, 2000)}
	if got, err := in.read(make([]byte, 0, 50), bytes.NewReader(lines(100)), 10); err != nil || cap(got) != 2000 || in.discarded != nil {
		t.Errorf("with discarded memory: capacity %d, %v, discarded %d", cap(got), err, cap(in.discarded))
	}
	if got, err := in.read(nil, bytes.NewReader(lines(2000)), -1); !errors.Is(err, errTooLarge) || len(got) != 1001 || cap(in.discarded) < 1000 {
		t.Errorf("too large: read %d, %v, discarded %d", len(got), err, cap(in.discarded))
	}
	if _, err := in.read(nil, bytes.NewReader(nil), -1); err != nil || in.discarded != nil {
		t.Errorf("spare memory of %d kept after a good body, %v", cap(in.discarded), err)
	}
	broken := errors.New("broken")
	in = bodyReader{max: 100}
	got, err := in.read(nil, io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken)), -1)
	if !errors.Is(err, broken) || string(got) != "abc" || in.last != 0 {
		t.Errorf("broken: %q %v, last %d", got, err, in.last)
	}
}

func TestBodyReaderReusesMemory(t *testing.T) {
	text := lines(9 << 19)
	in := bodyReader{max: 64 << 20}
	r := bytes.NewReader(text)
	buf, _ := in.read(nil, r, -1)
	if limit := len(text) * 9 / 8; cap(buf) > limit {
		t.Errorf("capacity %d for the first body of %d, want at most %d", cap(buf), len(text), limit)
	}
	if n := testing.AllocsPerRun(10, func() {
		r.Reset(text[:len(text)-1000])
		buf, _ = in.read(buf, r, -1)
	}); n != 0 {
		t.Errorf("%v allocations for a steady body, want 0", n)
	}
	// So it is if bodies become longer, byte by byte.
	more := len(text) - 1000
	if n := testing.AllocsPerRun(10, func() {
		more++
		r.Reset(text[:more])
		buf, _ = in.read(buf, r, -1)
	}); n != 0 {
		t.Errorf("%v allocations for bodies that become longer, want 0", n)
	}
	// A buffer for another Batch has the right size at once.
	r.Reset(text)
	other, _ := in.read(nil, r, -1)
	if limit := len(text) * 9 / 8; cap(other) > limit {
		t.Errorf("capacity %d for the next body of %d, want at most %d", cap(other), len(text), limit)
	}
	// A huge body's memory is given back when the bodies are small again.
	for range 2 {
		r.Reset(text[:1000])
		buf, _ = in.read(buf, r, -1)
	}
	if cap(buf) > 2000 {
		t.Errorf("capacity %d kept for a body of 1000", cap(buf))
	}
}

// TestOversizeKeepsMemoryFlat serves bodies of 25 times the limit, plain and as a gzip bomb, and
// counts what reading them allocates.
func TestOversizeKeepsMemoryFlat(t *testing.T) {
	const limit, blocks = 4 << 20, 100
	block := []byte(strings.Repeat("u 1\n", 1<<18)) // 1 MiB
	var bomb bytes.Buffer
	z, _ := gzip.NewWriterLevel(&bomb, gzip.BestSpeed)
	for range blocks {
		z.Write(block)
	}
	z.Close()
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/bomb" {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(bomb.Bytes())
			return
		}
		for range blocks {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
		t.Error("the upstream could send its whole body")
	})
	for _, path := range []string{"/metrics", "/bomb"} {
		s := open(t, srv.URL+path, Options{MaxBody: limit, Timeout: 10 * time.Minute})
		b := raw.Batch{Body: make([]byte, 0, 4096)}
		// Doubling buffers up to twice the limit take four times the limit; the next read reuses the last one.
		for i, most := range []uint64{5 * limit, limit / 4} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if err := s.Read(t.Context(), &b); source.AsError(err).Failure != source.TooLarge {
				t.Errorf("%s: got %v", path, err)
			}
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > most {
				t.Errorf("%s: read %d allocates %d KiB, want at most %d", path, i, n>>10, most>>10)
			}
		}
		if cap(b.Body) != 4096 {
			t.Errorf("%s: the batch keeps %d bytes", path, cap(b.Body))
		}
	}
}
