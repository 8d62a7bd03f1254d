package dcgm

import (
	"math"
	"strconv"
	"strings"
)

// maxLinkSpeed is more than any NVLink is likely to carry one way, in GB/s: the
// fifth generation carries some 50.
const maxLinkSpeed = 1000

// parseLinks reads `nvidia-smi nvlink -s`, which names each board and below it the
// speed of its links, one way and in units of 10^9:
//
//	GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-…)
//		 Link 0: 26.562 GB/s
//		 Link 1: <inactive>
//
// That the speed is one way follows from what the boards are sold with: an RTX A6000
// shows 4 links of 14.062 GB/s and is sold with 112.5 GB/s both ways. Links that are
// inactive carry nothing. Of a board that has a link we do not understand nothing is
// told: the sum of the others would be too low.
func parseLinks(output []byte) []Board {
	boards := boardsWith("Link", output, func(b *Board, _, told string) { b.NVLinkLimit += 2 * linkSpeed(told) })
	for i := range boards {
		if math.IsNaN(boards[i].NVLinkLimit) {
			boards[i].NVLinkLimit = 0
		}
	}
	return boards
}

// linkSpeed returns bytes per second, NaN where told is no speed.
func linkSpeed(told string) float64 {
	told = strings.TrimSpace(told)
	if strings.EqualFold(strings.Trim(told, "<>"), "inactive") {
		return 0
	}
	number, ok := strings.CutSuffix(told, " GB/s")
	v, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(v >= 0 && v <= maxLinkSpeed) {
		return math.NaN()
	}
	return math.Round(v*1e3) * 1e6 // it has three decimals
}
