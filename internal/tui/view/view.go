package view

import "github.com/kpulse/kpulse-proxy/internal/tui/screen"

// view draws one way to see a State. What it keeps between frames is where it
// scrolled and memory to draw with, nothing of what was read.
type View interface {
	// Draw draws s into r. Of s it changes Hits alone, and Scroll to clamp it.
	Draw(r screen.Rect, s *State)
	// Key is asked first what a key does; it returns false for those that are not
	// the view's own.
	Key(key string, s *State) bool
}

// The names of views and of overlays.
const (
	Fleet = "fleet"
	Focus = "focus"
	Plot  = "plot"
	Jobs  = "jobs"
	Nodes = "nodes"

	Help    = "help"
	Explain = "explain"
	Events  = "events"
)

// viewNames are the views in the order of their digits and of the tab key.
var Names = []string{Fleet, Focus, Plot, Jobs, Nodes}

// views are the views and overlays by name.
type Set map[string]View

// newViews returns them all; keys and commands are for the help.
func New(keys, commands []HelpEntry) Set {
	return Set{
		Fleet: &fleetView{},
		Focus: &focusView{},
		Plot:  &plotView{},
		Jobs:  &jobsView{},
		Nodes: &nodesView{},

		Help:    &helpView{keys: keys, commands: commands},
		Explain: &explainView{},
		Events:  &eventsView{},
	}
}
