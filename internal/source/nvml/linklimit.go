//go:build cgo && linux

package nvml

import (
	"math"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// linkCall reports whether one link is up.
const linkCall = "nvmlDeviceGetNvLinkState"

// linksPause is how often a board is asked about its links. They change only when the
// fabric manager has trained them, and when one fails. While fewer are up than before, a
// board is asked at each reading, so that their number is always current.
const linksPause = 10 * time.Second

// linkLimit is the number of a board's active NVLinks, and their bandwidth, both ways
// together.
type linkLimit struct {
	column int     // of the bandwidth
	number int     // of the number
	states support // of the links, decided by the first
	speed  [1]nvml.FieldValue
	asked  time.Time
	value  float64 // bytes per second, NaN if unknown or no link is active
	active float64 // links, NaN if unknown
	most   float64 // highest active so far
}

func newLinkLimit() *linkLimit {
	at := columns(dcgm.NVLinkLimit, dcgm.NVLinksActive)
	return &linkLimit{column: at[0], number: at[1], value: math.NaN(), active: math.NaN()}
}

// ask fills row, from the last answers unless these are too old. It passes each call to
// calls before it makes it; failed is the one that failed.
func (l *linkLimit) ask(d nvml.Device, calls func(string), now time.Time, row []float64) (failed string, answer nvml.Return) {
	if l.states != refused && (l.active < l.most || now.Sub(l.asked) >= linksPause) { // the first time too: l.asked is zero
		l.asked = now
		l.value, failed, answer = l.measure(d, calls)
		if l.active > l.most {
			l.most = l.active
		}
	}
	set(row, l.column, l.value)
	set(row, l.number, l.active)
	return failed, answer
}

// measure multiplies the common speed of all active links by their number and by two,
// because it is the speed of one way, as in nvidia-smi. Its unit is MB/s (nvml.h):
// 26562 are the 26.5625 GB/s of two lanes of 106.25 Gbit/s.
func (l *linkLimit) measure(d nvml.Device, calls func(string)) (limit float64, failed string, answer nvml.Return) {
	active := 0
	l.active = math.NaN()
	calls(linkCall)
	for link := range nvml.NVLINK_MAX_LINKS {
		state, answer := d.GetNvLinkState(link)
		switch {
		case l.states.record(answer):
			if state == nvml.FEATURE_ENABLED {
				active++
			}
		case l.states == given && (answer == nvml.ERROR_INVALID_ARGUMENT || answer == nvml.ERROR_NOT_SUPPORTED):
			// The board has fewer links.
		default:
			return math.NaN(), linkCall, answer
		}
	}
	l.active = float64(active)
	return l.times(active, d, calls)
}

// times returns the bandwidth of that many links.
func (l *linkLimit) times(active int, d nvml.Device, calls func(string)) (limit float64, failed string, answer nvml.Return) {
	if active == 0 {
		return math.NaN(), "", nvml.SUCCESS
	}
	calls(fieldCall)
	l.speed[0] = nvml.FieldValue{FieldId: nvml.FI_DEV_NVLINK_SPEED_MBPS_COMMON}
	answer = d.GetFieldValues(l.speed[:])
	if answer == nvml.SUCCESS {
		answer = nvml.Return(l.speed[0].NvmlReturn)
	}
	speed := decode(&l.speed[0])
	if answer != nvml.SUCCESS || !(speed > 0) {
		return math.NaN(), fieldCall, answer
	}
	const megabyte = 1e6
	return 2 * float64(active) * speed * megabyte, "", answer
}
