package translate

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	c "github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// fuzzLabels are label sets of devices and of others.
var fuzzLabels = []string{
	`{gpu="0",UUID="A",Hostname="h"}`, `{gpu="0",UUID="A",GPU_I_ID="1",GPU_I_PROFILE="1g.5gb"}`,
	`{gpu="0",uuid="A",GPU_I_ID="2"}`, `{gpu="1",gpu_uuid="B",DCGM_FI_SYSTEM_DRIVER_VERSION="1"}`,
	`{gpu="1",UUID="B",pod="p"}`, `{gpu="2",UUID="C",GPU_I_ID="13"}`, `{gpu="3",entity="GPU 3"}`,
	`{gpu="3",entity="GPU-I 4",gpu_instance_entity="4"}`, `{nvlink="0",gpu="0",gpu_uuid="A"}`, `{cpu="0"}`, ``, `{gpu="0"}`,
	`{gpu="0",UUID="A",pod="p",namespace="n"}`, `{gpu="0",UUID="A",pod="q-0",apps_kubernetes_io_pod_index="0"}`,
	`{gpu="0",UUID="A",modelName="M",pod="p",namespace="n",ray_io_cluster="r"}`, `{gpu="0",UUID="A",GPU_I_ID="1",exported_pod="p"}`,
	`{gpu="1",UUID="B",hpc_job="1"}`, `{gpu="1",UUID="B",hpc_job="2"}`, `{gpu="1",UUID="B",pod="p",hpc_job="2"}`, `{gpu="3",entity="GPU 3",pod="p"}`,
}

// FuzzTranslate takes two bytes and a float for each sample: its family, its labels and its
// value. Whatever it reads, the frame must stay sane.
func FuzzTranslate(f *testing.F) {
	names := fuzzNames()
	add := func(samples ...any) {
		var seed []byte
		for i := 0; i < len(samples); i += 3 {
			seed = append(seed, byte(samples[i].(int)), byte(samples[i+1].(int)))
			seed = binary.LittleEndian.AppendUint64(seed, math.Float64bits(samples[i+2].(float64)))
		}
		f.Add(seed, uint8(0))
		f.Add(seed, uint8(2))
	}
	add(0, 0, 0.5, 0, 1, 1.05, 0, 2, 1.2, 17, 3, 57.0, 19, 3, 1.0)
	add(19, 0, 1.0, 19, 3, 0.5, 30, 1, math.NaN(), 31, 1, math.Inf(1), 32, 1, 9223372036854775794.0)
	add(0, 12, 0.5, 0, 13, 0.5, 0, 14, 0.5, 0, 15, 0.5, 0, 16, 1.0, 0, 17, 1.0, 0, 18, 1.0, 0, 19, 1.0, 0, 13, 1.0, 0, 12, 1.0, 0, 4, 1.0)
	add(40, 4, 2147483632.0, 41, 5, 140737488355328.0, 42, 6, -1.0, 43, 7, 1e308, 44, 8, -1e308, 255, 0, 1.0)
	f.Fuzz(func(t *testing.T, data []byte, limit uint8) {
		tr, err := New(Options{MaxDevices: int(limit), MaxAllocations: int(limit), FallbackHost: "h"})
		if err != nil {
			t.Fatal(err)
		}
		b := raw.Batch{Dict: raw.NewDict()}
		var frame c.Frame
		// In two readings, so that devices come and go.
		for half := range 2 {
			b.Samples = fuzzSamples(b.Dict, names, data[half*len(data)/2:(half+1)*len(data)/2])
			var report Report
			tr.Translate(&frame, &b, &report)
			checkSane(t, tr, &frame)
			again, topology, allocationSet := report, frame.Topology, frame.AllocationSet
			tr.Translate(&frame, &b, &again)
			if frame.Topology != topology || frame.AllocationSet != allocationSet || again.DroppedAllocations != 0 {
				t.Errorf("the same reading gives another topology or allocationSet, or leaves out %d again", again.DroppedAllocations)
			}
			slices.Reverse(b.Samples)
			tr.Translate(&frame, &b, &again)
			if frame.Topology != topology || frame.AllocationSet != allocationSet {
				t.Error("the same reading backwards gives another topology or allocationSet")
			}
			slices.Reverse(b.Samples)
			tr.Translate(&frame, &b, &again)
			if again.Dropped != report.Dropped || again.Clamped != report.Clamped || again.DroppedSeries != report.DroppedSeries {
				t.Errorf("the same reading counts %+v, then %+v", report, again)
			}
		}
	})
}

// fuzzNames returns all names of the dialect and some unknown ones.
func fuzzNames() []string {
	names := []string{"DCGM_FI_DEV_NOBODY_KNOWS", "other"}
	for i := range dialect {
		names = append(names, dialect[i].Names...)
		if dialect[i].Column != "" {
			names = append(names, dialect[i].Column)
		}
	}
	return names
}

func fuzzSamples(d *raw.Dict, names []string, data []byte) []raw.Sample {
	var samples []raw.Sample
	for ; len(data) >= 10; data = data[10:] {
		samples = append(samples, raw.Sample{
			Family: d.FamilyID([]byte(names[int(data[0])%len(names)])),
			Labels: d.BlockID([]byte(fuzzLabels[int(data[1])%len(fuzzLabels)])),
			Value:  math.Float64frombits(binary.LittleEndian.Uint64(data[2:])),
		})
	}
	return samples
}

// checkSane checks what holds for every frame: its order, its ranges and its levels.
func checkSane(t *testing.T, tr *Translator, frame *c.Frame) {
	t.Helper()
	devices := frame.Topology.Devices
	if tr.opts.MaxDevices > 0 && len(devices) > tr.opts.MaxDevices {
		t.Errorf("%d devices, more than %d", len(devices), tr.opts.MaxDevices)
	}
	for i := range devices {
		d := &devices[i]
		if devices[d.Board].IsInstance() || d.Board > i || !d.IsInstance() && d.Board != i || d.Hostname == "" {
			t.Errorf("device %d is %+v", i, d)
		}
		if i > 0 && c.CompareDevices(&devices[i-1], d) >= 0 {
			t.Errorf("device %d is out of order", i)
		}
		for f, v := range frame.Row(i) {
			info := &c.Fields[f]
			lowest, highest := info.Range()
			if c.Given(v) && (math.IsInf(v, 0) || v < lowest || v > highest) {
				t.Errorf("%s = %v on device %d", info.Name, v, i)
			}
			if c.Given(v) && d.IsInstance() && info.Level == c.BoardLevel {
				t.Errorf("%s on an instance", info.Name)
			}
			if c.Given(v) && d.Implied && info.Level == c.InstanceLevel {
				t.Errorf("%s on an implied board", info.Name)
			}
		}
	}
}

// FuzzLabels resolves any label block.
func FuzzLabels(f *testing.F) {
	for _, block := range fuzzLabels {
		f.Add(block)
	}
	f.Add(`{GPU="0", Uuid="<<<NULL>>>",entity="x\n"`)
	f.Fuzz(func(t *testing.T, block string) {
		tr, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		tr.learn(raw.NewDict())
		dict := raw.NewDict()
		id := dict.BlockID([]byte(block))
		v := tr.resolve(dict, id)
		if v == noDevice {
			return
		}
		d := &tr.variants[v].Device
		if d.GPU == "" || d.UUID == "" && !strings.Contains(strings.ToLower(block), "entity") || d.Profile != "" && !d.IsInstance() {
			t.Errorf("%q is %+v", block, d)
		}
		if again := tr.resolve(dict, id); again != v {
			t.Errorf("%q is variant %d, then %d", block, v, again)
		}
	})
}
