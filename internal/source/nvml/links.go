//go:build cgo && linux

package nvml

import (
	"math"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// linkCall reports whether one NVLink is up.
const linkCall = "nvmlDeviceGetNvLinkState"

// linksPause is how often a board is asked about its NVLinks. They change only when the fabric
// manager has trained them, and when one fails, and the driver queries the links themselves for
// each error count.
const linksPause = 10 * time.Second

// linkFields are the counters of NVLink 5 and its bit error ratios, each of one link (nvml.h).
var linkFields = []field{
	{id: nvml.FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS, column: "NLMALP"},
	{id: nvml.FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS, column: "NLBUFO"},
	{id: nvml.FI_DEV_NVLINK_COUNT_RCV_ERRORS, column: "NLRCVE"},
	{id: nvml.FI_DEV_NVLINK_COUNT_RCV_REMOTE_ERRORS, column: "NLRCVRE"},
	{id: nvml.FI_DEV_NVLINK_COUNT_RCV_GENERAL_ERRORS, column: "NLRCVGE"},
	{id: nvml.FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS, column: "NLLLIE"},
	{id: nvml.FI_DEV_NVLINK_COUNT_XMIT_DISCARDS, column: "NLXMITD"},
	{id: nvml.FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS, column: "NLLRS"},
	{id: nvml.FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS, column: "NLLRF"},
	{id: nvml.FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS, column: "NLLR"},
	{id: nvml.FI_DEV_NVLINK_COUNT_SYMBOL_ERRORS, column: "NLSYME"},
	{id: nvml.FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS, column: "NLEFE"},
	{id: nvml.FI_DEV_NVLINK_COUNT_SYMBOL_BER, column: "NLSYMBF", ratio: true},
	{id: nvml.FI_DEV_NVLINK_COUNT_EFFECTIVE_BER, column: "NLEFBF", ratio: true},
}

// links reads a board's NVLinks: how many are up, their bandwidth, and linkFields over all of them.
type links struct {
	columns []int   // of the number of links that are up, and of their bandwidth
	state   support // of linkCall, decided by the first link
	asked   time.Time
	most    int         // the highest number of links that were up, -1 before the first
	totals  *fieldQuery // nil before that number is known
	latest  []float64   // a row, at most linksPause old
}

func newLinks() *links {
	return &links{columns: columns(dcgm.NVLinksActive, dcgm.NVLinkLimit), most: -1, latest: newRow()}
}

// ask fills row. denied is true if the permission for a value is missing.
func (l *links) ask(d nvml.Device, now time.Time, calls func(string), row []float64) (answer nvml.Return, denied bool) {
	if l.state != refused && now.Sub(l.asked) >= linksPause { // the first time too: l.asked is zero
		l.asked = now
		blank(l.latest)
		if answer, denied = l.renew(d, calls); answer == nvml.ERROR_GPU_IS_LOST {
			l.asked = time.Time{}
		}
	}
	for column, v := range l.latest {
		if v-v == 0 {
			row[column] = v
		}
	}
	return answer, denied
}

// renew fills latest.
func (l *links) renew(d nvml.Device, calls func(string)) (answer nvml.Return, denied bool) {
	calls(linkCall)
	up, count, answer := l.count(d)
	if answer != nvml.SUCCESS {
		return answer, false
	}
	set(l.latest, l.columns[0], float64(up))
	if up > l.most { // links that have come up may have counts that they lacked
		l.most, l.totals = up, newLinkTotals(count)
	}
	calls(fieldCall)
	answer, denied = l.totals.ask(d, l.latest)
	// The common speed of all active links is one way, in MB/s (nvml.h): 26562 are the 26.5625 GB/s of two lanes of
	// 106.25 Gbit/s. The bandwidth is both ways together, as in nvidia-smi.
	const megabyte = 1e6
	if v := l.totals.value(nvml.FI_DEV_NVLINK_SPEED_MBPS_COMMON); v != nil && decode(v) > 0 && up > 0 {
		set(l.latest, l.columns[1], 2*float64(up)*decode(v)*megabyte)
	}
	return answer, denied
}

// count returns how many links are up, and how many the board has.
func (l *links) count(d nvml.Device) (up, count int, answer nvml.Return) {
	for link := range nvml.NVLINK_MAX_LINKS {
		state, answer := d.GetNvLinkState(link)
		if l.state == given && answer == nvml.ERROR_INVALID_ARGUMENT {
			break // it has no more links
		}
		count = link + 1
		switch {
		case l.state.record(answer):
			if state == nvml.FEATURE_ENABLED {
				up++
			}
		case l.state == given && answer == nvml.ERROR_NOT_SUPPORTED: // it does not use this one
		default:
			return 0, 0, answer
		}
	}
	return up, count, nvml.SUCCESS
}

// newLinkTotals returns the query of linkFields over that many links, and of their speed.
func newLinkTotals(links int) *fieldQuery {
	fields := []field{{id: nvml.FI_DEV_NVLINK_SPEED_MBPS_COMMON}}
	for _, f := range linkFields {
		for link := range links {
			f.scope = uint32(link)
			fields = append(fields, f)
		}
	}
	q := newFieldQuery(fields)
	q.total = true
	return q
}

// linkRate derives DCGM's rate over all NVLinks from two counters of KiB: in
// thousands of KiB per second, both ways together.
type linkRate struct {
	column   int
	longest  float64 // seconds
	kibibyte float64
	at       int64 // µs, by the driver's clock; 0 before the first
}

func newLinkRate(period time.Duration) linkRate {
	return linkRate{column: columns("NBWLT")[0], longest: longestWindow(period).Seconds()}
}

// add records the counters, nil for a missing one. The first values give no
// rate, nor do lower ones: the driver was reloaded.
func (l *linkRate) add(sent, received *nvml.FieldValue, row []float64) {
	if sent == nil || received == nil {
		l.at = 0
		return
	}
	total, at := decode(sent)+decode(received), max(sent.Timestamp, received.Timestamp)
	elapsed := float64(at-l.at) / 1e6
	if l.at > 0 && elapsed > 0 && elapsed < l.longest && total >= l.kibibyte {
		// Rounded, because the quotient of a steady rate is slightly off.
		set(row, l.column, math.Round((total-l.kibibyte)/elapsed/1000))
	}
	if at != l.at {
		l.kibibyte, l.at = total, at
	}
}
