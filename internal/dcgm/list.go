package dcgm

import "strings"

// parseList reads `nvidia-smi -L`, which names the boards and below each its MIG
// devices. These are Loose, also where their UUID says which instance they are of,
// as it did before driver R470: MIG-GPU-<uuid>/<instance>/<compute instance>.
func parseList(output []byte) []Board {
	return boardsWith("MIG", output, (*Board).addDevice)
}

// boardsWith returns the boards that nvidia-smi names in output. Of each line under one
// that begins with the word below, add is given what stands before the colon and behind.
func boardsWith(below string, output []byte, add func(b *Board, head, told string)) []Board {
	var boards []Board
	for line := range lines(output) {
		word, rest, _ := strings.Cut(line, " ")
		head, told, _ := strings.Cut(rest, ":")
		switch word {
		case "GPU":
			if len(boards) == maxBoards {
				return boards
			}
			boards = append(boards, listed(head, told)) // also where it is unreadable: what follows is its
		case below:
			if len(boards) > 0 {
				add(&boards[len(boards)-1], head, told)
			}
		}
	}
	return boards
}

// listed returns the board of `0` and `NVIDIA H100 80GB HBM3 (UUID: GPU-…)`.
func listed(head, told string) Board {
	b := newBoard(Unknown)
	b.Index, b.UUID = id(head), gpuUUID(between(told, "(UUID: ", ")"))
	return b
}

// addDevice adds the MIG device of `1g.10gb     Device  0` and `(UUID: MIG-…)`.
func (b *Board) addDevice(head, told string) {
	word := strings.Fields(head)
	if len(word) != 3 || word[1] != "Device" || len(b.Loose) == maxInstances {
		return
	}
	d := MIGDevice{Index: id(word[2]), UUID: migUUID(between(told, "(UUID: ", ")")), Profile: gpuInstanceProfile(word[0])}
	if d.Index != Unknown && d.UUID != "" {
		b.Loose = append(b.Loose, d)
	}
}

// gpuInstanceProfile takes the compute instance's part off a device's profile:
// 1c.3g.20gb is one slice of a 3g.20gb.
func gpuInstanceProfile(device string) string {
	slices, profile, ok := strings.Cut(device, ".")
	if ok && strings.HasSuffix(slices, "c") && id(strings.TrimSuffix(slices, "c")) != Unknown {
		return text(profile)
	}
	return text(device)
}
