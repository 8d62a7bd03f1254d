//go:build cgo && linux

package nvml

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
)

// machine is a mock of NVML whose boards read constants. It must be made within
// a synctest bubble.
type machine struct {
	mock.Interface
	boards []*board
	events chan nvml.EventData
	lacks  map[string]bool // symbols that the library lacks

	mu        sync.Mutex
	allocated int // GPM samples
	shut      int
}

// board is one of its GPUs, or a MIG device.
type board struct {
	mock.Device
	index     int
	gpm       bool
	instances []*board
	id        int // of the instance
	begun     time.Time
	// link5 returns the counters of NVLink 5, by field and scope; nil for a board with an earlier
	// NVLink.
	link5 func(field, scope uint32) (uint64, nvml.Return)
	// metrics are the GPM metrics, by id; mig are those of an instance.
	metrics, mig map[nvml.GpmMetricId]float64

	mu      sync.Mutex
	counted time.Time                // when GPM's counters were last sampled
	delay   time.Duration            // of the next sample of the counters
	says    map[string]nvml.Return   // by call; "" means every call
	gates   map[string]chan struct{} // calls with a gate wait
	counts  map[string]int
}

// meets counts a call, waits at its gate, and returns its answer.
func (b *board) meets(call string) nvml.Return {
	b.mu.Lock()
	b.counts[call]++
	gate := b.gates[call]
	answer, ok := b.says[call]
	if !ok {
		answer = b.says[""]
	}
	b.mu.Unlock()
	if gate != nil {
		<-gate
	}
	return answer
}

// say sets the answer of a call, or with "" of every call.
func (b *board) say(call string, answer nvml.Return) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.says[call] = answer
}

// hang makes a call hang until the returned function is called.
func (b *board) hang(call string) (release func()) {
	gate := make(chan struct{})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gates[call] = gate
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.gates, call)
		close(gate)
	}
}

// asked returns how often a call was made.
func (b *board) asked(call string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts[call]
}

func newMachine(boards int) *machine {
	m := &machine{events: make(chan nvml.EventData, 4), lacks: map[string]bool{fabricCall: true}} // go-nvml's mock lacks it
	// set is full while a call uses the event set: on an H200 a registration waits for the end of a wait.
	set := make(chan struct{}, 1)
	for i := range boards {
		b := newBoard(i)
		b.RegisterEventsFunc = func(uint64, nvml.EventSet) nvml.Return {
			set <- struct{}{}
			defer func() { <-set }()
			return b.meets("nvmlDeviceRegisterEvents")
		}
		m.boards = append(m.boards, b)
	}
	m.InitFunc = func() nvml.Return { return nvml.SUCCESS }
	m.ShutdownFunc = func() nvml.Return { m.shut++; return nvml.SUCCESS }
	m.SystemGetDriverVersionFunc = func() (string, nvml.Return) { return "580.1", nvml.SUCCESS }
	m.SystemGetNVMLVersionFunc = func() (string, nvml.Return) { return "13.580.1", nvml.SUCCESS }
	m.DeviceGetCountFunc = func() (int, nvml.Return) { return len(m.boards), nvml.SUCCESS }
	m.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		return m.boards[i], m.boards[i].meets("nvmlDeviceGetHandleByIndex")
	}
	m.ExtensionsFunc = func() nvml.ExtendedInterface {
		return &mock.ExtendedInterface{LookupSymbolFunc: func(name string) error {
			if m.lacks[name] {
				return errors.New("no such symbol")
			}
			return nil
		}}
	}
	m.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) {
		return &mock.EventSet{
			FreeFunc: func() nvml.Return { return nvml.SUCCESS },
			WaitFunc: func(ms uint32) (nvml.EventData, nvml.Return) {
				set <- struct{}{}
				defer func() { <-set }()
				select {
				case e := <-m.events:
					return e, nvml.SUCCESS
				case <-time.After(time.Duration(ms) * time.Millisecond):
					return nvml.EventData{}, nvml.ERROR_TIMEOUT
				}
			},
		}, nvml.SUCCESS
	}
	m.GpmMetricsGetFunc = metricsBetween
	m.GpmSampleAllocFunc = func() (nvml.GpmSample, nvml.Return) { return m.newSample(), nvml.SUCCESS }
	return m
}

// sample is a GPM sample, with its board and the time of its counters.
type sample struct {
	mock.GpmSample
	of      *board
	metrics map[nvml.GpmMetricId]float64
	at      time.Time
}

// countersHold is how long the driver gives the same counters, from when they are sampled.
const countersHold = 100 * time.Millisecond

// counters returns the time of the counters in a sample of now.
func (b *board) counters() time.Time {
	b.mu.Lock()
	delay := b.delay
	b.delay = 0
	b.mu.Unlock()
	time.Sleep(delay)
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); now.Sub(b.counted) > countersHold {
		b.counted = now
	}
	return b.counted
}

func (m *machine) newSample() *sample {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.allocated++
	s := &sample{}
	s.GetFunc = func(d nvml.Device) nvml.Return {
		s.of, s.metrics, s.at = d.(*board), d.(*board).metrics, d.(*board).counters()
		return s.of.meets(gpmSampleCall)
	}
	s.MigGetFunc = func(d nvml.Device, id int) nvml.Return {
		s.of, s.at = d.(*board), d.(*board).counters()
		for _, c := range s.of.instances {
			if c.id == id {
				s.metrics = c.mig
			}
		}
		return s.of.meets(gpmMIGSampleCall)
	}
	s.FreeFunc = func() nvml.Return {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.allocated--
		return nvml.SUCCESS
	}
	return s
}

// metricsBetween refuses samples that are not a pair. Between the same counters every metric is 0
// and succeeds, and that of the memory is NaN, as on an H200.
func metricsBetween(get *nvml.GpmMetricsGetType) nvml.Return {
	a, b := get.Sample1.(*sample), get.Sample2.(*sample)
	if a == b || a.of != b.of || b.at.Before(a.at) {
		return nvml.ERROR_UNKNOWN
	}
	answer := b.of.meets(gpmMetricsCall)
	for i := range get.Metrics[:get.NumMetrics] {
		m := &get.Metrics[i]
		value, ok := b.metrics[nvml.GpmMetricId(m.MetricId)]
		m.Value, m.NvmlReturn = value, uint32(nvml.SUCCESS)
		if !ok {
			m.NvmlReturn = uint32(nvml.ERROR_NOT_SUPPORTED)
		}
		if b.at.Equal(a.at) {
			m.Value = 0
			if nvml.GpmMetricId(m.MetricId) == nvml.GPM_METRIC_DRAM_BW_UTIL {
				m.Value = math.NaN()
			}
		}
		b.of.meets(fmt.Sprintf("metric %d", m.MetricId))
	}
	return answer
}

// newBoard returns a board that supports everything except GPM, and whose
// readings all differ.
func newBoard(index int) *board {
	b := &board{
		index: index, begun: time.Now(),
		says: map[string]nvml.Return{}, gates: map[string]chan struct{}{}, counts: map[string]int{},
	}
	b.identify(fmt.Sprintf("GPU-%08d", index), "NVIDIA H100 80GB HBM3")
	b.measure()
	b.GetFieldValuesFunc = b.fieldValues
	b.GetNvLinkStateFunc = b.linkState
	b.GpmQueryDeviceSupportFunc = func() (nvml.GpmSupport, nvml.Return) {
		answer := b.meets(gpmSupportCall)
		return nvml.GpmSupport{IsSupportedDevice: uint32(flag(b.gpm))}, answer
	}
	b.GetMigModeFunc = func() (int, int, nvml.Return) {
		answer := b.meets(migModeCall)
		return int(flag(len(b.instances) > 0)), 0, answer
	}
	b.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 7, b.meets(migCountCall) }
	b.GetMigDeviceHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i >= len(b.instances) {
			return nil, nvml.ERROR_NOT_FOUND
		}
		return b.instances[i], b.meets(migCall)
	}
	return b
}

func (b *board) identify(uuid, name string) {
	b.GetUUIDFunc = func() (string, nvml.Return) { return uuid, b.meets("nvmlDeviceGetUUID") }
	b.GetNameFunc = func() (string, nvml.Return) { return name, b.meets("nvmlDeviceGetName") }
	b.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) {
		var p nvml.PciInfo
		for i, c := range fmt.Sprintf("00000000:1%d:00.0", b.index) {
			p.BusId[i] = int8(c)
		}
		return p, b.meets("nvmlDeviceGetPciInfo_v3")
	}
	b.GetGpuInstanceIdFunc = func() (int, nvml.Return) { return b.id, b.meets("nvmlDeviceGetGpuInstanceId") }
}

// measure sets the board's constants, in NVML's units.
func (b *board) measure() {
	b.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 412337, b.meets("nvmlDeviceGetPowerUsage") }
	b.GetPowerManagementLimitFunc = func() (uint32, nvml.Return) { return 650000, b.meets("nvmlDeviceGetPowerManagementLimit") }
	b.GetPowerManagementDefaultLimitFunc = func() (uint32, nvml.Return) { return 690000, b.meets("nvmlDeviceGetPowerManagementDefaultLimit") }
	b.GetEnforcedPowerLimitFunc = func() (uint32, nvml.Return) { return 700000, b.meets("nvmlDeviceGetEnforcedPowerLimit") }
	b.GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) {
		return 123456789012, b.meets("nvmlDeviceGetTotalEnergyConsumption")
	}
	b.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 61, b.meets("nvmlDeviceGetTemperature") }
	b.GetTemperatureThresholdFunc = func(kind nvml.TemperatureThresholds) (uint32, nvml.Return) {
		return 91 + uint32(kind), b.meets("nvmlDeviceGetTemperatureThreshold")
	}
	b.GetClockInfoFunc = func(kind nvml.ClockType) (uint32, nvml.Return) {
		return map[nvml.ClockType]uint32{nvml.CLOCK_SM: 1755, nvml.CLOCK_MEM: 2619}[kind], b.meets("nvmlDeviceGetClockInfo")
	}
	b.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) {
		return nvml.Utilization{Gpu: 97, Memory: 41}, b.meets("nvmlDeviceGetUtilizationRates")
	}
	b.GetEncoderUtilizationFunc = func() (uint32, uint32, nvml.Return) {
		return 3, 167000, b.meets("nvmlDeviceGetEncoderUtilization")
	}
	b.GetDecoderUtilizationFunc = func() (uint32, uint32, nvml.Return) {
		return 9, 167000, b.meets("nvmlDeviceGetDecoderUtilization")
	}
	b.GetCurrentClocksEventReasonsFunc = func() (uint64, nvml.Return) {
		return 0x84, b.meets("nvmlDeviceGetCurrentClocksEventReasons")
	}
	b.GetPcieReplayCounterFunc = func() (int, nvml.Return) { return 5, b.meets("nvmlDeviceGetPcieReplayCounter") }
	b.GetCurrPcieLinkGenerationFunc = func() (int, nvml.Return) { return 4, b.meets("nvmlDeviceGetCurrPcieLinkGeneration") }
	b.GetCurrPcieLinkWidthFunc = func() (int, nvml.Return) { return 16, b.meets("nvmlDeviceGetCurrPcieLinkWidth") }
	b.GetMaxPcieLinkGenerationFunc = func() (int, nvml.Return) { return 5, b.meets("nvmlDeviceGetMaxPcieLinkGeneration") }
	b.GetMaxPcieLinkWidthFunc = func() (int, nvml.Return) { return 8, b.meets("nvmlDeviceGetMaxPcieLinkWidth") }
	b.GetPcieThroughputFunc = func(counter nvml.PcieUtilCounter) (uint32, nvml.Return) {
		return 3003 + uint32(counter), b.meets("nvmlDeviceGetPcieThroughput")
	}
	b.GetTotalEccErrorsFunc = func(kind nvml.MemoryErrorType, since nvml.EccCounterType) (uint64, nvml.Return) {
		return 21 + uint64(kind) + 10*uint64(since), b.meets("nvmlDeviceGetTotalEccErrors")
	}
	b.GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) {
		return 6, 7, true, false, b.meets("nvmlDeviceGetRemappedRows")
	}
	b.GetRowRemapperHistogramFunc = func() (nvml.RowRemapperHistogramValues, nvml.Return) {
		return nvml.RowRemapperHistogramValues{Max: 635, High: 4, Partial: 3, Low: 2, None: 1}, b.meets("nvmlDeviceGetRowRemapperHistogram")
	}
	b.GetSramEccErrorStatusFunc = func() (nvml.EccSramErrorStatus, nvml.Return) {
		return nvml.EccSramErrorStatus{BThresholdExceeded: 1}, b.meets("nvmlDeviceGetSramEccErrorStatus")
	}
	b.GetMarginTemperatureFunc = func() (nvml.MarginTemperature, nvml.Return) {
		return nvml.MarginTemperature{MarginTemperature: -2}, b.meets("nvmlDeviceGetMarginTemperature")
	}
	b.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) {
		return nvml.Memory_v2{Total: 80 << 30, Reserved: 600 << 20, Free: 40<<30 + 1, Used: 30<<30 + 1<<20 - 1}, b.meets("nvmlDeviceGetMemoryInfo_v2")
	}
}

// fieldValues returns for every field its number plus a thousand, for the memory
// temperature 73, and NVLink counters that grow by 120,000,000 KiB sent and
// 82,000,000 KiB received per second.
func (b *board) fieldValues(values []nvml.FieldValue) nvml.Return {
	answer := b.meets(fieldCall)
	for i := range values {
		v := &values[i]
		v.NvmlReturn = uint32(b.meets(fmt.Sprintf("field %d", v.FieldId)))
		seconds := time.Since(b.begun).Seconds()
		v.Timestamp = time.Now().UnixMicro()
		v.ValueType = uint32(nvml.VALUE_TYPE_UNSIGNED_LONG_LONG)
		n := uint64(1000 + v.FieldId)
		if v.FieldId >= nvml.FI_DEV_NVLINK_COUNT_XMIT_PACKETS && v.FieldId <= nvml.FI_DEV_NVLINK_COUNT_SYMBOL_BER {
			code := nvml.ERROR_NOT_SUPPORTED
			if b.link5 != nil {
				n, code = b.link5(v.FieldId, v.ScopeId)
			}
			v.NvmlReturn = max(v.NvmlReturn, uint32(code))
		}
		switch v.FieldId {
		case nvml.FI_DEV_MEMORY_TEMP:
			v.ValueType = uint32(nvml.VALUE_TYPE_UNSIGNED_INT)
			n = 73 | 0xdead<<32 // the upper half is garbage
		case nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX:
			n = 5000 + uint64(120_000_000*seconds)
		case nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX:
			n = 7000 + uint64(82_000_000*seconds)
		}
		binary.NativeEndian.PutUint64(v.Value[:], n)
	}
	return answer
}

// linkState returns the state of one of 12 links; the fourth is down.
func (b *board) linkState(link int) (nvml.EnableState, nvml.Return) {
	answer := b.meets(linkCall)
	if answer == nvml.SUCCESS && link >= 12 {
		answer = nvml.ERROR_INVALID_ARGUMENT
	}
	if link == 3 {
		return nvml.FEATURE_DISABLED, answer
	}
	return nvml.FEATURE_ENABLED, answer
}

// addInstance adds an instance with one MIG device to the board.
func (b *board) addInstance(id int, profile string) *board {
	c := newBoard(b.index)
	c.id = id
	c.identify(fmt.Sprintf("MIG-%d-%d", b.index, id), "NVIDIA H100 80GB HBM3 MIG "+profile)
	c.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) {
		return nvml.Memory_v2{Total: 10 << 30, Reserved: 1 << 20, Free: 9 << 30, Used: uint64(id) << 20}, c.meets("nvmlDeviceGetMemoryInfo_v2")
	}
	b.instances = append(b.instances, c)
	return c
}
