package tui

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kpulse/kpulse-proxy/internal/tui/svg"
	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

// picture writes the screen as SVG into the working directory, else into the directory for
// temporary files, and shows the path.
func (m *model) picture() {
	name := "kpulse-" + m.now().Format("20060102-150405")
	// In all colours, whatever the terminal shows.
	colors := view.Palette(m.state.Theme, m.light, view.TrueColor)
	paper := svg.Dark
	if m.light && m.state.Theme != "dark" || m.state.Theme == "light" {
		paper = svg.Light
	}
	frame := svg.Draw(string(m.grid.AppendANSI(nil, colors)), m.height, paper)
	file, err := writeNew(".", name, ".svg", frame)
	if err != nil {
		file, err = writeNew(os.TempDir(), name, ".svg", frame)
	}
	if err != nil {
		m.showError(fmt.Errorf("there is no picture: %w", err))
		return
	}
	if whole, err := filepath.Abs(file); err == nil {
		file = whole
	}
	m.message("this screen is in " + file)
}

// writeNew writes a file that did not exist, numbered if its name is taken, and returns its
// path.
func writeNew(dir, name, extension string, content []byte) (string, error) {
	const most = 100
	for n := 1; ; n++ {
		path := filepath.Join(dir, name+extension)
		if n > 1 {
			path = filepath.Join(dir, fmt.Sprintf("%s-%d%s", name, n, extension))
		}
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		switch {
		case errors.Is(err, fs.ErrExist) && n < most:
			continue
		case err != nil:
			return "", err
		}
		_, err = file.Write(content)
		return path, errors.Join(err, file.Close())
	}
}
