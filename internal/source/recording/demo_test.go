package recording

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// row is one device of a body: its labels and, by family, its readings.
type row struct {
	labels labels.Labels
	values map[string]float64
}

func (r row) get(family string) float64 { return r.values["DCGM_FI_"+family] }

// device names a row as the tests do: "3", or "7/1" for a MIG instance.
func (r row) device() string {
	if id := r.labels.Get("GPU_I_ID"); id != "" {
		return r.labels.Get("gpu") + "/" + id
	}
	return r.labels.Get("gpu")
}

// demoTicks is how many ticks the tests check: two loops and a window, to
// include windows that span the restart.
const demoTicks = 2*demoSeconds + 25

// script returns the first ticks seconds of the demo, each body parsed by
// Prometheus' own parser. It is played once for all tests.
func script(t *testing.T, ticks int) []map[string]row {
	t.Helper()
	all, err := played()
	if err != nil {
		t.Fatal(err)
	}
	return all[:ticks]
}

var played = sync.OnceValues(func() (all []map[string]row, err error) {
	s := Demo(Options{Period: time.Nanosecond})
	var b raw.Batch
	for n := range demoTicks {
		if err := s.Read(context.Background(), &b); err != nil {
			return nil, err
		}
		rows, err := parse(&b)
		if err != nil {
			return nil, fmt.Errorf("second %d: %w", n, err)
		}
		all = append(all, rows)
	}
	return all, nil
})

func parse(b *raw.Batch) (map[string]row, error) {
	rows, helped, typed := map[string]row{}, map[string]bool{}, map[string]bool{}
	p := textparse.NewPromParser(b.Body, labels.NewSymbolTable(), false)
	samples := 0
	var ls labels.Labels
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch entry {
		case textparse.EntryHelp:
			name, help := p.Help()
			helped[string(name)] = len(help) > 0
		case textparse.EntryType:
			name, _ := p.Type()
			typed[string(name)] = true
		case textparse.EntrySeries:
			samples++
			p.Labels(&ls)
			_, _, v := p.Series()
			if err := add(rows, ls, v); err != nil {
				return nil, err
			}
			if family := ls.Get(model.MetricNameLabel); !helped[family] || !typed[family] {
				return nil, fmt.Errorf("%s has no HELP or TYPE before it", family)
			}
		}
	}
	if b.Skipped != 0 || len(b.Omit) != 0 || len(b.Samples) != samples || len(helped) != len(theDemo().Families) {
		return nil, fmt.Errorf("%d skipped, %d samples of %d, %d families", b.Skipped, len(b.Samples), samples, len(helped))
	}
	return rows, nil
}

// add adds the reading of a series to its row; all series of a device must have
// the same labels.
func add(rows map[string]row, ls labels.Labels, v float64) error {
	r := row{labels: ls}
	old, ok := rows[r.device()]
	if !ok {
		r = row{ls.Copy(), map[string]float64{}}
		rows[r.device()] = r
		old = r
	}
	family := ls.Get(model.MetricNameLabel)
	if _, twice := old.values[family]; twice {
		return fmt.Errorf("%s twice", ls)
	}
	same := ls.Len() == old.labels.Len()
	ls.Range(func(l labels.Label) {
		same = same && (l.Name == model.MetricNameLabel || old.labels.Get(l.Name) == l.Value)
	})
	if !same {
		return fmt.Errorf("%s and %s are one device", ls, old.labels)
	}
	old.values[family] = v
	return nil
}

// TestDemoShowsItsClasses: every 25 seconds show at least six classes, and the script all twelve. That the
// readings have these classes is what the program says of them (e2e).
func TestDemoShowsItsClasses(t *testing.T) {
	all := map[string]bool{}
	for from := range demoTicks - 24 {
		window := map[string]bool{}
		for n := from; n < from+25; n++ {
			for device := range script(t, demoTicks)[n] {
				var gpu int
				var instance string
				fmt.Sscanf(strings.Replace(device, "/", " ", 1), "%d %s", &gpu, &instance)
				window[DemoClass(gpu, instance, n)] = true
			}
		}
		if maps.Copy(all, window); len(window) < 6 || window[""] {
			t.Errorf("seconds %d to %d show the classes %v", from, from+24, window)
		}
	}
	if len(all) != 12 {
		t.Errorf("%d classes: %v", len(all), all)
	}
	if DemoClass(3, "", 130) != "" || DemoClass(7, "", 0) != "" || DemoClass(8, "", 0) != "" {
		t.Error("a class for a device that is not there")
	}
}

// seconds lists the seconds in which the device exists and cond holds.
func seconds(ticks []map[string]row, device string, cond func(row) bool) []int {
	var s []int
	for n, rows := range ticks {
		if r, ok := rows[device]; ok && cond(r) {
			s = append(s, n)
		}
	}
	return s
}

func TestDemoTellsItsStory(t *testing.T) {
	ticks := script(t, demoSeconds)
	xid := func(code float64) func(row) bool { return func(r row) bool { return r.get("DEV_XID_ERRORS") == code } }
	if s := seconds(ticks, "2", xid(31)); len(s) != 138 || s[0] != 62 {
		t.Errorf("XID 31 on GPU 2 in seconds %v", s)
	}
	if s := seconds(ticks, "3", xid(79)); !slices.Equal(s, []int{120, 121, 122, 123, 124, 125}) {
		t.Errorf("XID 79 on GPU 3 in seconds %v", s)
	}
	there := seconds(ticks, "3", func(row) bool { return true })
	if len(there) != demoSeconds-74 || !slices.Contains(there, 125) || slices.Contains(there, 126) || !slices.Contains(there, 200) {
		t.Errorf("GPU 3 is there in %d seconds", len(there))
	}
	if s := seconds(ticks[200:], "3", xid(0)); len(s) != demoSeconds-200 {
		t.Error("GPU 3 comes back with an XID")
	}

	hot := seconds(ticks, "5", func(r row) bool { return r.get("DEV_GPU_TEMP") >= 95 })
	if len(hot) < 28 || len(hot) > 40 || hot[len(hot)-1]-hot[0] != len(hot)-1 {
		t.Errorf("GPU 5 is hot in seconds %v", hot)
	}
	for _, n := range hot {
		if bits := int(ticks[n]["5"].get("DEV_CLOCKS_EVENT_REASONS")); bits&0x60 == 0 {
			t.Errorf("second %d: hot without a thermal clock event, %#x", n, bits)
		}
	}
	for device := range ticks[0] {
		warm := func(r row) bool { return r.get("DEV_GPU_TEMP") >= 93 || r.get("DEV_MEMORY_TEMP") >= 93 }
		if s := seconds(ticks, device, warm); device != "5" && len(s) > 0 {
			t.Errorf("GPU %s is hot in seconds %v", device, s)
		}
	}

	before, after := ticks[91]["4"].get("DEV_PCIE_REPLAY_COUNTER"), ticks[97]["4"].get("DEV_PCIE_REPLAY_COUNTER")
	if after != before+5 {
		t.Errorf("PCIe replays of GPU 4: %v, then %v", before, after)
	}
}

func TestDemoPods(t *testing.T) {
	ticks := script(t, demoSeconds)
	tests := []struct {
		device string
		second int
		pod    string
	}{
		{"0", 0, "pretrain-7b-worker-0"}, {"2", 61, "finetune-lora-k8f4d"}, {"2", 62, ""}, {"2", 80, "finetune-lora-p2m9s"},
		{"3", 125, "cfd-wing-0"}, {"3", 200, ""}, {"3", 215, "cfd-wing-1"}, {"4", 89, "frames-0180-9wz7c"}, {"4", 90, "cloth-5tq2n"},
		{"7/9", 59, ""}, {"7/9", 60, "features-28841-zr5hj"}, {"7/9", 180, ""}, {"7/1", 100, "chat-small-58d7f6c9b4-t8wkm"},
	}
	for _, tt := range tests {
		r := ticks[tt.second][tt.device]
		if got := r.labels.Get("pod"); got != tt.pod || r.labels.Has("namespace") != (tt.pod != "") || r.labels.Has("container") != (tt.pod != "") {
			t.Errorf("second %d: GPU %s is held by %q, want %q", tt.second, tt.device, got, tt.pod)
		}
	}
	for n, rows := range ticks {
		if pod := rows["6"].labels.Get("pod"); pod != "notebook-forgotten-0" || DemoClass(6, "", n) != "idle" {
			t.Errorf("second %d: GPU 6 is %s, held by %q", n, DemoClass(6, "", n), pod)
		}
	}
}

// The instances of a MIG board have the same shared readings, and none that
// dcgm-exporter does not serve for instances.
func TestDemoMIG(t *testing.T) {
	for n, rows := range script(t, 10) {
		if _, ok := rows["7"]; ok || len(rows) != 10 {
			t.Fatalf("second %d: %d devices", n, len(rows))
		}
		one := rows["7/1"]
		for _, id := range []string{"7/3", "7/9"} {
			r := rows[id]
			for _, f := range []string{"DEV_POWER_USAGE", "DEV_TOTAL_ENERGY_CONSUMPTION", "DEV_GPU_TEMP", "DEV_SM_CLOCK", "DEV_XID_ERRORS"} {
				if _, ok := r.values["DCGM_FI_"+f]; !ok || r.get(f) != one.get(f) {
					t.Errorf("%s of %s is %v, of 7/1 %v", f, id, r.get(f), one.get(f))
				}
			}
			for _, f := range []string{"DEV_GPU_UTIL", "DEV_MEM_COPY_UTIL", "PROF_PCIE_RX_BYTES", "DEV_NVLINK_BANDWIDTH_TOTAL"} {
				if _, ok := r.values["DCGM_FI_"+f]; ok {
					t.Errorf("%s has %s", id, f)
				}
			}
			if r.labels.Get("UUID") != one.labels.Get("UUID") || r.labels.Get("GPU_I_PROFILE") == "" {
				t.Errorf("labels of %s: %v", id, r.labels)
			}
		}
	}
}

func TestDemoReadings(t *testing.T) {
	var last map[string]row
	for n, rows := range script(t, 2*demoSeconds) {
		for device, r := range rows {
			for family, v := range r.values {
				if strings.HasPrefix(family, "DCGM_FI_PROF_") && !strings.HasSuffix(family, "_BYTES") && (v < 0 || v > 1) {
					t.Errorf("second %d: %s of %s is %v", n, family, device, v)
				}
			}
			if w := r.get("DEV_POWER_USAGE"); w < 40 || w > r.get("DEV_ENFORCED_POWER_LIMIT") {
				t.Errorf("second %d: GPU %s draws %v W", n, device, w)
			}
			if r.get("DEV_GPU_UTIL") > 100 || r.get("DEV_FB_FREE") < 0 {
				t.Errorf("second %d: GPU %s: %v", n, device, r.values)
			}
			was, ok := last[device]
			if !ok {
				continue
			}
			for _, f := range []string{"DEV_PCIE_REPLAY_COUNTER", "DEV_ECC_SBE_VOL_TOTAL"} {
				if r.get(f) < was.get(f) {
					t.Errorf("second %d: %s of GPU %s falls", n, f, device)
				}
			}
			// Energy is the integral of power: millijoules in one second.
			mj := r.get("DEV_TOTAL_ENERGY_CONSUMPTION") - was.get("DEV_TOTAL_ENERGY_CONSUMPTION")
			if d := mj - 1000*r.get("DEV_POWER_USAGE"); d < -1 || d > 1 {
				t.Errorf("second %d: GPU %s used %v mJ at %v W", n, device, mj, r.get("DEV_POWER_USAGE"))
			}
		}
		last = rows
	}
}

// hashes returns a hash over the bodies of the first 300 ticks.
func hashes(t *testing.T, opts Options) string {
	opts.Period = time.Nanosecond
	s := Demo(opts)
	h := sha256.New()
	var b raw.Batch
	for range 300 {
		if err := s.Read(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		h.Write(b.Body)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

func TestDemoIsDeterministic(t *testing.T) {
	one := hashes(t, Options{})
	if one != hashes(t, Options{Loop: true, Start: start}) {
		t.Error("two runs differ, or options matter")
	}
}

func TestDemoBody(t *testing.T) {
	s := Demo(Options{})
	var b raw.Batch
	if err := s.Read(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\n",
		"\nDCGM_FI_DEV_ENFORCED_POWER_LIMIT{gpu=\"6\",UUID=\"GPU-5d0e0007-2aa7-4e9b-bc83-61d2c4b58066\",pci_bus_id=\"00000000:CB:00.0\",device=\"nvidia6\"," +
			"modelName=\"NVIDIA H100 PCIe\",hostname=\"demo-node\",DCGM_FI_DRIVER_VERSION=\"580.105.08\"," +
			"container=\"jupyter\",namespace=\"research\",pod=\"notebook-forgotten-0\"} 350.000000\n",
		"\nDCGM_FI_DEV_XID_ERRORS{gpu=\"7\",UUID=\"GPU-5d0e0008-8098-4fac-afb6-72e3d5c69177\",pci_bus_id=\"00000000:DB:00.0\",device=\"nvidia7\"," +
			"modelName=\"NVIDIA H100 80GB HBM3\",GPU_I_PROFILE=\"1g.10gb\",GPU_I_ID=\"9\",hostname=\"demo-node\",DCGM_FI_DRIVER_VERSION=\"580.105.08\"} 0\n",
	} {
		if !bytes.Contains(b.Body, []byte(want)) {
			t.Errorf("the body lacks %s", want)
		}
	}
	if s.Name() != "demo" {
		t.Error(s.Name())
	}
}

func BenchmarkDemoTick(b *testing.B) {
	d := newDemo()
	batch := &raw.Batch{Dict: raw.NewDict()}
	b.ReportAllocs()
	for b.Loop() {
		d.fill(0, batch)
		batch.Reset()
	}
}

func TestDemoAllocatesNothing(t *testing.T) {
	d := newDemo()
	batch := &raw.Batch{Dict: raw.NewDict()}
	for range demoSeconds {
		d.fill(0, batch)
	}
	if n := testing.AllocsPerRun(demoSeconds, func() { d.fill(0, batch) }); n != 0 {
		t.Errorf("%v allocations a tick", n)
	}
}

// TestDemoStory checks the tick at which a dashboard opens: one GPU is lost, one is hot, and
// a notebook has held one for ten minutes.
func TestDemoStory(t *testing.T) {
	s := Demo(Options{Period: time.Nanosecond})
	var b raw.Batch
	for range DemoStory {
		if err := s.Read(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, there := rows["3"]; there {
		t.Error("GPU 3 is there")
	}
	if degrees := rows["5"].get("DEV_GPU_TEMP"); degrees < 95 {
		t.Errorf("GPU 5 is at %v °C", degrees)
	}
	if r := rows["6"]; r.labels.Get("pod") != "notebook-forgotten-0" || r.get("DEV_FB_USED") < 50000 || DemoStory < 600 {
		t.Errorf("GPU 6 after %d seconds: %v", DemoStory, r)
	}
}
