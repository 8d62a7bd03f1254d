package e2e

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

// refuse tests a fault at the start of the program: it exits and says why, and serves once the
// fault is gone.
func refuse(t *testing.T, f fault) {
	t.Helper()
	w := newWorld(t, f, startExporter(t))
	flags := w.flags()
	f.begin(w)
	var said bytes.Buffer
	cmd := w.command(append(os.Environ(), f.env...), flags...)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(settled, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	kill.Stop()
	text := said.String()
	if code := cmd.ProcessState.ExitCode(); code != f.exit {
		t.Errorf("exit %d, want %d:\n%s", code, f.exit, text)
	}
	for _, want := range w.fill(f.seen.says...) {
		if !strings.Contains(text, want) {
			t.Errorf("the output lacks %s:\n%s", want, text)
		}
	}
	for _, word := range []string{"panic", "goroutine ", "DATA RACE"} {
		if strings.Contains(text, word) {
			t.Errorf("the output has %s:\n%s", word, text)
		}
	}
	f.end(w)
	w.start(append(os.Environ(), f.env...), flags...)
	w.serves(before)
	w.checkEnd()
}
