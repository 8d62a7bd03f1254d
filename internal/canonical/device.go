package canonical

import (
	"cmp"
	"strconv"
)

// Device is a GPU, or one MIG instance of it. UUID and Instance make its
// identity; UUID is the board's, also on instances.
type Device struct {
	// Hostname is the node's name as our series carry it.
	Hostname string
	// GPU is the index of the board on its node, as the source wrote it.
	GPU string
	// UUID of the board; "" only for sources that cannot know it.
	UUID string
	// Instance is the MIG instance id and Profile its size, such as 1g.10gb;
	// both are "" on a board.
	Instance, Profile string

	// What the board is; "" if the source did not give it.
	Model, Name, PCIBusID, Driver string
	// Cluster and Clique name the NVLink fabric that a board is in, as its UUID, and the
	// part of it within which boards reach each other; "" as well.
	Cluster, Clique string

	// Implied marks a board that the source did not read itself and that is
	// known from its instances alone. It has board readings and health, but no
	// class and no utilization.
	Implied bool

	// CUDA is how CUDA programs on the node name the device, nil if the source does
	// not know, as an exposition.
	CUDA *CUDANames

	// Board is the index, in the same list, of the board an instance is
	// part of; of the device itself if it is a board.
	Board int
}

// CUDANames are a device's names for CUDA programs and nvidia-smi, seen from where we
// run. They are not written to once a Device has them.
type CUDANames struct {
	// Index of a board: within a cgroup or a container it counts the visible boards
	// only. "" if it is not known.
	Index string
	// MIG are the devices that CUDA programs see of an instance, one for each compute
	// instance. On a board they are those of which the instance is not known.
	MIG []MIGDevice
}

// MIGDevice is a compute instance.
type MIGDevice struct {
	// Index counts the MIG devices of a board.
	Index int
	// UUID begins with "MIG-".
	UUID string
	// Profile is the profile of the instance, such as 1g.10gb.
	Profile string
}

// MIGPlace is where a compute instance is.
type MIGPlace struct {
	// UUID is the compute instance's, Board that of the board.
	UUID, Board string
	// Instance is the id of the MIG instance, "" if only its Profile is known.
	Instance, Profile string
}

// Selection is the outcome of selecting from a list of devices.
type Selection struct {
	// By is the flag or variable that selected them, "" if none did.
	By string
	// All: no board was left out.
	All bool
	// Chosen reports of each device whether it was, by itself or with its board.
	Chosen []bool
	// Missing is why not all is there that was asked for by name; nil if it is.
	Missing error
}

// ByAccess is By of a Selection that leaves out those boards alone which this process may
// not open.
const ByAccess = "device access"

// IsInstance reports whether d is a MIG instance.
func (d *Device) IsInstance() bool { return d.Instance != "" }

// CompareDevices orders boards by hostname, index and uuid, and each instance behind its
// board.
func CompareDevices(a, b *Device) int {
	return cmp.Or(
		cmp.Compare(a.Hostname, b.Hostname),
		CompareIndexes(a.GPU, b.GPU),
		cmp.Compare(a.UUID, b.UUID),
		CompareIndexes(a.Instance, b.Instance),
	)
}

// CompareIndexes orders indexes of GPUs, and ids of instances: whole numbers by their
// value, then all other texts; "" comes first.
func CompareIndexes(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(a, b)
	}
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	switch {
	case errX == nil && errY != nil:
		return -1
	case errX != nil && errY == nil:
		return 1
	}
	return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
}

// weightUnit is how many bytes of labels a device or an allocation may have without
// weighing more than one. Real ones have 100 to 400.
const weightUnit = 512

// Weight is how much d counts towards a limit of devices, since each of its series has its
// labels: 1, and 1 more for each full 512 bytes of these.
func (d *Device) Weight() int { return 1 + d.labelBytes()/weightUnit }

// labelBytes is how long the labels are that each series of d has.
func (d *Device) labelBytes() int {
	return len(d.Hostname) + len(d.GPU) + len(d.UUID) + len(d.Instance) + len(d.Profile)
}

// Identity identifies a device, whatever a source calls its host. It can be
// compared.
type Identity struct{ uuid, hostname, gpu, instance, profile string }

// Identity is the uuid of d or, if none is known, its host and index, with the instance.
// The profile is part of an instance: ids are reused when a board is repartitioned.
func (d *Device) Identity() Identity {
	if d.UUID != "" {
		return Identity{uuid: d.UUID, instance: d.Instance, profile: d.Profile}
	}
	return Identity{hostname: d.Hostname, gpu: d.GPU, instance: d.Instance, profile: d.Profile}
}

// Topology is the set of devices of one reading, boards before their instances,
// ordered by GPU index. It is immutable: a change makes a new one, with a
// higher Generation.
type Topology struct {
	Devices []Device
	// Absent are boards that the source names and has no reading of, in the same order:
	// their UUID, and all but the index, may be unknown.
	Absent []Device
	// Hostname is the node's name, also if there is no device.
	Hostname   string
	Generation uint64
}

// At returns a board by its index among the Devices followed by the Absent, nil if
// there is none.
func (t *Topology) At(i int) *Device {
	switch n := len(t.Devices); {
	case i < 0 || i >= n+len(t.Absent):
		return nil
	case i < n:
		return &t.Devices[i]
	default:
		return &t.Absent[i-n]
	}
}
