package app

import (
	"context"
	"os"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/host"
	"github.com/kpulse/kpulse-proxy/internal/selection"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgmi"
)

// confined adds to a request, which is about this machine, what this process may open. A
// server shows all that its source reads, and so does a check of health, for which a board
// that cannot be opened is no reason to pass over it, unless CUDA has to count boards.
func (o *options) confined(r selection.Request) selection.Request {
	_, counted := os.LookupEnv("CUDA_VISIBLE_DEVICES")
	if o.visible != nil && (o.presents() || o.tui || o.health && counted) {
		r.Visible = o.visible()
	}
	return r
}

// visibleBoards are the boards that this process may open, nil if that is not known.
// nvidia-smi, which is slow, is asked where the driver does not show itself in /proc, and for
// the UUIDs that it does not tell there before somebody has used the board.
func visibleBoards(ctx context.Context) (boards []selection.Visible) {
	unnamed := false
	for _, g := range host.GPUs(procfs, "/dev") {
		boards = append(boards, selection.Visible{UUID: g.UUID, PCIBusID: g.PCIBusID, Instances: g.Instances})
		unnamed = unnamed || g.UUID == ""
	}
	if boards != nil && !unnamed {
		return boards
	}
	var listed []selection.Visible
	for _, d := range dcgmi.Visible(ctx) {
		listed = append(listed, selection.Visible{UUID: d.UUID, PCIBusID: d.PCIBusID})
	}
	if boards == nil {
		return listed
	}
	return named(boards, listed)
}

// named returns boards with the UUIDs of those that are listed at their PCI addresses.
func named(boards, listed []selection.Visible) []selection.Visible {
	for i := range boards {
		for _, l := range listed {
			if address := canonical.PCIAddress(l.PCIBusID); address != "" && address == canonical.PCIAddress(boards[i].PCIBusID) {
				boards[i].UUID = l.UUID
			}
		}
	}
	return boards
}
