package view

import (
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
)

// State is all that views draw. The program owns it and changes it between frames.
type State struct {
	// Now is the time that is shown: that of the clock, or FrozenAt. FrozenAt is zero while the
	// screen follows the clock.
	Now, FrozenAt time.Time

	Nodes client.Nodes
	// GPUs are the devices of all nodes, filtered and ordered. An instance follows its board or
	// another of its instances.
	GPUs []*client.GPU
	// Devices is the number of devices without the filter.
	Devices int
	// Selected is the key of one of GPUs, if there is any.
	Selected client.Key
	History  *history.History

	Lists
	Choices
	Appearance
	Footer
	Drawn
}

// Lists are what lists show.
type Lists struct {
	Events []history.Event // the newest last
	// Job describes the batch job that the program was started in; empty outside one.
	Job []canonical.Variable
	// Processes are those that the nodes list, nil before their first list. ProcessesErr is why
	// one of them lists none.
	Processes    []client.Process
	ProcessesErr string
	// Explained is a text of the mode explain, which Explain shows; "" for what is on the screen.
	Explained string
}

// Choices are what the user chose to see.
type Choices struct {
	View    string // one of Names
	Overlay string // "" means none
	Filter  string // as typed; "" means none
	Sort    Sort
	// Window is how much history charts show; 0 means History.Window.
	Window time.Duration
	// Cursor is the time that the cursor of charts points at; zero means none.
	Cursor time.Time
	// Metric is plotted and explained first.
	Metric client.Metric
	// Density of the fleet: 0 is automatic; 1 (cards), 2 (a table) and 3 (a cell per device) are fixed.
	Density int
	// Scroll is the first line, or row of cards, that a view shows.
	Scroll int
}

// Appearance is how the terminal shows it.
type Appearance struct {
	Theme string // one of Themes
	Mono  bool   // no colours: lines differ by their dashes
}

// Footer is what the last line shows in place of keys.
type Footer struct {
	// Prompt is the line being typed, with its ":" or "/"; "" while there is none.
	Prompt string
	// Completions are those of the last word of Prompt.
	Completions []string
	// Message is the latest message, or "" once it is old. Alarm marks a bad one.
	Message string
	Alarm   bool
}

// Drawn is what Draw finds out.
type Drawn struct {
	// Hits are the clickable parts of the screen.
	Hits []Hit
	// Page is how many lines of a list are shown.
	Page int
	// Scrolls says that a view of charts or readings has more than fits.
	Scrolls bool
}

// Hit is a clickable rectangle of the screen.
type Hit struct {
	X, Y, W, H int
	// Key is the device that is drawn there. If it is zero, View is the view to show. If that is
	// "", Metric is the metric to sort by.
	Key    client.Key
	View   string
	Metric client.Metric
}

// Sort is the order of boards. Instances stay with theirs.
type Sort struct {
	// By is the metric to sort by; MetricNone means by node and index.
	By         client.Metric
	Descending bool
}

// Themes are the choices of colours, the default first.
var Themes = []string{"dark", "light", "ansi16", "mono"}

// Freshness returns the freshness and the age of the readings of g.
func (s *State) Freshness(g *client.GPU) (client.Freshness, time.Duration) {
	return s.Nodes.Freshness(g, s.Now)
}

// silent reports whether n gives no fresh readings.
func (s *State) silent(n *client.Node) bool {
	freshness, _ := n.Freshness(s.Now)
	return freshness != client.Fresh || !n.Up
}

// current returns g, without its readings if they have expired.
func (s *State) current(g *client.GPU) *client.GPU {
	if freshness, _ := s.Freshness(g); freshness == client.Expired {
		return g.Blank()
	}
	return g
}

// SelectedGPU returns the selected device, or nil if there is none.
func (s *State) SelectedGPU() *client.GPU {
	if i := s.SelectedIndex(); i >= 0 {
		return s.GPUs[i]
	}
	return nil
}

// SelectedIndex returns the index of the selected device, or -1 if there is none.
func (s *State) SelectedIndex() int {
	return slices.IndexFunc(s.GPUs, func(g *client.GPU) bool { return g.Key == s.Selected })
}
