package translate

import "github.com/kpulse/kpulse-proxy/internal/canonical"

// derive computes the readings that follow from others, and moves to each board the
// board's readings that its instances repeat.
func (t *Translator) derive(dst *canonical.Frame, rep *Report) {
	devices := dst.Topology.Devices
	for i := range devices {
		row := dst.Row(i)
		if isBlankRow(row) {
			rep.Dropped[canonical.DropBlank]++
			for f := range row {
				row[f] = absent
			}
			continue
		}
		fallbacks := t.fallbackValues[i*len(t.rules.fallbacks):][:len(t.rules.fallbacks)]
		for n, field := range t.rules.fallbacks {
			if !canonical.Given(row[field]) && !isUntouched(fallbacks[n]) {
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

// signsOfLife are readings of which no board that works has two at 0.
var signsOfLife = [...]canonical.Field{canonical.Temperature, canonical.SMClock, canonical.Power, canonical.Energy}

// isBlankRow reports whether a row has only zeros where a board that works has none: exporters
// write 0 for every field of a board that they have no sample of (NVIDIA/gpu-operator#313).
func isBlankRow(row []float64) bool {
	zeros := 0
	for _, f := range signsOfLife {
		switch v := row[f]; {
		case v == 0:
			zeros++
		case canonical.Given(v):
			return false
		}
	}
	return zeros >= 2
}

// lift moves readings of a board from the rows of its instances to its own row. If rows disagree,
// it takes the largest value, or the union of bit masks: the largest mask may lack a bit of
// another row.
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

// deriveFramebuffer fills in the ratio and, if the source gave all parts of the total but not
// the total itself, their sum. Used and free memory are not enough: about a hundredth of a
// board is reserved.
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
	// r is NaN or infinite if either is absent or there is no memory. Only rounding to
	// whole MiB may put used above the total.
	if r := used / *total; r <= ratioOvershoot {
		*ratio = min(r, 1)
	}
}

// deriveNVLink fills in the sum of both directions if the source gave none.
func deriveNVLink(row []float64) {
	if canonical.Given(row[canonical.NVLinkBytes]) {
		return
	}
	sum := row[canonical.NVLinkTransmit] + row[canonical.NVLinkReceive]
	if canonical.Given(sum) {
		row[canonical.NVLinkBytes] = sum
	}
}
