package dmon

import "github.com/kpulse/kpulse-proxy/internal/raw"

// Entity is a GPU or a GPU instance that has rows.
type Entity struct {
	// Instance tells a GPU instance from a GPU.
	Instance bool
	// ID is DCGM's, in digits: "7" of `GPU-I 7`.
	ID string
	// GPU is the ID of the GPU itself, or of the one whose row stands before the
	// instance's in the same tick, "" without one.
	GPU string
}

// Names give the columns and entities of a text the ids that samples have.
type Names interface {
	// Column returns the Family of the values below a heading, false to leave them out.
	Column(name []byte) (id uint32, ok bool)
	// Entity returns the Labels of an entity's samples. n counts the entities of the
	// Parser from 0. It is asked again where the GPU of an instance is another.
	Entity(n int, e Entity) uint32
}

// dictNames are the words of dmon itself, in a Dict.
type dictNames struct{ *raw.Dict }

func (d dictNames) Column(name []byte) (uint32, bool) { return d.FamilyID(name), true }

func (d dictNames) Entity(_ int, e Entity) uint32 {
	block := []byte{'{'}
	if e.GPU != "" {
		block = append(append(append(block, `gpu="`...), e.GPU...), `",`...)
	}
	if e.Instance {
		block = append(append(append(block, `entity="GPU-I `...), e.ID...), `",gpu_instance_entity="`...)
	} else {
		block = append(block, `entity="GPU `...)
	}
	return d.BlockID(append(append(block, e.ID...), `"}`...))
}
