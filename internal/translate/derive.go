package translate

import "github.com/kpulse/kpulse-proxy/internal/canonical"

// derive makes the readings that follow from others and gives each board the
// board's readings that its instances repeat.
func (t *Translator) derive(dst *canonical.Frame) {
	devices := dst.Topology.Devices
	for i := range devices {
		row := dst.Row(i)
		fallbacks := t.fallbackValues[i*len(t.rules.fallbacks):][:len(t.rules.fallbacks)]
		for n, field := range t.rules.fallbacks {
			if !canonical.Given(row[field]) && canonical.Given(fallbacks[n]) {
				row[field] = fallbacks[n]
			}
		}
		deriveFramebuffer(row)
	}
	for i := range devices {
		if devices[i].IsInstance() {
			t.lift(dst.Row(devices[i].Board), dst.Row(i))
		}
	}
	for i := range devices {
		if !devices[i].IsInstance() {
			deriveNVLink(dst.Row(i))
		}
	}
}

// lift moves readings of a board from the rows of its instances to its own row. If rows disagree
// the largest is used, and of bit masks the union: the largest mask could lack a bit of another
// row.
func (t *Translator) lift(board, instance []float64) {
	for _, f := range t.boardLevel {
		v := instance[f]
		if !canonical.Given(v) {
			continue
		}
		switch {
		case !canonical.Given(board[f]):
			board[f] = v
		case canonical.Fields[f].Unit == canonical.Bitmask:
			board[f] = float64(uint64(board[f]) | uint64(v))
		default:
			board[f] = max(board[f], v)
		}
		instance[f] = absent
	}
}

// deriveFramebuffer fills in the total where the source gave none but all of its
// parts, and the ratio. Without the reserved memory, a hundredth of a board, used and
// free are not all of it.
func deriveFramebuffer(row []float64) {
	used, free, reserved := row[canonical.FramebufferUsed], row[canonical.FramebufferFree], row[canonical.FramebufferReserved]
	total := &row[canonical.FramebufferTotal]
	if !canonical.Given(*total) {
		*total = used + free + reserved
	}
	ratio := &row[canonical.FramebufferUsedRatio]
	if canonical.Given(*ratio) {
		return
	}
	// NaN or infinite where either is absent or there is no memory. More in use
	// than there is cannot be, except for the rounding to whole MiB.
	if r := used / *total; r <= ratioOvershoot {
		*ratio = min(r, 1)
	}
}

// deriveNVLink fills in the sum of both directions where the source gave none.
func deriveNVLink(row []float64) {
	if canonical.Given(row[canonical.NVLinkBytes]) {
		return
	}
	sum := row[canonical.NVLinkTransmit] + row[canonical.NVLinkReceive]
	if canonical.Given(sum) {
		row[canonical.NVLinkBytes] = sum
	}
}
