package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// memory is a file that remembers verdicts from call to call, a line each: what was
// interrupted goes on, and after a new test only those that survived are tried. It knows
// nothing of changes to the source: who made some deletes it.
type memory struct {
	dead map[string]bool
	file *os.File // nil if nothing is remembered
}

func (m *memory) open(path string) error {
	m.dead = map[string]bool{}
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for s := bufio.NewScanner(strings.NewReader(string(text))); s.Scan(); {
		if name, ok := strings.CutPrefix(s.Text(), string(killed)+" "); ok {
			m.dead[name] = true
		}
	}
	m.file, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	return err
}

func (m *memory) close() {
	if m.file != nil {
		m.file.Close()
	}
}

func (m *memory) killed(dir string, mu *mutant) bool { return m.dead[dir+" "+mu.name()] }

func (m *memory) add(dir string, mu *mutant, v verdict) {
	if m.file != nil {
		fmt.Fprintln(m.file, v, dir, mu.name())
	}
}
