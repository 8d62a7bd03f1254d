package dcgm

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TestNoise: the output of a child is reported once, a second after it begins, unless a row
// or a dmon header follows.
func TestNoise(t *testing.T) {
	const ms = time.Millisecond
	write := func(w net.Conn, text string) { _, _ = io.WriteString(w, text) }
	for _, c := range []struct {
		name   string
		beside string
		play   func(w net.Conn)
		told   string // text@ms
		err    error
	}{
		{"a line, and silence", "", func(w net.Conn) {
			time.Sleep(300 * ms)
			write(w, "hello\n")
			time.Sleep(20 * time.Second)
		}, `"hello\n"@1300`, io.EOF},
		{"no newline", "", func(w net.Conn) { write(w, "Password: "); time.Sleep(20 * time.Second) }, `"Password: "@1000`, io.EOF},
		{"a line now and then", "", func(w net.Conn) {
			for range 50 {
				write(w, "a\n")
				time.Sleep(400 * ms)
			}
		}, `"a\na\na\n"@1000`, io.EOF},
		{"on stderr", "oops\n", func(net.Conn) { time.Sleep(20 * time.Second) }, `"oops\n"@2000`, io.EOF},
		{"a comment is not a header", "", func(w net.Conn) { write(w, "# hello\n"); time.Sleep(20 * time.Second) }, `"# hello\n"@1000`, io.EOF},
		{"a row after it", "", func(w net.Conn) {
			write(w, "hello\n")
			time.Sleep(900 * ms)
			write(w, header("POWER")+textRow(0, "1"))
			time.Sleep(3 * time.Second)
		}, "", io.EOF},
		{"a header after it", "banner\n", func(w net.Conn) {
			write(w, "hello\n"+header("POWER"))
			time.Sleep(20 * time.Second)
		}, "", io.EOF},
		{"after the header", "banner\n", func(w net.Conn) {
			write(w, "hello\n"+header("POWER")+"POWER is off\n")
			time.Sleep(20 * time.Second)
		}, `"POWER is off\n"@1000`, io.EOF},
		{"blank lines", "\n", func(w net.Conn) { write(w, "\n  \n"); time.Sleep(20 * time.Second) }, "", io.EOF},
		{"without end", "", func(w net.Conn) { write(w, strings.Repeat("hello, here\n", 1<<20)) }, "", errNoise},
		{"without end and newline", "", func(w net.Conn) { write(w, strings.Repeat("hello, here", 1<<20)) }, "", errNoise},
		{"without end and newline, in pieces", "", func(w net.Conn) {
			write(w, strings.Repeat("hello, here", lineBuffer))
			for range 1100 {
				write(w, strings.Repeat("x", 1000))
			}
			time.Sleep(time.Hour)
		}, "", errNoise},
		{"lines that are too long", "", func(w net.Conn) {
			for range 20 {
				write(w, strings.Repeat("x", 2*lineBuffer-1))
				write(w, "\n")
			}
			time.Sleep(time.Hour)
		}, "", errNoise},
		{"without end after a row", "", func(w net.Conn) {
			write(w, header("POWER")+textRow(0, "1")+strings.Repeat("hello, here\n", 1<<20))
		}, "", errNoise},
	} {
		t.Run(c.name, func(t *testing.T) {
			told := ""
			r := &receiver{stream: device, period: 100 * time.Millisecond, flows: func() {}, beside: func() string { return c.beside }}
			r.noisy = func(text string) { told += fmt.Sprintf("%q@%d", text, time.Since(r.begun).Milliseconds()) }
			_, err := r.receive(t, c.play)
			if told != c.told || !errors.Is(err, c.err) {
				t.Errorf("told %s and ended with %v, want %s and %v", told, err, c.told, c.err)
			}
		})
	}
}

func TestIsAnswer(t *testing.T) {
	for text, want := range map[string]bool{
		"8 GPUs found (Active).\n":     true,
		"Welcome\n1 GPU found.\n":      true,
		"| GPU ID | Device":            true,
		"+--------+":                   true,
		"Error: unable to establish":   true,
		"\ndcgmi  version: 4.6.0\n":    true,
		"":                             false,
		"You have mail\nso have I\n":   false,
		"y\n":                          false,
		strings.Repeat("\x00\xff", 99): false,
	} {
		if isAnswer([]byte(text)) != want {
			t.Errorf("%q", text)
		}
	}
}
