package dcgm

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// inventory returns board 0 whole and board 1 in two instances, one with an unknown
// profile, modified by change.
func inventory(change func([]board)) Inventory {
	boards := []board{newBoard(0), newBoard(1)}
	for i := range boards {
		b := &boards[i]
		b.UUID, b.Model, b.PCIBusID, b.Driver = uuid0, "NVIDIA H100 80GB HBM3", "00000000:10:00.0", "580.105.08"
	}
	boards[1].UUID, boards[1].PCIBusID = uuid1, "00000000:20:00.0"
	boards[1].instances = []Device{instance(7, "2"), instance(8, "9")}
	boards[1].instances[0].Profile = "3g.40gb"
	if change != nil {
		change(boards)
	}
	return flatten(boards)
}

// table is the Readings of a test: the values of the devices by dmon's column and entity, as
// in a sample of dmon.
type table struct {
	w      *Writer
	values map[int]map[string]float64 // by index in Fields and entity
}

// read reads a sample of dmon.
func read(text string) table {
	t := table{values: map[int]map[string]float64{}}
	head, rows, _ := strings.Cut(text, "\n")
	columns := strings.Fields(head)[1:]
	for f := range Fields {
		t.values[f] = map[string]float64{}
	}
	for line := range strings.Lines(rows) {
		cells := strings.Fields(line)
		if !strings.HasPrefix(cells[0], "GPU") {
			continue
		}
		for c, cell := range cells[2:] {
			if v, err := strconv.ParseFloat(cell, 64); err == nil {
				t.values[FieldOf([]byte(columns[c]))][cells[0]+cells[1]] = v
			}
		}
	}
	return t
}

func (t table) Reading(field, device int) float64 {
	for entity, v := range t.values[field] {
		name, id := "GPU", strings.TrimPrefix(entity, "GPU")
		if rest, cut := strings.CutPrefix(id, "-I"); cut {
			name, id = "GPU-I", rest
		}
		n, _ := strconv.Atoi(id)
		if t.w.inventory.Find(name == "GPU-I", n) == device {
			return v
		}
	}
	return math.NaN()
}

// write returns the Batch of a sample.
func (t table) write(w *Writer) *raw.Batch {
	t.w = w
	b := &raw.Batch{}
	w.Write(b, time.Time{}, t)
	return b
}

// writer returns a Writer with an inventory and jobs.
func writer(hostname string, n Inventory, jobs Jobs) *Writer {
	w := NewWriter(hostname, "", nil)
	w.SetInventory(n)
	w.jobs = jobs
	return w
}

const whole = "" +
	"#Entity         POWER             GPUTL             TOTEC                   SMACT        XIDER        NBWLT                       \n" +
	"ID               W                                   mJ                                               MB/s                        \n" +
	"GPU 0           412.337           97                123456789012            0.987        N/A          202000                      \n" +
	"GPU 1           88.100            N/A               5                       N/A          31           0                           \n" +
	"GPU-I 7         88.100            N/A               5                       0.125        31           N/A                         \n" +
	"GPU-I 8         88.100            N/A               5                       1.000        31           N/A                         \n"

// What dcgm-exporter writes, except for the HELP texts.
func TestWrite(t *testing.T) {
	const (
		labels0 = `{gpu="0",UUID="` + uuid0 + `",pci_bus_id="00000000:10:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",` +
			`hostname="gpu07",DCGM_FI_DRIVER_VERSION="580.105.08"`
		board1  = `{gpu="1",UUID="` + uuid1 + `",pci_bus_id="00000000:20:00.0",device="nvidia1",modelName="NVIDIA H100 80GB HBM3",`
		rest1   = `hostname="gpu07",DCGM_FI_DRIVER_VERSION="580.105.08"`
		labels1 = board1 + rest1
		labels7 = board1 + `GPU_I_PROFILE="3g.40gb",GPU_I_ID="2",` + rest1
		labels8 = board1 + `GPU_I_ID="9",` + rest1
	)
	want := `# HELP DCGM_FI_DEV_POWER_USAGE Power the board draws, in watts.
# TYPE DCGM_FI_DEV_POWER_USAGE gauge
DCGM_FI_DEV_POWER_USAGE` + labels0 + `,hpc_job="4711"} 412.337000
DCGM_FI_DEV_POWER_USAGE` + labels0 + `,hpc_job="4712"} 412.337000
DCGM_FI_DEV_POWER_USAGE` + labels1 + `} 88.100000
DCGM_FI_DEV_POWER_USAGE` + labels7 + `,hpc_job="9\"\\"} 88.100000
DCGM_FI_DEV_POWER_USAGE` + labels8 + `} 88.100000
# HELP DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION Energy the board used since the driver was loaded, in millijoules.
# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION` + labels0 + `,hpc_job="4711"} 123456789012
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION` + labels0 + `,hpc_job="4712"} 123456789012
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION` + labels1 + `} 5
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION` + labels7 + `,hpc_job="9\"\\"} 5
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION` + labels8 + `} 5
# HELP DCGM_FI_DEV_GPU_UTIL Percentage of time some kernel ran, however small.
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL` + labels0 + `,hpc_job="4711"} 97
DCGM_FI_DEV_GPU_UTIL` + labels0 + `,hpc_job="4712"} 97
# HELP DCGM_FI_DEV_XID_ERRORS Code of the latest XID error; a code, not a count.
# TYPE DCGM_FI_DEV_XID_ERRORS gauge
DCGM_FI_DEV_XID_ERRORS` + labels1 + `} 31
DCGM_FI_DEV_XID_ERRORS` + labels7 + `,hpc_job="9\"\\"} 31
DCGM_FI_DEV_XID_ERRORS` + labels8 + `} 31
# HELP DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL Data sent and received over all NVLinks, in MB/s of 1000 KiB: a rate that falls as well.
# TYPE DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL counter
DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL` + labels0 + `,hpc_job="4711"} 202000
DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL` + labels0 + `,hpc_job="4712"} 202000
DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL` + labels1 + `} 0
# HELP DCGM_FI_PROF_SM_ACTIVE Share of time, 0 to 1, a streaming multiprocessor had work, averaged over all of them.
# TYPE DCGM_FI_PROF_SM_ACTIVE gauge
DCGM_FI_PROF_SM_ACTIVE` + labels0 + `,hpc_job="4711"} 0.987000
DCGM_FI_PROF_SM_ACTIVE` + labels0 + `,hpc_job="4712"} 0.987000
DCGM_FI_PROF_SM_ACTIVE` + labels7 + `,hpc_job="9\"\\"} 0.125000
DCGM_FI_PROF_SM_ACTIVE` + labels8 + `} 1.000000
`
	w := writer("gpu07", inventory(nil), Jobs{"0": {"4711", "4712"}, "1.2": {`9"\`}})
	got := string(read(whole).write(w).AppendText([]byte("before\n")))
	if got != "before\n"+want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestUnknownDevicesAreLeftOut(t *testing.T) {
	const text = "#Entity         POWER             \nGPU 0           1.000             \nGPU 1           2.000             \n" +
		"GPU-I 7         3.000             \nGPU-I 14        4.000             \n"
	line := func(labels, value string) string {
		return "DCGM_FI_DEV_POWER_USAGE{gpu=" + labels + "} " + value + "\n"
	}
	without := func(n []board) { n[1].instances = nil }
	nameless := func(n []board) { n[1].UUID = "" }
	alone := inventory(nil)
	alone.Devices = alone.Devices[1:]
	driver := `,DCGM_FI_DRIVER_VERSION="580.105.08"`
	known0 := line(`"0",UUID="`+uuid0+`",pci_bus_id="00000000:10:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3"`+driver, "1.000000")
	labels1 := `"1",UUID="` + uuid1 + `",pci_bus_id="00000000:20:00.0",device="nvidia1",modelName="NVIDIA H100 80GB HBM3"`
	known1 := line(labels1+driver, "2.000000")
	known7 := line(labels1+`,GPU_I_PROFILE="3g.40gb",GPU_I_ID="2"`+driver, "3.000000")
	tests := []struct {
		name string
		n    Inventory
		want string
	}{
		{"nothing is known", Inventory{}, ""},
		{"the instances are not", inventory(without), known0 + known1},
		{"one is, the other came since", inventory(nil), known0 + known1 + known7},
		{"board 0 is not", alone, known1 + known7},
		{"the UUID of board 1 is not", inventory(nameless), known0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := writer("", tt.n, nil)
			got := string(read(text).write(w).AppendText(nil))
			_, got, _ = strings.Cut(got, "gauge\n")
			if sorted(got) != sorted(tt.want) {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// A Writer follows changes of the inventory and of the jobs; what it wrote before stays
// the same.
func TestWriteFollowsChanges(t *testing.T) {
	w, tick := writer("", Inventory{}, nil), read(whole)
	if b := tick.write(w); len(b.Samples) > 0 {
		t.Errorf("of no known board\n%s", b.AppendText(nil))
	}
	w.SetInventory(inventory(nil))
	first := tick.write(w)
	text := string(first.AppendText(nil))
	for _, want := range []string{uuid0, `GPU_I_ID="9",DCGM_FI_DRIVER_VERSION="580.105.08"} 1.000000`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	w.jobs, w.dict = Jobs{"1": {"5"}}, nil
	got := string(tick.write(w).AppendText(nil))
	if want := `GPU_I_ID="9",DCGM_FI_DRIVER_VERSION="580.105.08",hpc_job="5"} 1.000000`; !strings.Contains(got, want) {
		t.Errorf("no %s in\n%s", want, got)
	}
	if again := string(first.AppendText(nil)); again != text {
		t.Errorf("the first became\n%s", again)
	}
}

// TestExpositionBesideTheNextBatch: a scrape may render a Batch while the next one is
// written, after the inventory has changed too.
func TestExpositionBesideTheNextBatch(t *testing.T) {
	w, sample := writer("gpu07", inventory(nil), nil), read(whole)
	b := sample.write(w)
	want := string(b.AppendText(nil))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 20 {
			if got := string(b.AppendText(nil)); got != want {
				t.Errorf("the text of a Batch changed to\n%s", got)
			}
		}
	}()
	for i := range 20 {
		w.SetInventory(inventory(func(boards []board) { boards[0].Model = strconv.Itoa(i) }))
		sample.write(w)
	}
	<-done
}

func TestWriteLeavesOut(t *testing.T) {
	w := writer("", inventory(nil), nil)
	for _, v := range []float64{math.Inf(1), math.Inf(-1), math.NaN()} {
		tick := read("#Entity POWER\nGPU 0 1\n")
		tick.values[FieldOf([]byte("POWER"))]["GPU0"] = v
		if b := tick.write(w); len(b.Samples) > 0 {
			t.Errorf("%v: %v", v, b.Samples)
		}
	}
}

// byField are readings by index and device.
type byField func(field, device int) float64

func (f byField) Reading(field, device int) float64 { return f(field, device) }

func (byField) IsLost(int) bool { return true }

// No sample is -0.
func TestWriteHasNoNegativeZero(t *testing.T) {
	w := writer("", inventory(nil), nil)
	var b raw.Batch
	w.Write(&b, noon, byField(func(int, int) float64 { return math.Copysign(0, -1) }))
	for _, s := range b.Samples {
		if math.Signbit(s.Value) {
			t.Errorf("%s is -0", Fields[s.Family].Family)
		}
	}
	if want := 4 * len(Fields); len(b.Samples) != want {
		t.Errorf("%d samples, want %d", len(b.Samples), want)
	}
}

func sorted(s string) string { return strings.Join(sortedLines(s), "") }

func TestEveryFieldHasItsFamily(t *testing.T) {
	tick := read("#Entity\n")
	for f := range Fields {
		tick.values[f]["GPU0"] = float64(f)
	}
	out := &raw.Batch{Body: tick.write(writer("", inventory(nil), nil)).AppendAll(nil)}
	var s raw.Scanner
	s.Scan(out)
	if len(out.Samples) != len(Fields) || out.Skipped > 0 {
		t.Fatalf("%d samples, %d skipped", len(out.Samples), out.Skipped)
	}
	for i, sample := range out.Samples {
		if name := out.Dict.Family(sample.Family).Name; name != Fields[i].Family || sample.Value != float64(i) {
			t.Errorf("%s %v at %d", name, sample.Value, i)
		}
		if out.Dict.Family(sample.Family).Help != Fields[i].Help {
			t.Errorf("HELP of %s", Fields[i].Family)
		}
	}
}

// The NVLinkLimit of a board in the inventory is on its rows, and on those of its instances,
// as long as these have readings.
func TestLinksOfTheNode(t *testing.T) {
	n := inventory(func(n []board) { n[0].NVLinkLimit, n[1].NVLinkLimit = 956.232e9, 1 })
	w := writer("", n, nil)
	for _, tt := range []struct{ want, rows string }{
		{`{gpu="0"=956232000000 {gpu="1"=1 `, "#Entity POWER\nGPU 0 1\nGPU-I 7 2\n"},
		{`{gpu="1"=1 `, "#Entity POWER\nGPU 0 N/A\nGPU-I 7 2\n"},
		{``, "#Entity POWER\n"},
		{`{gpu="0"=7 `, "#Entity " + NVLinkLimit + "\nGPU 0 7\n"},
		{`{gpu="0"=7 `, "#Entity POWER " + NVLinkLimit + "\nGPU 0 1 7\n"},
	} {
		b, got := read(tt.rows).write(w), ""
		for _, s := range b.Samples {
			switch Fields[s.Family].Column {
			case "POWER":
			case NVLinkLimit:
				got += fmt.Sprintf("%s=%.0f ", b.Dict.Block(s.Labels)[:8], s.Value)
			default:
				t.Errorf("%s, which was not read", Fields[s.Family].Column)
			}
		}
		if got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
}

func (table) IsLost(int) bool { return false }

// losing are readings in which each board that is not read is lost.
type losing struct{ table }

func (losing) IsLost(int) bool { return true }

// Lost boards come last, those without a UUID by their index, while there is any reading. A
// board whose instance is read is not lost.
func TestWriteLost(t *testing.T) {
	n := flatten([]board{named(0, uuid0, "10"), newBoard(1), named(2, uuid1, "20"), named(3, "GPU-3", "30")})
	n.Devices = append(n.Devices, NewInstance(7, "1", ""))
	n.Devices[4].GPU, n.Devices[4].UUID, n.Devices[4].Board = "3", "GPU-3", 3
	w := writer("", n, Jobs{})
	write := func(rows string) string {
		from := losing{read("#Entity POWER\n" + rows)}
		from.w = w
		b := &raw.Batch{}
		w.Write(b, time.Time{}, from)
		_, lost, _ := strings.Cut(string(b.AppendAll(nil)), "# TYPE "+Lost+" gauge\n")
		return lost
	}
	const want = Lost + `{gpu="1",entity="GPU 1",pci_bus_id="",device="nvidia1",modelName=""} 1
` + Lost + `{gpu="2",UUID="` + uuid1 + `",pci_bus_id="20",device="nvidia2",modelName="NVIDIA H100 80GB HBM3"} 1
`
	if got := write("GPU 0 1.0\nGPU-I 7 1.0\n"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := write(""); got != "" {
		t.Errorf("without a reading\n%s", got)
	}
	const gpu0 = Lost + `{gpu="0",UUID="` + uuid0 + `",pci_bus_id="10",device="nvidia0",modelName="NVIDIA H100 80GB HBM3"} 1` + "\n"
	if got := write("GPU-I 7 1.0\n"); got != gpu0+want {
		t.Errorf("after a board was read: got\n%swant\n%s", got, gpu0+want)
	}
}
