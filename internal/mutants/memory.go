package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// memory is a file that keeps verdicts between calls, one per line: an interrupted campaign
// resumes. A verdict counts as long as the fingerprint of its target stays the same.
type memory struct {
	verdicts map[string]verdict // by fingerprint, directory and name
	file     *os.File           // nil if nothing is remembered
}

func (m *memory) open(path string) error {
	m.verdicts = map[string]verdict{}
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for s := bufio.NewScanner(strings.NewReader(string(text))); s.Scan(); {
		if cells := strings.Split(s.Text(), "\t"); len(cells) == 5 {
			m.verdicts[cells[4]+" "+cells[1]+" "+cells[2]] = verdict(cells[0])
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

// of returns the last verdict on a mutant of a target with this fingerprint.
func (m *memory) of(dir, fingerprint string, mu *mutant) verdict {
	if v, ok := m.verdicts[fingerprint+" "+dir+" "+mu.name()]; ok {
		return v
	}
	return open
}

// add records a verdict and its reason.
func (m *memory) add(dir, fingerprint string, mu *mutant, v verdict, why string) {
	if m.file != nil {
		fmt.Fprintf(m.file, "%s\t%s\t%s\t%s\t%s\n", v, dir, mu.name(), why, fingerprint)
	}
}
