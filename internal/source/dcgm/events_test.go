package dcgm

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// The exporter's name of each bit, which dcgm_fields.h defines.
func TestClockEvents(t *testing.T) {
	for bits, name := range map[float64]string{
		0x1: "gpu_idle", 0x2: "clocks_setting", 0x4: "power_cap", 0x8: "hw_slowdown", 0x10: "sync_boost",
		0x20: "sw_thermal", 0x40: "hw_thermal", 0x80: "hw_power_brake", 0x100: "display_clocks",
	} {
		var b raw.Batch
		eventWriter().Write(&b, noon, fixed{"DVCCTR": {bits}})
		want := []string{`XID_ERRORS_COUNT,5m} 0`, `CLOCK_EVENTS_COUNT,clock_event="` + name + `",5m} 1`}
		if got := eventRows(&b); !slices.Equal(got, want) {
			t.Errorf("%v: %q, want %q", bits, got, want)
		}
	}
}

// Within a second, a code is counted in one place: ten samples a second take no more memory than one.
func TestCounts(t *testing.T) {
	var c counts
	for _, code := range []uint32{48, 48, 13, 48} {
		c.add(5, code, 2, 1)
	}
	c.add(6, 13, 2, 1)
	if want := []moment{{5, 0, 6}, {5, 1, 2}, {6, 1, 2}}; !slices.Equal(c.recent, want) {
		t.Errorf("within the window: %v, want %v", c.recent, want)
	}
	if want := []codeCount{{48, 6, 3}, {13, 4, 2}}; !slices.Equal(c.codes, want) {
		t.Errorf("codes: %v, want %v", c.codes, want)
	}
}

// byBoard are readings of a source that reports the XIDs of some boards one by one.
type byBoard struct {
	fixed
	xids [][]raw.XID
}

func (s byBoard) XIDs(dst []raw.XID, board int) []raw.XID { return append(dst, s.xids[board]...) }

// Each family has its HELP and TYPE once, and each board the counts of its own XIDs: 0 within the
// window if there are none, or if nobody reports them.
func TestEventsOfBoards(t *testing.T) {
	w := writer("", flatten([]board{named(0, uuid0, "10"), named(1, uuid1, "20"), named(2, "GPU-2", "30"), named(3, "GPU-3", "40")}), nil)
	page, _ := NewPage([]Counter{
		counterOf("DCGM_EXP_XID_ERRORS_COUNT", "gauge", "lately", "none"), counterOf("DCGM_EXP_XID_ERRORS_TOTAL", "counter", "ever", "none"),
	}, everything)
	w.Serve(page)
	var b raw.Batch
	w.Write(&b, noon, byBoard{
		fixed{"TMPTR": {40, 41, 42, 43}},
		[][]raw.XID{{{Code: 13, Count: 12}}, {{Code: 79, Count: 1}, {Code: 48, Count: 123}}, {{Code: 0}}, nil},
	})
	const (
		count  = "DCGM_EXP_XID_ERRORS_COUNT"
		total  = "DCGM_EXP_XID_ERRORS_TOTAL"
		window = `,window_size_in_ms="300000"`
		gpu0   = `{gpu="0",UUID="` + uuid0 + `",pci_bus_id="10",device="nvidia0",modelName="NVIDIA H100 80GB HBM3"`
		gpu1   = `{gpu="1",UUID="` + uuid1 + `",pci_bus_id="20",device="nvidia1",modelName="NVIDIA H100 80GB HBM3"`
		gpu2   = `{gpu="2",UUID="GPU-2",pci_bus_id="30",device="nvidia2",modelName="NVIDIA H100 80GB HBM3"`
		gpu3   = `{gpu="3",UUID="GPU-3",pci_bus_id="40",device="nvidia3",modelName="NVIDIA H100 80GB HBM3"`
	)
	want := strings.Join([]string{
		"# HELP " + count + " lately", "# TYPE " + count + " gauge",
		count + gpu0 + window + `,xid="13"} 12`,
		count + gpu1 + window + `,xid="79"} 1`,
		count + gpu1 + window + `,xid="48"} 123`,
		count + gpu2 + window + `} 0`,
		count + gpu3 + window + `} 0`,
		"# HELP " + total + " ever", "# TYPE " + total + " counter",
		total + gpu0 + `,xid="13"} 12`,
		total + gpu1 + `,xid="79"} 1`,
		total + gpu1 + `,xid="48"} 123`,
	}, "\n") + "\n"
	if got := string(b.AppendText(nil)); got != want {
		t.Errorf("serves\n%s\nwant\n%s", got, want)
	}
	if want := []string{count, total}; !slices.Equal(b.Families, want) {
		t.Errorf("families %q, want %q", b.Families, want)
	}
}

// A board has no XID if fields of the device stream are read and the XID is not among them. Profiling
// fields and the limit of NVLink do not show that.
func TestXIDThatIsNotRead(t *testing.T) {
	for name, c := range map[string]struct {
		between fixed
		want    uint64
	}{
		"a field of the device stream":       {fixed{"TMPTR": {40}}, 1},
		"fields of both streams":             {fixed{"TMPTR": {40}, "SMACT": {.5}}, 1},
		"a profiling field":                  {fixed{"SMACT": {.5}}, 0},
		"nothing":                            {fixed{}, 0},
		"a profiling field and NVLink limit": {fixed{"SMACT": {.5}, NVLinkLimit: {9e11}}, 0},
	} {
		w := eventWriter()
		var b raw.Batch
		for second, from := range []fixed{{"TMPTR": {40}, "XIDER": {48}}, c.between, {"TMPTR": {40}, "XIDER": {48}}} {
			b.Reset()
			w.Write(&b, noon.Add(time.Duration(second)*time.Second), from)
		}
		total := uint64(0)
		for _, e := range b.Events {
			if w.page.events[e.Family].name == xidTotalFamily {
				total += e.Count
			}
		}
		if total != c.want {
			t.Errorf("%s between: %d XIDs, want %d", name, total, c.want)
		}
	}
}
