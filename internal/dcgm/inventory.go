// Package dcgm is what the sources of this machine share: the table of the fields
// that they give, the inventory of the node's GPUs, which of them are selected, and
// the jobs that run on them; and how dcgm-exporter would serve a reading.
//
// It runs no command. The caller passes in what dcgmi and nvidia-smi printed; what a
// command did not print is not known: an empty string or Unknown, never a guess.
package dcgm

import "fmt"

// Unknown stands for an id or index that nothing told.
const Unknown = -1

// Node is what a host engine knows of its boards, ordered by Entity.
type Node struct{ Boards []Board }

// Board is a GPU. Texts are "" where nothing told them, numbers Unknown.
type Board struct {
	// Entity is DCGM's id: dmon's GPU 0, and dcgm-exporter's label gpu.
	Entity int
	// Index is what nvidia-smi calls the board, run where we run: within a
	// cgroup or a container it counts the visible boards only.
	Index int
	// UUID begins with "GPU-".
	UUID                    string
	Model, PCIBusID, Driver string
	// NVLinkLimit is what all active NVLinks can carry, both ways together, in bytes
	// per second; 0 where nothing told, and where none is active.
	NVLinkLimit float64
	// Inactive boards are known to the host engine, and not read by it.
	Inactive bool

	// Instances are the parts the board is cut into, ordered by ID.
	Instances []Instance
	// Loose are MIG devices of the board of which nothing tells the instance.
	Loose []MIGDevice
}

// Instance is a GPU instance.
type Instance struct {
	// Entity is DCGM's id: dmon's GPU-I 7.
	Entity int
	// ID is NVML's GPU instance id, and dcgm-exporter's label GPU_I_ID.
	ID int
	// Profile is its size, such as 1g.10gb.
	Profile string
	// Computes is how many compute instances are in it.
	Computes int
	// Devices are what CUDA programs see of it: one for each compute instance.
	Devices []MIGDevice
}

// MIGDevice is a compute instance as CUDA and nvidia-smi see it.
type MIGDevice struct {
	// Index counts the devices of a board.
	Index int
	// UUID begins with "MIG-".
	UUID string
	// Profile is that of the GPU instance, such as 1g.10gb.
	Profile string
}

// newBoard returns a board of which nothing is known but its id.
func newBoard(entity int) Board {
	return Board{Entity: entity, Index: Unknown}
}

// Find returns the board with that entity id, as dmon prints it, nil if there is
// none. It points into n.
func (n *Node) Find(entity int) *Board {
	for i := range n.Boards {
		if n.Boards[i].Entity == entity {
			return &n.Boards[i]
		}
	}
	return nil
}

// FindInstance returns the instance with that entity id, and its board, nil where
// there is none. Both point into n.
func (n *Node) FindInstance(entity int) (*Board, *Instance) {
	for b := range n.Boards {
		for i := range n.Boards[b].Instances {
			if n.Boards[b].Instances[i].Entity == entity {
				return &n.Boards[b], &n.Boards[b].Instances[i]
			}
		}
	}
	return nil, nil
}

// Equal tells whether a and b say the same.
func Equal(a, b *Node) bool { return fmt.Sprintf("%+v", *a) == fmt.Sprintf("%+v", *b) }

// Moved tells whether an entity id stands for another device in b than in a: a
// board of another UUID, or another instance, or one of another size. What only
// one of them tells is no contradiction.
func Moved(a, b *Node) bool {
	differ := func(x, y string) bool { return x != "" && y != "" && x != y }
	for i := range a.Boards {
		was := &a.Boards[i]
		if is := b.Find(was.Entity); is != nil && differ(was.UUID, is.UUID) {
			return true
		}
		for _, cut := range was.Instances {
			board, is := b.FindInstance(cut.Entity)
			if is != nil && (is.ID != cut.ID || board.Entity != was.Entity || differ(is.Profile, cut.Profile)) {
				return true
			}
		}
	}
	return false
}
