package dcgm

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Outputs are the stdout of commands, nil or empty if one was not run, failed or is missing.
type Outputs struct {
	Discovery []byte // dcgmi discovery -l
	Hierarchy []byte // dcgmi discovery -c
	Query     []byte // nvidia-smi --query-gpu=QueryFields --format=csv,noheader,nounits
	List      []byte // nvidia-smi -L
	Links     []byte // nvidia-smi nvlink -s
	Report    []byte // nvidia-smi -q -x, of use only if List has MIG devices
	// Texts is one sample of dcgmi dmon -e with the ids of TextColumns, which are indices
	// in the table Texts.
	Texts       []byte
	TextColumns []int
}

// HasMIG reports whether there are MIG devices. Only then is Report, which is slow and long,
// worth requesting.
func (o *Outputs) HasMIG() bool { return strings.Contains(string(o.List), "(UUID: MIG-") }

// board is the output of one command, or of all of them, about a board. Unknown texts are "".
type board struct {
	Device
	index     string // nvidia-smi's
	instances []Device
	loose     []MIGDevice // whose instance is unknown
}

// newBoard returns a board of which at most the id is known.
func newBoard(entity int) board {
	return board{Device: NewBoard(entity, "")}
}

// Parse returns the inventory that o describes. The boards are those of the host engine;
// nvidia-smi completes those with the same UUID. In a container, it may not see all of them.
func Parse(o *Outputs) Inventory { return flatten(parse(o)) }

// parse is Parse, board by board.
func parse(o *Outputs) []board {
	boards := parseDiscovery(o.Discovery)
	slices.SortStableFunc(boards, func(a, b board) int { return cmp.Compare(a.Entity, b.Entity) })
	boards = slices.CompactFunc(boards, func(a, b board) bool { return a.Entity == b.Entity })
	for _, cut := range parseHierarchy(o.Hierarchy) {
		boards = addInstances(boards, cut)
	}
	others := slices.Concat(parseQuery(o.Query), parseList(o.List), parseLinks(o.Links))
	texts := parseTexts(o.Texts, o.TextColumns)
	instances := parseReport(o.Report)
	for i := range boards {
		b := &boards[i]
		for t := range texts {
			if texts[t].Entity == b.Entity {
				b.Texts, b.Driver = texts[t].Texts, texts[t].Driver
			}
		}
		for t := range others {
			if b.UUID != "" && others[t].UUID == b.UUID {
				b.complete(&others[t])
			}
		}
		b.assign(instances)
	}
	return boards
}

// flatten lists boards and instances.
func flatten(boards []board) Inventory {
	var n Inventory
	for i := range boards {
		b := &boards[i]
		b.setCUDA(b.index, b.loose)
		n.Add(b.Device, b.instances...)
	}
	return n
}

// addInstances gives a board its instances, and adds the board if it is new.
func addInstances(boards []board, cut board) []board {
	slices.SortFunc(cut.instances, func(a, b Device) int { return cmp.Compare(id(a.Instance), id(b.Instance)) })
	at, known := slices.BinarySearchFunc(boards, cut.Entity, func(b board, entity int) int { return cmp.Compare(b.Entity, entity) })
	if !known {
		return slices.Insert(boards, at, cut)
	}
	if b := &boards[at]; !differ(b.UUID, cut.UUID) {
		b.UUID = cmp.Or(b.UUID, cut.UUID)
		b.instances = cut.instances
	}
	return boards
}

// complete fills in from other what b lacks.
func (b *board) complete(other *board) {
	b.index = cmp.Or(b.index, other.index)
	if strings.HasSuffix(b.Model, "...") {
		b.Model = cmp.Or(other.Model, b.Model) // it was too wide for the table
	}
	b.Model = cmp.Or(b.Model, other.Model)
	b.PCIBusID = cmp.Or(b.PCIBusID, other.PCIBusID)
	b.Driver = cmp.Or(b.Driver, other.Driver)
	b.NVLinkLimit = cmp.Or(b.NVLinkLimit, other.NVLinkLimit)
	if len(b.loose) == 0 {
		b.loose = other.loose
	}
}

// assign gives every MIG device its instance, and every instance its profile, as far as they are known.
func (b *board) assign(instances map[migIndex]string) {
	b.loose = slices.DeleteFunc(slices.Clone(b.loose), func(m MIGDevice) bool {
		d := b.instance(instances[migIndex{b.UUID, m.Index}])
		if d == nil {
			return false
		}
		if d.CUDA == nil {
			d.CUDA = &canonical.CUDANames{}
		}
		d.CUDA.MIG = append(d.CUDA.MIG, m)
		d.Profile = cmp.Or(d.Profile, m.Profile)
		return true
	})
}
