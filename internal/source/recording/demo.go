package recording

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// demo plays the script as the expositions of a dcgm-exporter 4.8. One tick is
// one second of the script and of its counters, so a Period below 1 s plays it
// faster. The bytes of tick n do not depend on a clock, and the counters keep
// rising when the script starts over.
type demo struct {
	rng     *rand.Rand
	tick    int
	boards  [len(demoBoards)]boardState
	units   [len(demoUnits)]unitState
	heads   [len(demoFamilies)][]byte // HELP and TYPE
	scanner raw.Scanner
}

// boardState is the state of a board's sensors and counters.
type boardState struct {
	demoBoard
	watts                     float64 // W
	degrees, memDegrees       float64 // °C
	energy                    uint64  // mJ since the driver was loaded
	smClock                   float64 // MHz
	reasons                   float64 // clock event bits
	xid                       float64
	replays, corrected, remap float64
}

// unitState is the state of a device's readings.
type unitState struct {
	demoUnit
	demoPhase // with noise
	present   bool
	labels    []byte            // the label block at this tick
	free      []byte            // the label block without a pod
	holdings  map[string][]byte // the label block with a pod, by pod
}

func newDemo() *demo {
	d := &demo{rng: rand.New(rand.NewPCG(1, 0x6b70756c7365))}
	for i, b := range demoBoards {
		d.boards[i] = boardState{
			demoBoard: b, watts: b.idle, degrees: 31 + float64(i%3), memDegrees: 36,
			energy: uint64(1e12) + uint64(i)*37e9, remap: float64(i % 2), replays: float64(i % 3),
		}
	}
	for i, u := range demoUnits {
		free := demoLabels(u)
		s := unitState{demoUnit: u, free: closed(free, ""), holdings: map[string][]byte{}}
		for _, h := range demoHoldings {
			if h.unit == i {
				s.holdings[h.pod] = closed(free, fmt.Sprintf(`,container="%s",namespace="%s",pod="%s"`, h.container, h.namespace, h.pod))
			}
		}
		d.units[i] = s
	}
	for i, f := range demoFamilies {
		d.heads[i] = exposition.AppendHeader(nil, f.name, f.help, f.kind)
	}
	return d
}

// demoLabels returns the label block of a device, in the order of the
// exporter's template, without its closing brace.
func demoLabels(u demoUnit) string {
	b := demoBoards[u.board]
	instance := ""
	if u.id != "" {
		instance = fmt.Sprintf(`,GPU_I_PROFILE="%s",GPU_I_ID="%s"`, u.profile, u.id)
	}
	return fmt.Sprintf(`{gpu="%d",UUID="%s",pci_bus_id="%s",device="nvidia%d",modelName="%s"%s,hostname="%s",DCGM_FI_DRIVER_VERSION="%s"`,
		u.board, b.uuid, b.bus, u.board, b.model, instance, demoHost, demoDriver)
}

func closed(labels, more string) []byte { return []byte(labels + more + "}") }

// fill plays one second and scans its page.
func (d *demo) fill(_ int, b *raw.Batch) {
	second := d.tick % demoSeconds
	d.tick++
	for i := range d.units {
		d.playUnit(i, second)
	}
	for i := range d.boards {
		d.playBoard(i, second)
	}
	b.Body = d.appendBody(b.Body[:0])
	d.scanner.Scan(b)
}

// noise is the largest deviation of a reading from its target, as a share of
// it. The phases keep a larger distance from every threshold.
const noise = .03

// vary returns v with noise. Each call takes one number from the generator, for
// any v, so that a change at one place of the script leaves the noise elsewhere
// unchanged.
func (d *demo) vary(v float64) float64 { return v * (1 + noise*(2*d.rng.Float64()-1)) }

// playUnit moves a device to a second of the script.
func (d *demo) playUnit(i, second int) {
	u := &d.units[i]
	var target demoPhase
	phase := demoPhaseAt(i, second)
	if u.present = phase != nil; u.present {
		target = *phase
	}
	u.demoPhase = target
	for _, v := range [...]*float64{
		&u.sm, &u.occupancy, &u.tensor, &u.dram, &u.engine, &u.fp64, &u.fp32, &u.fp16,
		&u.util, &u.copying, &u.encode, &u.decode, &u.transmit, &u.receive, &u.link, &u.power,
	} {
		*v = d.vary(*v)
	}
	for _, v := range [...]*float64{&u.sm, &u.engine} {
		*v = min(*v, 1)
	}
	u.util = min(u.util, 100)
	u.labels = u.free
	for _, h := range demoHoldings {
		if h.unit == i && h.from <= second && second < h.to {
			u.labels = u.holdings[h.pod]
		}
	}
}

// Bits of DCGM_FI_DEV_CLOCKS_EVENT_REASONS (NVML, nvmlClocksEventReason*).
const (
	reasonIdle       = 0x1
	reasonPowerCap   = 0x4
	reasonHWSlowdown = 0x8
	reasonSWThermal  = 0x20
	reasonHWThermal  = 0x40
)

// playBoard moves a board's sensors and counters to a second of the script:
// power and temperatures follow the load of its devices with a lag.
func (d *demo) playBoard(i, second int) {
	b := &d.boards[i]
	load := 0.0
	for j := range d.units {
		if u := &d.units[j]; u.board == i {
			load += u.power * u.slices / 7
		}
	}
	hot := false
	b.xid = 0
	for _, f := range demoFaults {
		if f.board == i && f.from <= second && second < f.to {
			hot = hot || f.hot
			b.xid = max(b.xid, float64(f.xid))
			b.replays += f.replays
			b.corrected += f.ecc
		}
	}
	b.watts = min(b.watts+.5*(b.idle+load*(b.limit-b.idle)-b.watts), b.limit)
	b.energy += uint64(math.Round(b.watts * 1000)) // mJ in one second
	goal, pace := 32+42*load, .12
	if hot {
		goal, pace = 98, .3
	}
	b.degrees += pace * (goal - b.degrees)
	b.memDegrees += .1 * (34 + 44*load - b.memDegrees)
	b.limitClock(load)
}

// limitClock sets the clock, and the reasons why it is not higher.
func (b *boardState) limitClock(load float64) {
	b.smClock, b.reasons = b.clock, 0
	switch {
	case load < .02:
		b.smClock, b.reasons = 345, reasonIdle
	case b.degrees >= 97:
		b.smClock, b.reasons = b.clock/2, reasonHWSlowdown|reasonSWThermal|reasonHWThermal
	case b.degrees >= 93:
		b.smClock, b.reasons = b.clock*.7, reasonSWThermal
	case load > .88:
		b.smClock, b.reasons = b.clock*.93, reasonPowerCap
	}
}
