package page

import (
	"strconv"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source/identity"
)

// entity is what a label block of dmon stands for.
type entity struct {
	here bool // it has a row on the page
	name string
	// gpu is DCGM's id of the board. board and cut are nil where the node does
	// not know them.
	gpu   int
	board *identity.Board
	cut   *identity.Instance
	// instance is NVML's id of the instance, Unknown on a board; part is DCGM's
	// id of an instance of which NVML's is not known, else Unknown.
	instance, part int
}

// describe reads a label block of package dmon. known is false where the node
// does not know the entity: of a board it then cannot tell more than its index.
//
// Instances of a board all go by NVML's ids or, as long as the node knows none of
// them, all by DCGM's: a mixture could give two instances one id. One that the
// node does not know, among others that it does, came after the node was asked
// and has no row until it is asked again.
func (p *Page) describe(block string) (e entity, known bool) {
	e = entity{gpu: identity.Unknown, instance: identity.Unknown, part: identity.Unknown}
	for _, l := range raw.ParseLabels(block, nil) {
		switch l.Name {
		case "gpu":
			e.gpu = number(l.Value)
		case "entity":
			e.name = l.Value
		case "gpu_instance_entity":
			e.part = number(l.Value)
		}
	}
	if e.name == "" {
		return e, true // not dmon's
	}
	if e.part == identity.Unknown {
		e.board = p.node.Find(e.gpu)
		e.here = e.gpu != identity.Unknown
		return e, e.board != nil && e.board.UUID != ""
	}
	if b, i := p.node.FindInstance(e.part); i != nil {
		e.board, e.cut, e.gpu = b, i, b.Entity
		e.instance, e.part = i.ID, identity.Unknown
		e.here = true
		return e, b.UUID != ""
	}
	e.board = p.node.Find(e.gpu)
	e.here = e.gpu != identity.Unknown && (e.board == nil || len(e.board.Instances) == 0)
	return e, false
}

// number reads an id as package dmon writes it.
func number(s string) int {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return identity.Unknown
	}
	return int(n)
}
