package app

import (
	"strings"
	"sync"
)

// tailLines is how many lines a tail keeps.
const tailLines = 20

// tail is a writer that keeps the last lines: each Write is one.
type tail struct {
	mu    sync.Mutex
	lines []string
}

// Write implements io.Writer.
func (t *tail) Write(line []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) == tailLines {
		t.lines = append(t.lines[:0], t.lines[1:]...)
	}
	t.lines = append(t.lines, string(line))
	return len(line), nil
}

// String returns what is kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "")
}
