package tui

import "github.com/kpulse/kpulse-proxy/internal/tui/screen"

// view draws one way to see a State. What it keeps between frames is where it
// scrolled and memory to draw with, nothing of what was read.
type view interface {
	// Draw draws s into r. Of s it changes Hits alone, and Scroll to clamp it.
	Draw(r screen.Rect, s *State)
	// Key is asked first what a key does; it returns false for those that are not
	// the view's own.
	Key(key string, s *State) bool
}

// The names of views and of overlays.
const (
	viewFleet = "fleet"
	viewFocus = "focus"
	viewPlot  = "plot"
	viewJobs  = "jobs"
	viewNodes = "nodes"

	overlayHelp    = "help"
	overlayExplain = "explain"
	overlayEvents  = "events"
)

// viewNames are the views in the order of their digits and of the tab key.
var viewNames = []string{viewFleet, viewFocus, viewPlot, viewJobs, viewNodes}

// newViews returns the views and overlays by name.
func newViews() map[string]view {
	return map[string]view{
		viewFleet: &fleetView{},
		viewFocus: &focusView{},
		viewPlot:  &plotView{},
		viewJobs:  &jobsView{},
		viewNodes: &nodesView{},

		overlayHelp:    &helpView{},
		overlayExplain: &explainView{},
		overlayEvents:  &eventsView{},
	}
}
