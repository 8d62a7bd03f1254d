package dcgm

import (
	"encoding/xml"
	"math"
	"strconv"
	"strings"
)

// parseSMI reads `nvidia-smi -L` and `nvidia-smi nvlink -s`, which name each board and list below it its MIG devices, and
// the speed of its links, one way and in units of 10^9:
//
//	GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-…)
//	  MIG 1g.10gb     Device  0: (UUID: MIG-…)
//		 Link 0: 26.562 GB/s
//		 Link 1: <inactive>
//
// It returns the boards by UUID, with loose MIG devices. The NVLinkLimit is both ways (an RTX A6000 lists 4 links of
// 14.062 GB/s and is sold with 112.5 GB/s), and NaN if the speed of one link is unreadable.
func parseSMI(output []byte) map[string]*board {
	boards, b := map[string]*board{}, &board{}
	for line := range lines(output) {
		word, rest, _ := strings.Cut(line, " ")
		head, text, _ := strings.Cut(rest, ":")
		switch word {
		case "GPU":
			name, _, _ := strings.Cut(text, "(UUID: ")
			uuid := gpuUUID(between(text, "(UUID: ", ")"))
			if boards[uuid] == nil {
				boards[uuid] = &board{index: head}
				boards[uuid].Model = known(name)
			}
			b = boards[uuid] // even if it is unreadable: the next lines belong to it
		case "MIG":
			b.addDevice(head, text)
		case "Link":
			b.NVLinkLimit += 2 * linkSpeed(text)
		}
	}
	return boards
}

// addDevice adds the MIG device of `1g.10gb     Device  0` and `(UUID: MIG-…)`.
func (b *board) addDevice(head, text string) {
	word := strings.Fields(head)
	if len(word) != 3 || word[1] != "Device" {
		return
	}
	profile := word[0]
	if slices, instance, _ := strings.Cut(profile, "."); strings.HasSuffix(slices, "c") {
		profile = instance // 1c.3g.20gb is one slice of a 3g.20gb
	}
	d := MIGDevice{Index: id(word[2]), UUID: uuid(between(text, "(UUID: ", ")"), "MIG-"), Profile: known(profile)}
	if d.Index != Unknown && d.UUID != "" {
		b.loose = append(b.loose, d)
	}
}

// maxLinkSpeed is more than any NVLink is likely to carry one way, in GB/s: the fifth generation carries about 50.
const maxLinkSpeed = 1000

// linkSpeed returns bytes per second, NaN if text is no speed.
func linkSpeed(text string) float64 {
	text = strings.TrimSpace(text)
	if strings.EqualFold(strings.Trim(text, "<>"), "inactive") {
		return 0
	}
	number, ok := strings.CutSuffix(text, " GB/s")
	if v, err := strconv.ParseFloat(number, 64); ok && err == nil && v >= 0 && v <= maxLinkSpeed {
		return math.Round(v*1e3) * 1e6 // it has three decimals
	}
	return math.NaN()
}

// report is `nvidia-smi -q -x`, as far as it shows which MIG device is which instance.
type report struct {
	GPUs []struct {
		UUID    string `xml:"uuid"`
		Devices []struct {
			Index    string `xml:"index"`
			Instance string `xml:"gpu_instance_id"`
		} `xml:"mig_devices>mig_device"`
	} `xml:"gpu"`
}

// migIndex is a MIG device of a board.
type migIndex struct {
	uuid  string // of the board
	index int
}

// parseReport returns the instance ids of MIG devices, none of a report that was cut short.
func parseReport(output []byte) map[migIndex]string {
	instances := map[migIndex]string{}
	var r report
	if xml.Unmarshal(output, &r) != nil {
		return instances
	}
	for _, gpu := range r.GPUs {
		for _, device := range gpu.Devices {
			at, instance := migIndex{gpuUUID(gpu.UUID), id(known(device.Index))}, known(device.Instance)
			if at.uuid != "" && at.index != Unknown && id(instance) != Unknown {
				instances[at] = instance
			}
		}
	}
	return instances
}
