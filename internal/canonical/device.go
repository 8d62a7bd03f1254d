package canonical

import (
	"cmp"
	"strconv"
)

// Device is a GPU, or one MIG instance of it. UUID, Instance and Profile identify it; on an
// instance, UUID is the board's.
type Device struct {
	// Hostname is the node's name in the labels of our series.
	Hostname string
	// GPU is the index of the board on its node, as the source wrote it.
	GPU string
	// UUID is the board's; "" only for sources that cannot know it.
	UUID string
	// Instance is the MIG instance id and Profile its size, such as 1g.10gb;
	// both are "" on a board.
	Instance, Profile string

	// Descriptions of the board; "" if the source gives none.
	Model, Name, PCIBusID, Driver string
	// Cluster is the UUID of the NVLink fabric that a board is in, and Clique the part of it within
	// which boards reach each other; "" if the source gives none.
	Cluster, Clique string

	// Implied marks a board that the source did not read, known from its instances alone. It has
	// board readings and health, but no class and no utilization.
	Implied bool

	// CUDA holds the names of the device in CUDA programs on the node; nil if the source does not
	// know them, as with an exposition.
	CUDA *CUDANames

	// Board is the index, in the same list, of the board that an instance is part of, or of the
	// device itself if it is a board.
	Board int
}

// CUDANames are the names of a device in CUDA programs and nvidia-smi, as this process sees them.
// They are immutable once a Device has them.
type CUDANames struct {
	// Index is that of a board; in a cgroup or container it counts only the visible boards. "" if
	// unknown.
	Index string
	// MIG are the devices that CUDA programs see in an instance, one for each compute instance. On
	// a board they are those whose instance is unknown.
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

// MIGPlace locates a compute instance.
type MIGPlace struct {
	// UUID is that of the compute instance, Board that of its board.
	UUID, Board string
	// Instance is the id of the MIG instance, "" if only its Profile is known.
	Instance, Profile string
}

// Selection is the outcome of selecting from a list of devices.
type Selection struct {
	// By is the flag or variable that selected them, "" if none did.
	By string
	// All reports whether no board was left out.
	All bool
	// Chosen reports for each device whether it was selected, by itself or with its board.
	Chosen []bool
	// Missing names the devices that were asked for and do not exist; nil if all exist.
	Missing error
	// Doubt names a device in a list of the environment that does not exist; nil if there is none.
	// The list may follow another numbering, so it chooses nothing by itself.
	Doubt error
}

// ByAccess is the By of a Selection that leaves out only boards that this process may not open.
const ByAccess = "device access"

// IsInstance reports whether d is a MIG instance.
func (d *Device) IsInstance() bool { return d.Instance != "" }

// CompareDevices orders boards by hostname, index and uuid, and each instance after its board.
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

// Identity identifies a device, whatever a source calls its host. It is comparable.
type Identity struct{ uuid, hostname, gpu, instance, profile string }

// Identity is the uuid of d or, if that is unknown, its host and index, with the instance. It
// includes the profile because repartitioning a board reuses ids.
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
	// Absent are boards that the source names but has no reading of, in the same order. All but the
	// index may be unknown.
	Absent []Device
	// Lost says which of Absent the source itself calls lost: of the others it only gives no reading.
	Lost []bool
	// HeldOnly is set if the source lists only devices that are held.
	HeldOnly bool
	// Hostname is the node's name, even if there is no device.
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
