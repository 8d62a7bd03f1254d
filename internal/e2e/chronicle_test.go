package e2e

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute/computetest"
)

// chronicle is the reference's memory of a source: the devices and workloads that it must serve
// after each reading, found by the labels of their series.
type chronicle struct {
	setting
	host    string // for GPUs whose rows name none
	at      time.Time
	began   bool
	devices map[string]*past
	tenures map[string]*tenure
	before  string // the holders in the previous reading
}

func newChronicle(s setting, host string) *chronicle {
	return &chronicle{setting: s, host: host, devices: map[string]*past{}, tenures: map[string]*tenure{}}
}

// tally counts seconds.
type tally struct {
	observed, utilized, known float64
	classes, health           map[string]float64
}

func newTally() tally { return tally{classes: map[string]float64{}, health: map[string]float64{}} }

// spend adds seconds in which a verdict held.
func (a *tally) spend(v verdict, seconds float64) {
	a.observed += seconds
	a.classes[v.class] += seconds
	if !math.IsNaN(v.utilization) {
		a.known += seconds
		a.utilized += v.utilization * seconds
	}
}

// verdict is the judgement of a device's reading.
type verdict struct {
	utilization, coverage float64
	class, state, action  string
	found                 [computetest.Conditions]string
}

// past is a device, present or remembered.
type past struct {
	tally
	*unit
	verdict
	id      gpu
	history []computetest.Reading
	read    bool      // was ever read, not only implied
	left    time.Time // the first reading without it; zero while it is present
	away    bool      // such a reading had other devices of its node
	codes   map[int]time.Time
	faults  map[int]*faults // of programs, by code
	meter   meter
}

// tenure is a workload on a device, present or remembered.
type tenure struct {
	tally
	device *past
	workload
	use
	measured bool
	left     time.Time
	born     map[string]time.Time // of each class's counter; zero for the first
	joules   float64
	metered  bool
}

// deviceKey identifies a device.
func deviceKey(id gpu, u *unit) string {
	return id.uuid + "/" + id.instance + "/" + u.labels["mig_profile"]
}

// read records a reading and returns all series of devices and workloads after it.
func (c *chronicle) read(at time.Time, body []byte) map[string]float64 {
	n := read(body)
	seconds := 0.0
	if c.began {
		seconds = min(at.Sub(c.at), 5*time.Minute).Seconds()
	}
	c.forget(at)
	staying := c.arrive(at, n)
	c.blame(at)
	for key, d := range c.devices {
		if d.left.IsZero() {
			c.judge(d, at, n)
			if staying[key] {
				d.spend(d.verdict, seconds)
				d.health[d.state] += map[bool]float64{true: seconds}[d.id.instance == ""]
			}
		}
	}
	c.share(at, seconds, staying)
	c.at, c.began = at, true
	return c.series()
}

// forget drops devices an hour after they disappear, and workloads after ten minutes.
func (c *chronicle) forget(at time.Time) {
	gone := func(left time.Time, after time.Duration) bool { return !left.IsZero() && at.Sub(left) > after }
	maps.DeleteFunc(c.devices, func(_ string, d *past) bool { return gone(d.left, time.Hour) })
	maps.DeleteFunc(c.tenures, func(_ string, h *tenure) bool {
		return gone(h.left, 10*time.Minute) || gone(h.device.left, time.Hour)
	})
}

// arrive records the present devices and returns, for each, whether it was present before.
func (c *chronicle) arrive(at time.Time, n node) map[string]bool {
	staying, here := map[string]bool{}, map[string]bool{}
	cut := map[string]bool{}
	for id, u := range n.gpus {
		cut[id.uuid] = cut[id.uuid] || id.instance != ""
		if u.labels["hostname"] == "" {
			u.labels["hostname"] = c.host
		}
		here[deviceKey(id, u)] = true
	}
	for id, u := range n.gpus {
		key := deviceKey(id, u)
		d := c.devices[key]
		if d == nil {
			d = &past{tally: newTally(), codes: map[int]time.Time{}, faults: map[int]*faults{}, meter: newMeter(), left: at}
			c.devices[key] = d
		}
		staying[key] = d.left.IsZero()
		reading := computetest.Reading{
			At: at, Row: u.readings, XIDs: n.xids[id.uuid], Cut: cut[id.uuid],
			Returned: !staying[key] && len(d.history) > 0, Away: d.away,
		}
		d.id, d.unit, d.left, d.away, d.read = id, u, time.Time{}, false, d.read || !u.implied
		d.history = append(d.history, reading)
	}
	for key, d := range c.devices {
		if !here[key] {
			if d.left.IsZero() {
				d.left = at
			}
			d.away = d.away || len(here) > 0 // all are of one node
		}
	}
	return staying
}

// judge sets the verdict on a device.
func (c *chronicle) judge(d *past, at time.Time, n node) {
	d.verdict = verdict{utilization: math.NaN(), coverage: math.NaN(), class: "unknown", state: "unknown"}
	if !d.implied {
		d.utilization, d.coverage, d.class = computetest.Activity(d.readings, c.Options)
	}
	if d.id.instance != "" {
		return
	}
	d.state, d.found = computetest.Health(d.history, d.model, c.Options)
	c.blameBoard(d, at)
	d.action = d.asks()
	note := func(code int) {
		if _, known := d.codes[code]; !known && code > 0 {
			d.codes[code] = at
		}
	}
	for _, x := range n.xids[d.id.uuid] {
		if x.Count > 0 {
			note(int(x.Code))
		}
	}
	if last := d.readings[canonical.XIDLast]; last >= 1 {
		note(int(last))
	}
}

// share divides the devices' seconds among their holders in the previous reading, and records the
// holders now.
func (c *chronicle) share(at time.Time, seconds float64, staying map[string]bool) {
	present := slices.Sorted(maps.Keys(staying))
	now := ""
	for _, key := range present {
		d := c.devices[key]
		var holders []string // order does not matter
		for _, w := range d.holders {
			holders = append(holders, fmt.Sprintf("%q", w))
		}
		slices.Sort(holders)
		now += fmt.Sprintf("%s %v %v;", key, d.implied, holders)
	}
	if now == c.before { // a reading of other holders does not measure the previous ones
		c.measure()
	}
	for _, key := range present {
		if !staying[key] {
			continue
		}
		holders, parts := c.split(c.devices[key], seconds)
		for i, h := range holders {
			h.spend(h.device.verdict, parts[i])
			if parts[i] > 1e-6 {
				h.enter(h.device.class, at)
			}
		}
	}
	c.meter(at.Sub(c.at).Seconds(), seconds, staying)
	c.hold(at, present)
	c.beginMeters()
	if now != c.before {
		c.measure()
	}
	c.before = now
}

// split divides an amount among the holders of a device: by their utilization, or equally if one
// is not known or none is above 0.
func (c *chronicle) split(d *past, amount float64) (holders []*tenure, parts []float64) {
	total := 0.0
	for _, h := range c.tenures {
		if h.left.IsZero() && h.device == d {
			holders = append(holders, h)
			total += h.utilization // NaN if one is not known
		}
	}
	for _, h := range holders {
		part := amount / float64(len(holders))
		if total > 0 {
			part = amount * h.utilization / total
		}
		parts = append(parts, part)
	}
	return holders, parts
}

// enter records when the counter of a class begins.
func (h *tenure) enter(class string, at time.Time) {
	if _, born := h.born[class]; !born {
		h.born[class] = at
	}
}

// hold records the holders of the devices.
func (c *chronicle) hold(at time.Time, present []string) {
	here := map[string]bool{}
	for _, key := range present {
		d := c.devices[key]
		for _, w := range d.holders {
			name := fmt.Sprintf("%s %q", key, w)
			here[name] = true
			h := c.tenures[name]
			if h == nil {
				h = &tenure{tally: newTally(), device: d, workload: w, born: map[string]time.Time{d.class: {}}}
				c.tenures[name] = h
			}
			h.left = time.Time{}
		}
	}
	for name, h := range c.tenures {
		if !here[name] && h.left.IsZero() {
			h.left = at
		}
	}
}

// measure records each workload's use in the latest reading; containers of a pod share it equally.
// If no workload uses what the device reports as used, the exporter sees no processes.
func (c *chronicle) measure() {
	for _, d := range c.devices {
		var all []*tenure
		containers := map[workload]float64{}
		var utilization, memory float64
		for _, h := range c.tenures {
			if h.device != d || !h.left.IsZero() || !d.left.IsZero() {
				continue
			}
			if h.use = (use{math.NaN(), math.NaN()}); h.pod != "" {
				if said, is := d.uses[h.workload]; is {
					h.use = said
				}
			}
			all = append(all, h)
			containers[h.ofPod()]++
			utilization, memory = utilization+h.utilization, memory+h.memory
		}
		measured := true
		for _, h := range all {
			if utilization == 0 && d.readings[canonical.NVMLUtilization] != 0 {
				h.utilization = math.NaN()
			}
			if memory == 0 && !(d.readings[canonical.FramebufferUsed] < 1<<30) {
				h.memory = math.NaN()
			}
			h.utilization, h.memory = h.utilization/containers[h.ofPod()], h.memory/containers[h.ofPod()]
			measured = measured && !math.IsNaN(h.utilization)
		}
		for _, h := range all {
			h.measured = measured
		}
	}
}

// ofPod returns the workload without its container.
func (w workload) ofPod() workload {
	w.container = ""
	return w
}
