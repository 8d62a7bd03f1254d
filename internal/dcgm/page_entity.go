package dcgm

import (
	"strconv"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// entity is what a label block of dmon stands for.
type entity struct {
	// board is nil where the node does not know it, or not its UUID. Then there is
	// no row: under any other name its series would be those of another device,
	// which would be missed as soon as the UUID is known.
	board *Board
	cut   *Instance // nil on a board
}

// describe reads a label block of package dmon. known is false where the node
// should know the entity and does not.
func (p *Page) describe(block string) (e entity, known bool) {
	gpu, part, name := Unknown, Unknown, ""
	for _, l := range exposition.ParseLabels(block, nil) {
		switch l.Name {
		case "gpu":
			gpu = number(l.Value)
		case "entity":
			name = l.Value
		case "gpu_instance_entity":
			part = number(l.Value)
		}
	}
	switch {
	case name == "":
		return e, true // not dmon's
	case part == Unknown:
		e.board = p.node.Find(gpu)
	default:
		// The board whose row stood before it need not be its own.
		e.board, e.cut = p.node.FindInstance(part)
	}
	if e.board == nil || e.board.UUID == "" {
		return entity{}, false
	}
	return e, true
}

// instance is NVML's id of an instance, Unknown on a board.
func (e *entity) instance() int {
	if e.cut == nil {
		return Unknown
	}
	return e.cut.ID
}

// number reads an id as package dmon writes it.
func number(s string) int {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return Unknown
	}
	return int(n)
}
