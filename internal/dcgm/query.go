package dcgm

import "strings"

// QueryFields are what to ask nvidia-smi for, in the order in which they are
// read: nvidia-smi --query-gpu=QueryFields --format=csv,noheader,nounits. Every
// driver that DCGM 2.1 and later run on knows them. The name is the last, so
// that a comma in it does no harm.
const QueryFields = "index,uuid,pci.bus_id,driver_version,name"

// parseQuery reads what nvidia-smi answered. Lines that are no answer, such as
// those of a board that fell off the bus, are passed over. Entity ids are not
// told here.
func parseQuery(output []byte) []Board {
	var boards []Board
	n := strings.Count(QueryFields, ",") + 1
	for line := range lines(output) {
		cell := strings.SplitN(line, ",", n)
		if len(cell) < n || len(boards) == maxBoards {
			continue
		}
		for i := range cell {
			cell[i] = strings.TrimSpace(cell[i])
		}
		b := newBoard(Unknown)
		b.Index, b.UUID = id(cell[0]), gpuUUID(cell[1])
		if b.Index == Unknown || b.UUID == "" {
			continue
		}
		b.PCIBusID, b.Driver, b.Model = text(cell[2]), text(cell[3]), text(cell[4])
		boards = append(boards, b)
	}
	return boards
}
