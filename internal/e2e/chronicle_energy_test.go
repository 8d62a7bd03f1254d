package e2e

import (
	"math"
	"strconv"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// meter is the reference's account of a board's energy, in joules, watts and seconds; NaN if
// unknown.
type meter struct {
	counter float64 // last trusted value
	ahead   float64 // counted from power, before the counter
	still   float64 // time without a rise of the counter
	idle    float64 // lowest power while idle
	metered bool    // counter or power was ever known
}

func newMeter() meter { return meter{counter: math.NaN(), idle: math.NaN()} }

// meter charges the energy that each board used since the previous reading to its holders then.
// seconds is the part of lapse that counts.
func (c *chronicle) meter(lapse, seconds float64, staying map[string]bool) {
	for key, d := range c.devices {
		if !d.left.IsZero() || d.id.instance != "" {
			continue
		}
		joules, watts := d.readings[canonical.Energy], d.readings[canonical.Power]
		d.meter.metered = d.meter.metered || joules >= 0 || believed(watts)
		var used, span float64
		if staying[key] {
			used, span = d.meter.use(joules, watts, lapse, seconds)
		} else {
			d.meter.begin(joules)
		}
		instances := c.instances(d)
		floor := d.meter.floor(used, span, watts, d.idles(instances))
		if len(instances) == 0 {
			c.charge(d, floor, used-floor)
		} else {
			c.divide(instances, staying, floor, used-floor)
		}
	}
}

// believed reports whether watts is a power that a board can have.
func believed(watts float64) bool { return watts >= 0 && watts <= 1e6 }

// begin trusts a counter from now on.
func (m *meter) begin(joules float64) { m.counter, m.ahead, m.still = joules, 0, 0 }

// use returns the energy that a board used, 0 if unknown, and in how many seconds. It comes from
// the counter, or from power if the counter is absent, fell, rose by more than a megawatt, or stood
// still for more than five minutes; later rises of the counter are reduced by that.
func (m *meter) use(joules, watts, lapse, seconds float64) (used, span float64) {
	byPower := 0.0
	if believed(watts) {
		byPower = watts * seconds
	}
	rise := joules - m.counter
	if rise < 0 && rise >= -1.0000001 && joules > 0 {
		rise = 0
	}
	switch {
	case math.IsNaN(rise) || rise < 0 || rise > 1e6*lapse:
		if !math.IsNaN(joules) || !believed(watts) {
			m.begin(joules)
		} else {
			m.ahead += byPower
		}
		return byPower, seconds
	case rise == 0:
		if m.still += seconds; m.still > 300 && byPower > 0 {
			m.ahead += byPower
			return byPower, seconds
		}
		return 0, seconds
	}
	m.counter = joules
	told := min(rise, m.ahead)
	rise, m.ahead = rise-told, m.ahead-told
	span, m.still = m.still+seconds, 0
	if lapse-seconds > 1e-6 {
		rise *= seconds / lapse
	}
	return rise, span
}

// floor returns the part of the energy that an idle board would have used.
func (m *meter) floor(used, span, watts float64, idle bool) float64 {
	if math.IsNaN(watts) {
		watts = used / span
	}
	if idle && watts > 0 && !(watts >= m.idle) {
		m.idle = watts
	}
	if math.IsNaN(m.idle) {
		return 0
	}
	return min(used, m.idle*span)
}

// instances returns the present instances of a board.
func (c *chronicle) instances(board *past) (all []*past) {
	for _, d := range c.devices {
		if d.left.IsZero() && d.id.instance != "" && d.id.uuid == board.id.uuid {
			all = append(all, d)
		}
	}
	return all
}

// idles reports whether a board, or each of its instances, is idle.
func (d *past) idles(instances []*past) bool {
	for _, in := range instances {
		if in.class != "idle" {
			return false
		}
	}
	return len(instances) > 0 || d.class == "idle"
}

// divide divides a board's energy among its instances: the floor by their slices, the rest by
// slices times real utilization. An instance that just appeared gets none.
func (c *chronicle) divide(instances []*past, staying map[string]bool, floor, rest float64) {
	sized := true
	for _, in := range instances {
		sized = sized && in.slices() > 0
	}
	var all, busy float64
	size := map[*past]float64{}
	for _, in := range instances {
		if staying[deviceKey(in.id, in.unit)] {
			if size[in] = 1; sized {
				size[in] = in.slices()
			}
		}
		all, busy = all+size[in], busy+size[in]*in.utilization // NaN if one is not known
	}
	for _, in := range instances {
		if all == 0 {
			continue
		}
		part := rest * size[in] / all
		if busy > 0 {
			part = rest * size[in] * in.utilization / busy
		}
		c.charge(in, floor*size[in]/all, part)
	}
}

// slices returns the compute slices of an instance, from its profile: 3 for 3g.40gb.
func (d *past) slices() float64 {
	profile := d.labels["mig_profile"]
	n, _ := strconv.Atoi(profile[:min(1, len(profile))])
	return float64(n)
}

// charge divides a device's energy among its holders: the floor equally, the rest like its seconds.
func (c *chronicle) charge(d *past, floor, rest float64) {
	holders, parts := c.split(d, rest)
	for i, h := range holders {
		h.joules += floor/float64(len(holders)) + parts[i]
	}
}

// beginMeters marks the workloads whose energy is known from now on: not holders of a partitioned
// board.
func (c *chronicle) beginMeters() {
	for _, h := range c.tenures {
		if !h.left.IsZero() {
			continue
		}
		for _, board := range c.boards() {
			cut := len(c.instances(board)) > 0
			if board.id.uuid == h.device.id.uuid && board.meter.metered && cut == (h.device.id.instance != "") {
				h.metered = true
			}
		}
	}
}
