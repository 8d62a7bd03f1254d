package dcgm

import "strings"

// parseHierarchy reads `dcgmi discovery -c`: the boards that are cut into
// instances, each with its UUID and instances, by their ids in DCGM and in NVML.
func parseHierarchy(output []byte) []Board {
	var boards []Board
	for line := range lines(output) {
		left, right, ok := row(line)
		if !ok {
			continue
		}
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

// addInstance adds the instance that ids, `gpu/instance`, and its entity id are
// of.
func (b *Board) addInstance(ids string, entity int) {
	_, last, ok := strings.Cut(ids, "/")
	i := Instance{Entity: entity, ID: id(last)}
	if ok && i.Entity != Unknown && i.ID != Unknown && b.instance(i.ID) == nil && len(b.Instances) < maxInstances {
		b.Instances = append(b.Instances, i)
	}
}

// addCompute counts the compute instance of ids, `gpu/instance/compute`.
func (b *Board) addCompute(ids string) {
	part := strings.Split(ids, "/")
	if len(part) != 3 {
		return
	}
	if i := b.instance(id(part[1])); i != nil {
		i.Computes++
	}
}

// instance returns the instance with NVML's id, nil if there is none.
func (b *Board) instance(id int) *Instance {
	for i := range b.Instances {
		if b.Instances[i].ID == id {
			return &b.Instances[i]
		}
	}
	return nil
}
