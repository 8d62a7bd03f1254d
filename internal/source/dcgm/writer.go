package dcgm

import (
	"log/slog"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// Writer fills Batches with readings of the inventory's devices as a scrape of dcgm-exporter 4.8 gives them: the
// DCGM_FI_* families, under the exporter's label blocks, in the exporter's order. While inventory and jobs stay the
// same, a Batch costs no allocation. A Writer belongs to one goroutine.
type Writer struct {
	hostname  string
	inventory Inventory
	mapping   *Mapping // nil for none
	jobs      Jobs
	failed    bool // the last read of the jobs failed
	logger    *slog.Logger

	dict   *raw.Dict // nil if it must be rebuilt
	labels []labels  // of each device
	seen   []seen    // of each device, in this Batch

	// Of a Page, if there is one.
	page    *Page
	pods    any // the answer of the Page's Pods that labels have
	served  *rendering
	chosen  func(dst []byte, b *raw.Batch) []byte
	counted map[tallied]*tally
}

// labels are the label blocks of a device in the Dict.
type labels struct {
	blocks []uint32 // one for each job, one if there is none, none without a UUID
	clique []uint32 // the same, with the cluster of the device
	name   uint32   // of a board: one that only names it
	silent uint32   // the same, with silentLabel
}

// seen is what a Batch has of a device.
type seen struct {
	read   bool // a reading
	device bool // a field of DeviceStream
	alive  bool // of a board: a reading of it or of an instance of it
}

// Readings are the values that a Writer fills a Batch with.
type Readings interface {
	// Reading returns the value of a field, an index in Fields, of a device of the inventory, as the
	// exporter would write it, NaN if there is none: a device without a UUID has none.
	Reading(field, device int) float64
	// IsLost reports whether the source should have read a board of the inventory. It is asked while other boards have
	// readings, but neither this one nor its instances.
	IsLost(board int) bool
}

// Silences are implemented by Readings that know of a board that IsLost reports whether it only gives no reading: neither
// the driver nor the host engine calls it lost.
type Silences interface {
	IsSilent(board int) bool
}

// NewWriter returns a Writer whose label blocks carry hostname, "" for none, and the jobs in a directory, "" for none.
// It logs if the directory cannot be read.
func NewWriter(hostname, jobs string, logger *slog.Logger) *Writer {
	w := &Writer{hostname: hostname, logger: logger}
	if jobs != "" {
		w.mapping = NewMapping(diag.Directory(jobs), jobs)
	}
	return w
}

// Serve makes a Page select the part of the readings that is passed on; nil is all of them. Call it before the first
// Write.
func (w *Writer) Serve(p *Page) { w.page, w.counted = p, map[tallied]*tally{} }

// SetInventory sets the inventory, which the Writer keeps and does not modify.
func (w *Writer) SetInventory(n Inventory) { w.inventory, w.dict = n, nil }

// Write appends the readings to the emptied b: by field, in the order of Fields, then by device, once for each of its jobs.
// It leaves out values that are not finite, and devices without a UUID, but not lost boards. Without a reading of
// NVLinkLimit, a device that has other readings gets the inventory's. XIDs are those of boards that are read or lost.
//
// The Dict of b changes with the inventory and the jobs, and is not written to afterwards: Exposition may be called
// while the next Batch is filled.
func (w *Writer) Write(b *raw.Batch, at time.Time, from Readings) {
	w.refresh(at)
	if w.page != nil && w.page.Pods != nil {
		if now := w.page.Pods.Answer(); now != w.pods {
			w.pods, w.dict = now, nil
		}
	}
	if w.dict == nil {
		w.learn()
	}
	b.At, b.Dict, b.Exposition, b.Own = at, w.dict, Exposition, own
	clear(w.seen)
	for f := range Fields {
		for d := range w.labels {
			w.writeField(b, from, f, d)
		}
	}
	w.writeLost(b, from)
	w.writeXIDs(b, from)
	if w.page != nil {
		b.Chosen, b.Families = w.chosen, w.page.names
		w.count(b, at, from)
	}
}

// writeField appends the samples of a field of a device.
func (w *Writer) writeField(b *raw.Batch, from Readings, f, d int) {
	blocks, device, seen := w.labels[d].blocks, &w.inventory.Devices[d], &w.seen[d]
	if f == cliqueField {
		blocks = w.labels[d].clique
	}
	if len(blocks) == 0 {
		return
	}
	v := from.Reading(f, d)
	if f == linkLimitField && v != v && seen.read && device.NVLinkLimit > 0 {
		v = device.NVLinkLimit
	}
	if v-v != 0 {
		return
	}
	seen.read, w.seen[device.Board].alive = true, true
	seen.device = seen.device || Fields[f].Stream == DeviceStream && f != linkLimitField
	for _, block := range blocks {
		b.Samples = append(b.Samples, raw.Sample{Family: uint32(f), Labels: block, Value: v + 0}) // no -0
	}
}

// writeLost appends a sample for each lost board: one that is not read while others are.
func (w *Writer) writeLost(b *raw.Batch, from Readings) {
	if len(b.Samples) == 0 {
		return
	}
	knows, _ := from.(Silences)
	for d := range w.seen {
		if w.inventory.Devices[d].Board == d && !w.seen[d].alive && from.IsLost(d) {
			block := w.labels[d].name
			if knows != nil && knows.IsSilent(d) {
				block = w.labels[d].silent
			}
			b.Samples = append(b.Samples, raw.Sample{Family: uint32(lostField), Labels: block, Value: 1})
			w.seen[d].alive = true // for its XIDs
		}
	}
}

// learn makes a Dict in which the id of a family is its index in Fields.
func (w *Writer) learn() {
	w.dict, w.served = raw.NewDict(), &rendering{Page: w.page, cut: map[uint32][]uint32{}}
	for f := range Fields {
		w.dict.FamilyID([]byte(Fields[f].Family))
	}
	n := len(w.inventory.Devices)
	w.labels, w.seen = make([]labels, n), make([]seen, n)
	pods := w.podLabels()
	for i := range w.inventory.Devices {
		d, l := &w.inventory.Devices[i], &w.labels[i]
		device := w.appendDevice(nil, d)
		plain, chosen := appendOptional(slices.Clone(device), ","+driverLabels[0], d.Driver), device
		if w.page != nil && w.page.driver != "" {
			chosen = appendOptional(slices.Clone(device), ","+w.page.driver, d.Driver)
		}
		chosen = append(slices.Clip(chosen), pods[i]...)
		if d.Board == i {
			l.name, l.silent = w.block(plain, chosen, "}"), w.block(plain, chosen, silentLabel+"}")
		}
		if d.UUID == "" {
			continue
		}
		clique := appendOptional(slices.Clone(plain), clusterLabel, d.Cluster)
		for _, tail := range w.tails(d) {
			l.blocks = append(l.blocks, w.block(plain, chosen, tail))
			l.clique = append(l.clique, w.block(clique, chosen, tail))
		}
		if d.IsInstance() {
			for _, block := range w.labels[d.Board].blocks[1:] { // of further jobs
				w.served.cut[block] = nil
			}
			first := w.labels[d.Board].blocks[0]
			w.served.cut[first] = append(w.served.cut[first], l.blocks...)
		}
	}
	if w.page != nil {
		w.chosen = w.served.append
	}
}

// podLabels returns the labels of each device's pod in a Page: one of a shared device, as in the exporter, the last by name.
func (w *Writer) podLabels() [][]byte {
	all := make([][]byte, len(w.inventory.Devices))
	if w.page == nil || w.page.Pods == nil {
		return all
	}
	for i, holders := range w.page.Pods.Holding(w.inventory.named(), w.inventory.MIGPlaces()) {
		for _, h := range holders[max(0, len(holders)-1):] {
			all[i] = exposition.AppendLabel(exposition.AppendLabel(nil, ",container", h.Container), ",namespace", h.Namespace)
			all[i] = exposition.AppendLabel(all[i], ",pod", h.Pod)
		}
	}
	return all
}

// block returns the id of the label block of labels and tail, in whose place a Page has chosen and tail.
func (w *Writer) block(labels, chosen []byte, tail string) uint32 {
	id := w.dict.BlockID(append(slices.Clone(labels), tail...))
	if int(id) == len(w.served.blocks) {
		w.served.blocks = append(w.served.blocks, [2]string{string(chosen), tail})
	}
	return id
}

// tails returns how the label blocks of a device end: one for each of its jobs, or one if there is none.
func (w *Writer) tails(d *Device) (tails []string) {
	for _, job := range w.jobs.Of(d.GPU, d.Instance) {
		tails = append(tails, string(append(exposition.AppendLabel(nil, ",hpc_job", job), '}')))
	}
	if tails == nil {
		tails = []string{"}"}
	}
	return tails
}

// refresh updates the jobs.
func (w *Writer) refresh(now time.Time) {
	if w.mapping == nil {
		return
	}
	changed, err := w.mapping.Refresh(now)
	if changed {
		w.jobs, w.dict = w.mapping.jobs, nil
	}
	if err != nil && !w.failed {
		w.logger.Warn("GPUs are shown without their jobs", "cause", err)
	}
	w.failed = err != nil
}

// appendDevice appends the labels that name the device, in the exporter's order. The first five are always there, as in the exporter.
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
