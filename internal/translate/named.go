package translate

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// lostFamily is 1 for each board that a local source knows and cannot read (dcgm.Lost).
const lostFamily = "gpu_lost"

// isNaming reports whether the samples of a family name devices without showing that they are
// there: the families that the exporter counts by itself, and lostFamily.
func isNaming(name string) bool { return isCounted(name) || name == lostFamily }

// absent returns the boards that the variants name and devices lacks: the source knows them
// and has no reading of them. If it reads no device at all, no board counts as absent.
func (t *Translator) absent(naming []int32, devices []canonical.Device) []canonical.Device {
	if len(devices) == 0 {
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

// room returns how many of the boards fit beside the devices within Options.MaxDevices.
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
