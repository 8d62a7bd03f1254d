//go:build cgo && linux

package nvml

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// view makes of sheets what an exporter would have answered. It belongs to the
// goroutine that reads the source.
type view struct {
	wish   dcgm.Wish
	logger *slog.Logger
	boards []dcgm.Board // all of the machine
	shown  [][]bool     // by board and entity: the board, then its instances
	unfit  error        // the wish does not fit the boards

	tick     raw.Batch
	families [len(dcgm.Fields)]uint32
	blocks   [][]uint32             // of the tick's Dict, as shown
	repeats  [len(dcgm.Fields)]bool // an instance shows the board's
	counted  [len(dcgm.Fields)]bool // by GPM

	out *dcgm.Writer
}

// ownColumns are the device fields of which an instance has its own or none, as
// DCGM has it. Of the others, which are the board's, it repeats the board's.
var ownColumns = [...]string{"FBTTL", "FBUSD", "FBFRE", "FBRSV", "GPUTL", "MCUTL", "ECUTL", "DCUTL", "NBWLT"}

// newView shows boards as opts say.
func newView(opts Options, all []found) view {
	v := view{wish: opts.Wish, logger: opts.Logger, out: dcgm.NewWriter(opts.Hostname, opts.JobMappingDir, opts.Logger)}
	for i := range all {
		b := all[i].Board
		b.Instances = instances(all[i].cuts)
		v.boards = append(v.boards, b)
	}
	for i := range dcgm.Fields {
		f := &dcgm.Fields[i]
		v.counted[i] = f.Stream == dcgm.ProfilingStream && f.Float // PCIe's bytes are told without GPM too
		v.repeats[i] = f.Stream == dcgm.DeviceStream && !slices.Contains(ownColumns[:], f.Column)
	}
	return v
}

func instances(cuts []cut) []dcgm.Instance {
	var all []dcgm.Instance
	for i := range cuts {
		all = append(all, cuts[i].Instance)
	}
	return all
}

// choice is how a wish is applied to a node.
type choice func(*dcgm.Node, dcgm.Wish) (dcgm.Selection, error)

// whatIsLeft chooses what a node still has of a wish.
func whatIsLeft(n *dcgm.Node, w dcgm.Wish) (dcgm.Selection, error) {
	chosen, _, err := dcgm.SelectPresent(n, w)
	return chosen, err
}

// choose applies the wish to the boards as they are, and tells which are wanted,
// in whole or in part.
func (v *view) choose(by choice) (wanted []bool, err error) {
	node := dcgm.Node{Boards: slices.Clone(v.boards)}
	chosen, err := by(&node, v.wish)
	if err != nil {
		v.unfit = selectionError(err)
		return nil, v.unfit
	}
	v.unfit = nil
	wanted = make([]bool, len(v.boards))
	v.shown = make([][]bool, len(v.boards))
	for i := range v.boards {
		v.shown[i] = make([]bool, 1+len(v.boards[i].Instances))
	}
	for _, p := range chosen.Picks {
		wanted[p.Board] = true
		for entity := range v.shown[p.Board] {
			if p.Instance == dcgm.Whole || entity == 1+p.Instance {
				v.shown[p.Board][entity] = true
			}
		}
	}
	v.out.SetNode(node)
	v.learn()
	return wanted, nil
}

// learn gives every column and entity its id in a new Dict, in the words of dmon.
func (v *view) learn() {
	v.tick.Dict = raw.NewDict()
	for i := range dcgm.Fields {
		v.families[i] = v.tick.Dict.FamilyID([]byte(dcgm.Fields[i].Column))
	}
	v.blocks = make([][]uint32, len(v.boards))
	for i := range v.boards {
		v.blocks[i] = make([]uint32, len(v.shown[i]))
		for entity, shown := range v.shown[i] {
			if shown {
				v.blocks[i][entity] = v.tick.Dict.BlockID(v.block(i, entity))
			}
		}
	}
}

// block returns the label block of an entity as package dmon writes it.
func (v *view) block(board, entity int) []byte {
	if entity == 0 {
		return fmt.Appendf(nil, `{gpu="%d",entity="GPU %d"}`, board, board)
	}
	id := v.boards[board].Instances[entity-1].Entity
	return fmt.Appendf(nil, `{gpu="%d",entity="GPU-I %d",gpu_instance_entity="%d"}`, board, id, id)
}

// follow takes over the instances of boards that were cut anew. It returns an
// error while nothing is left of the wish.
func (v *view) follow(states []state) error {
	changed := false
	for i := range states {
		st := &states[i]
		if st.sheet != nil && st.sheet.topology != st.topology {
			st.topology = st.sheet.topology
			v.boards[st.board].Instances = instances(st.sheet.cuts)
			changed = true
		}
	}
	if changed {
		v.logger.Info("GPUs are cut into other MIG instances than before")
		_, _ = v.choose(whatIsLeft) // which keeps the error
	}
	return v.unfit
}

// fill makes the tick of the sheets that are not older than most when the reading
// began. It returns how many values that gave, and whether GPM's are among them.
func (v *view) fill(states []state, begun time.Time, most time.Duration) (samples int, profiled bool) {
	v.tick.Reset()
	for i := range states {
		st := &states[i]
		if st.sheet == nil || begun.Sub(st.sheet.begun) >= most {
			continue
		}
		board := st.sheet.row(0)
		for entity, shown := range v.shown[st.board] {
			if !shown {
				continue
			}
			row := st.sheet.row(entity)
			for f, value := range row {
				if math.IsNaN(value) && v.repeats[f] {
					value = board[f]
				}
				if !math.IsNaN(value) {
					v.tick.Samples = append(v.tick.Samples, raw.Sample{Family: v.families[f], Labels: v.blocks[st.board][entity], Value: value})
					profiled = profiled || v.counted[f]
				}
			}
		}
	}
	return len(v.tick.Samples), profiled
}

// write writes the tick into the emptied b.
func (v *view) write(b *raw.Batch, at time.Time) {
	v.tick.At = at
	v.out.Write(b, &v.tick)
}
