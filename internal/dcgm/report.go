package dcgm

import (
	"bytes"
	"encoding/xml"
)

// reported is a board in `nvidia-smi -q -x`, as far as it tells which MIG device
// is which instance.
type reported struct {
	UUID    string `xml:"uuid"`
	Devices []struct {
		Index    string `xml:"index"`
		Instance string `xml:"gpu_instance_id"`
	} `xml:"mig_devices>mig_device"`
}

// place is a MIG device of a board.
type place struct {
	uuid  string // of the board
	index int
}

// parseReport returns the instance ids of MIG devices. A report that was cut
// short tells as many as it holds whole boards.
func parseReport(output []byte) map[place]int {
	instances := map[place]int{}
	d := xml.NewDecoder(bytes.NewReader(output[:min(len(output), maxOutput)]))
	for len(instances) < maxBoards*maxInstances {
		token, err := d.Token()
		if err != nil {
			break
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "gpu" {
			continue
		}
		var r reported
		if d.DecodeElement(&r, &start) != nil {
			break
		}
		for _, device := range r.Devices {
			p := place{gpuUUID(r.UUID), id(text(device.Index))}
			if instance := id(text(device.Instance)); p.uuid != "" && p.index != Unknown && instance != Unknown {
				instances[p] = instance
			}
		}
	}
	return instances
}
