package dcgm

import (
	"strconv"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// xidTotalFamily is the family of dcgm-exporter, since 4.8.3, that counts each XID, and ours
// for the XIDs that a source receives.
const xidTotalFamily = "DCGM_EXP_XID_ERRORS_TOTAL"

// XIDTeller is implemented by Readings that receive XIDs one by one.
type XIDTeller interface {
	// XIDs appends the XIDs of a board of the inventory, each code once, and a code 0 if there
	// were none. It appends nothing if no source reports XIDs of the board. The Writer fills in
	// the Labels.
	XIDs(dst []raw.XID, board int) []raw.XID
}

// writeXIDs appends the XIDs of the boards that are read or lost.
func (w *Writer) writeXIDs(b *raw.Batch, from Readings) {
	teller, is := from.(XIDTeller)
	if !is {
		return
	}
	for d := range w.inventory.Devices {
		if !w.alive[d] {
			continue
		}
		first := len(b.XIDs)
		b.XIDs = teller.XIDs(b.XIDs, d)
		for i := first; i < len(b.XIDs); i++ {
			b.XIDs[i].Labels = w.names[d]
		}
	}
}

// toldOf returns the XIDs in b of the board of a device.
func (w *Writer) toldOf(b *raw.Batch, device int) []raw.XID {
	labels := w.names[w.inventory.Devices[device].Board]
	first := 0
	for first < len(b.XIDs) && b.XIDs[first].Labels != labels {
		first++
	}
	end := first
	for end < len(b.XIDs) && b.XIDs[end].Labels == labels {
		end++
	}
	return b.XIDs[first:end]
}

// appendXIDs appends the XIDs of b as the exporter writes them: a line for each code that
// occurred.
func appendXIDs(dst []byte, b *raw.Batch) []byte {
	headed := false
	for i := range b.XIDs {
		x := &b.XIDs[i]
		if x.Code == 0 {
			continue
		}
		if !headed {
			headed = true
			dst = exposition.AppendHeader(dst, xidTotalFamily, "Times that each XID error occurred.", counter)
		}
		block := b.Dict.Block(x.Labels)
		dst = append(append(dst, xidTotalFamily...), block[:len(block)-1]...)
		dst = append(appendXID(dst, x.Code), "} "...)
		dst = append(strconv.AppendUint(dst, x.Count, 10), '\n')
	}
	return dst
}
