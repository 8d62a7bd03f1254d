//go:build cgo && linux

package nvmltest_test

import (
	"debug/elf"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source/nvml/nvmltest"
)

// load returns the library with that scenario, and the path of the scenario.
func load(t *testing.T, s nvmltest.Scenario) (nvml.Interface, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scenario")
	s.Write(t, path)
	t.Setenv(nvmltest.ScenarioEnv, path)
	lib := nvml.New(nvml.WithLibraryPath(nvmltest.Build(t)))
	ok(t, lib.Init())
	t.Cleanup(func() { lib.Shutdown() })
	return lib, path
}

func ok(t *testing.T, ret nvml.Return) {
	t.Helper()
	want(t, ret, nvml.SUCCESS)
}

func want[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%v, want %v", got, want)
	}
}

func device(t *testing.T, lib nvml.Interface, index int) nvml.Device {
	t.Helper()
	d, ret := lib.DeviceGetHandleByIndex(index)
	ok(t, ret)
	return d
}

// TestSizes compares the structures of the C sources with go-nvml's.
func TestSizes(t *testing.T) {
	// go-nvml does not export nvmlGpmMetricsGet_t, and its GpmMetric is not NVML's.
	const metrics = 4 + 4 + 8 + 8 + 210*unsafe.Sizeof(gpmMetric{})
	theirs := map[string]uintptr{
		"pci": unsafe.Sizeof(nvml.PciInfo{}), "utilization": unsafe.Sizeof(nvml.Utilization{}),
		"memory": unsafe.Sizeof(nvml.Memory{}), "memory_v2": unsafe.Sizeof(nvml.Memory_v2{}),
		"temperature": unsafe.Sizeof(nvml.Temperature{}), "violation": unsafe.Sizeof(nvml.ViolationTime{}),
		"field_value": unsafe.Sizeof(nvml.FieldValue{}), "attributes": unsafe.Sizeof(nvml.DeviceAttributes{}),
		"metric": unsafe.Sizeof(gpmMetric{}), "metrics": metrics, "support": unsafe.Sizeof(nvml.GpmSupport{}),
		"event":        8 + 8 + 8 + 4 + 4, // go-nvml does not export nvmlEventData_t
		"process_info": unsafe.Sizeof(nvml.ProcessInfo{}),
		"margin":       unsafe.Sizeof(nvml.MarginTemperature{}), "banks": unsafe.Sizeof(nvml.RowRemapperHistogramValues{}),
		"sram": unsafe.Sizeof(nvml.EccSramErrorStatus{}), "fabric": unsafe.Sizeof(nvml.GpuFabricInfo_v3{}),
	}
	files, err := filepath.Glob("library/*.c")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`SIZED\(struct (\w+), (\d+)\)`).FindAllStringSubmatch(string(source), -1) {
			if size, _ := strconv.Atoi(m[2]); uintptr(size) != theirs[m[1]] {
				t.Errorf("%s: struct %s has %d bytes, go-nvml's %d", file, m[1], size, theirs[m[1]])
			}
			delete(theirs, m[1])
		}
	}
	if len(theirs) > 0 {
		t.Errorf("the sources check no size of %v", theirs)
	}
}

// TestWithout looks for the symbols in the file, without loading it.
func TestWithout(t *testing.T) {
	has := func(path, name string) bool {
		f, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		symbols, err := f.DynamicSymbols()
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(symbols, func(s elf.Symbol) bool { return s.Name == name })
	}
	whole, without := nvmltest.Build(t), nvmltest.BuildWithout(t, "nvmlGpmSampleGet", "nvmlDeviceGetPowerUsage")
	for name, want := range map[string]bool{"nvmlGpmSampleGet": false, "nvmlDeviceGetPowerUsage": false, "nvmlGpmMigSampleGet": true} {
		if !has(whole, name) || has(without, name) != want {
			t.Errorf("%s: in the whole library %t, in the other %t", name, has(whole, name), has(without, name))
		}
	}
}

func TestIdentity(t *testing.T) {
	lib, _ := load(t, nvmltest.FromTruth(nvmltest.H100(3)))
	version, ret := lib.SystemGetDriverVersion()
	ok(t, ret)
	want(t, version, nvmltest.DefaultDriver)
	n, ret := lib.DeviceGetCount()
	ok(t, ret)
	want(t, n, 3)
	want(t, lib.ErrorString(nvml.ERROR_GPU_IS_LOST), "GPU is lost")

	d := device(t, lib, 2)
	uuid, _ := d.GetUUID()
	want(t, uuid, "GPU-a1b2c3d4-0002-1111-2222-333344445550")
	name, _ := d.GetName()
	want(t, name, "NVIDIA H100 80GB HBM3")
	pci, ret := d.GetPciInfo()
	ok(t, ret)
	want(t, pci.Bus, 0x12)
	want(t, text(pci.BusId[:]), "00000000:12:00.0")
	want(t, text(pci.BusIdLegacy[:]), "0000:12:00.0")
	same, ret := lib.DeviceGetHandleByUUID(uuid)
	ok(t, ret)
	want(t, same, d)
	same, ret = lib.DeviceGetHandleByPciBusId("0000:12:00.0")
	ok(t, ret)
	want(t, same, d)
	index, _ := d.GetIndex()
	want(t, index, 2)
	_, ret = lib.DeviceGetHandleByIndex(3)
	want(t, ret, nvml.ERROR_INVALID_ARGUMENT)
}

func text[T ~int8 | ~uint8](chars []T) string {
	var b []byte
	for _, c := range chars {
		if c == 0 {
			break
		}
		b = append(b, byte(c))
	}
	return string(b)
}

// TestReadings reads the first board of H100 in NVML's units, worked out by hand.
func TestReadings(t *testing.T) {
	lib, _ := load(t, nvmltest.FromTruth(nvmltest.H100(1)))
	d := device(t, lib, 0)
	of := func(v any, ret nvml.Return) any { ok(t, ret); return v }
	for name, test := range map[string]struct{ got, want any }{
		"power":       {of(d.GetPowerUsage()), uint32(412337)},
		"enforced":    {of(d.GetEnforcedPowerLimit()), uint32(650000)},
		"asked":       {of(d.GetPowerManagementLimit()), uint32(700000)},
		"energy":      {of(d.GetTotalEnergyConsumption()), uint64(123456789012)},
		"temperature": {of(d.GetTemperature(nvml.TEMPERATURE_GPU)), uint32(61)},
		"slowdown":    {of(d.GetTemperatureThreshold(nvml.TEMPERATURE_THRESHOLD_SLOWDOWN)), uint32(89)},
		"sm clock":    {of(d.GetClockInfo(nvml.CLOCK_SM)), uint32(1755)},
		"reasons":     {of(d.GetCurrentClocksEventReasons()), uint64(4)},
		"utilization": {of(d.GetUtilizationRates()), nvml.Utilization{Gpu: 98, Memory: 51}},
		"memory": {of(d.GetMemoryInfo_v2()), nvml.Memory_v2{Version: 40 | 2<<24,
			Used: 75161927680, Free: 9663676416, Reserved: 670040064, Total: 85495644160}},
		"old memory": {of(d.GetMemoryInfo()), nvml.Memory{Used: 75831967744, Free: 9663676416, Total: 85495644160}},
		"replays":    {of(d.GetPcieReplayCounter()), 3},
		"generation": {of(d.GetCurrPcieLinkGeneration()), 4},
		"width":      {of(d.GetCurrPcieLinkWidth()), 8},
		"best":       {of(d.GetMaxPcieLinkGeneration()), 5},
		"most":       {of(d.GetMaxPcieLinkWidth()), 16},
		"pcie":       {of(d.GetPcieThroughput(nvml.PCIE_UTIL_RX_BYTES)), uint32(12582912)},
		"ecc":        {of(d.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.AGGREGATE_ECC)), uint64(2)},
		"link":       {of(d.GetNvLinkState(17)), nvml.FEATURE_ENABLED},
		"crc":        {of(d.GetNvLinkErrorCounter(0, nvml.NVLINK_ERROR_DL_CRC_DATA)), uint64(8)},
	} {
		if test.got != test.want {
			t.Errorf("%s: %v (%T), want %v (%T)", name, test.got, test.got, test.want, test.want)
		}
	}
	celsius, ret := d.GetTemperatureV().V1()
	ok(t, ret)
	want(t, celsius.Temperature, 61)
	encoder, _, ret := d.GetEncoderUtilization()
	ok(t, ret)
	want(t, encoder, 12)
	correctable, uncorrectable, pending, failure, ret := d.GetRemappedRows()
	ok(t, ret)
	if correctable != 4 || uncorrectable != 6 || pending || failure {
		t.Error(correctable, uncorrectable, pending, failure)
	}
	violation, ret := d.GetViolationStatus(nvml.PERF_POLICY_TOTAL_BASE_CLOCKS)
	ok(t, ret)
	want(t, violation.ViolationTime, 6e9)
	_, ret = d.GetNvLinkState(18)
	want(t, ret, nvml.ERROR_NOT_SUPPORTED)
	_, ret = d.GetTemperatureThreshold(nvml.TEMPERATURE_THRESHOLD_SHUTDOWN)
	want(t, ret, nvml.ERROR_NOT_SUPPORTED)
}

func TestRetiredPages(t *testing.T) {
	s := nvmltest.FromTruth(nvmltest.H100(1))
	s.Values = append(s.Values, nvmltest.Value{Of: "0", Key: "retired_dbe", Number: 5})
	lib, _ := load(t, s)
	pages, _, ret := device(t, lib, 0).GetRetiredPages_v2(nvml.PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR)
	ok(t, ret)
	want(t, len(pages), 5)
}

func TestFieldValues(t *testing.T) {
	s := nvmltest.FromTruth(nvmltest.H100(1))
	s.Values = append(s.Values, nvmltest.Value{Of: "0", Key: "field.194", Number: -2})
	s.Faults = []nvmltest.Fault{{Call: "memory_celsius", Result: "NO_PERMISSION"}}
	lib, _ := load(t, s)
	const all = math.MaxUint32
	values := []nvml.FieldValue{
		{FieldId: nvml.FI_DEV_MEMORY_TEMP},
		{FieldId: nvml.FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT},
		{FieldId: nvml.FI_DEV_PERF_POLICY_POWER},
		{FieldId: nvml.FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL},
		{FieldId: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ScopeId: all},
		{FieldId: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ScopeId: 0}, // one link, without a value
		{FieldId: nvml.FI_DEV_PCIE_COUNT_TX_BYTES},
	}
	ok(t, device(t, lib, 0).GetFieldValues(values))
	for i, test := range []struct {
		ret   nvml.Return
		kind  nvml.ValueType
		value int64
	}{
		{nvml.ERROR_NO_PERMISSION, nvml.VALUE_TYPE_UNSIGNED_INT, 0},
		{nvml.SUCCESS, nvml.VALUE_TYPE_SIGNED_INT, -2},
		{nvml.SUCCESS, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, 12500000000},
		{nvml.SUCCESS, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, 8},
		{nvml.SUCCESS, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, -1}, // grows
		{nvml.ERROR_NOT_SUPPORTED, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, 0},
		{nvml.ERROR_NOT_SUPPORTED, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, 0},
	} {
		v := values[i]
		value := int64(binary.NativeEndian.Uint64(v.Value[:]))
		if test.kind == nvml.VALUE_TYPE_SIGNED_INT {
			value = int64(int32(value))
		}
		if nvml.Return(v.NvmlReturn) != test.ret || nvml.ValueType(v.ValueType) != test.kind || test.value >= 0 && value != test.value {
			t.Errorf("field %d: %+v is %d", v.FieldId, v, value)
		}
	}
}

// TestRates checks that a counter grows by its own timestamps, across a new
// scenario, and that it restarts from a changed number.
func TestRates(t *testing.T) {
	s := nvmltest.FromTruth(nvmltest.H100(1)[:1])
	s.Values = []nvmltest.Value{{Of: "0", Key: "nvlink_rx_kib", Number: 10, Rate: 2e8}}
	lib, path := load(t, s)
	d := device(t, lib, 0)
	read := func() (uint64, int64) {
		t.Helper()
		v := []nvml.FieldValue{{FieldId: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, ScopeId: math.MaxUint32}}
		ok(t, d.GetFieldValues(v))
		return binary.NativeEndian.Uint64(v[0].Value[:]), v[0].Timestamp
	}
	// 2e8 per second are 200 per microsecond, so both readings are whole numbers.
	first, begun := read()
	later, at := read()
	for at == begun {
		later, at = read()
	}
	want(t, later-first, uint64(200*(at-begun)))
	s.Lost = nil
	s.Write(t, path)
	next, then := read()
	want(t, next-first, uint64(200*(then-begun)))
	s.Values[0].Rate = 0
	s.Write(t, path)
	if stopped, _ := read(); stopped < next {
		t.Errorf("%d after %d", stopped, next)
	}
	s.Values[0].Number = 11
	s.Write(t, path)
	anew, _ := read()
	want(t, anew, 11)
}

func TestMIG(t *testing.T) {
	lib, _ := load(t, nvmltest.FromTruth([]nvmltest.Truth{nvmltest.H100(1)[0].Cut(2), nvmltest.H100(2)[1]}))
	d := device(t, lib, 0)
	mode, _, ret := d.GetMigMode()
	ok(t, ret)
	want(t, mode, nvml.DEVICE_MIG_ENABLE)
	most, _ := d.GetMaxMigDeviceCount()
	want(t, most, 7)
	in, ret := d.GetMigDeviceHandleByIndex(1)
	ok(t, ret)
	_, ret = d.GetMigDeviceHandleByIndex(2)
	want(t, ret, nvml.ERROR_NOT_FOUND)
	id, ret := in.GetGpuInstanceId()
	ok(t, ret)
	want(t, id, 8)
	name, _ := in.GetName()
	want(t, name, "NVIDIA H100 80GB HBM3 MIG 1g.10gb")
	attributes, ret := in.GetAttributes()
	ok(t, ret)
	want(t, attributes, nvml.DeviceAttributes{GpuInstanceSliceCount: 1, ComputeInstanceSliceCount: 1, MemorySizeMB: 9856})
	memory, ret := in.GetMemoryInfo_v2()
	ok(t, ret)
	want(t, memory.Used, 6<<30)
	_, ret = in.GetPowerUsage()
	want(t, ret, nvml.ERROR_NOT_SUPPORTED)
	_, ret = d.GetUtilizationRates()
	want(t, ret, nvml.ERROR_NOT_SUPPORTED)
	parent, ret := in.GetDeviceHandleFromMigDeviceHandle()
	ok(t, ret)
	want(t, parent, d)
	is, _ := in.IsMigDeviceHandle()
	want(t, is, true)
	_, ret = d.GetGpuInstanceId()
	want(t, ret, nvml.ERROR_NOT_SUPPORTED)

	get := samples(t, lib)
	ok(t, d.GpmMigSampleGet(8, get.Sample1))
	time.Sleep(time.Millisecond) // as in TestGPM
	ok(t, d.GpmMigSampleGet(8, get.Sample2))
	metrics := ask(get, nvml.GPM_METRIC_SM_UTIL)
	ok(t, lib.GpmMetricsGet(get))
	want(t, metrics[0].value, 28.) // a third of 84
	want(t, d.GpmMigSampleGet(3, get.Sample2), nvml.ERROR_NOT_FOUND)
}

func TestProcesses(t *testing.T) {
	s := nvmltest.FromTruth([]nvmltest.Truth{nvmltest.H100(1)[0].Cut(2)})
	s.Processes = []nvmltest.Process{
		{Of: "0", Kind: nvmltest.Graphics, PID: 1, Bytes: 10}, {Of: "0/7", Kind: nvmltest.Compute, PID: 2, Bytes: 20},
		{Of: "0/8", Kind: nvmltest.Compute, PID: 3, Bytes: 30}, {Of: "0/8", Kind: nvmltest.Compute, PID: 4, Bytes: 40},
	}
	lib, _ := load(t, s)
	d := device(t, lib, 0)
	compute, ret := d.GetComputeRunningProcesses()
	ok(t, ret)
	want(t, len(compute), 3)
	want(t, compute[2], nvml.ProcessInfo{Pid: 4, UsedGpuMemory: 40, GpuInstanceId: 8})
	graphics, ret := d.GetGraphicsRunningProcesses()
	ok(t, ret)
	want(t, graphics[0], nvml.ProcessInfo{Pid: 1, UsedGpuMemory: 10, GpuInstanceId: math.MaxUint32, ComputeInstanceId: math.MaxUint32})
	mps, ret := d.GetMPSComputeRunningProcesses()
	ok(t, ret)
	want(t, len(mps), 0)
	in, ret := d.GetMigDeviceHandleByIndex(0)
	ok(t, ret)
	compute, ret = in.GetComputeRunningProcesses()
	ok(t, ret)
	want(t, len(compute), 1)
}
