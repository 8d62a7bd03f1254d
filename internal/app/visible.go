package app

import (
	"context"
	"os"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/host"
	"github.com/kpulse/kpulse-proxy/internal/selection"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// confined adds the boards that this process may open to a request about this machine. A server
// shows all that its source reads. So does check health, which must not skip a board because it
// cannot be opened, unless CUDA_VISIBLE_DEVICES has to be resolved.
func (o *options) confined(r selection.Request) selection.Request {
	_, counted := os.LookupEnv("CUDA_VISIBLE_DEVICES")
	if o.visible != nil && (o.Presents() || o.TUI || o.Health && counted) {
		r.Visible = o.visible()
	}
	return r
}

// visibleBoards returns the boards that this process may open, or nil if unknown. It runs
// nvidia-smi, which is slow, only if the driver is not in /proc, or does not show UUIDs there
// before a board is first used.
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
	for _, d := range dcgm.Visible(ctx) {
		listed = append(listed, selection.Visible{UUID: d.UUID, PCIBusID: d.PCIBusID})
	}
	if boards == nil {
		return listed
	}
	return named(boards, listed)
}

// named returns boards with the UUIDs of the listed ones at the same PCI addresses.
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
