package tui

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// State is all that views draw from. The root model owns it and writes it between
// frames; a view's Draw only reads it, but for Hits.
type State struct {
	// Now is the instant that is shown: the clock, or FrozenAt.
	Now time.Time
	// FrozenAt is zero while the screen follows the clock.
	FrozenAt time.Time

	// Playback is nil where nothing is played but what is read now.
	Playback *PlaybackState

	// Nodes are in the order they were given, at least one.
	Nodes []*Node
	// GPUs are the devices to show, of all nodes, filtered and ordered; an
	// instance follows its board, or another instance of it.
	GPUs []*GPU
	// Devices is how many there are without the filter.
	Devices int
	// Selected is always that of one of GPUs, unless there is none.
	Selected Key

	History *History
	// Events are the newest last.
	Events []Event

	// Job is the batch job that we were started in; empty outside of one.
	Job []canonical.Variable

	// Processes are those of all nodes that tell, nil before they did; ProcessesErr
	// says why one does not.
	Processes    []Process
	ProcessesErr string

	View   string // name of the view that is shown, as in viewNames
	Filter string // as typed; "" is none
	Sort   Sort
	Held   bool // devices stay in the order that they are in
	// Window is how much of the past charts show; 0 leaves it to them.
	Window time.Duration
	// Cursor is the instant that a chart's cursor points at; zero: none.
	Cursor time.Time
	// Metric is the one that was chosen to be plotted and explained.
	Metric Metric
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
	Key    Key
	Metric Metric
}

// Sort is the order of devices. Boards are ordered; instances go with theirs.
type Sort struct {
	// By is MetricNone for the order of nodes and indexes.
	By         Metric
	Descending bool
}

// Themes and SymbolSets are what the settings may say, the default first. ""
// as theme stands for dark or light, as the terminal is.
var (
	Themes     = []string{"dark", "light", "ansi16", "mono"}
	SymbolSets = []string{"braille", "block", "ascii"}
)

// NodeOf returns the node that g was read from, nil if there is none.
func (s *State) NodeOf(g *GPU) *Node {
	for _, n := range s.Nodes {
		if n.URL == g.Key.Node {
			return n
		}
	}
	return nil
}

// several tells whether devices are of more than one machine, so that an index alone
// names none.
func (s *State) several() bool { return len(s.Nodes) > 1 || s.Nodes[0].Machines > 1 }

// AgeOf returns how fresh the values of g are, and for how long there have been
// no new ones.
func (s *State) AgeOf(g *GPU) (Age, time.Duration) {
	if n := s.NodeOf(g); n != nil {
		return n.Age(s.Now)
	}
	return Expired, 0
}

// SelectedGPU returns the selected device, nil if there is none.
func (s *State) SelectedGPU() *GPU {
	if i := s.selectedIndex(); i >= 0 {
		return s.GPUs[i]
	}
	return nil
}

func (s *State) selectedIndex() int {
	for i, g := range s.GPUs {
		if g.Key == s.Selected {
			return i
		}
	}
	return -1
}
