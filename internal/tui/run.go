// Package tui is the terminal dashboard: the program, its keys and commands. All its data
// comes from expositions of kpulse-proxy; it computes nothing that the proxy computes.
package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"os/user"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/gdamore/tcell/v2"
	"golang.org/x/term"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
)

// Options configure Run.
type Options struct {
	Targets []client.Target      // the nodes, at least one
	Job     []canonical.Variable // of the batch job that the program was started in
	Notice  string               // to show at the start; "" means none
	Focus   string               // GPU to begin with, as :focus takes it; "" means none
	// Explain returns what the mode explain says of words.
	Explain func(words []string) (string, error)
}

// CheckTerminal returns an error if Run cannot draw on the terminal of this process.
func CheckTerminal() error {
	switch {
	case !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stdout.Fd())):
		return errors.New("--tui needs a terminal, but standard input or output is not one; print one reading as text with --once")
	case os.Getenv("TERM") == "dumb": // it would show escape codes as text
		return errors.New("--tui cannot draw on a terminal with TERM=dumb; print one reading as text with --once")
	}
	return nil
}

// Run shows the nodes on the terminal until the user quits or ctx ends, and restores the terminal.
// Call CheckTerminal first.
func Run(ctx context.Context, opts Options) error {
	tcell.SetEncodingFallback(tcell.EncodingFallbackASCII) // for charsets that it does not know
	screen, answers, err := openScreen()
	if err != nil {
		return fmt.Errorf("the terminal cannot be used: %w; print one reading as text with --once", err)
	}
	defer screen.Fini()
	ctx, cancel := context.WithCancel(ctx)
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel()
	changes := make(chan func(*model))
	send := func(change func(*model)) {
		select {
		case changes <- change:
		case <-ctx.Done():
		}
	}
	nodes := make([]*client.Node, len(opts.Targets))
	for i, t := range opts.Targets {
		f := client.NewFetcher(t)
		nodes[i] = f.Node
		background.Go(func() {
			f.Lead(ctx, func(n *client.Node) { send(lead(i, n)) })
			f.Follow(ctx, func(n *client.Node) { send(reading(i, n)) })
		})
	}
	m := newModel(nodes, time.Now, screen)
	m.state.Job, m.wanted, m.targets, m.explainWords = opts.Job, opts.Focus, opts.Targets, opts.Explain
	m.me = []string{strconv.Itoa(os.Getuid())} // if it has no name
	if reader, err := user.Current(); err == nil {
		m.me = append(m.me, reader.Username)
	}
	m.background = func(request func(context.Context) func(*model)) { background.Go(func() { send(request(ctx)) }) }
	if opts.Notice != "" {
		m.addEvents([]history.Event{{At: m.now(), State: canonical.HealthWarn, Text: client.OneLine(opts.Notice)}})
	}
	m.loop(ctx, changes, answers)
	return nil
}

// loop handles changes and the events of the screen until the user quits or ctx ends, and then
// waits for the terminal's answer, which the shell would read as input.
func (m *model) loop(ctx context.Context, changes <-chan func(*model), answers <-chan bool) {
	begun := m.now()
	events := make(chan tcell.Event)
	go m.screen.ChannelEvents(events, ctx.Done())
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for !m.over {
		m.draw()
		select {
		case <-ctx.Done():
			m.over = true
		case light := <-answers:
			m.setBackground(light)
			answers = nil
		case change := <-changes:
			m.update(change)
		case event := <-events:
			m.handle(event)
		case <-beat.C:
			m.update((*model).beat)
		}
	}
	if answers != nil {
		select {
		case <-answers:
		case <-time.After(answerTime - m.now().Sub(begun)):
		}
	}
}

// suspend stops the process, as Ctrl-Z does elsewhere, and restores the screen when it continues.
func (m *model) suspend() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	_ = m.screen.Suspend() // it returns no error
	if syscall.Kill(0, syscall.SIGTSTP) == nil {
		<-continued
	}
	if err := m.screen.Resume(); err != nil {
		m.over = true
		return
	}
	m.refresh()
}
