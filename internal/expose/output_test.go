package expose

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// gzipped passes text through a buffer of l, to w.
func gzipped(l *outputs, w io.Writer, text []byte) (length int, whole bool) {
	b := l.get(w, true)
	defer l.put(b)
	b.pass(text)
	length, whole = b.end()
	b.last.flush()
	return length, whole
}

func TestGzip(t *testing.T) {
	l := new(outputs)
	noise := bytes.Repeat([]byte("0123456789abcdefghijklmnopqrstuvwxyz"), 1000)
	for i := range noise {
		noise[i] ^= byte(i * i >> 5)
	}
	for name, text := range map[string][]byte{
		"nothing":                nil,
		"short":                  []byte("a 1\n"),
		"fleet":                  render(good(fleet(112))),
		"more than is gathered":  bytes.Repeat(render(good(fleet(8))), 50),
		"hardly compressible":    noise,
		"far more than a window": bytes.Repeat(noise, 20),
	} {
		var out bytes.Buffer
		length, whole := gzipped(l, &out, text)
		if got := gunzip(t, out.Bytes()); !bytes.Equal(got, text) {
			t.Errorf("%s: %d bytes come back of %d", name, len(got), len(text))
		}
		if whole != (out.Len() < chunk) || whole && length != out.Len() {
			t.Errorf("%s: the length is %d (known: %t), want %d", name, length, whole, out.Len())
		}
	}
}

func TestGzipAllocatesNothing(t *testing.T) {
	l, text := new(outputs), render(good(fleet(112)))
	if n := testing.AllocsPerRun(10, func() { gzipped(l, io.Discard, text) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestGzipEndsWithTheClient: after an error nothing more is written.
func TestGzipEndsWithTheClient(t *testing.T) {
	w, l := &brokenWriter{}, new(outputs)
	gzipped(l, w, bytes.Repeat(render(good(fleet(112))), 10))
	if w.writes != 1 {
		t.Errorf("%d writes after an error", w.writes-1)
	}
	b := l.get(w, true)
	defer l.put(b)
	if _, err := b.packed.Write(make([]byte, chunk)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the error of the client is %v", err)
	}
}

func TestAcceptsGzip(t *testing.T) {
	for _, row := range []struct {
		headers []string
		want    bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{"gzip"}, true},
		{[]string{"GZIP"}, true},
		{[]string{"x-gzip"}, true},
		{[]string{"gzip, deflate, br"}, true},
		{[]string{"deflate,gzip"}, true},
		{[]string{"identity"}, false},
		{[]string{"gzipped"}, false},
		{[]string{"*"}, false},
		{[]string{"gzip;q=0"}, false},
		{[]string{"gzip; q=0.000"}, false},
		{[]string{"gzip ; Q=0.5"}, true},
		{[]string{"gzip;q=NaN"}, false},
		{[]string{"gzip;level=9"}, false},
		{[]string{"*;q=0, gzip"}, true},
		{[]string{"deflate", "gzip"}, true},
	} {
		if got := acceptsGzip(row.headers); got != row.want {
			t.Errorf("%q: %v", row.headers, got)
		}
	}
}
