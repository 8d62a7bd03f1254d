package dcgm

import (
	"slices"
	"testing"
)

// documented are the fields by what dcgm_fields.h and the exporter's default-counters.csv, whose
// comments name further fields, say of them: what can fall is a gauge. 449 is a rate that the
// exporter calls a counter. The exporter also calls 392 a counter: see Field.Type.
var documented = []struct {
	what, kind string
	ids        []int
}{
	{"clocks", gauge, []int{100, 101}},
	{"reasons for low clocks, as bits", gauge, []int{112}},
	{"temperatures, and the distance to one", gauge, []int{140, 150, 153, 158}},
	{"power, and its limits", gauge, []int{155, 160, 163, 164}},
	{"energy since the driver was loaded", counter, []int{156}},
	{"codes of the fabric", gauge, []int{170, 171, 173, 174, 175}},
	{"retries on PCIe", counter, []int{202}},
	{"utilization in percent", gauge, []int{203, 204, 206, 207}},
	{"the latest XID", gauge, []int{230}},
	{"generation and lanes of PCIe", gauge, []int{235, 236, 237, 238}},
	{"time below full clocks", counter, []int{240, 241, 242, 243, 244, 245, 246, 247}},
	{"memory", gauge, []int{250, 251, 252, 253}},
	{"links to the CPU", gauge, []int{285}},
	{"ECC errors", counter, []int{310, 311, 312, 313}},
	{"too many errors in the SRAM, 0 or 1", gauge, []int{346}},
	{"banks by what is left of their spare rows", gauge, []int{385, 386, 387, 388, 389}},
	{"retired pages", counter, []int{390, 391}},
	{"repairs that wait for a reset, 0 or 1", gauge, []int{392, 396}},
	{"remapped rows", counter, []int{393, 394}},
	{"a row that cannot be remapped, 0 or 1", gauge, []int{395}},
	{"errors of NVLink", counter, []int{409, 419, 429, 439}},
	{"bandwidth of NVLink", counter, []int{449}},
	{"shares of time or cycles", gauge, []int{1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1013, 1014, 1015, 1016}},
	{"bytes per second", gauge, []int{1009, 1010, 1011, 1012}},
	{"errors and recoveries of NVLink 5", counter, []int{1204, 1205, 1206, 1207, 1208, 1209, 1210, 1211, 1212, 1213, 1214, 1219}},
	{"shares of wrong bits", gauge, []int{1216, 1218}},
	{"errors of the link to the CPU", counter, []int{1400, 1401, 1402}},
	{"memory that cannot be repaired, 0 or 1", gauge, []int{1507}},
	{"what the driver asks for", gauge, []int{1523}},
}

// TestTypes: each field has the TYPE of what it reads. What DCGM lacks can fall.
func TestTypes(t *testing.T) {
	n := 0
	for i := range Fields {
		f, want := &Fields[i], gauge
		if !f.Foreign() {
			at := slices.IndexFunc(documented, func(row struct {
				what, kind string
				ids        []int
			}) bool {
				return slices.Contains(row.ids, f.ID)
			})
			if at < 0 {
				t.Errorf("%d %s is not documented", f.ID, f.Family)
				continue
			}
			n, want = n+1, documented[at].kind
		}
		if f.Type != want {
			t.Errorf("%s: TYPE %s, want %s", f.Family, f.Type, want)
		}
	}
	if all := documentedIDs(); n != len(all) {
		t.Errorf("%d of %d documented fields", n, len(all))
	}
}

// documentedIDs returns all ids of the table, in ascending order.
func documentedIDs() (ids []int) {
	for _, row := range documented {
		ids = append(ids, row.ids...)
	}
	slices.Sort(ids)
	return ids
}
