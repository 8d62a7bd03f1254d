package dcgm

import "strings"

// lastKnown is what `discovery -l -a` says behind the values of a board that is
// gone.
const lastKnown = " (last known)"

// parseDiscovery reads `dcgmi discovery -l`, with and without -a: the table of
// boards, and not the ones of switches, adapters and CPUs that follow it.
func parseDiscovery(output []byte) []Board {
	var boards []Board
	within := false // the table of boards
	for line := range lines(output) {
		left, right, ok := row(line)
		if !ok {
			continue
		}
		if left != "" && id(left) == Unknown { // a heading
			within = left == "GPU ID"
			continue
		}
		if !within {
			continue
		}
		if left != "" {
			if len(boards) == maxBoards {
				break
			}
			boards = append(boards, newBoard(id(left)))
		}
		if len(boards) > 0 {
			boards[len(boards)-1].tell(right)
		}
	}
	return boards
}

// tell takes over one line of the board's description.
func (b *Board) tell(line string) {
	name, value, ok := strings.Cut(line, ":")
	if !ok {
		return
	}
	value, gone := strings.CutSuffix(strings.TrimSpace(value), strings.TrimSpace(lastKnown))
	b.Inactive = b.Inactive || gone
	switch strings.TrimSpace(name) {
	case "Name":
		b.Model = text(value)
	case "PCI Bus ID":
		b.PCIBusID = text(value)
	case "Device UUID":
		b.UUID = gpuUUID(value)
	case "Status":
		b.Inactive = b.Inactive || !strings.EqualFold(text(value), "Active")
	}
}
