package expose

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
)

// packed returns what a deflater makes of parts, which are written one by one.
func packed(t testing.TB, d *deflater, parts ...[]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	d.reset(&out)
	for _, part := range parts {
		if n, err := d.Write(part); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	d.close()
	d.flush()
	return out.Bytes()
}

// packable are texts that reach every form of a token.
func packable() map[string][]byte {
	rng := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 200<<10)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	everyByte := make([]byte, 256)
	for i := range everyByte {
		everyByte[i] = byte(i)
	}
	list := map[string][]byte{
		"nothing":      nil,
		"noise":        noise,
		"every byte":   everyByte,
		"one run":      bytes.Repeat([]byte("a"), 100_000),
		"newlines":     bytes.Repeat([]byte("\n"), 100_000),
		"no newline":   []byte(`a{b="c"} 1`),
		"label blocks": bytes.Repeat([]byte(`a_family_of_usual_length{gpu="0"} 0.5`+"\n"), 5000),
		"kept":         render(good(kept())),
		"tenants":      render(good(tenanted(fleet(16), 40))),
		"fleet":        render(good(fleet(112))),
		"large fleet":  render(good(fleet(300))),
	}
	for n := range 20 {
		list[fmt.Sprintf("%d bytes", n)] = noise[:n]
	}
	// A repetition of each length, after each of some distances.
	for _, n := range []int{8, 9, 10, 11, 12, 13, 257, 258, 259, 260, 261, 262, 263, 515, 516, 517, 518, 519, 774, 1000} {
		for _, distance := range []int{8, 9, 16, 17, 1 << 10, 1<<10 + 1, 32<<10 - 1, 32 << 10, 32<<10 + 1} {
			if n < distance {
				text := slices.Concat([]byte("\n"), noise[:n], []byte("\n"), bytes.Repeat([]byte("x"), distance))[:distance]
				text[distance-1] = '\n'
				list[fmt.Sprintf("%d bytes %d back", n, distance)] = slices.Concat(text, text[:n+1], []byte("!"))
			}
		}
	}
	for period := 1; period < 20; period++ { // repetitions that overlap themselves
		list[fmt.Sprintf("period %d", period)] = bytes.Repeat([]byte("\nabcdefghijklmnopqrstuvwxyz")[:period], 300)
	}
	return list
}

// TestPackedReads lets the standard library and the library of Prometheus' scraper
// read what was packed, in one part and in several.
func TestPackedReads(t *testing.T) {
	d := new(deflater)
	for name, plain := range packable() {
		for _, parts := range [][][]byte{{plain}, {plain[:len(plain)/3], nil, plain[len(plain)/3:]}} {
			b := packed(t, d, parts...)
			if got := gunzip(t, b); !bytes.Equal(got, plain) {
				t.Errorf("%s: the standard library reads %d bytes, want %d", name, len(got), len(plain))
			}
			r, err := gzip.NewReader(bytes.NewReader(b))
			if err != nil {
				t.Fatal(name, err)
			}
			if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, plain) {
				t.Errorf("%s: klauspost's library reads %d bytes, want %d, error %v", name, len(got), len(plain), err)
			}
		}
	}
}

// TestForeignProgramsRead lets programs in other languages read it: they are
// strict about other things.
func TestForeignProgramsRead(t *testing.T) {
	list := packable()
	for _, program := range [][]string{
		{"gzip", "-dc"},
		{"python3", "-c", "import sys, zlib; sys.stdout.buffer.write(zlib.decompress(sys.stdin.buffer.read(), wbits=31))"},
	} {
		t.Run(program[0], func(t *testing.T) {
			path, err := exec.LookPath(program[0])
			if err != nil {
				t.Skip("not installed")
			}
			for _, name := range []string{"nothing", "noise", "one run", "every byte", "large fleet"} {
				plain := list[name]
				cmd := exec.Command(path, program[1:]...)
				cmd.Stdin = bytes.NewReader(packed(t, new(deflater), plain))
				if got, err := cmd.Output(); err != nil || !bytes.Equal(got, plain) {
					t.Errorf("%s: %d bytes, want %d, error %v", name, len(got), len(plain), err)
				}
			}
		})
	}
}

// TestCodesAreComplete: a decoder refuses a code that leaves bits unused, or that
// has more symbols than its lengths allow.
func TestCodesAreComplete(t *testing.T) {
	for digits, symbols := range map[string]int{literalBits: 286, distanceBits: 30} {
		sum := 0 // in units of 2^-15
		for i := range len(digits) {
			n := strings.IndexByte("0123456789abc", digits[i])
			if n < 1 {
				t.Fatalf("symbol %d has no code of 1 to 12 bits: %q", i, digits[i])
			}
			sum += 1 << (15 - n)
		}
		if len(digits) != symbols || sum != 1<<15 {
			t.Errorf("%d symbols fill %d of %d: %s", len(digits), sum, 1<<15, digits)
		}
	}
}

// TestPackedIsSmall compares with a general compressor at its fastest, which costs
// about twice as much.
func TestPackedIsSmall(t *testing.T) {
	for _, n := range []int{8, 16, 112, 1000} {
		plain := render(good(fleet(n)))
		var general bytes.Buffer
		z, err := gzip.NewWriterLevel(&general, gzip.BestSpeed)
		if err != nil {
			t.Fatal(err)
		}
		z.Write(plain)
		z.Close()
		ours := len(packed(t, new(deflater), plain))
		t.Logf("%d devices: %d bytes, packed %d, by a general compressor %d", n, len(plain), ours, general.Len())
		if float64(ours) > 1.3*float64(general.Len()) {
			t.Errorf("%d devices: %d bytes, a general compressor makes %d", n, ours, general.Len())
		}
	}
}

func TestPackingAllocatesNothing(t *testing.T) {
	plain := render(good(fleet(112)))
	d := new(deflater)
	if n := testing.AllocsPerRun(10, func() {
		d.reset(io.Discard)
		d.Write(plain)
		d.close()
		d.flush()
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestPackingEndsWithTheWriter(t *testing.T) {
	w, d := &brokenWriter{}, new(deflater)
	d.reset(w)
	noise := packable()["noise"]
	for range 2 {
		if _, err := d.Write(noise); !errors.Is(err, io.ErrClosedPipe) {
			t.Fatal(err)
		}
	}
	d.close()
	d.flush()
	if w.writes != 1 {
		t.Errorf("%d writes after an error", w.writes-1)
	}
}

func FuzzPackedReads(f *testing.F) {
	for _, plain := range packable() {
		if len(plain) < 1000 {
			f.Add(plain, uint16(len(plain)/2), uint16(3))
		}
	}
	f.Add(render(good(snapshotOf("s", board()))), uint16(1000), uint16(2))
	d := new(deflater)
	f.Fuzz(func(t *testing.T, text []byte, cut, times uint16) {
		plain := bytes.Repeat(text, 1+int(times%16))
		at := min(int(cut), len(plain))
		if got := gunzip(t, packed(t, d, plain[:at], plain[at:])); !bytes.Equal(got, plain) {
			t.Errorf("%d bytes come back of %d", len(got), len(plain))
		}
	})
}

// BenchmarkPack is one exposition, and beside it what a general compressor takes.
func BenchmarkPack(b *testing.B) {
	for _, n := range []int{8, 112, 1000} {
		plain := render(good(fleet(n)))
		b.Run(fmt.Sprintf("devices=%d/ours", n), func(b *testing.B) {
			d := new(deflater)
			b.ReportAllocs()
			b.SetBytes(int64(len(plain)))
			for b.Loop() {
				d.reset(io.Discard)
				d.Write(plain)
				d.close()
				d.flush()
			}
		})
		b.Run(fmt.Sprintf("devices=%d/general", n), func(b *testing.B) {
			z, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(plain)))
			for b.Loop() {
				z.Reset(io.Discard)
				z.Write(plain)
				z.Close()
			}
		})
	}
}
