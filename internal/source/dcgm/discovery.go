package dcgm

import (
	"cmp"
	"slices"
	"strings"
)

// listsAll reports whether the output of `dcgmi discovery -l` has the whole table of boards: as many as its first line
// says. The output ends behind it with an error if the host engine has no module for NVSwitches.
func listsAll(output []byte) bool {
	for line := range lines(output) {
		count, rest, _ := strings.Cut(line, " ")
		if strings.HasPrefix(rest, "GPU found") || strings.HasPrefix(rest, "GPUs found") {
			return id(count) == len(parseDiscovery(output))
		}
	}
	return false
}

// parseDiscovery reads `dcgmi discovery -l`, with and without -a: the table of boards, without those of switches,
// adapters and CPUs that follow it. It returns the boards in the order of their ids.
func parseDiscovery(output []byte) (boards []board) {
	within := false // the table of boards
	for line := range lines(output) {
		left, right := row(line)
		switch {
		case left != "" && id(left) == Unknown: // a heading
			within = left == "GPU ID"
			continue
		case within && left != "":
			boards = append(boards, newBoard(id(left)))
		}
		if within && len(boards) > 0 {
			boards[len(boards)-1].describe(right)
		}
	}
	slices.SortStableFunc(boards, func(a, b board) int { return cmp.Compare(a.Entity, b.Entity) })
	return slices.CompactFunc(boards, func(a, b board) bool { return a.Entity == b.Entity })
}

// describe reads one line of the board's description. Of a board that is gone, dcgmi may print the last known values.
func (b *board) describe(line string) {
	name, value, _ := strings.Cut(line, ":")
	value, gone := strings.CutSuffix(strings.TrimSpace(value), "(last known)")
	b.Inactive = b.Inactive || gone
	switch strings.TrimSpace(name) {
	case "Name":
		b.Model = known(value)
	case "PCI Bus ID":
		b.PCIBusID = known(value)
	case "Device UUID":
		b.UUID = gpuUUID(value)
		if strings.HasPrefix(value, "<<<") && !b.Inactive { // as DCGM before 4.5 shows a lost board
			b.Inactive, b.Lost = true, true
		}
	case "Status":
		b.Inactive = b.Inactive || !strings.EqualFold(known(value), "Active")
		b.Lost = strings.EqualFold(known(value), "Lost")
	}
}

// parseHierarchy reads `dcgmi discovery -c`: the boards that are cut into instances, each with its UUID and instances,
// by their ids in DCGM and in NVML.
func parseHierarchy(output []byte) (boards []board) {
	for line := range lines(output) {
		left, right := row(line)
		kind, ids, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(left, "->")), " ")
		entity := id(between(right, "(EntityID: ", ")"))
		_, part, _ := strings.Cut(ids, "/") // after the board
		switch last := len(boards) - 1; {
		case kind == "GPU" && entity != Unknown:
			b := newBoard(entity)
			b.UUID = gpuUUID(between(right, "GPU ", " ("))
			boards = append(boards, b)
		case last >= 0 && kind == "I" && entity != Unknown && id(part) != Unknown && boards[last].instance(part) == nil:
			boards[last].instances = append(boards[last].instances, NewInstance(entity, part, ""))
		}
	}
	return boards
}

// parseDriver reads one sample of dmon's field 1, the driver's version.
func parseDriver(output []byte) string {
	for line := range lines(output) {
		if words := strings.Fields(line); len(words) == 3 && words[0] == "GPU" && !strings.HasSuffix(line, "...") {
			return known(words[2])
		}
	}
	return ""
}

// profiled reads `dcgmi profile -l`, the profiling fields of a GPU, and returns the ids of the Multiplexed fields that it
// counts.
//
//	+----------------+----------+------------------------------------------------------+
//	| Group.Subgroup | Field ID | Field Tag                                            |
//	+----------------+----------+------------------------------------------------------+
//	| A.0            | 1001     | gr_engine_active                                     |
func profiled(listing []byte) (ids []int) {
	for line := range lines(listing) {
		_, rest := row(line)
		column, _, _ := strings.Cut(rest, "|")
		if f := fieldByID(id(strings.TrimSpace(column))); f != nil && f.Multiplexed {
			ids = append(ids, f.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
