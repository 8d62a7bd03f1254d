package translate

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// xidLabel is the label with the code. For a board without XIDs, dcgm-exporter writes a row
// without it, or with 0 (seen on 4.8.2).
const xidLabel = "xid"

// The codes of label blocks that have none.
const (
	noXID      = 0  // the board has no XID
	invalidXID = -1 // the label is not a code
)

// witnessOf returns the witness whose XIDs a family reports; ok is false if it counts none.
func witnessOf(family string) (w canonical.Witness, ok bool) {
	switch family {
	case xidWindowFamily:
		return canonical.WitnessWindow, true
	case xidTotalFamily:
		return canonical.WitnessTotal, true
	}
	return 0, false
}

// xidReports builds the counts of XIDs of a Frame.
type xidReports struct {
	samples []int32 // of the families that count XIDs, in this reading
	codes   []int16 // by label block
	// boards has the index of each variant's board for Topology.At of topology, or
	// notHere.
	topology *canonical.Topology
	boards   []int32
}

// forget drops what is known about a Dict.
func (x *xidReports) forget() { x.codes, x.topology = nil, nil }

// note notes a sample if its family counts XIDs.
func (x *xidReports) note(f *family, sample int, stale bool, rep *Report) {
	switch {
	case !f.xid:
	case stale:
		rep.Dropped[canonical.DropStale]++
	default:
		x.samples = append(x.samples, int32(sample))
	}
}

// countXIDs fills in the counts from the samples that fill noted and from the driver's reports to
// the source. If several rows count one code on one board, such as those of its MIG instances, of
// its pods, and of several windows, the largest is used.
func (t *Translator) countXIDs(dst *canonical.Frame, b *raw.Batch, rep *Report) {
	dst.XIDs, dst.XIDEvents = dst.XIDs[:0], dst.XIDEvents[:0]
	x := &t.xids
	if len(x.samples) == 0 && len(b.XIDs) == 0 {
		return
	}
	t.placeXIDs(b.Dict)
	for _, i := range x.samples {
		s := &b.Samples[i]
		count := canonical.XIDCount{Device: t.boardOf(s.Labels), Witness: t.families[s.Family].witness, Code: uint32(x.codes[s.Labels])}
		switch {
		case s.Value-s.Value != 0:
			rep.Dropped[canonical.DropNotFinite]++
			continue
		case x.codes[s.Labels] == invalidXID || !isCount(s.Value):
			rep.Dropped[canonical.DropOutOfRange]++
			continue
		case count.Code != noXID:
			count.Count = uint64(s.Value)
		}
		dst.XIDs = appendXID(dst.XIDs, count)
	}
	for i := range b.XIDs {
		one := &b.XIDs[i]
		if one.Code > canonical.HighestXID {
			rep.Dropped[canonical.DropOutOfRange]++
			continue
		}
		dst.XIDs = appendXID(dst.XIDs, canonical.XIDCount{
			Device: t.boardOf(one.Labels), Code: one.Code, Witness: canonical.WitnessDriver, Count: one.Count, Last: one.Last,
		})
	}
	slices.SortFunc(dst.XIDs, compareXIDs)
	dst.XIDs = withoutNone(slices.CompactFunc(dst.XIDs, isSameXID))
}

// withoutNone removes a count of no XIDs if the same witness also reports some, as a longer
// window may.
func withoutNone(list []canonical.XIDCount) []canonical.XIDCount {
	kept := list[:0]
	for i, c := range list {
		some := i+1 < len(list) && list[i+1].Device == c.Device && list[i+1].Witness == c.Witness
		if c.Code != noXID || !some {
			kept = append(kept, c)
		}
	}
	return kept
}

// appendXID appends a count unless it is of no board.
func appendXID(dst []canonical.XIDCount, count canonical.XIDCount) []canonical.XIDCount {
	if count.Device < 0 {
		return dst
	}
	return append(dst, count)
}

// isCount reports whether a finite value can be a number of events: a whole number that floats
// can represent exactly.
func isCount(v float64) bool { return v >= 0 && v < 1<<53 && v == math.Trunc(v) }

// compareXIDs orders counts by board, witness and code, the largest of one code first.
func compareXIDs(a, b canonical.XIDCount) int {
	return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Witness, b.Witness), cmp.Compare(a.Code, b.Code), cmp.Compare(b.Count, a.Count))
}

func isSameXID(a, b canonical.XIDCount) bool {
	return a.Device == b.Device && a.Witness == b.Witness && a.Code == b.Code
}

// boardOf returns the index of the board of a label block for Topology.At, below 0 for none.
func (t *Translator) boardOf(block uint32) int {
	v := t.blocks[block]
	if v < 0 {
		return int(v)
	}
	return int(t.xids.boards[v])
}

// placeXIDs reads the codes of new label blocks, and finds the board of each variant in the
// topology.
func (t *Translator) placeXIDs(d *raw.Dict) {
	x := &t.xids
	for id := len(x.codes); id < d.Blocks(); id++ {
		t.labels = d.Labels(uint32(id), t.labels[:0])
		x.codes = append(x.codes, codeOf(t.labels))
	}
	if x.topology == t.topology && len(x.boards) == len(t.variants) {
		return
	}
	x.topology, x.boards = t.topology, x.boards[:0]
	index := indexOf(t.topology.Devices)
	for i := range t.topology.Absent {
		index[keyOf(&t.topology.Absent[i])] = len(t.topology.Devices) + i
	}
	for i := range t.variants {
		board, known := index[keyOf(&t.variants[i].Device).board()]
		if !known {
			board = notHere
		}
		x.boards = append(x.boards, int32(board))
	}
}

// codeOf returns the code in the labels of a row, or noXID or invalidXID.
func codeOf(labels []raw.Label) int16 {
	for _, l := range labels {
		if l.Name != xidLabel || isBlank(l.Value) {
			continue
		}
		code, err := strconv.ParseUint(l.Value, 10, 16)
		if err != nil || code > canonical.HighestXID {
			return invalidXID
		}
		return int16(code)
	}
	return noXID
}
