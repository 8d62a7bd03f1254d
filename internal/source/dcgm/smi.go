package dcgm

import (
	"bytes"
	"encoding/xml"
	"math"
	"strconv"
	"strings"
)

// QueryFields are the columns to request from nvidia-smi, in the order in which they
// are read: nvidia-smi --query-gpu=QueryFields --format=csv,noheader,nounits. Every
// driver that DCGM 2.1 and later run on knows them. The name is last, since it may
// have a comma.
const QueryFields = "index,uuid,pci.bus_id,driver_version,name"

// parseQuery reads the answer of nvidia-smi. It skips other lines, such as those about
// a board that fell off the bus. Entity ids stay Unknown.
func parseQuery(output []byte) []board {
	var boards []board
	n := strings.Count(QueryFields, ",") + 1
	for line := range lines(output) {
		cell := strings.SplitN(line, ",", n)
		if len(cell) < n {
			continue
		}
		b := newBoard(Unknown)
		b.index, b.UUID = cell[0], gpuUUID(cell[1])
		if id(b.index) == Unknown || b.UUID == "" {
			continue
		}
		b.PCIBusID, b.Driver, b.Model = known(cell[2]), known(cell[3]), known(cell[4])
		boards = append(boards, b)
	}
	return boards
}

// Listed returns the boards of an answer to QueryFields, in its order.
func Listed(query []byte) []Device {
	var list []Device
	for _, b := range parseQuery(query) {
		list = append(list, b.Device)
	}
	return list
}

// parseList reads `nvidia-smi -L`, which names the boards and, below each, its MIG
// devices. These are loose, even if their UUID names their instance, as it did before
// driver R470: MIG-GPU-<uuid>/<instance>/<compute instance>.
func parseList(output []byte) []board {
	return boardsWith("MIG", output, (*board).addDevice)
}

// boardsWith returns the boards that nvidia-smi lists in output. For each line of a board that
// begins with the word in below, add gets the text before and after the colon.
func boardsWith(below string, output []byte, add func(b *board, head, text string)) []board {
	var boards []board
	for line := range lines(output) {
		word, rest, _ := strings.Cut(line, " ")
		head, text, _ := strings.Cut(rest, ":")
		switch word {
		case "GPU":
			boards = append(boards, listed(head, text)) // even if it is unreadable: the next lines belong to it
		case below:
			if len(boards) > 0 {
				add(&boards[len(boards)-1], head, text)
			}
		}
	}
	return boards
}

// listed returns the board of `0` and `NVIDIA H100 80GB HBM3 (UUID: GPU-…)`.
func listed(head, text string) board {
	b := newBoard(Unknown)
	b.UUID = gpuUUID(between(text, "(UUID: ", ")"))
	if id(head) != Unknown {
		b.index = head
	}
	return b
}

// addDevice adds the MIG device of `1g.10gb     Device  0` and `(UUID: MIG-…)`.
func (b *board) addDevice(head, text string) {
	word := strings.Fields(head)
	if len(word) != 3 || word[1] != "Device" {
		return
	}
	d := MIGDevice{Index: id(word[2]), UUID: migUUID(between(text, "(UUID: ", ")")), Profile: gpuInstanceProfile(word[0])}
	if d.Index != Unknown && d.UUID != "" {
		b.loose = append(b.loose, d)
	}
}

// gpuInstanceProfile removes the compute instance's part of a device's profile:
// 1c.3g.20gb is one slice of a 3g.20gb.
func gpuInstanceProfile(device string) string {
	slices, profile, _ := strings.Cut(device, ".")
	if strings.HasSuffix(slices, "c") {
		return known(profile)
	}
	return known(device)
}

// maxLinkSpeed is more than any NVLink is likely to carry one way, in GB/s: the
// fifth generation carries about 50.
const maxLinkSpeed = 1000

// parseLinks reads `nvidia-smi nvlink -s`, which names each board and, below it, the
// speed of its links, one way and in units of 10^9:
//
//	GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-…)
//		 Link 0: 26.562 GB/s
//		 Link 1: <inactive>
//
// The speed is one way, as specifications show: an RTX A6000 lists 4 links of 14.062 GB/s
// and is sold with 112.5 GB/s both ways. Inactive links carry nothing. If the speed of one
// link is unreadable, the limit of its board is unknown: the sum of the others would be too
// low.
func parseLinks(output []byte) []board {
	boards := boardsWith("Link", output, func(b *board, _, text string) { b.NVLinkLimit += 2 * linkSpeed(text) })
	for i := range boards {
		if math.IsNaN(boards[i].NVLinkLimit) {
			boards[i].NVLinkLimit = 0
		}
	}
	return boards
}

// linkSpeed returns bytes per second, NaN if text is no speed.
func linkSpeed(text string) float64 {
	text = strings.TrimSpace(text)
	if strings.EqualFold(strings.Trim(text, "<>"), "inactive") {
		return 0
	}
	number, ok := strings.CutSuffix(text, " GB/s")
	v, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(v >= 0 && v <= maxLinkSpeed) {
		return math.NaN()
	}
	return math.Round(v*1e3) * 1e6 // it has three decimals
}

// reported is a board in `nvidia-smi -q -x`, as far as it shows which MIG device
// is which instance.
type reported struct {
	UUID    string `xml:"uuid"`
	Devices []struct {
		Index    string `xml:"index"`
		Instance string `xml:"gpu_instance_id"`
	} `xml:"mig_devices>mig_device"`
}

// migIndex is a MIG device of a board.
type migIndex struct {
	uuid  string // of the board
	index int
}

// parseReport returns the instance ids of MIG devices. Of a report that was cut short, it
// returns those of the complete boards.
func parseReport(output []byte) map[migIndex]string {
	instances := map[migIndex]string{}
	d := xml.NewDecoder(bytes.NewReader(output))
	for {
		token, err := d.Token()
		if err != nil {
			break
		}
		start, _ := token.(xml.StartElement)
		if start.Name.Local != "gpu" {
			continue
		}
		var r reported
		if d.DecodeElement(&r, &start) != nil {
			break
		}
		for _, device := range r.Devices {
			at := migIndex{gpuUUID(r.UUID), id(known(device.Index))}
			if instance := known(device.Instance); at.uuid != "" && at.index != Unknown && id(instance) != Unknown {
				instances[at] = instance
			}
		}
	}
	return instances
}
