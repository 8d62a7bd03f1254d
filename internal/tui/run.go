// Package tui is the terminal dashboard: the program, its keys, commands and
// settings. All its data comes from expositions of kpulse-proxy; it computes nothing
// that the proxy computes.
package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/term"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// leadGC is GOGC, in percent, while a lead is read: with the default, garbage collection takes
// 40 % of its time.
const leadGC = 300

// maxFPS bounds the frames written per second.
const maxFPS = 20

// Options configure Run.
type Options struct {
	// Targets are the nodes, at least one.
	Targets []client.Target
	// Job describes the batch job that the program was started in.
	Job []canonical.Variable
	// Notice is a message to show at the start; "" means none.
	Notice string
	// SettingsFile is where :save writes; "" means nowhere.
	SettingsFile string
	// Focus is the GPU to begin with, as :focus takes it; "" means none.
	Focus string
	// Environ is os.Environ, which tells what the terminal can show.
	Environ []string
}

var (
	errNoTerminal = errors.New("--tui needs a terminal, but standard input or output is not one; print one reading as text with --once")
	// A dumb terminal would show escape codes as text.
	errDumbTerminal = errors.New("--tui cannot draw on a terminal with TERM=dumb; print one reading as text with --once")
)

// CheckTerminal returns an error if Run cannot draw on out or read keys from in; the error
// says what to do instead. kind is the value of TERM.
func CheckTerminal(in, out *os.File, kind string) error {
	switch {
	case !term.IsTerminal(in.Fd()) || !term.IsTerminal(out.Fd()):
		return errNoTerminal
	case kind == "dumb":
		return errDumbTerminal
	}
	return nil
}

// Run shows the nodes on the terminal until the user quits or ctx ends, and restores
// the terminal. Nothing else may use in and out meanwhile. Call CheckTerminal first.
func Run(ctx context.Context, in, out *os.File, opts Options) error {
	ctx, cancel := context.WithCancel(ctx)
	fetchers := make([]*client.Fetcher, len(opts.Targets))
	nodes := make([]*client.Node, len(opts.Targets))
	for i, t := range opts.Targets {
		fetchers[i] = client.NewFetcher(t)
		nodes[i] = fetchers[i].Node
	}
	m := newModel(nodes, time.Now)
	m.state.Job, m.wanted = opts.Job, opts.Focus
	if asciiOnly(opts.Environ) {
		m.setSymbols("ascii")
	}
	m.listProcesses, m.listEvents = processLister(ctx, opts.Targets), eventLister(ctx, opts.Targets)
	if err := m.load(opts.SettingsFile); err != nil {
		m.showError(err)
	}
	m.showNotice(opts.Notice)
	profile := profileOf(out, opts.Environ)
	m.setDepth(depthOf(profile))
	m.setBackground(lightBackground(opts.Environ)) // until the terminal answers
	m.canvas = newCanvas(out)
	defer m.canvas.end()
	p := tea.NewProgram(m, tea.WithInput(in), tea.WithOutput(m.canvas), tea.WithWindowSize(1, 1), tea.WithEnvironment(opts.Environ), tea.WithColorProfile(profile), tea.WithFPS(maxFPS), tea.WithoutSignalHandler())
	// tea.WithContext would kill the program instead of ending it.
	stop := context.AfterFunc(ctx, p.Quit)
	var following sync.WaitGroup
	following.Go(func() { sendSizes(ctx, out, p) })
	for i, f := range fetchers {
		following.Go(func() {
			if opts.Targets[i].Ticks != nil {
				percent := debug.SetGCPercent(leadGC)
				f.Lead(ctx, func(n *client.Node) { p.Send(leadMsg{i, n}) })
				debug.SetGCPercent(percent)
				p.Send(ledMsg{})
			}
			f.Follow(ctx, func(n *client.Node) { p.Send(nodeMsg{i, n}) })
		})
	}
	_, err := p.Run()
	stop()
	cancel()
	following.Wait()
	if err != nil {
		return fmt.Errorf("the terminal cannot be used: %w; print one reading as text with --once", err)
	}
	return nil
}

// sendSizes sends p the size of the terminal at once, after each change, and when the program
// continues after a stop, as changes during it are signalled to others. It ends with ctx.
func sendSizes(ctx context.Context, out *os.File, p *tea.Program) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH, syscall.SIGCONT)
	defer signal.Stop(changed)
	for {
		if width, height, err := term.GetSize(out.Fd()); err == nil {
			p.Send(sizeMsg{width, height})
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}
