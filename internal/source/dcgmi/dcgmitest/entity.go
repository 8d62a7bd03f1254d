package dcgmitest

import "fmt"

// Group is DCGM's number of a kind of entity. Rows are sorted by it.
type Group int

// The kinds of entities that dmon can watch.
const (
	Board           Group = 1
	VirtualGPU      Group = 2
	Switch          Group = 3
	GPUInstance     Group = 4
	ComputeInstance Group = 5
	Link            Group = 6
	CPU             Group = 7
	Core            Group = 8
	ConnectXAdapter Group = 9
)

// prefixes are the words that dmon prints before an entity's id.
var prefixes = map[Group]string{
	Board: "GPU", VirtualGPU: "vGPU", Switch: "Switch", GPUInstance: "GPU-I", ComputeInstance: "GPU-CI",
	Link: "LINK", CPU: "CPU", Core: "CPU Core", ConnectXAdapter: "CX",
}

// Entity is what a row of dmon is about.
type Entity struct {
	Group Group
	// ID is DCGM's id of the entity; of a link that is named by its end, that of
	// the board or switch.
	ID int
	// End is Board or Switch for a link that is named by its end, as 4.6 can, and
	// Number is the link's number there. Other entities leave both 0.
	End    Group
	Number int
}

// String returns e as dmon prints it, such as "GPU-I 7" or "GPU 0 LINK 5".
func (e Entity) String() string {
	switch e.End {
	case Board:
		return fmt.Sprintf("GPU %d LINK %d", e.ID, e.Number)
	case Switch:
		return fmt.Sprintf("SW %d LINK %d", e.ID, e.Number)
	}
	prefix, known := prefixes[e.Group]
	if !known {
		prefix = "UNKNOWN"
	}
	return fmt.Sprintf("%s %d", prefix, e.ID)
}

// board returns the GPU that e is, or is a part of.
func (s Scenario) board(e Entity) (GPU, bool) {
	for _, gpu := range s.GPUs {
		if (e.Group == Board || e.End == Board) && gpu.Index == e.ID {
			return gpu, true
		}
		for _, instance := range gpu.Instances {
			if e.Group == GPUInstance && instance.Entity == e.ID {
				return gpu, true
			}
			for _, compute := range instance.Compute {
				if e.Group == ComputeInstance && compute.Entity == e.ID {
					return gpu, true
				}
			}
		}
	}
	return GPU{}, false
}
