// Command screenshots makes the pictures of the terminal dashboard in README.md: it plays the
// demo in a real terminal (tmux), presses keys, and draws the screen as SVG, once on a dark and
// once on a light background.
//
//	go run ./internal/tui/screenshots PROGRAM FOLDER
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/tui/svg"
)

// shot is one picture.
type shot struct {
	name          string
	width, height int
	keys          []string // pressed one after the other
}

// shots show the views as the demo opens: GPU 3 has fallen off the bus, GPU 5 is hot, and an
// idle notebook holds GPU 6.
var shots = []shot{
	{"fleet", 160, 45, nil},
	{"small", 80, 24, nil},
	{"focus", 150, 45, []string{":focus 5", "Enter"}},
	{"plot", 160, 45, []string{"p"}},
}

// patience is how long the demo may take to open.
const patience = 30 * time.Second

// themes are the looks of the terminal.
var themes = []struct {
	name  string
	paper svg.Paper
}{{"dark", svg.Dark}, {"light", svg.Light}}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: screenshots PROGRAM FOLDER")
		os.Exit(2)
	}
	if err := captureAll(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "screenshots:", err)
		os.Exit(1)
	}
}

// captureAll draws all pictures at the same time, each in its own terminal.
func captureAll(program, folder string) error {
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	results := make(chan error)
	for _, theme := range themes {
		for _, s := range shots {
			go func() {
				screen, err := s.capture(program, theme.name)
				if err == nil {
					picture := svg.Draw(screen, s.height, theme.paper)
					err = os.WriteFile(filepath.Join(folder, s.name+"-"+theme.name+".svg"), picture, 0o644)
				}
				results <- err
			}()
		}
	}
	for range len(themes) * len(shots) {
		err = cmp.Or(err, <-results)
	}
	return err
}

// capture plays the demo in a terminal and returns its screen, with the escapes for colors.
func (s shot) capture(program, theme string) (string, error) {
	socket := fmt.Sprintf("kpulse-%s-%s-%d", s.name, theme, os.Getpid())
	tmux := func(args ...string) (string, error) {
		cmd := exec.CommandContext(context.Background(), "tmux", append([]string{"-L", socket, "-f", os.DevNull}, args...)...)
		cmd.Env = append(os.Environ(), "COLORTERM=truecolor", "LC_ALL=C.UTF-8")
		out, err := cmd.CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("tmux %s: %w: %s", args[0], err, out)
		}
		return string(out), nil
	}
	play := fmt.Sprintf("env TERM=xterm-256color COLORTERM=truecolor %s --tui --backend=replay", program)
	if _, err := tmux("new-session", "-d", "-x", fmt.Sprint(s.width), "-y", fmt.Sprint(s.height), play); err != nil {
		return "", err
	}
	defer func() { _, _ = tmux("kill-server") }()
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if screen, err := tmux("capture-pane", "-p"); err != nil || strings.Contains(screen, "forgotten") {
			break
		}
		if time.Since(begun) > patience {
			return "", fmt.Errorf("%s: the demo does not open", s.name)
		}
	}
	keys := append([]string{":theme " + theme, "Enter"}, s.keys...)
	for _, key := range keys {
		if _, err := tmux("send-keys", key); err != nil {
			return "", err
		}
		time.Sleep(200 * time.Millisecond)
	}
	time.Sleep(time.Second)
	screen, err := tmux("capture-pane", "-p", "-e")
	if err == nil && strings.Count(screen, "\n") < s.height/2 {
		err = fmt.Errorf("%s shows nothing:\n%s", s.name, screen)
	}
	return screen, err
}
