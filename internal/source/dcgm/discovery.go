package dcgm

import "strings"

// lastKnown is the text that `discovery -l -a` prints after the values of a board that is gone.
const lastKnown = " (last known)"

// blank begins what dcgmi prints for a missing text.
const blank = "<<<"

// ListsInactive reports whether the output of `dcgmi discovery -l` says that -a lists further
// boards.
func ListsInactive(output []byte) bool {
	for line := range lines(output) {
		if strings.HasPrefix(line, "Note: Use -a flag to show all GPUs") {
			return true
		}
	}
	return false
}

// ListsAll reports whether the output of `dcgmi discovery -l` has the whole table of boards:
// as many as its first line says. What follows the table may be missing: the output ends
// there with an error if the host engine has no module for NVSwitches.
func ListsAll(output []byte) bool {
	for line := range lines(output) {
		count, rest, _ := strings.Cut(line, " ")
		if strings.HasPrefix(rest, "GPU found") || strings.HasPrefix(rest, "GPUs found") {
			return id(count) == len(parseDiscovery(output))
		}
	}
	return false
}

// parseDiscovery reads `dcgmi discovery -l`, with and without -a: the table of
// boards, without those of switches, adapters and CPUs that follow it.
func parseDiscovery(output []byte) []board {
	var boards []board
	within := false // the table of boards
	for line := range lines(output) {
		left, right := row(line)
		if left != "" && id(left) == Unknown { // a heading
			within = left == "GPU ID"
			continue
		}
		if !within {
			continue
		}
		if left != "" {
			if len(boards) == maxBoards {
				break
			}
			boards = append(boards, newBoard(id(left)))
		}
		if len(boards) > 0 {
			boards[len(boards)-1].describe(right)
		}
	}
	return boards
}

// describe reads one line of the board's description.
func (b *board) describe(line string) {
	name, value, _ := strings.Cut(line, ":")
	value, gone := strings.CutSuffix(strings.TrimSpace(value), strings.TrimSpace(lastKnown))
	b.Inactive = b.Inactive || gone
	switch strings.TrimSpace(name) {
	case "Name":
		b.Model = known(value)
	case "PCI Bus ID":
		b.PCIBusID = known(value)
	case "Device UUID":
		b.UUID = gpuUUID(value)
		if strings.HasPrefix(value, blank) && !b.Inactive { // form of DCGM before 4.5
			b.Inactive, b.Lost = true, true
		}
	case "Status":
		b.Inactive = b.Inactive || !strings.EqualFold(known(value), "Active")
		b.Lost = strings.EqualFold(known(value), "Lost")
	}
}

// parseHierarchy reads `dcgmi discovery -c`: the boards that are cut into
// instances, each with its UUID and instances, by their ids in DCGM and in NVML.
func parseHierarchy(output []byte) []board {
	var boards []board
	for line := range lines(output) {
		left, right := row(line)
		kind, ids, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(left, "->")), " ")
		entity := id(between(right, "(EntityID: ", ")"))
		switch {
		case kind == "GPU" && entity != Unknown && len(boards) < maxBoards:
			b := newBoard(entity)
			b.UUID = gpuUUID(between(right, "GPU ", " ("))
			boards = append(boards, b)
		case len(boards) == 0:
		case kind == "I":
			boards[len(boards)-1].addInstance(ids, entity)
		case kind == "CI":
			boards[len(boards)-1].addCompute(ids)
		}
	}
	return boards
}

// addInstance adds the instance of ids, `gpu/instance`, with its entity id.
func (b *board) addInstance(ids string, entity int) {
	_, last, _ := strings.Cut(ids, "/")
	if entity != Unknown && id(last) != Unknown && b.instance(last) == nil && len(b.instances) < maxInstances {
		b.instances = append(b.instances, NewInstance(entity, last, ""))
	}
}

// addCompute counts the compute instance of ids, `gpu/instance/compute`.
func (b *board) addCompute(ids string) {
	part := strings.Split(ids, "/")
	if len(part) != 3 {
		return
	}
	if i := b.instance(part[1]); i != nil {
		i.computes++
	}
}

// instance returns the instance with NVML's id, nil if there is none.
func (b *board) instance(id string) *Device {
	for i := range b.instances {
		if b.instances[i].Instance == id {
			return &b.instances[i]
		}
	}
	return nil
}
