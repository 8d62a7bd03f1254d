package nvmltest

import (
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// unread are the fields that the fake library lacks.
var unread = map[int]bool{
	153: true, 171: true, 173: true, 175: true, 285: true, 385: true, 386: true, 387: true, 388: true, 389: true, 1204: true, 1205: true, 1206: true,
	1207: true, 1208: true, 1209: true, 1210: true, 1211: true, 1212: true, 1213: true, 1214: true, 1216: true, 1218: true, 1219: true,
	1400: true, 1401: true, 1402: true, 346: true, 1507: true,
}

// TestQuantitiesAreFields compares the table with the fields: each quantity has a
// field's family, TYPE and form, and each field has a quantity.
func TestQuantitiesAreFields(t *testing.T) {
	for _, f := range dcgm.Fields {
		if f.Column == dcgm.Lost || unread[f.ID] { // without a reading
			continue
		}
		i := slices.IndexFunc(quantities[:], func(q quantity) bool { return q.family == f.Family })
		if i < 0 {
			t.Errorf("%s has no quantity", f.Family)
			continue
		}
		if q := quantities[i]; q.kind != f.Type || q.float != f.Float {
			t.Errorf("%s: %s, float %t; the field has %s, %t", f.Family, q.kind, q.float, f.Type, f.Float)
		}
	}
	if len(quantities) != len(dcgm.Fields)-len(unread)-1 {
		t.Errorf("%d quantities, %d fields, one of which is of lost GPUs", len(quantities), len(dcgm.Fields))
	}
}

func TestH100HasEverything(t *testing.T) {
	body := string(Exposition("n", H100(1)))
	for _, q := range quantities {
		if has := strings.Contains(body, "\n"+q.family+"{"); has != (q.Quantity != LastXID) {
			t.Errorf("%s: %t", q.family, has)
		}
	}
	tabled := Readings{}
	for _, q := range quantities {
		tabled[q.Quantity] = 0
	}
	for q := range H100(1)[0].Readings {
		if _, known := tabled[q]; !known {
			t.Errorf("%s is not in the table", q)
		}
	}
}

// lines returns the lines of a body with these families.
func lines(body []byte, families ...string) string {
	var b strings.Builder
	for line := range strings.Lines(string(body)) {
		if slices.ContainsFunc(families, func(f string) bool { return strings.HasPrefix(line, f+"{") }) {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestExposition(t *testing.T) {
	boards := H100(2)
	boards[0].Readings[LastXID] = 79
	boards[0].Readings[SMActive] = 0.07 // × 100 is 7.000000000000001
	boards[1] = boards[1].Cut(1)
	const (
		board0 = `{gpu="0",UUID="GPU-a1b2c3d4-0000-1111-2222-333344445550",pci_bus_id="00000000:10:00.0",device="nvidia0",` +
			`modelName="NVIDIA H100 80GB HBM3",hostname="gpu07",DCGM_FI_DRIVER_VERSION="580.105.08"} `
		cut1 = `{gpu="1",UUID="GPU-a1b2c3d4-0001-1111-2222-333344445550",pci_bus_id="00000000:11:00.0",device="nvidia1",` +
			`modelName="NVIDIA H100 80GB HBM3",GPU_I_PROFILE="1g.10gb",GPU_I_ID="7",hostname="gpu07",DCGM_FI_DRIVER_VERSION="580.105.08"} `
	)
	body := Exposition("gpu07", boards)
	for family, want := range map[string][2]string{ // of the board, and of the instance
		"DCGM_FI_DEV_POWER_USAGE":              {"412.337000", "411.337000"},
		"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": {"123456789012", "123456790012"},
		"DCGM_FI_DEV_SM_CLOCK":                 {"1755", "1755"},
		"DCGM_FI_DEV_GPU_UTIL":                 {"98", ""},
		"DCGM_FI_DEV_XID_ERRORS":               {"79", ""},
		"DCGM_FI_DEV_FB_USED":                  {"71680", "6144"},
		"DCGM_FI_DEV_FB_TOTAL":                 {"81535", "9872"},
		"DCGM_FI_DEV_POWER_VIOLATION":          {"12500000000", "12500000000"},
		"DCGM_FI_PROF_SM_ACTIVE":               {"0.070000", "0.420000"},
		"DCGM_FI_PROF_PCIE_RX_BYTES":           {"12582912000", ""},
		"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL":   {"305152", ""}, // 2384 × 125 MiB/s
		"nvlink_limit_bytes_per_second":        {"956232000000", "956232000000"},
	} {
		expected := ""
		for i, labels := range [...]string{board0, cut1} {
			if want[i] != "" {
				expected += family + labels + want[i] + "\n"
			}
		}
		if got := lines(body, family); got != expected {
			t.Errorf("got\n%swant\n%s", got, expected)
		}
	}
	if head := "# HELP DCGM_FI_DEV_SM_CLOCK As a board has it.\n# TYPE DCGM_FI_DEV_SM_CLOCK gauge\n"; !strings.HasPrefix(string(body), head) {
		t.Errorf("%.100s", body)
	}
}

func TestText(t *testing.T) {
	s := Scenario{
		Driver:    "570.1",
		GPUs:      []GPU{{Index: 3, UUID: "GPU-3", BusID: "0000:3", Name: "NVIDIA A B", GPM: true}},
		Instances: []Instance{{GPU: 3, ID: 7, Compute: 1, UUID: "MIG-7", Name: "NVIDIA A B MIG 1g", Slices: 1, MiB: 9856}},
		Values:    []Value{{Of: OnBoard(3), Key: "gpm.2", Number: 0.07 * 100}, {Of: OnInstance(3, 7), Key: "energy_mj", Number: 123456789012345, Rate: 0.5}},
		Faults: []Fault{{Call: "*", Result: "NOT_SUPPORTED"}, {Call: "nvmlA", Of: "3", SlowMS: 5, Hang: true},
			{Call: "nvmlB", Of: "3/7", SlowMS: 6, Result: "TIMEOUT"}},
		Lost:      []int{3},
		XIDs:      []XID{{Of: "3/7", Code: 79}},
		Processes: []Process{{Of: "3", Kind: MPS, PID: 42, Bytes: 1 << 40}},
	}
	want := `driver 570.1
gpu 3 GPU-3 0000:3 NVIDIA A B
gpm 3
instance 3/7 1 MIG-7 1 9856 NVIDIA A B MIG 1g
value 3 gpm.2 7 0
value 3/7 energy_mj 123456789012345 0.5
fail * NOT_SUPPORTED 
slow nvmlA 5 3
hang nvmlA 3
slow nvmlB 6 3/7
fail nvmlB TIMEOUT 3/7
lost 3
xid 3/7 79
process 3 mps 42 1099511627776
`
	if got := s.Text(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
