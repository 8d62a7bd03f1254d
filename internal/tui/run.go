// Package tui is the terminal dashboard: the program, its keys and commands. All its data
// comes from expositions of kpulse-proxy; it computes nothing that the proxy computes.
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

	"github.com/gdamore/tcell/v2"
	"golang.org/x/term"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
)

// leadGC is GOGC, in percent, while a lead is read: with the default, garbage collection takes
// 40 % of its time.
const leadGC = 300

// Options configure Run.
type Options struct {
	// Targets are the nodes, at least one.
	Targets []client.Target
	// Job describes the batch job that the program was started in.
	Job []canonical.Variable
	// Notice is a message to show at the start; "" means none.
	Notice string
	// Focus is the GPU to begin with, as :focus takes it; "" means none.
	Focus string
}

var (
	errNoTerminal = errors.New("--tui needs a terminal, but standard input or output is not one; print one reading as text with --once")
	// A dumb terminal would show escape codes as text.
	errDumbTerminal = errors.New("--tui cannot draw on a terminal with TERM=dumb; print one reading as text with --once")
)

// CheckTerminal returns an error if Run cannot draw on the terminal of this process.
func CheckTerminal() error {
	switch {
	case !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stdout.Fd())):
		return errNoTerminal
	case os.Getenv("TERM") == "dumb":
		return errDumbTerminal
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
	messages := make(chan any)
	send := func(message any) {
		select {
		case messages <- message:
		case <-ctx.Done():
		}
	}
	nodes := make([]*client.Node, len(opts.Targets))
	for i, t := range opts.Targets {
		f := client.NewFetcher(t)
		nodes[i] = f.Node
		background.Go(func() { follow(ctx, f, i, send, t.Ticks != nil) })
	}
	m := newModel(nodes, time.Now, screen)
	m.state.Job, m.wanted, m.targets = opts.Job, opts.Focus, opts.Targets
	m.background = func(request func(context.Context) any) { background.Go(func() { send(request(ctx)) }) }
	if opts.Notice != "" {
		m.addEvents([]history.Event{{At: m.now(), State: canonical.HealthWarn, Text: client.OneLine(opts.Notice)}})
	}
	m.loop(ctx, messages, answers)
	return nil
}

// loop handles messages and the events of the screen until the user quits or ctx ends, and then
// waits for the terminal's answer, which the shell would read as input.
func (m *model) loop(ctx context.Context, messages <-chan any, answers <-chan bool) {
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
		case message := <-messages:
			m.update(message)
		case event := <-events:
			m.update(event)
		case <-beat.C:
			m.update(beatMsg{})
		}
	}
	if answers != nil {
		select {
		case <-answers:
		case <-time.After(answerTime - m.now().Sub(begun)):
		}
	}
}

// follow sends the nodes that f fetches, first those of its lead.
func follow(ctx context.Context, f *client.Fetcher, index int, send func(any), leads bool) {
	if leads {
		percent := debug.SetGCPercent(leadGC)
		f.Lead(ctx, func(n *client.Node) { send(leadMsg{index, n}) })
		debug.SetGCPercent(percent)
	}
	f.Follow(ctx, func(n *client.Node) { send(nodeMsg{index, n}) })
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
	m.screen.Sync() // it may have another size
}
