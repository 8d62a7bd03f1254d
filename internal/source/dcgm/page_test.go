package dcgm

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

func everything(int) bool { return true }

// counterOf is a line of a file for a column.
func counterOf(name, kind, help, column string) Counter {
	return Counter{Name: name, Type: kind, Help: help, Field: FieldOf([]byte(column))}
}

// fixed are readings by column and device; others are missing.
type fixed map[string][]float64

func (f fixed) Reading(field, device int) float64 {
	if v := f[Fields[field].Column]; device < len(v) {
		return v[device]
	}
	return math.NaN()
}

// A Page has the lines of the file under its names, TYPEs and HELPs, in the order of the
// ids, with its labels and jobs; the Samples have all readings.
func TestPage(t *testing.T) {
	w := writer("gpu07", inventory(nil), Jobs{"0": {"4711", "4712"}})
	page, notGiven := NewPage([]Counter{
		counterOf("DCGM_FI_PROF_SM_UTIL_RATIO", "gauge", `of \SMs`, "SMACT"),
		counterOf("DCGM_FI_SYSTEM_DRIVER_VERSION", LabelType, "", "none"),
		counterOf("DCGM_FI_DEV_GPU_TEMP", "counter", "hot, or not", "TMPTR"),
		counterOf("DCGM_FI_PROF_NVDEC0_ACTIVE", "gauge", "", "none"),
		counterOf("DCGM_FI_DEV_BRAND", LabelType, "", "none"),
		counterOf("DCGM_EXP_GPU_HEALTH_STATUS", "gauge", "", "none"),
		counterOf("DCGM_FI_DEV_SERIAL", "gauge", "", "none"), counterOf("DCGM_EXP_XID_ERRORS_COUNT", LabelType, "", "none"),
	}, everything)
	if want := []string{"DCGM_FI_PROF_NVDEC0_ACTIVE", "DCGM_FI_DEV_BRAND", "DCGM_EXP_GPU_HEALTH_STATUS", "DCGM_FI_DEV_SERIAL", "DCGM_EXP_XID_ERRORS_COUNT"}; !slices.Equal(notGiven, want) {
		t.Errorf("not given: %v, want %v", notGiven, want)
	}
	if ids := page.Wants(); !slices.Equal(ids, []int{150, 1002}) {
		t.Errorf("wants %v", ids)
	}
	w.Serve(page)
	var b raw.Batch
	w.Write(&b, noon, fixed{"TMPTR": {40, 41, math.NaN(), 42}, "SMACT": {.5}, "POWER": {100}})
	const gpu0 = `{gpu="0",UUID="` + uuid0 + `",pci_bus_id="00000000:10:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="gpu07",DCGM_FI_SYSTEM_DRIVER_VERSION="580.105.08",hpc_job="`
	const gpu1 = `{gpu="1",UUID="` + uuid1 + `",pci_bus_id="00000000:20:00.0",device="nvidia1",modelName="NVIDIA H100 80GB HBM3"`
	const driver = `,DCGM_FI_SYSTEM_DRIVER_VERSION="580.105.08"`
	want := "# HELP DCGM_FI_DEV_GPU_TEMP hot, or not\n# TYPE DCGM_FI_DEV_GPU_TEMP counter\n" +
		"DCGM_FI_DEV_GPU_TEMP" + gpu0 + "4711\"} 40\nDCGM_FI_DEV_GPU_TEMP" + gpu0 + "4712\"} 40\n" +
		"DCGM_FI_DEV_GPU_TEMP" + gpu1 + `,GPU_I_PROFILE="3g.40gb",GPU_I_ID="2",hostname="gpu07"` + driver + "} 41\n" +
		"DCGM_FI_DEV_GPU_TEMP" + gpu1 + ",GPU_I_ID=\"9\",hostname=\"gpu07\"" + driver + "} 42\n" +
		"# HELP DCGM_FI_PROF_SM_UTIL_RATIO of \\\\SMs\n# TYPE DCGM_FI_PROF_SM_UTIL_RATIO gauge\n" +
		"DCGM_FI_PROF_SM_UTIL_RATIO" + gpu0 + "4711\"} 0.500000\nDCGM_FI_PROF_SM_UTIL_RATIO" + gpu0 + "4712\"} 0.500000\n"
	if got := string(b.AppendText(nil)); got != want {
		t.Errorf("serves\n%s\nwant\n%s", got, want)
	}
	if want := []string{"DCGM_FI_PROF_SM_UTIL_RATIO", "DCGM_FI_DEV_GPU_TEMP"}; !slices.Equal(b.Families, want) {
		t.Errorf("families %q, want %q", b.Families, want)
	}
	if all := string(b.Exposition(nil, &b)); len(b.Samples) != 8 || !strings.Contains(all, "DCGM_FI_DEV_POWER_USAGE{") || !strings.Contains(all, `DCGM_FI_DRIVER_VERSION="580.105.08"`) {
		t.Errorf("%d samples, of all there is\n%s", len(b.Samples), all)
	}
}

// A board that is cut has no rows of its own: its instances have its readings, but not its memory and activity, and one of
// their own each. Its jobs do not repeat them.
func TestPageOfInstances(t *testing.T) {
	w := writer("", inventory(nil), Jobs{"1": {"7", "8"}})
	page, _ := NewPage([]Counter{counterOf("DCGM_FI_DEV_POWER_USAGE", "gauge", "", "POWER"), counterOf("DCGM_FI_DEV_FB_USED", "gauge", "", "FBUSD"),
		counterOf("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "", "GRACT")}, everything)
	w.Serve(page)
	var b raw.Batch
	w.Write(&b, noon, fixed{"POWER": {100, 300}, "FBUSD": {1, 9000, math.NaN(), 42}, "GRACT": {.1, .9, .5}})
	got := map[string]int{}
	for line := range strings.Lines(string(b.AppendText(nil))) {
		if family, rest, _ := strings.Cut(line, "{"); !strings.HasPrefix(line, "#") {
			_, instance, _ := strings.Cut(rest, `GPU_I_ID="`)
			got[strings.TrimPrefix(family, "DCGM_FI_")+" "+rest[5:6]+" "+instance[:min(1, len(instance))]+rest[strings.LastIndexByte(rest, ' '):len(rest)-1]]++
		}
	}
	want := map[string]int{"DEV_POWER_USAGE 0  100.000000": 1, "DEV_POWER_USAGE 1 2 300.000000": 2, "DEV_POWER_USAGE 1 9 300.000000": 2, "DEV_FB_USED 0  1": 1,
		"DEV_FB_USED 1 9 42": 2, "PROF_GR_ENGINE_ACTIVE 0  0.100000": 1, "PROF_GR_ENGINE_ACTIVE 1 2 0.500000": 2}
	if !maps.Equal(got, want) {
		t.Errorf("serves %v, want %v\n%s", got, want, b.AppendText(nil))
	}
}

// podsOf are holders by the UUID of a board and the id of an instance.
type podsOf map[string][]canonical.Workload

func (p *podsOf) Answer() any { return len(*p) }

func (p *podsOf) Holding(devices []canonical.Device, _ []canonical.MIGPlace) (all [][]canonical.Workload) {
	for _, d := range devices {
		all = append(all, (*p)[d.UUID+d.Instance])
	}
	return all
}

// A Page names the pod of a device, the last of several, but not the Samples: the device is the same with another pod.
func TestPagePods(t *testing.T) {
	w := writer("", inventory(nil), Jobs{"0": {"4711"}})
	page, _ := NewPage([]Counter{counterOf("DCGM_FI_DEV_GPU_TEMP", "gauge", "", "TMPTR"), counterOf("DCGM_FI_DEV_XID_ERRORS", "gauge", "", "XIDER")}, everything)
	pods := podsOf{uuid0: {{Namespace: "ml", Pod: "a", Container: "c"}, {Namespace: "ml", Pod: `b"`, Container: "c"}}}
	page.Pods = &pods
	w.Serve(page)
	var b raw.Batch
	write := func() string {
		b.Reset()
		w.Write(&b, noon, fixed{"TMPTR": {40, 41, math.NaN(), 42}, "XIDER": {31}})
		return string(b.AppendText(nil))
	}
	text := write()
	for _, want := range []string{`modelName="NVIDIA H100 80GB HBM3",container="c",namespace="ml",pod="b\"",hpc_job="4711"} 40`, `,pod="b\"",err_code="31",hpc_job="4711"} 31`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Count(text, "pod=") != 2 || strings.Contains(string(b.Exposition(nil, &b)), "pod=") {
		t.Errorf("serves\n%s", text)
	}
	pods = podsOf{uuid1 + "9": {{Namespace: "web", Pod: "d"}}, "other": nil}
	if text := write(); strings.Contains(text, `pod="b`) || !strings.Contains(text, `GPU_I_ID="9",container="",namespace="web",pod="d"} 42`) {
		t.Errorf("after a change\n%s", text)
	}
}

// The driver's version is a label even if only nvidia-smi gives it. The cluster is one of the clique
// alone, and of a Page only if its file has it.
func TestLabels(t *testing.T) {
	const gpu0 = `{gpu="0",UUID="` + uuid0 + `",pci_bus_id="10",device="nvidia0",modelName="NVIDIA H100 80GB HBM3"`
	b0 := named(0, uuid0, "10")
	b0.Driver, b0.Cluster = "580.105.08", "c-1"
	page, _ := NewPage([]Counter{
		counterOf("DCGM_FI_DEV_GPU_TEMP", "gauge", "", "TMPTR"), counterOf(CliqueFamily, "gauge", "", CliqueColumn),
		counterOf("DCGM_FI_DRIVER_VERSION", LabelType, "", "none"),
	}, everything)
	const driver, cluster = `,DCGM_FI_DRIVER_VERSION="580.105.08"`, `,DCGM_FI_DEV_FABRIC_CLUSTER_UUID="c-1"`
	for _, c := range []struct {
		page         *Page
		temp, clique string
	}{
		{nil, gpu0 + driver + "} 40", gpu0 + driver + cluster + "} 7"},
		{page, gpu0 + driver + "} 40", gpu0 + driver + "} 7"},
	} {
		w := writer("", flatten([]board{b0}), nil)
		if c.page != nil {
			w.Serve(c.page)
		}
		var b raw.Batch
		w.Write(&b, noon, fixed{"TMPTR": {40}, CliqueColumn: {7}})
		text := string(b.AppendText(nil))
		for _, line := range []string{"\nDCGM_FI_DEV_GPU_TEMP" + c.temp + "\n", "\n" + CliqueFamily + c.clique + "\n"} {
			if !strings.Contains(text, line) {
				t.Errorf("no %q in\n%s", line, text)
			}
		}
	}
}

// A number is converted exactly; one in fractions of a unit is a double.
func TestCounterValue(t *testing.T) {
	for _, c := range []struct {
		times, per, v float64
		float         bool
		want          float64
		double        bool
	}{
		{0, 0, 57, false, 57, false}, {0, 0, 57, true, 57, true}, {1, 1, 57, false, 57, false},
		{1 << 20, 1, 613, false, 642777088, false}, {1000, 1, 1.5, true, 1500, true},
		{1, 100, 57, false, .57, true}, {1, 1000, 1500, true, 1.5, true},
	} {
		counter := Counter{Times: c.times, Per: c.per}
		if got, double := counter.value(c.v, c.float); got != c.want || double != c.double {
			t.Errorf("%+v: %v, %v", c, got, double)
		}
	}
}

// eventRows returns the served events of one device, each on a line.
func eventRows(b *raw.Batch) (rows []string) {
	for line := range strings.Lines(string(b.AppendText(nil))) {
		name, rest, _ := strings.Cut(line, "{")
		if _, labels, is := strings.Cut(rest, `,hostname="h"`); is {
			rows = append(rows, strings.TrimPrefix(name, "DCGM_EXP_")+strings.ReplaceAll(strings.TrimSpace(labels), `window_size_in_ms="300000"`, "5m"))
		}
	}
	return rows
}

// eventWriter returns a Writer of one board that serves all events.
func eventWriter() *Writer {
	b := newBoard(0)
	b.UUID = uuid0
	w := writer("h", flatten([]board{b}), nil)
	var lines []Counter
	for _, e := range events {
		lines = append(lines, counterOf(e.name, "counter", "", "none"))
	}
	page, _ := NewPage(lines, everything)
	w.Serve(page)
	return w
}

// XIDs count when they change. Clock events count in each reading within the window, and when
// they begin since the start.
func TestEvents(t *testing.T) {
	w := eventWriter()
	nan := math.NaN()
	for i, step := range []struct {
		second     int
		xid, clock float64
		want       string
	}{
		{0, 31, 4, `XID_ERRORS_COUNT,5m} 0 CLOCK_EVENTS_COUNT,clock_event="power_cap",5m} 1`}, // the time of the first XID is unknown
		{1, 31, 4, `XID_ERRORS_COUNT,5m} 0 CLOCK_EVENTS_COUNT,clock_event="power_cap",5m} 2`},
		{2, 48, 68, `XID_ERRORS_COUNT,5m,xid="48"} 1 XID_ERRORS_TOTAL,xid="48"} 1 CLOCK_EVENTS_COUNT,clock_event="power_cap",5m} 3 CLOCK_EVENTS_COUNT,clock_event="hw_thermal",5m} 1 CLOCK_EVENTS_TOTAL,clock_event="hw_thermal"} 1`},
		{2, 48, 4, `XID_ERRORS_COUNT,5m,xid="48"} 1 XID_ERRORS_TOTAL,xid="48"} 1 CLOCK_EVENTS_COUNT,clock_event="power_cap",5m} 4 CLOCK_EVENTS_COUNT,clock_event="hw_thermal",5m} 1 CLOCK_EVENTS_TOTAL,clock_event="hw_thermal"} 1`},
		{3, nan, 0, `XID_ERRORS_COUNT,5m,xid="48"} 1 XID_ERRORS_TOTAL,xid="48"} 1 CLOCK_EVENTS_COUNT,clock_event="power_cap",5m} 4 CLOCK_EVENTS_COUNT,clock_event="hw_thermal",5m} 1 CLOCK_EVENTS_TOTAL,clock_event="hw_thermal"} 1`},
		{4, 48, 4, `XID_ERRORS_COUNT,5m,xid="48"} 2 XID_ERRORS_TOTAL,xid="48"} 2 CLOCK_EVENTS_COUNT,clock_event="power_cap",5m} 5 CLOCK_EVENTS_COUNT,clock_event="hw_thermal",5m} 1 CLOCK_EVENTS_TOTAL,clock_event="power_cap"} 1 CLOCK_EVENTS_TOTAL,clock_event="hw_thermal"} 1`},
		{302, 48, 4, `XID_ERRORS_COUNT,5m,xid="48"} 1 XID_ERRORS_TOTAL,xid="48"} 2 CLOCK_EVENTS_COUNT,clock_event="power_cap",5m} 2 CLOCK_EVENTS_TOTAL,clock_event="power_cap"} 1 CLOCK_EVENTS_TOTAL,clock_event="hw_thermal"} 1`},
		{700, 48, 0, `XID_ERRORS_COUNT,5m} 0 XID_ERRORS_TOTAL,xid="48"} 2 CLOCK_EVENTS_TOTAL,clock_event="power_cap"} 1 CLOCK_EVENTS_TOTAL,clock_event="hw_thermal"} 1`},
	} {
		var b raw.Batch
		w.Write(&b, noon.Add(time.Duration(step.second)*time.Second), fixed{"XIDER": {step.xid}, "DVCCTR": {step.clock}, "TMPTR": {40}})
		if got := strings.Join(eventRows(&b), " "); got != step.want {
			t.Errorf("step %d:\n%s\nwant\n%s", i, got, step.want)
		}
	}
	w = eventWriter()
	page, _ := NewPage([]Counter{counterOf("DCGM_FI_DEV_XID_ERRORS", "gauge", "", "XIDER")}, everything)
	w.Serve(page)
	var b raw.Batch
	w.Write(&b, noon, fixed{"XIDER": {48}})
	if got := eventRows(&b); !slices.Equal(got, []string{`DCGM_FI_DEV_XID_ERRORS,err_code="48"} 48`}) {
		t.Errorf("the gauge is %q", got)
	}
	b.Reset()
	w.Write(&b, noon.Add(time.Hour), fixed{})
	if rows := eventRows(&b); rows != nil {
		t.Errorf("of a board that is not read: %v", rows)
	}
}

// Once all events are known, neither a reading with them nor its text allocates.
func TestPageAllocatesNothing(t *testing.T) {
	w := eventWriter()
	var b raw.Batch
	from := Readings(fixed{"XIDER": {48}, "DVCCTR": {68}, "TMPTR": {40}})
	var text []byte
	tick := func() {
		b.Reset()
		w.Write(&b, noon, from)
		text = b.AppendText(text[:0])
	}
	tick()
	if n := testing.AllocsPerRun(100, tick); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func (fixed) IsLost(int) bool { return false }
