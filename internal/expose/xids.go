package expose

import (
	"strconv"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// writeXIDs renders the totals of a source's XIDs, and returns whether the family now has its
// header.
func (f *deviceFamily) writeXIDs(o *output, text *rows, snap *canonical.Snapshot, headed bool) bool {
	for _, x := range snap.Ledger.XIDs {
		if x.Device >= text.upto[f.reach] || text.kinds[x.Device]&f.kinds == 0 {
			continue
		}
		labels := text.labels.at(x.Device)
		if len(labels) == 0 {
			continue
		}
		buf := append(f.begin(o.buf, &headed), labels...)
		buf = strconv.AppendUint(append(buf, `,xid="`...), uint64(x.Code), 10)
		buf = append(exposition.AppendFloat(append(buf, `"} `...), float64(x.Total)), '\n')
		o.buf = buf
		o.flushIfFull()
	}
	return headed
}
