package expose

import (
	"cmp"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// xids continues the counts of XIDs. A code that was served for a device stays if its new source
// did not report it.
func (h *handovers) xids(r *reading, text *rows, now time.Time) {
	for i, x := range r.snapshot.Ledger.XIDs {
		if x.Device >= text.labels.len() {
			continue
		}
		device := r.holder(x.Device)
		key, account := device, canonical.Account{XIDChanges: x.Total}
		key.code = x.Code
		if len(text.labels.at(x.Device)) == 0 {
			h.note(key, r.source.Name, &account, now)
			continue
		}
		if h.known[key] == nil && !slices.Contains(h.codes[device], x.Code) {
			h.codes[device] = append(h.codes[device], x.Code)
		}
		if one := h.take(key, r.source, &account, now); one.offset.XIDChanges != 0 {
			r.own().XIDs[i].Total += one.offset.XIDChanges
		}
	}
	if len(h.codes) == 0 {
		return
	}
	for row := range min(len(r.snapshot.Ledger.Devices), text.labels.len()) {
		if len(text.labels.at(row)) > 0 {
			h.untold(r, row, now)
		}
	}
}

// untold adds the counts of codes that were served for a device and that its present source
// lacks.
func (h *handovers) untold(r *reading, row int, now time.Time) {
	key := r.holder(row)
	for _, code := range h.codes[key] {
		key.code = code
		one := h.known[key]
		at, told := slices.BinarySearchFunc(r.snapshot.Ledger.XIDs, canonical.XIDTotal{Device: row, Code: code}, func(a, b canonical.XIDTotal) int {
			return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Code, b.Code))
		})
		if told || one == nil {
			continue
		}
		one.at = now
		own := r.own()
		own.XIDs = slices.Insert(own.XIDs, at, canonical.XIDTotal{Device: row, Code: code, Total: one.account.XIDChanges + one.offset.XIDChanges})
	}
}
