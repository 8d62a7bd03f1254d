//go:build cgo && linux

package nvml

import (
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// batcher makes Batches from the results of all boards. It belongs to the goroutine that
// reads the source.
type batcher struct {
	chooser   dcgm.Chooser
	logger    *slog.Logger
	boards    []dcgm.Device   // all of the machine
	instances [][]migInstance // of each board
	inventory dcgm.Inventory
	mig       []dcgm.MIGPlace
	chosen    []bool // of each device of the inventory
	unfit     error  // the error of a choice that does not fit the devices

	results []*outcome // of the reading, by board, nil for none
	gpus    []*gpu     // by board, nil for none
	left    []bool     // by board: it is chosen and did not answer at the start
	lost    []bool     // of the reading, by board: the driver says so, or a call hangs
	silent  []bool     // of these, by board: the driver does not say that it is lost
	traits  [len(dcgm.Fields)]trait

	out *dcgm.Writer
}

// trait is how the view treats a field.
type trait struct {
	repeats bool // an instance repeats the board's value
	counted bool // GPM counts it
}

// ownColumns are the device fields of which an instance has its own value or
// none, as in DCGM. It repeats the board's values of the others.
var ownColumns = []string{"FBTTL", "FBUSD", "FBFRE", "FBRSV", "GPUTL", "MCUTL", "ECUTL", "DCUTL", "NBWLT"}

// newBatcher returns a batcher of boards.
func newBatcher(opts Options, all []foundBoard) batcher {
	v := batcher{
		chooser: opts.Choose, logger: opts.Logger, out: dcgm.NewWriter(opts.Hostname, opts.JobMappingDir, opts.Logger),
		results: make([]*outcome, len(all)), gpus: make([]*gpu, len(all)), left: make([]bool, len(all)), lost: make([]bool, len(all)), silent: make([]bool, len(all)),
	}
	if opts.Page != nil {
		v.out.Serve(opts.Page)
	}
	for i := range all {
		v.boards, v.instances = append(v.boards, all[i].Device), append(v.instances, all[i].instances)
	}
	for i := range dcgm.Fields {
		f := &dcgm.Fields[i]
		v.traits[i] = trait{
			repeats: f.Stream == dcgm.DeviceStream && !slices.Contains(ownColumns, f.Column),
			counted: f.Stream == dcgm.ProfilingStream && f.Float, // PCIe's bytes are known without GPM too
		}
	}
	return v
}

// choose applies the choice to the present devices, and returns which boards are
// chosen, in whole or in part. If strict, missing ones are an error.
func (v *batcher) choose(strict bool) (wanted []bool, err error) {
	v.inventory = dcgm.Inventory{}
	for i := range v.boards {
		var instances []dcgm.Device
		for _, in := range v.instances[i] {
			instances = append(instances, in.Device)
		}
		v.inventory.Add(v.boards[i], instances...)
	}
	v.mig = v.inventory.MIGPlaces()
	selection, err := v.inventory.Choose(v.chooser)
	if err == nil && strict {
		err = selection.Missing
	}
	if v.unfit = nil; err != nil {
		v.unfit = &source.Error{Failure: source.Broken, Cause: err.Error(), Remedy: "nvidia-smi -L lists the devices", Err: err}
		return nil, v.unfit
	}
	v.chosen, wanted = selection.Chosen, make([]bool, len(v.boards))
	for i, chosen := range v.chosen {
		board := v.inventory.Devices[v.inventory.Devices[i].Board].Entity
		wanted[board] = wanted[board] || chosen
	}
	v.out.SetInventory(v.inventory)
	return wanted, nil
}

// follow updates the instances of repartitioned boards, and the fabrics of boards. It
// returns an error while the choice does not fit the devices.
func (v *batcher) follow(states []boardState) error {
	cut, joined := false, false
	for i := range states {
		st := &states[i]
		if st.result == nil {
			continue
		}
		if !sameInstances(v.instances[st.board], st.result.instances) {
			v.instances[st.board] = st.result.instances
			cut = true
		}
		if board := &v.boards[st.board]; !st.result.lost && board.Cluster != st.result.cluster {
			board.Cluster, joined = st.result.cluster, true
		}
	}
	if cut {
		v.logger.Info("the MIG instances of the GPUs have changed")
	}
	if cut || joined {
		_, _ = v.choose(false) // it stores the error
	}
	return v.unfit
}

// fill makes b a reading that began at begun, from results no older than most by then.
// It reports whether b has values of GPM.
func (v *batcher) fill(b *raw.Batch, states []boardState, begun time.Time, most time.Duration) (profiled bool) {
	clear(v.results)
	copy(v.lost, v.left)
	for i := range states {
		st := &states[i]
		v.lost[st.board], v.silent[st.board] = st.is != fine, st.is == hanging
		if st.result != nil && begun.Sub(st.result.begun) < most {
			v.results[st.board] = st.result
		}
	}
	v.out.Write(b, begun, v)
	return slices.ContainsFunc(b.Samples, func(s raw.Sample) bool { return v.traits[s.Family].counted })
}

// IsLost implements dcgm.Readings.
func (v *batcher) IsLost(board int) bool { return v.lost[v.inventory.Devices[board].Entity] }

// IsSilent implements dcgm.Silences.
func (v *batcher) IsSilent(board int) bool { return v.silent[v.inventory.Devices[board].Entity] }

// Reading implements dcgm.Readings.
func (v *batcher) Reading(field, device int) float64 {
	board := v.inventory.Devices[device].Board
	r := v.results[v.inventory.Devices[board].Entity]
	if r == nil || !v.chosen[device] {
		return math.NaN()
	}
	value := r.row(device - board)[field]
	if math.IsNaN(value) && v.traits[field].repeats {
		value = r.row(0)[field]
	}
	return value
}

// XIDs implements dcgm.XIDReporter.
func (v *batcher) XIDs(dst []raw.XID, board int) []raw.XID {
	if g := v.gpus[v.inventory.Devices[board].Entity]; g != nil {
		dst = g.xids.append(dst)
	}
	return dst
}
