package dcgmtest

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"testing"
)

// Start is one start of the fake.
type Start struct {
	PID  int
	Args []string // without the program's name
}

// Log appends s to the start log at path.
func (s Start) Log(path string) error {
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = log.Write(append(line, '\n'))
	return errors.Join(err, log.Close())
}

// Starts returns the content of the start log at path, oldest first; nil if the
// fake never started.
func Starts(t testing.TB, path string) []Start {
	t.Helper()
	log, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var starts []Start
	for lines := json.NewDecoder(log); ; {
		var start Start
		if err := lines.Decode(&start); errors.Is(err, io.EOF) {
			return starts
		} else if err != nil {
			t.Fatal(err)
		}
		starts = append(starts, start)
	}
}
