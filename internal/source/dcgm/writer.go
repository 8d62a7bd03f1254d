package dcgm

import (
	"log/slog"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// Writer fills Batches with readings of the inventory's devices as a scrape of
// dcgm-exporter 4.8 gives them: the DCGM_FI_* families, under the exporter's label
// blocks, in the exporter's order. While inventory and jobs stay the same, a Batch
// costs no allocation. A Writer belongs to one goroutine.
type Writer struct {
	hostname  string
	inventory Inventory
	version   uint64   // of the inventory
	mapping   *Mapping // nil for none
	jobs      Jobs
	failed    bool // the last read of the jobs failed
	logger    *slog.Logger

	dict   *raw.Dict  // nil if it must be rebuilt
	blocks [][]uint32 // in dict, of each device: one for each job, one if there is none
	clique [][]uint32 // the same, with the cluster of the device
	names  []uint32   // in dict, of each board: one that only names it
	read   []bool     // of each device: the Batch has a reading of it
	alive  []bool     // of each board: the Batch has a reading of it or of an instance of it

	// Of a Page, if there is one.
	page       *Page
	rendering  *rendering
	readDevice []bool // of each device: the Batch has a DeviceStream field of it
	counted    map[tallied]*tally
	tallies    []*tally // of each device
}

// Readings are the values that a Writer fills a Batch with.
type Readings interface {
	// Reading returns the value of a field, an index as Page.Field takes it, of a device
	// of the inventory, as the exporter would write it, NaN if there is none: a device
	// without a UUID has none.
	Reading(field, device int) float64
	// IsLost reports whether the source should have read a board of the inventory. It is
	// asked while other boards have readings, but neither this one nor its instances.
	IsLost(board int) bool
}

// NewWriter returns a Writer whose label blocks carry hostname, "" for none, and the
// jobs in a directory, "" for none. It logs if the directory cannot be read.
func NewWriter(hostname, jobs string, logger *slog.Logger) *Writer {
	w := &Writer{hostname: hostname, logger: logger, version: 1}
	if jobs != "" {
		w.mapping = NewMapping(diag.Directory(jobs), jobs)
	}
	return w
}

// Serve makes a Page select the part of the readings that is passed on; nil is all of them.
// Call it before the first Write.
func (w *Writer) Serve(p *Page) {
	w.page, w.counted = p, map[tallied]*tally{}
}

// SetInventory sets the inventory, which the Writer keeps and does not modify.
func (w *Writer) SetInventory(n Inventory) {
	w.inventory, w.dict = n, nil
	w.version++
}

// Version returns a number that changes with the inventory.
func (w *Writer) Version() uint64 { return w.version }

// Devices returns how many devices the inventory has.
func (w *Writer) Devices() int { return len(w.inventory.Devices) }

// Find returns the index of a device by its entity id, Unknown if the inventory lacks the
// device or its UUID: series under any other name would be those of another device, and
// would end as soon as the UUID is known.
func (w *Writer) Find(instance bool, entity int) int {
	at := w.inventory.Find(instance, entity)
	if at != Unknown && w.inventory.Devices[at].UUID == "" {
		return Unknown
	}
	return at
}

// Write appends the readings to the emptied b: by family, in the order of Fields, then by device, once
// for each of its jobs. It leaves out values that are not finite, and devices without a UUID. The last of
// Fields is Lost, for each lost board, with the label entity instead of an unknown UUID. Without a reading
// of NVLinkLimit, a device that has other readings gets the inventory's. XIDs are those of boards that are
// read or lost.
//
// The Dict of b changes with the inventory and the jobs, and is not written to
// afterwards: Exposition may be called while the next Batch is filled.
func (w *Writer) Write(b *raw.Batch, at time.Time, from Readings) {
	w.refresh(at)
	if w.dict == nil {
		w.learn()
	}
	b.At, b.Dict, b.Exposition, b.Own = at, w.dict, Exposition, own
	clear(w.read)
	clear(w.readDevice)
	clear(w.alive)
	for f := range Fields {
		blocks := w.blocks
		if f == cliqueField {
			blocks = w.clique
		}
		for d := range blocks {
			v := from.Reading(f, d)
			if limit := w.inventory.Devices[d].NVLinkLimit; f == linkLimitField && v != v && w.read[d] && limit > 0 {
				v = limit
			}
			if v-v != 0 {
				continue
			}
			w.read[d], w.alive[w.inventory.Devices[d].Board] = true, true
			w.readDevice[d] = w.readDevice[d] || Fields[f].Stream == DeviceStream && f != linkLimitField
			for _, block := range blocks[d] {
				b.Samples = append(b.Samples, raw.Sample{Family: uint32(f), Labels: block, Value: v + 0}) // no -0
			}
		}
	}
	w.writeLost(b, from)
	w.writeOthers(b, from)
	w.writeXIDs(b, from)
	if w.page != nil {
		b.Chosen, b.Families = w.rendering.text, w.page.names
		w.count(b, at, from)
	}
}

// writeOthers appends the samples of the Page's fields that are not in Fields, of devices
// that have other samples too: these fields alone do not show that a board is there.
func (w *Writer) writeOthers(b *raw.Batch, from Readings) {
	for i := range w.page.Others() {
		f := len(Fields) + i
		for d := range w.blocks {
			v := from.Reading(f, d)
			if v-v != 0 || !w.read[d] {
				continue
			}
			for _, block := range w.blocks[d] {
				b.Samples = append(b.Samples, raw.Sample{Family: uint32(f), Labels: block, Value: v + 0})
			}
		}
	}
}

// writeLost appends a sample for each lost board: one that is not read while others are.
func (w *Writer) writeLost(b *raw.Batch, from Readings) {
	if len(b.Samples) == 0 {
		return
	}
	for d := range w.inventory.Devices {
		if w.inventory.Devices[d].Board == d && !w.alive[d] && from.IsLost(d) {
			b.Samples = append(b.Samples, raw.Sample{Family: uint32(lostField), Labels: w.names[d], Value: 1})
			w.alive[d] = true // for its XIDs
		}
	}
}

// learn makes a Dict in which the id of a family is its index as Page.Field takes it.
func (w *Writer) learn() {
	w.dict = raw.NewDict()
	for f := range Fields {
		w.dict.FamilyID([]byte(Fields[f].Family))
	}
	for i := range w.page.Others() {
		w.dict.FamilyID([]byte(w.page.Others()[i].Family))
	}
	n := len(w.inventory.Devices)
	w.blocks, w.clique, w.names = make([][]uint32, n), make([][]uint32, n), make([]uint32, n)
	w.read, w.readDevice, w.alive = make([]bool, n), make([]bool, n), make([]bool, n)
	for i := range w.inventory.Devices {
		d := &w.inventory.Devices[i]
		if d.Board == i {
			w.names[i] = w.dict.BlockID(append(w.appendLabels(nil, d), '}'))
		}
		if d.UUID == "" {
			continue
		}
		plain := w.appendLabels(nil, d)
		w.blocks[i], w.clique[i] = w.blocksOf(d, plain), w.blocksOf(d, appendOptional(plain, clusterLabel, d.Cluster))
	}
	if w.page != nil {
		w.rendering = w.page.newRendering(w)
		w.findTallies()
	}
}

// blocksOf returns the label blocks that begin with labels: one for each job of a device, or
// one if there is none.
func (w *Writer) blocksOf(d *Device, labels []byte) (blocks []uint32) {
	for _, job := range w.jobs.Of(d.GPU, d.Instance) {
		blocks = append(blocks, w.dict.BlockID(append(exposition.AppendLabel(slices.Clone(labels), ",hpc_job", job), '}')))
	}
	if blocks == nil {
		blocks = []uint32{w.dict.BlockID(append(labels, '}'))}
	}
	return blocks
}

// tallied is what a tally is of.
type tallied struct{ uuid, instance string }

// findTallies finds the earlier tally of each device, or starts a new one.
func (w *Writer) findTallies() {
	w.tallies = make([]*tally, len(w.inventory.Devices))
	for i := range w.inventory.Devices {
		d := &w.inventory.Devices[i]
		key := tallied{d.UUID, d.Instance}
		if w.counted[key] == nil {
			w.counted[key] = &tally{}
		}
		w.tallies[i] = w.counted[key]
	}
}

// refresh updates the jobs.
func (w *Writer) refresh(now time.Time) {
	if w.mapping == nil {
		return
	}
	changed, err := w.mapping.Refresh(now)
	if changed {
		w.jobs, w.dict = w.mapping.Jobs(), nil
	}
	if err != nil && !w.failed {
		w.logger.Warn("GPUs are shown without their jobs", "cause", err)
	}
	w.failed = err != nil
}

// appendLabels appends the label block of a device in the exporter's order, without
// the closing brace.
func (w *Writer) appendLabels(dst []byte, d *Device) []byte {
	return appendOptional(w.appendDevice(dst, d), ",DCGM_FI_DRIVER_VERSION", d.Driver)
}

// appendDevice appends the labels that name the device. The first five are always there, as
// in the exporter.
func (w *Writer) appendDevice(dst []byte, d *Device) []byte {
	dst = exposition.AppendLabel(dst, "{gpu", d.GPU)
	if d.UUID != "" {
		dst = exposition.AppendLabel(dst, ",UUID", d.UUID)
	} else {
		dst = exposition.AppendLabel(dst, ",entity", "GPU "+d.GPU)
	}
	dst = exposition.AppendLabel(dst, ",pci_bus_id", d.PCIBusID)
	dst = exposition.AppendLabel(dst, ",device", "nvidia"+d.GPU)
	dst = exposition.AppendLabel(dst, ",modelName", d.Model)
	if d.IsInstance() {
		dst = appendOptional(dst, ",GPU_I_PROFILE", d.Profile)
		dst = exposition.AppendLabel(dst, ",GPU_I_ID", d.Instance)
	}
	return appendOptional(dst, ",hostname", w.hostname)
}

// appendOptional appends a label unless it is empty.
func appendOptional(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return exposition.AppendLabel(dst, name, value)
}
