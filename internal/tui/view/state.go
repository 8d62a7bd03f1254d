package view

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
)

// State is all that views draw from. The root model owns it and writes it between
// frames; a view's Draw only reads it, but for Hits.
type State struct {
	// Now is the instant that is shown: the clock, or FrozenAt.
	Now time.Time
	// FrozenAt is zero while the screen follows the clock.
	FrozenAt time.Time

	// Playback is nil where nothing is played but what is read now.
	Playback *client.PlaybackState

	// Nodes are in the order they were given, at least one.
	Nodes client.Nodes
	// GPUs are the devices to show, of all nodes, filtered and ordered; an
	// instance follows its board, or another instance of it.
	GPUs []*client.GPU
	// Devices is how many there are without the filter.
	Devices int
	// Selected is always that of one of GPUs, unless there is none.
	Selected client.Key

	History *history.History
	// Events are the newest last.
	Events []history.Event

	// Job is the batch job that we were started in; empty outside of one.
	Job []canonical.Variable

	// Processes are those of all nodes that tell, nil before they did; ProcessesErr
	// says why one does not.
	Processes    []client.Process
	ProcessesErr string

	View    string // name of the view that is shown, as in viewNames
	Overlay string // what is shown over it; "" is nothing
	Filter  string // as typed; "" is none
	Sort    Sort
	Pinned  bool // devices stay in the order that they are in
	// Window is how much of the past charts show; 0 leaves it to them.
	Window time.Duration
	// Cursor is the instant that a chart's cursor points at; zero: none.
	Cursor time.Time
	// Metric is the one that was chosen to be plotted and explained.
	Metric client.Metric
	// PerGPU plots a chart for each device rather than for each metric.
	PerGPU bool
	// Density of the fleet: 0 the view's own choice, else 1 (full) to 5 (a cell each).
	Density int
	// Scroll is the view's first line, or row of cards; views clamp it as they draw.
	Scroll int

	Theme   string // one of Themes
	Symbols string // one of SymbolSets
	Mouse   bool
	// Bell: bad events ring the terminal's bell.
	Bell bool

	// Prompt is the line being typed behind ":" or "/", with that character; ""
	// while none is.
	Prompt string
	// Message is the footer's latest, "" once it is old; Alarm if it tells of
	// something that went wrong.
	Message string
	Alarm   bool

	// Hits are filled by Draw, for the mouse.
	Hits []Hit
}

// Hit is a rectangle of the screen that the mouse can click.
type Hit struct {
	X, Y, W, H int
	// Key is that of the device drawn there; Metric, where Key is zero, the column
	// to sort by.
	Key    client.Key
	Metric client.Metric
}

// Sort is the order of devices. Boards are ordered; instances go with theirs.
type Sort struct {
	// By is MetricNone for the order of nodes and indexes.
	By         client.Metric
	Descending bool
}

// Themes and SymbolSets are what the settings may say, the default first. ""
// as theme stands for dark or light, as the terminal is.
var (
	Themes     = []string{"dark", "light", "ansi16", "mono"}
	SymbolSets = []string{"braille", "block", "ascii"}
)

// AgeOf returns how fresh the values of g are, and for how long there have been
// no new ones.
func (s *State) Freshness(g *client.GPU) (client.Freshness, time.Duration) {
	return s.Nodes.Freshness(g, s.Now)
}

// SelectedGPU returns the selected device, nil if there is none.
func (s *State) SelectedGPU() *client.GPU {
	if i := s.SelectedIndex(); i >= 0 {
		return s.GPUs[i]
	}
	return nil
}

func (s *State) SelectedIndex() int {
	for i, g := range s.GPUs {
		if g.Key == s.Selected {
			return i
		}
	}
	return -1
}
