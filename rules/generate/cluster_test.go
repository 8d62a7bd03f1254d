package main

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// node is a machine with an exporter of some version. Its readings are random, often at or
// next to a threshold, and often absent, blank or impossible.
type node struct {
	r       *rand.Rand
	address string // host and port of the target
	host    string // the host name in labels

	hostLabel, uuidLabel, modelLabel string
	spelling                         map[canonical.Field]spelled
	podLabels                        string // the pod's labels, which the exporter appends to its own
	util                             utilDialect
	sibling                          string  // a family of the generation that has ratios
	noise                            float64 // the share of garbage numbers
	defaults                         bool    // only the exporter's default counters
	systemDriver                     bool    // rows have the newest driver label, which implies no unit
	boards                           []*board
}

// spelled is the node's name for a reading.
type spelled struct {
	translate.Spelling
	name string
}

// utilDialect is how a node writes NVML utilization.
type utilDialect int

const (
	utilPercent     utilDialect = iota // DCGM_FI_DEV_GPU_UTIL
	renamedPercent                     // DCGM_FI_DEV_GPU_UTIL_RATIO in percent
	ratioOfSiblings                    // a ratio, with families of its generation
	loneRatio                          // a ratio
	loneZeroOrOne                      // a ratio or percent: undecided
	both                               // both names; the first has priority
	numUtilDialects
)

type board struct {
	index       int
	uuid, model string
	profiles    map[string]string // of its MIG instances, by id
	ownRows     bool
	pods        []string
	gone        bool
	counters    map[canonical.Field]float64
	xid         float64 // NaN if there is none
	stalled     bool

	clocks, fabric, fabricError float64
	given                       float64 // the share of readings that are present
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func newNode(r *rand.Rand, n int) *node {
	d := &node{
		r: r, host: fmt.Sprintf("node-%d", n), address: fmt.Sprintf("10.0.0.%d:9400", n),
		hostLabel: pick(r, "Hostname", "hostname", ""), uuidLabel: pick(r, "UUID", "uuid", "gpu_uuid"), modelLabel: pick(r, "modelName", "model_name"),
		util: utilDialect(r.IntN(int(numUtilDialects))), sibling: pick(r, "DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", "DCGM_FI_DEV_FB_USED_BYTES"), noise: pick(r, 0, 0, 0.05), defaults: r.IntN(2) == 0, systemDriver: r.IntN(2) == 0, spelling: map[canonical.Field]spelled{},
	}
	if n%5 == 4 {
		d.address = fmt.Sprintf("[fd00::%d]:9400", n)
	}
	switch d.hostLabel {
	case "":
		d.host, _, _ = net.SplitHostPort(d.address)
	case "Hostname":
		d.podLabels = `,hostname="of-the-pod"`
	}
	for f := range canonical.NumFields {
		if all := translate.Spellings(f); len(all) > 0 {
			s := pick(r, all...)
			d.spelling[f] = spelled{s, pick(r, s.Names...)}
		}
	}
	for i := range 1 + r.IntN(8) {
		b := &board{
			index: i, uuid: fmt.Sprintf("GPU-%d-%d", n, i), ownRows: true, xid: math.NaN(), counters: map[canonical.Field]float64{},
			model: pick(r, "", "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "NVIDIA H200", "Quadro RTX 6000", "Tesla T4"),
		}
		if r.IntN(4) == 0 {
			b.profiles, b.ownRows = map[string]string{"1": "3g.20gb", "2": "<<<NULL>>>", "13": "1g.5gb"}, r.IntN(2) == 0
		}
		d.boards = append(d.boards, b)
	}
	return d
}

// scrape returns the exporter's next page.
func (d *node) scrape() []byte {
	var out bytes.Buffer
	for _, b := range d.boards {
		b.live(d.r)
		if b.gone {
			continue
		}
		level := d.boardReadings(b)
		if b.ownRows {
			row := d.activities(b)
			maps.Copy(row, level)
			d.write(&out, b, "", row)
		}
		for _, id := range []string{"1", "2", "13"} {
			if profile, cut := b.profiles[id]; cut {
				row := d.activities(b)
				for _, f := range slices.Sorted(maps.Keys(level)) { // the same in each run
					if d.r.IntN(3) > 0 {
						row[f] = level[f]
					}
				}
				if v, ok := row[canonical.Temperature]; ok {
					row[canonical.Temperature] = v - float64(d.r.IntN(2))
				}
				d.write(&out, b, fmt.Sprintf(`,GPU_I_ID="%s",GPU_I_PROFILE="%s"`, id, profile), row)
			}
		}
	}
	d.strangers(&out)
	return out.Bytes()
}

// live changes the state of a board at random.
func (b *board) live(r *rand.Rand) {
	b.gone = r.IntN(12) == 0
	if r.IntN(4) == 0 {
		b.stalled, b.given = r.IntN(3) == 0, pick(r, 1, 0.9, 0.5, 0.2)
		b.pods = pick(r, nil, nil, []string{"a"}, []string{"a", "b"})
	}
	if r.IntN(4) == 0 {
		b.clocks, b.fabric, b.fabricError = float64(r.IntN(0x200)&r.IntN(0x200)), pick(r, 0.0, 1, 1, 2, 3, 3), pick(r, 0.0, 0, 0, 0, 64)
	}
	if r.IntN(4) == 0 {
		b.xid = pick(r, math.NaN(), 0, 0, 13, 31, 43, 45, 54, 74, 94, 145, 154) // no fatal ones, which are held for a day
	}
}

var edges = []float64{0, 0.05, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1}

func ratio(r *rand.Rand) float64 {
	switch r.IntN(6) {
	case 0:
		return 0
	case 1:
		return pick(r, edges...)
	case 2:
		return math.Abs(pick(r, edges...) + pick(r, -1e-3, -1e-6, -1e-12, 1e-12, 1e-6, 1e-3))
	case 3:
		return r.Float64() * 0.1
	}
	return r.Float64()
}

// activities returns the readings that differ between instances.
func (d *node) activities(b *board) map[canonical.Field]float64 {
	row := map[canonical.Field]float64{}
	for f := canonical.SMActive; f <= canonical.PCIeReceive; f++ {
		if d.defaults && f <= canonical.IntActive && f != canonical.TensorActive {
			continue
		}
		v := ratio(d.r)
		switch {
		case f >= canonical.PCIeTransmit:
			v = pick(d.r, 0, 1e6, 1e9-1, 1e9, 3e10, 140737488355328, 140737488355343, 140737488355344, 2e14)
		case b.stalled && f == canonical.NVMLUtilization:
			v = pick(d.r, 0.2, 0.5, 1)
		case b.stalled && f <= canonical.DRAMActive:
			v = 0
		}
		if d.r.Float64() < b.given || b.stalled && f <= canonical.NVMLUtilization && d.r.IntN(20) > 0 {
			row[f] = v
		}
	}
	return row
}

// boardReadings returns the board's readings, which instances repeat.
func (d *node) boardReadings(b *board) map[canonical.Field]float64 {
	row := map[canonical.Field]float64{}
	give := func(f canonical.Field, v float64) {
		if d.r.Float64() < b.given {
			row[f] = v
		}
	}
	for _, f := range []canonical.Field{
		canonical.PCIeReplays, canonical.ECCDoubleBitVolatile,
		canonical.NVLinkCRCFlitErrors, canonical.NVLinkCRCDataErrors, canonical.NVLinkReplayErrors, canonical.NVLinkRecoveryErrors,
		canonical.NVLinkRecoveriesFailed, canonical.NVLinkSymbolErrors,
	} {
		switch d.r.IntN(16) {
		case 0:
			b.counters[f] += float64(1 + d.r.IntN(3))
		case 1:
			b.counters[f] = float64(d.r.IntN(2)) // reset
		}
		give(f, b.counters[f])
	}
	give(canonical.Temperature, pick(d.r, 40, 91, 92, 92.999, 93, 94, 95, 95.5, 250, -60))
	give(canonical.MemoryTemperature, pick(d.r, 40, 91, 92, 93.0, 95, 0, -0.5))
	give(canonical.RowRemapFailure, float64(d.r.IntN(20)/19))
	give(canonical.RowRemapPending, float64(d.r.IntN(9)/8))
	give(canonical.RemappedRowsUncorrectable, float64(max(0, d.r.IntN(20)-17)))
	give(canonical.ClockEvents, b.clocks)
	give(canonical.TemperatureMargin, pick(d.r, 30.0, 1, 0, -1, -60))
	give(canonical.RecoveryAction, pick(d.r, 0.0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 9))
	give(canonical.RetiredPagesPending, float64(d.r.IntN(9)/8))
	give(canonical.SRAMThresholdExceeded, float64(d.r.IntN(20)/19))
	give(canonical.MemoryUnrepairable, float64(d.r.IntN(20)/19))
	give(canonical.MemoryBanksNone, float64(max(0, d.r.IntN(9)-6)))
	give(canonical.FabricHealth, b.fabric)
	give(canonical.FabricError, b.fabricError)
	if !math.IsNaN(b.xid) {
		give(canonical.XIDLast, b.xid)
	}
	return row
}

var garbage = []string{
	"9223372036854775794", "9.223372036854776e+18", "2147483632", "2147483633", "2147483634", "2147483635", "2147483636", "140737488355330", "4294967295",
	"NaN", "+Inf", "-Inf", "-1", "1.05", "1.1", "1.11", "101", "-0.000000",
}

// write writes the rows of a device, once for each pod that holds it.
func (d *node) write(out *bytes.Buffer, b *board, instance string, row map[canonical.Field]float64) {
	labels := fmt.Sprintf(`gpu="%d",%s="%s",device="nvidia%d",%s="%s"%s`, b.index, d.uuidLabel, b.uuid, b.index, d.modelLabel, b.model, instance)
	if d.hostLabel != "" {
		labels += fmt.Sprintf(`,%s="%s"`, d.hostLabel, d.host)
	}
	if d.systemDriver {
		labels += `,DCGM_FI_SYSTEM_DRIVER_VERSION="590.1"`
	}
	emit := func(name, value string) {
		if len(b.pods) == 0 {
			fmt.Fprintf(out, "%s{%s} %s\n", name, labels, value)
		}
		for _, pod := range b.pods {
			fmt.Fprintf(out, "%s{%s,namespace=\"n\",pod=\"%s\",container=\"c\"%s} %s\n", name, labels, pod, d.podLabels, value)
		}
	}
	for _, f := range slices.Sorted(maps.Keys(row)) {
		if f == canonical.NVMLUtilization {
			d.writeUtil(emit, row[f])
			continue
		}
		s := d.spelling[f]
		emit(s.name, d.number(row[f]*s.Per/s.Times))
	}
	emit("DCGM_FI_DEV_FB_TOTAL", "1024") // so that every device has a row
	if d.util == ratioOfSiblings {
		emit(d.sibling, "1980000000")
	}
}

func (d *node) number(v float64) string {
	if d.r.Float64() < d.noise {
		return pick(d.r, garbage...)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func (d *node) writeUtil(emit func(name, value string), v float64) {
	const percent, ratio = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO"
	switch d.util {
	case utilPercent:
		emit(percent, d.number(math.Round(v*100)))
	case renamedPercent:
		emit(ratio, d.number(math.Round(v*100)))
	case loneZeroOrOne:
		emit(ratio, d.number(math.Round(v)))
	case both:
		if d.r.IntN(2) == 0 {
			emit(percent, d.number(math.Round(v*100)))
		}
		emit(ratio, d.number(v))
	default:
		emit(ratio, d.number(v))
	}
}

// strangers writes rows with alarming values that belong to no device.
func (d *node) strangers(out *bytes.Buffer) {
	gpu := fmt.Sprintf(`gpu="0",%s="%s",%s="%s"`, d.uuidLabel, d.boards[0].uuid, "Hostname", d.host)
	fmt.Fprintf(out, "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL{%s,nvlink=\"3\"} %d\n", gpu, d.r.IntN(1000))
	fmt.Fprintf(out, "DCGM_FI_PROF_SM_ACTIVE{%s,GPU_CI_ID=\"1\"} 1\n", gpu)
	fmt.Fprintf(out, "DCGM_FI_DEV_GPU_TEMP{%s,nvswitch=\"1\"} 120\n", gpu)
	fmt.Fprintf(out, "DCGM_FI_DEV_CPU_TEMP_CURRENT{cpu=\"0\"} 39.5\nDCGM_FI_DEV_GPU_TEMP{gpu=\"9\",Hostname=\"%s\"} 130\n", d.host)
}
