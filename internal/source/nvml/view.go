//go:build cgo && linux

package nvml

import (
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

	sheets  []*sheet               // by row of out, of the reading: nil for none
	at      []int                  // by row of out: the entity of its board
	repeats [len(dcgm.Fields)]bool // an instance shows the board's
	counted [len(dcgm.Fields)]bool // by GPM

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
	return wanted, nil
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

// fill makes b a reading of the sheets that are not older than most when it began. It
// tells whether values of GPM are in it.
func (v *view) fill(b *raw.Batch, states []state, begun time.Time, most time.Duration) (profiled bool) {
	v.sheets, v.at = v.sheets[:0], v.at[:0]
	for i := range v.boards {
		var s *sheet
		for w := range states {
			if st := &states[w]; st.board == i && st.sheet != nil && begun.Sub(st.sheet.begun) < most {
				s = st.sheet
			}
		}
		for entity, shown := range v.shown[i] {
			v.at = append(v.at, entity)
			if shown {
				v.sheets = append(v.sheets, s)
			} else {
				v.sheets = append(v.sheets, nil)
			}
		}
	}
	v.out.Write(b, begun, v)
	return slices.ContainsFunc(b.Samples, func(s raw.Sample) bool { return v.counted[s.Family] })
}

// Reading implements dcgm.Readings.
func (v *view) Reading(field, row int) float64 {
	s := v.sheets[row]
	if s == nil {
		return math.NaN()
	}
	value := s.row(v.at[row])[field]
	if math.IsNaN(value) && v.repeats[field] {
		value = s.row(0)[field]
	}
	return value
}
