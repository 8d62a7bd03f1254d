package dcgm

import (
	"cmp"
	"slices"
	"strings"
)

// Outputs are what commands printed on stdout, nil or empty where one was not
// run, failed or is not there.
type Outputs struct {
	Discovery []byte // dcgmi discovery -l
	Hierarchy []byte // dcgmi discovery -c
	Query     []byte // nvidia-smi --query-gpu=QueryFields --format=csv,noheader,nounits
	List      []byte // nvidia-smi -L
	Links     []byte // nvidia-smi nvlink -s
	Report    []byte // nvidia-smi -q -x, of use only where List tells of MIG devices
}

// HasMIG tells whether there are MIG devices, so that Report is worth asking for:
// it is slow and long.
func (o *Outputs) HasMIG() bool { return strings.Contains(string(o.List), "(UUID: "+migPrefix) }

// Parse returns what o tells. The boards are those of the host engine, and
// nvidia-smi adds to what is known of them where it speaks of the same UUID. In a
// container, nvidia-smi may not see all of them.
func Parse(o *Outputs) Node {
	n := Node{Boards: parseDiscovery(o.Discovery)}
	slices.SortStableFunc(n.Boards, func(a, b Board) int { return cmp.Compare(a.Entity, b.Entity) })
	n.Boards = slices.CompactFunc(n.Boards, func(a, b Board) bool { return a.Entity == b.Entity })
	for _, cut := range parseHierarchy(o.Hierarchy) {
		n.cut(cut)
	}
	told := slices.Concat(parseQuery(o.Query), parseList(o.List), parseLinks(o.Links))
	instances := parseReport(o.Report)
	for i := range n.Boards {
		b := &n.Boards[i]
		for t := range told {
			if b.UUID != "" && told[t].UUID == b.UUID {
				b.complete(&told[t])
			}
		}
		b.settle(instances)
	}
	return n
}

// cut takes over the instances of a board, and the board if it is new.
func (n *Node) cut(board Board) {
	slices.SortFunc(board.Instances, func(a, b Instance) int { return cmp.Compare(a.ID, b.ID) })
	b := n.Find(board.Entity)
	switch {
	case b == nil:
		at, _ := slices.BinarySearchFunc(n.Boards, board.Entity, func(b Board, entity int) int { return cmp.Compare(b.Entity, entity) })
		n.Boards = slices.Insert(n.Boards, at, board)
	case b.UUID == "" || board.UUID == "" || b.UUID == board.UUID:
		b.UUID = cmp.Or(b.UUID, board.UUID)
		b.Instances = board.Instances
	}
}

// complete takes over from other what b does not say.
func (b *Board) complete(other *Board) {
	if b.Index == Unknown {
		b.Index = other.Index
	}
	if strings.HasSuffix(b.Model, "...") {
		b.Model = cmp.Or(other.Model, b.Model) // it was too wide for the table
	}
	b.Model = cmp.Or(b.Model, other.Model)
	b.PCIBusID = cmp.Or(b.PCIBusID, other.PCIBusID)
	b.Driver = cmp.Or(b.Driver, other.Driver)
	b.NVLinkLimit = cmp.Or(b.NVLinkLimit, other.NVLinkLimit)
	if len(b.Loose) == 0 {
		b.Loose = other.Loose
	}
}

// settle gives every MIG device its instance, as far as that is known, and every
// instance its profile.
func (b *Board) settle(instances map[place]int) {
	uniform := b.uniformProfile()
	b.Loose = slices.DeleteFunc(slices.Clone(b.Loose), func(d MIGDevice) bool {
		gi, ok := instances[place{b.UUID, d.Index}]
		if !ok {
			gi = instanceOf(d.UUID)
		}
		i := b.instance(gi)
		if i == nil {
			return false
		}
		i.Devices = append(i.Devices, d)
		i.Profile = cmp.Or(i.Profile, d.Profile)
		return true
	})
	for i := range b.Instances {
		if b.Instances[i].Computes > 0 {
			b.Instances[i].Profile = cmp.Or(b.Instances[i].Profile, uniform)
		}
	}
}

// uniformProfile is the profile of all MIG devices, "" if they differ or nothing
// tells of them. Then it is that of every instance which has a compute instance.
func (b *Board) uniformProfile() string {
	if len(b.Loose) == 0 {
		return ""
	}
	profile := b.Loose[0].Profile
	for _, d := range b.Loose {
		if d.Profile != profile {
			return ""
		}
	}
	return profile
}

// instanceOf returns the instance id within a MIG UUID of the old form, or
// Unknown.
func instanceOf(uuid string) int {
	part := strings.Split(uuid, "/")
	if len(part) != 3 {
		return Unknown
	}
	return id(part[1])
}
