package recording

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// demo plays the script as the expositions of a dcgm-exporter 4.8. One tick is
// one second of the script and of its counters, so a Period below 1 s plays it
// faster. The bytes of tick n do not depend on a clock, and the counters keep
// rising when the script starts over.
type demo struct {
	*demoScript
	rng     *rand.Rand
	tick    int
	boards  []boardState
	units   []demoUnit
	heads   [][]byte // HELP and TYPE, by family
	scanner raw.Scanner
}

// boardState is the state of a board's sensors and counters.
type boardState struct {
	demoBoard
	readings map[string]float64
}

// demoUnit is the state of a device.
type demoUnit struct {
	demoDevice
	present  bool
	readings map[string]float64 // NaN for one that the device lacks
	labels   map[string][]byte  // the label block, by pod
	pod      string
}

func newDemo() *demo {
	d := &demo{demoScript: theDemo(), rng: rand.New(rand.NewPCG(1, 0x6b70756c7365))}
	for i, b := range d.Boards {
		d.boards = append(d.boards, boardState{b, map[string]float64{
			"watts": b.Idle, "limit": b.Limit, "memoryClock": b.MemoryClock, "degrees": 31 + float64(i%3), "memoryDegrees": 36,
			"energy": 1e12 + float64(i)*37e9, "remapped": float64(i % 2), "replays": float64(i % 3),
		}})
	}
	for i, device := range d.Devices {
		free := d.labels(device)
		u := demoUnit{demoDevice: device, readings: map[string]float64{}, labels: map[string][]byte{"": []byte(free + "}")}}
		for _, s := range d.Scenes {
			if pod, held := d.Pods[s.Pod]; held && s.Device == i {
				u.labels[s.Pod] = fmt.Appendf(nil, `%s,container="%s",namespace="%s",pod="%s"}`, free, pod.Container, pod.Namespace, s.Pod)
			}
		}
		d.units = append(d.units, u)
	}
	for _, f := range d.Families {
		d.heads = append(d.heads, exposition.AppendHeader(nil, f.Name, f.Help, f.Type))
	}
	return d
}

// labels returns the label block of a device, in the order of the exporter's template, without its closing brace.
func (s *demoScript) labels(d demoDevice) string {
	b := s.Boards[d.Board]
	instance := ""
	if d.ID != "" {
		instance = fmt.Sprintf(`,GPU_I_PROFILE="%s",GPU_I_ID="%s"`, d.Profile, d.ID)
	}
	return fmt.Sprintf(`{gpu="%d",UUID="%s",pci_bus_id="%s",device="nvidia%d",modelName="%s"%s,hostname="demo-node",DCGM_FI_DRIVER_VERSION="580.105.08"`,
		d.Board, b.UUID, b.Bus, d.Board, b.Model, instance)
}

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

// playUnit moves a device to a second of the script. Each reading takes one number from the
// generator, of any value, so that a change at one place of the script leaves the noise elsewhere
// unchanged.
func (d *demo) playUnit(i, second int) {
	// noise is the largest deviation of a reading from its target, as a share of it. The phases keep
	// a larger distance from every threshold.
	const noise = .03
	u := &d.units[i]
	scene, phase := d.at(i, second)
	if u.present, u.pod = phase != nil, ""; u.present {
		u.pod = scene.Pod
	}
	for j, name := range d.Readings {
		target := 0.
		if phase != nil {
			target = phase.Readings[j]
		}
		if name != "filled" {
			target *= 1 + noise*(2*d.rng.Float64()-1)
		}
		u.readings[name] = target
	}
	u.readings["sm"], u.readings["engine"] = min(u.readings["sm"], 1), min(u.readings["engine"], 1)
	u.readings["util"] = min(u.readings["util"], 100)
	reserved := math.Round(u.Framebuffer * .0075)
	used := math.Round(u.readings["filled"] * (u.Framebuffer - reserved))
	u.readings["reserved"], u.readings["used"], u.readings["free"] = reserved, used, u.Framebuffer-used-reserved
	if !d.Boards[u.Board].NVLink {
		u.readings["link"] = math.NaN()
	}
	u.readings["bandwidth"] = 2 * u.readings["link"] / 1_024_000
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
	for _, u := range d.units {
		if u.Board == i {
			load += u.readings["load"] * u.Slices / 7
		}
	}
	hot, r := false, b.readings
	r["xid"] = 0
	for _, f := range d.Faults {
		if f.Board == i && f.From <= second && second < f.To {
			hot = hot || f.Hot
			r["xid"] = max(r["xid"], f.XID)
			r["replays"] += f.Replays
			r["corrected"] += f.Corrected
		}
	}
	r["correctedEver"] = r["corrected"] + 2
	r["watts"] = min(r["watts"]+.5*(b.Idle+load*(b.Limit-b.Idle)-r["watts"]), b.Limit)
	r["energy"] += math.Round(r["watts"] * 1000) // mJ in one second
	goal, pace := 32+42*load, .12
	if hot {
		goal, pace = 98, .3
	}
	r["degrees"] += pace * (goal - r["degrees"])
	r["memoryDegrees"] += .1 * (34 + 44*load - r["memoryDegrees"])
	r["smClock"], r["reasons"] = b.limitedClock(load)
}

// limitedClock returns the clock, and the reasons why it is not higher.
func (b *boardState) limitedClock(load float64) (clock, reasons float64) {
	switch degrees := b.readings["degrees"]; {
	case load < .02:
		return 345, reasonIdle
	case degrees >= 97:
		return b.Clock / 2, reasonHWSlowdown | reasonSWThermal | reasonHWThermal
	case degrees >= 93:
		return b.Clock * .7, reasonSWThermal
	case load > .88:
		return b.Clock * .93, reasonPowerCap
	}
	return b.Clock, 0
}

// appendBody appends the exposition of this tick to dst.
func (d *demo) appendBody(dst []byte) []byte {
	for i, f := range d.Families {
		dst = append(dst, d.heads[i]...)
		for _, u := range d.units {
			if !u.present || f.BoardsOnly && u.ID != "" {
				continue
			}
			v, own := u.readings[f.Reading]
			if !own {
				v = d.boards[u.Board].readings[f.Reading] // 0 for one that nothing changes
			}
			if !math.IsNaN(v) {
				dst = append(append(append(dst, f.Name...), u.labels[u.pod]...), ' ')
				dst = append(strconv.AppendFloat(dst, v, 'f', f.Decimals, 64), '\n')
			}
		}
	}
	return dst
}
