package translate

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// lostFamily is the family that our local sources give, with 1, of each board that they
// name and cannot read (dcgm.Lost).
const lostFamily = "gpu_lost"

// isNaming reports whether the samples of a family name devices and are no evidence that
// these are there: those of what the exporter counts by itself, and those of lost boards.
func isNaming(name string) bool { return isCounted(name) || name == lostFamily }

// absent returns the boards that the variants name and that are not among devices: the
// source knows them and has no reading of them. If it reads no device at all, that says
// nothing about any.
func (t *Translator) absent(naming []int32, devices []canonical.Device) []canonical.Device {
	if len(naming) == 0 || len(devices) == 0 {
		return nil
	}
	var boards []canonical.Device
	all := gather(t.variants, naming)
	slices.SortStableFunc(all, func(a, b canonical.Device) int { return rank(a.UUID != "") - rank(b.UUID != "") })
	for _, d := range all {
		d.Instance, d.Profile = "", ""
		known := func(k canonical.Device) bool {
			return keyOf(&k) == keyOf(&d) || d.UUID == "" && k.GPU == d.GPU && (d.Hostname == "" || k.Hostname == d.Hostname)
		}
		if !slices.ContainsFunc(devices, known) && !slices.ContainsFunc(boards, known) {
			boards = append(boards, d)
		}
	}
	arrange(boards, t.fallbackHost)
	return boards[:t.room(devices, boards)]
}

// room returns how many of the boards there is room for beside the devices.
func (t *Translator) room(devices, boards []canonical.Device) int {
	if t.maxDevices <= 0 {
		return len(boards)
	}
	left := t.maxDevices
	for i := range devices {
		left -= devices[i].Weight()
	}
	n := 0
	for n < len(boards) && left >= boards[n].Weight() {
		left -= boards[n].Weight()
		n++
	}
	return n
}
