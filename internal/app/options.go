package app

import (
	"io"

	"github.com/kpulse/kpulse-proxy/internal/selection"
	"github.com/kpulse/kpulse-proxy/internal/settings"
	"github.com/kpulse/kpulse-proxy/internal/source/replay"
)

// options are the settings in force, and what the modes of the program share.
type options struct {
	*settings.Options

	// visible returns the boards that this process may open, or nil if unknown. The function is
	// nil in modes that do not choose GPUs.
	visible func() []selection.Visible
	// notice warns the user of the terminal if its numbers are not what the flags suggest; ""
	// for none.
	notice string
	// controls drive the replay backend; nil without a dashboard.
	controls *replay.Controls
	lead     int // ticks of the demo that the dashboard plays before it shows any
}

// parse reads the settings, as settings.Read does.
func parse(args []string, stdout io.Writer) (*options, error) {
	o, err := settings.Read(args, stdout)
	return &options{Options: o}, err
}
