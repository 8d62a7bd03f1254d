package dcgm

import (
	"strconv"
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
	t.text = append(t.text, p[max(0, len(p)-tailSize):]...)
	t.text = t.text[:copy(t.text, t.text[max(0, len(t.text)-tailSize):])]
	return len(p), nil
}

// String returns the kept text.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// quoted returns, after a colon, the line of a command's output that explains a failure best: the first that
// mentions an error, else the last. It is short and printable, and "" if there is none.
func quoted(text string) string {
	found := ""
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			found = line
		}
		if strings.Contains(strings.ToLower(line), "error") {
			break
		}
	}
	if found = printable(found); found == "" {
		return ""
	}
	return ": " + strconv.Quote(found)
}

// printable returns s as one printable line, short enough for the log.
func printable(s string) string { return diag.Line(s, 240) }
