package dcgm

import (
	"bytes"
	"strings"
	"sync"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// tailSize limits how much is kept of a child's output other than rows, in bytes.
const tailSize = 4 << 10

// tail keeps the end of a text. It may be written to and read from any goroutine.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write appends p and drops the beginning beyond tailSize. It never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(p) >= tailSize {
		t.text = append(t.text[:0], p[len(p)-tailSize:]...)
		return len(p), nil
	}
	if over := len(t.text) + len(p) - tailSize; over > 0 {
		t.text = t.text[:copy(t.text, t.text[over:])]
	}
	t.text = append(t.text, p...)
	return len(p), nil
}

// clear removes the text.
func (t *tail) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = t.text[:0]
}

// String returns the kept text.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// errorLine returns the line of text that explains a failure best: the first
// that mentions an error, else the last; short and printable.
func errorLine(text string) string {
	found := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		found = line
		if bytes.Contains(bytes.ToLower([]byte(line)), []byte("error")) {
			break
		}
	}
	return printable(found)
}

// printable returns s as one printable line, short enough for the log.
func printable(s string) string { return diag.Line(s, 240) }
