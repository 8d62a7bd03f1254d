package tui

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
)

// TestPicture checks that P writes the screen to a new file and shows its path, and that the
// working directory need not be writable.
func TestPicture(t *testing.T) {
	t.Chdir(t.TempDir())
	m, _ := fleet(t)
	m.Update(tea.ColorProfileMsg{Profile: colorprofile.ASCII})
	m.View()
	typed(m, "P", "P")
	files, err := filepath.Glob("kpulse-*.svg")
	if err != nil || len(files) != 2 || !strings.HasSuffix(m.state.Message, files[0]) && !strings.HasSuffix(m.state.Message, files[1]) {
		t.Fatalf("%v, %v; %q", files, err, m.state.Message)
	}
	text, err := os.ReadFile(files[1])
	if err != nil || !strings.HasPrefix(string(text), "<svg ") || !strings.Contains(string(text), ">dgx-1</text>") || !strings.Contains(string(text), "#8b95a7") {
		t.Errorf("%v: %.400s", err, text)
	}
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	if err := os.Chmod(".", 0o500); err != nil {
		t.Fatal(err)
	}
	if typed(m, ":picture", "enter"); os.Getuid() != 0 && (!m.state.Alarm || !strings.Contains(m.state.Message, "there is no picture")) {
		t.Errorf("without a folder: %q", m.state.Message)
	}
}
