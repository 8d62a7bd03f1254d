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
// each error count. While fewer are up than before, the states are read in each round, so that
// their number is always current.
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

// linkTotals are linkFields over all links of a board, at most linksPause old.
type linkTotals struct {
	query  *fieldQuery
	asked  time.Time
	latest []float64 // a row
}

// newLinkTotals returns the totals over that many links.
func newLinkTotals(links int) *linkTotals {
	fields := []field{{id: nvml.FI_DEV_NVLINK_SPEED_MBPS_COMMON}}
	for _, f := range linkFields {
		for link := range links {
			f.scope = uint32(link)
			fields = append(fields, f)
		}
	}
	t := &linkTotals{query: newFieldQuery(fields), latest: newRow()}
	t.query.total = true
	return t
}

// ask fills row. denied is true if the permission for a value is missing.
func (t *linkTotals) ask(d nvml.Device, now time.Time, row []float64) (answer nvml.Return, denied bool) {
	if now.Sub(t.asked) >= linksPause { // the first time too: t.asked is zero
		t.asked = now
		blank(t.latest)
		answer, denied = t.query.ask(d, t.latest)
	}
	for column, v := range t.latest {
		if v-v == 0 {
			row[column] = v
		}
	}
	return answer, denied
}

// speed returns the common speed of all active links, one way, in bytes per second, NaN if
// unknown. NVML's unit is MB/s (nvml.h): 26562 are the 26.5625 GB/s of two lanes of 106.25 Gbit/s.
func (t *linkTotals) speed() float64 {
	const megabyte = 1e6
	if v := t.query.value(nvml.FI_DEV_NVLINK_SPEED_MBPS_COMMON); v != nil && decode(v) > 0 {
		return decode(v) * megabyte
	}
	return math.NaN()
}

// linkCount counts a board's active NVLinks.
type linkCount struct {
	columns []int   // of their number, and of their bandwidth
	state   support // decided by the first link
	asked   time.Time
	active  float64 // NaN if unknown
	most    float64 // highest active so far, -1 before the first
	count   int     // of links that the board has
}

func newLinks() *linkCount {
	return &linkCount{columns: columns(dcgm.NVLinksActive, dcgm.NVLinkLimit), active: math.NaN(), most: -1}
}

// ask updates the number of active links, unless the last answers are recent. more is true if
// more are active than ever before.
func (l *linkCount) ask(d nvml.Device, now time.Time) (answer nvml.Return, more bool) {
	if l.state == refused || !(l.active < l.most) && now.Sub(l.asked) < linksPause {
		return nvml.SUCCESS, false
	}
	l.asked = now
	active := 0
	l.active, l.count = math.NaN(), 0
	for link := range nvml.NVLINK_MAX_LINKS {
		state, answer := d.GetNvLinkState(link)
		if l.state == given && answer == nvml.ERROR_INVALID_ARGUMENT {
			break // it has no more links
		}
		l.count = link + 1
		switch {
		case l.state.record(answer):
			if state == nvml.FEATURE_ENABLED {
				active++
			}
		case l.state == given && answer == nvml.ERROR_NOT_SUPPORTED: // it does not use this one
		default:
			return answer, false
		}
	}
	l.active = float64(active)
	more = l.active > l.most
	l.most = max(l.most, l.active)
	return nvml.SUCCESS, more
}

// set sets the number of active links, and their bandwidth both ways together, as in
// nvidia-smi, from the speed of one link one way.
func (l *linkCount) set(row []float64, speed float64) {
	set(row, l.columns[0], l.active)
	if l.active > 0 {
		set(row, l.columns[1], 2*l.active*speed)
	}
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
