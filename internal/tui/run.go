package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/term"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
)

// maxFPS bounds how often the screen is written: more cannot be read.
const maxFPS = 20

// Options say what to show, and where.
type Options struct {
	// Targets are the nodes, at least one.
	Targets []client.Target
	// Job is what the environment tells of the batch job that we were started in.
	Job []canonical.Variable
	// Notice is something to be told at the beginning; "" is nothing.
	Notice string
	// SettingsFile keeps what :save saves; "" is nowhere.
	SettingsFile string
	// NoColor leaves colours out, whatever the terminal can do.
	NoColor bool
}

// ErrNoTerminal means that there is nobody to show anything to.
var ErrNoTerminal = errors.New("--tui needs a terminal, and standard input or output is none; print one reading as text with --once")

// ErrDumbTerminal means that what is drawn would be seen as the codes that draw it.
var ErrDumbTerminal = errors.New("--tui needs a terminal that can be drawn on, and TERM=dumb says that this one cannot; print one reading as text with --once")

// CheckTerminal returns ErrNoTerminal or ErrDumbTerminal where Run could not draw; kind
// is what the environment says in TERM.
func CheckTerminal(in, out *os.File, kind string) error {
	switch {
	case !term.IsTerminal(in.Fd()) || !term.IsTerminal(out.Fd()):
		return ErrNoTerminal
	case kind == "dumb":
		return ErrDumbTerminal
	}
	return nil
}

// Run shows the nodes on the terminal until the user quits or ctx ends, and leaves
// the terminal as it was. CheckTerminal must have found nothing. It owns in and out
// meanwhile: nobody else may write there.
func Run(ctx context.Context, in, out *os.File, opts Options) error {
	ctx, cancel := context.WithCancel(ctx)
	fetchers := make([]*client.Fetcher, len(opts.Targets))
	nodes := make([]*client.Node, len(opts.Targets))
	for i, t := range opts.Targets {
		fetchers[i] = client.NewFetcher(t)
		nodes[i] = fetchers[i].Node
	}
	m := newModel(nodes, time.Now)
	m.state.Job = opts.Job
	for _, t := range opts.Targets {
		if t.Playback != nil {
			m.player = &history.Player{Playback: t.Playback}
		}
	}
	m.list = lister(ctx, opts.Targets)
	if err := m.load(opts.SettingsFile); err != nil {
		m.complain(err)
	}
	m.notice(opts.Notice)
	if opts.NoColor {
		m.themeIsOurs = true
		m.setTheme("mono")
	}
	p := tea.NewProgram(m, programOptions(in, out, opts.NoColor)...)
	// Not by the context of the program: that would kill it, and not let it end.
	stop := context.AfterFunc(ctx, p.Quit)
	var following sync.WaitGroup
	for i, f := range fetchers {
		following.Go(func() {
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

func programOptions(in, out *os.File, noColor bool) []tea.ProgramOption {
	all := []tea.ProgramOption{tea.WithInput(in), tea.WithOutput(out), tea.WithFPS(maxFPS), tea.WithoutSignalHandler()}
	if noColor {
		// bubbletea takes only NO_COLOR=1 and =true for yes.
		all = append(all, tea.WithColorProfile(colorprofile.ASCII))
	}
	return all
}
