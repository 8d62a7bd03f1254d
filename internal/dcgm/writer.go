package dcgm

import (
	"cmp"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// Writer fills Batches with readings of the inventory's devices as a scrape of
// dcgm-exporter 4.8 gives them: the DCGM_FI_* families, under the exporter's label
// blocks, in the exporter's order. While inventory and jobs stay the same, a Batch
// costs no allocation. A Writer belongs to one goroutine.
type Writer struct {
	hostname string
	node     Node
	mapping  *Mapping // nil for none
	jobs     Jobs
	failed   bool // the jobs could not be read last time
	logger   *slog.Logger

	rows     []deviceRow
	version  uint64    // of rows
	dict     *raw.Dict // nil where it is to be made anew
	read     []bool    // by row: the Batch has a reading of it
	readings Readings
}

// deviceRow is a device of the inventory.
type deviceRow struct {
	board    *Board
	instance *Instance // nil for the board itself
	blocks   []uint32  // in the Dict: one for each job, one where there is none
}

// Readings are the values that a Writer fills a Batch with.
type Readings interface {
	// Reading returns the value of Fields[field] of a row of the Writer, as the
	// exporter would write it, NaN where there is none.
	Reading(field, row int) float64
}

// NewWriter returns a Writer whose label blocks carry hostname, "" for none, and the
// jobs in a directory, "" for none. It logs when that cannot be read.
func NewWriter(hostname, jobs string, logger *slog.Logger) *Writer {
	w := &Writer{hostname: hostname, logger: logger, version: 1}
	if jobs != "" {
		w.mapping = NewMapping(os.DirFS(jobs), jobs)
	}
	return w
}

// SetNode sets the inventory, which the Writer keeps and does not write to. Its rows
// are the boards, each followed by its instances.
func (w *Writer) SetNode(n Node) {
	w.node, w.dict, w.rows = n, nil, nil
	w.version++
	for b := range n.Boards {
		board := &n.Boards[b]
		w.rows = append(w.rows, deviceRow{board: board})
		for i := range board.Instances {
			w.rows = append(w.rows, deviceRow{board: board, instance: &board.Instances[i]})
		}
	}
	slices.SortStableFunc(w.rows, func(a, b deviceRow) int {
		return cmp.Or(cmp.Compare(a.board.Entity, b.board.Entity), cmp.Compare(a.instanceID(), b.instanceID()))
	})
}

// Rows returns how many rows there are, and a number that changes with them.
func (w *Writer) Rows() (n int, version uint64) { return len(w.rows), w.version }

// Row returns the row of a board or of an instance by DCGM's entity id, Unknown where
// the inventory has none, or not the UUID of its board: under any other name its series
// would be those of another device, which would be missed as soon as the UUID is known.
func (w *Writer) Row(instance bool, entity int) int {
	return slices.IndexFunc(w.rows, func(r deviceRow) bool {
		if instance != (r.instance != nil) || r.board.UUID == "" {
			return false
		}
		return instance && r.instance.Entity == entity || !instance && r.board.Entity == entity
	})
}

// Write appends the readings to the emptied b, family by family in the order of
// Fields and in each row by row, once for each job of a device. Values that are not
// finite are left out, and so are rows without a UUID. Where there is no reading of
// what the NVLinks of a device can carry, it is what the inventory has, as long as
// there is another reading of the device.
//
// The Dict of b changes with the inventory and the jobs, and is not written to
// afterwards: Exposition may be called while the next Batch is filled.
func (w *Writer) Write(b *raw.Batch, at time.Time, from Readings) {
	w.refresh(at)
	if w.dict == nil {
		w.learn()
	}
	b.At, b.Dict, b.Exposition = at, w.dict, Exposition
	clear(w.read)
	for f := range Fields {
		for r := range w.rows {
			row := &w.rows[r]
			v := from.Reading(f, r)
			if f == linkLimitField && v != v && w.read[r] && row.board.NVLinkLimit > 0 {
				v = row.board.NVLinkLimit
			}
			if v-v != 0 {
				continue
			}
			w.read[r] = true
			for _, block := range row.blocks {
				b.Samples = append(b.Samples, raw.Sample{Family: uint32(f), Labels: block, Value: v + 0}) // no -0
			}
		}
	}
}

// learn makes a Dict in which the id of a family is its index in Fields.
func (w *Writer) learn() {
	w.dict = raw.NewDict()
	for f := range Fields {
		w.dict.FamilyID([]byte(Fields[f].Family))
	}
	for r := range w.rows {
		row := &w.rows[r]
		row.blocks = nil
		if row.board.UUID == "" {
			continue
		}
		for _, job := range w.jobs.Of(row.board.Entity, row.instanceID()) {
			row.blocks = append(row.blocks, w.dict.BlockID(append(exposition.AppendLabel(w.appendLabels(nil, row), ",hpc_job", job), '}')))
		}
		if row.blocks == nil {
			row.blocks = []uint32{w.dict.BlockID(append(w.appendLabels(nil, row), '}'))}
		}
	}
	w.read = make([]bool, len(w.rows))
}

// refresh takes over the jobs as they are now.
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

// instanceID is NVML's id of an instance, Unknown on a board.
func (r *deviceRow) instanceID() int {
	if r.instance == nil {
		return Unknown
	}
	return r.instance.ID
}

// appendLabels appends the label block of a device in the exporter's order, without
// the closing brace. The five in front are always there, as the exporter writes them.
func (w *Writer) appendLabels(dst []byte, r *deviceRow) []byte {
	b := r.board
	gpu := strconv.Itoa(b.Entity)
	dst = exposition.AppendLabel(dst, "{gpu", gpu)
	dst = exposition.AppendLabel(dst, ",UUID", b.UUID)
	dst = exposition.AppendLabel(dst, ",pci_bus_id", b.PCIBusID)
	dst = exposition.AppendLabel(dst, ",device", "nvidia"+gpu)
	dst = exposition.AppendLabel(dst, ",modelName", b.Model)
	if r.instance != nil {
		dst = appendOptional(dst, ",GPU_I_PROFILE", r.instance.Profile)
		dst = exposition.AppendLabel(dst, ",GPU_I_ID", strconv.Itoa(r.instance.ID))
	}
	dst = appendOptional(dst, ",hostname", w.hostname)
	return appendOptional(dst, ",DCGM_FI_DRIVER_VERSION", b.Driver)
}

// appendOptional appends a label unless it is empty.
func appendOptional(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return exposition.AppendLabel(dst, name, value)
}
