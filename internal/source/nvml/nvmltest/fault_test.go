//go:build cgo && linux

package nvmltest_test

import (
	"os"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source/nvml/nvmltest"
)

func TestFaults(t *testing.T) {
	s := nvmltest.FromTruth([]nvmltest.Truth{nvmltest.H100(1)[0].Cut(1), nvmltest.H100(2)[1]})
	lib, path := load(t, s)
	d, other := device(t, lib, 0), device(t, lib, 1)
	in, ret := d.GetMigDeviceHandleByIndex(0)
	ok(t, ret)
	power := func(d nvml.Device) nvml.Return { _, ret := d.GetPowerUsage(); return ret }
	energy := func(d nvml.Device) nvml.Return { _, ret := d.GetTotalEnergyConsumption(); return ret }
	memory := func(d nvml.Device) nvml.Return { _, ret := d.GetMemoryInfo_v2(); return ret }
	uuid := func(d nvml.Device) nvml.Return { _, ret := d.GetUUID(); return ret }
	for _, test := range []struct {
		name                                  string
		change                                nvmltest.Scenario
		power, energy, memory, uuid, instance nvml.Return // instance is the MIG device's memory
		otherPower                            nvml.Return
	}{
		{name: "none"},
		{name: "of all", change: nvmltest.Scenario{Faults: []nvmltest.Fault{{Call: "nvmlDeviceGetPowerUsage", Result: "NOT_SUPPORTED"}}},
			power: nvml.ERROR_NOT_SUPPORTED, otherPower: nvml.ERROR_NOT_SUPPORTED},
		{name: "of one", change: nvmltest.Scenario{Faults: []nvmltest.Fault{{Call: "nvmlDeviceGetPowerUsage", Of: "0", Result: "UNKNOWN"}}},
			power: nvml.ERROR_UNKNOWN},
		{name: "of an instance", change: nvmltest.Scenario{Faults: []nvmltest.Fault{{Call: "nvmlDeviceGetMemoryInfo_v2", Of: "0/7", Result: "NO_PERMISSION"}}},
			instance: nvml.ERROR_NO_PERMISSION},
		{name: "of a key", change: nvmltest.Scenario{Faults: []nvmltest.Fault{{Call: "energy_mj", Of: "0", Result: "NO_DATA"}}},
			energy: nvml.ERROR_NO_DATA},
		{name: "of everything", change: nvmltest.Scenario{Faults: []nvmltest.Fault{{Call: "*", Result: "NOT_SUPPORTED"}}},
			power: nvml.ERROR_NOT_SUPPORTED, energy: nvml.ERROR_NOT_SUPPORTED, memory: nvml.ERROR_NOT_SUPPORTED,
			instance: nvml.ERROR_NOT_SUPPORTED, otherPower: nvml.ERROR_NOT_SUPPORTED},
		{name: "lost", change: nvmltest.Scenario{Lost: []int{0}},
			power: nvml.ERROR_GPU_IS_LOST, energy: nvml.ERROR_GPU_IS_LOST, memory: nvml.ERROR_GPU_IS_LOST, uuid: nvml.ERROR_GPU_IS_LOST,
			instance: nvml.ERROR_GPU_IS_LOST},
	} {
		s.Faults, s.Lost = test.change.Faults, test.change.Lost
		s.Write(t, path)
		got := [...]nvml.Return{power(d), energy(d), memoryOf(test.name, d, memory), uuid(d), memory(in), power(other)}
		want := [...]nvml.Return{test.power, test.energy, test.memory, test.uuid, test.instance, test.otherPower}
		if got != want {
			t.Errorf("%s: %v, want %v", test.name, got, want)
		}
	}
	s.Lost = []int{0}
	s.Write(t, path)
	_, ret = lib.DeviceGetHandleByIndex(0)
	want(t, ret, nvml.ERROR_GPU_IS_LOST)
	s.Lost, s.Instances = nil, nil
	s.Write(t, path)
	want(t, memory(in), nvml.ERROR_NOT_FOUND)
	s.GPUs = s.GPUs[1:]
	s.Write(t, path)
	want(t, power(d), nvml.ERROR_GPU_IS_LOST)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	want(t, power(other), nvml.ERROR_UNINITIALIZED)
}

// memoryOf returns the result for the memory of a board with instances, for which the scenario has
// no value.
func memoryOf(name string, d nvml.Device, memory func(nvml.Device) nvml.Return) nvml.Return {
	ret := memory(d)
	if ret == nvml.ERROR_NOT_SUPPORTED && name != "of everything" {
		return nvml.SUCCESS
	}
	return ret
}

// TestSlow checks that a slow call takes at least its time, only on its board.
func TestSlow(t *testing.T) {
	s := nvmltest.FromTruth(nvmltest.H100(2))
	s.Faults = []nvmltest.Fault{{Call: "nvmlDeviceGetPowerUsage", Of: "1", SlowMS: 30, Result: "TIMEOUT"}}
	lib, _ := load(t, s)
	begin := time.Now()
	_, ret := device(t, lib, 0).GetPowerUsage()
	ok(t, ret)
	_, ret = device(t, lib, 1).GetPowerUsage()
	want(t, ret, nvml.ERROR_TIMEOUT)
	if took := time.Since(begin); took < 30*time.Millisecond {
		t.Error(took)
	}
}

// TestHang checks that other calls continue meanwhile, and that the call
// returns when the scenario changes.
func TestHang(t *testing.T) {
	s := nvmltest.FromTruth(nvmltest.H100(2))
	s.Faults = []nvmltest.Fault{{Call: "nvmlDeviceGetPowerUsage", Of: "1", Hang: true}}
	lib, path := load(t, s)
	hung, other := device(t, lib, 1), device(t, lib, 0)
	returned := make(chan nvml.Return)
	go func() {
		_, ret := hung.GetPowerUsage()
		returned <- ret
	}()
	for range 20 {
		_, ret := other.GetPowerUsage()
		ok(t, ret)
		_, ret = hung.GetTotalEnergyConsumption()
		ok(t, ret)
		select {
		case ret := <-returned:
			t.Fatalf("it returned %v", ret)
		case <-time.After(time.Millisecond):
		}
	}
	s.Faults = nil
	s.Write(t, path)
	ok(t, <-returned)
}

func TestEvents(t *testing.T) {
	s := nvmltest.FromTruth([]nvmltest.Truth{nvmltest.H100(1)[0].Cut(1), nvmltest.H100(3)[1], nvmltest.H100(3)[2]})
	s.XIDs = []nvmltest.XID{{Of: "2", Code: 13}, {Of: "0/7", Code: 31}}
	lib, path := load(t, s)
	set, ret := lib.EventSetCreate()
	ok(t, ret)
	defer func() { ok(t, set.Free()) }()
	for i := range 2 { // board 2 is not registered
		ok(t, device(t, lib, i).RegisterEvents(nvml.EventTypeXidCriticalError, set))
	}
	event, ret := set.Wait(1000)
	ok(t, ret)
	uuid, _ := event.Device.GetUUID()
	want(t, uuid, "GPU-a1b2c3d4-0000-1111-2222-333344445550")
	if event.EventType != nvml.EventTypeXidCriticalError || event.EventData != 31 || event.GpuInstanceId != 7 || event.ComputeInstanceId != 0 {
		t.Errorf("%+v", event)
	}
	_, ret = set.Wait(1)
	want(t, ret, nvml.ERROR_TIMEOUT)

	type answer struct {
		event nvml.EventData
		ret   nvml.Return
	}
	answers := make(chan answer)
	go func() {
		event, ret := set.Wait(60_000)
		answers <- answer{event, ret}
	}()
	s.XIDs = append(s.XIDs, nvmltest.XID{Of: "1", Code: 79})
	s.Write(t, path)
	late := <-answers
	ok(t, late.ret)
	if late.event.EventData != 79 || late.event.GpuInstanceId != 0xffffffff {
		t.Errorf("%+v", late.event)
	}
	s.Lost = []int{2}
	s.Write(t, path)
	_, ret = set.Wait(1)
	want(t, ret, nvml.ERROR_TIMEOUT) // board 2 is still not registered
	s.Lost = nil
	s.Write(t, path)
	ok(t, device(t, lib, 2).RegisterEvents(nvml.EventTypeXidCriticalError, set))
	event, ret = set.Wait(1000)
	ok(t, ret)
	want(t, event.EventData, 13) // kept until the registration
	s.Lost = []int{1}
	s.Write(t, path)
	_, ret = set.Wait(60_000)
	want(t, ret, nvml.ERROR_GPU_IS_LOST)
}

func TestInit(t *testing.T) {
	s := nvmltest.FromTruth(nvmltest.H100(1))
	s.Faults = []nvmltest.Fault{{Call: "nvmlInit", Result: "LIB_RM_VERSION_MISMATCH"}}
	path := t.TempDir() + "/scenario"
	t.Setenv(nvmltest.ScenarioEnv, path)
	lib := nvml.New(nvml.WithLibraryPath(nvmltest.Build(t)))
	want(t, lib.Init(), nvml.ERROR_DRIVER_NOT_LOADED) // there is no such file yet
	s.Write(t, path)
	want(t, lib.Init(), nvml.ERROR_LIB_RM_VERSION_MISMATCH)
	_, ret := lib.DeviceGetCount()
	want(t, ret, nvml.ERROR_UNINITIALIZED)
	s.Faults = nil
	s.Write(t, path)
	ok(t, lib.Init())
	ok(t, lib.Shutdown())
	want(t, lib.Shutdown(), nvml.ERROR_UNINITIALIZED)
}
