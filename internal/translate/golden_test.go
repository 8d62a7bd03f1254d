package translate

import (
	"slices"
	"testing"

	c "github.com/kpulse/kpulse-proxy/internal/canonical"
)

// golden is one capture of a dialect and what it means, worked out by hand.
type golden struct {
	file    string
	devices []c.Device
	rows    []readings
	holds   []c.Allocation
	report  Report
}

var goldens = []golden{
	{
		file: "v1.x.prom",
		devices: []c.Device{
			{Hostname: "upstream", GPU: "0", UUID: "GPU-11111111-0000-0000-0000-000000000001"},
		},
		rows: []readings{{
			c.SMClock: 1.41e9, c.MemoryClock: 877e6, c.MemoryTemperature: 61, c.Temperature: 57, c.Power: 249.5,
			c.Energy: 15152422.938, c.PCIeReplays: 3, c.NVMLUtilization: 0.57, c.MemoryCopyUtilization: 0.29,
			c.EncoderUtilization: 0, c.DecoderUtilization: 1, c.XIDLast: 31, c.ThrottledPower: 2.5,
			c.FramebufferFree: 16777216000, c.FramebufferUsed: 167772160,
			c.ECCSingleBitVolatile: 4, c.ECCDoubleBitAggregate: 1,
			c.NVLinkCRCFlitErrors: 6, c.NVLinkBytes: 204800000, c.GraphicsEngineActive: 0.99563, c.SMActive: 0.5,
		}},
		report: Report{UnknownFamilies: []string{"dcgm_pcie_tx_throughput"}},
	},
	{
		file: "v2.0-headers-first.prom",
		devices: []c.Device{
			{Hostname: "upstream", GPU: "0", UUID: "GPU-20000000-0000-0000-0000-000000000001"},
			{Hostname: "upstream", GPU: "1", UUID: "GPU-20000000-0000-0000-0000-000000000002", Board: 1},
		},
		rows: []readings{
			{
				c.SMClock: 139e6, c.ThrottledThermal: 0.75, c.FramebufferFree: 5302648832, c.FramebufferUsed: 0,
			},
			{c.SMClock: 1.98e9, c.MemoryTemperature: 40},
		},
		holds:  []c.Allocation{{Device: 1, Workload: c.Workload{Namespace: "default", Pod: "a", Container: "train"}}},
		report: Report{Dropped: dropped(4, 0, 2, 0)},
	},
	{
		file: "v2.4.prom",
		devices: []c.Device{
			{Hostname: "node-24", GPU: "0", UUID: "GPU-24000000-0000-0000-0000-000000000001", Name: "nvidia0"},
		},
		rows:  []readings{{c.Power: 409.692, c.ClockEvents: 36, c.TensorActive: 0.92926, c.PCIeTransmit: 33011804}},
		holds: []c.Allocation{{Workload: c.Workload{Namespace: "n", Pod: "p", Container: "c"}}},
	},
	{
		file: "v3.3.prom",
		devices: []c.Device{
			{Hostname: "node-33", GPU: "3", UUID: "GPU-33000000-0000-0000-0000-000000000003", Name: "nvidia3", Model: "NVIDIA A100-SXM4-80GB", Driver: "535.104.05"},
		},
		rows: []readings{{
			c.SMActive: 1, c.PowerLimit: 400, c.FramebufferTotal: 85899345920, c.FramebufferUsed: 21474836480,
			c.FramebufferUsedRatio: 0.25, c.NVLinkTransmit: 1500, c.NVLinkReceive: 2500, c.NVLinkBytes: 4000,
			c.RemappedRowsUncorrectable: 2, c.RowRemapFailure: 1,
		}},
		report: Report{Dropped: dropped(0, 0, 1, 0), Clamped: 1},
	},
	{
		file: "v4.5.prom",
		devices: []c.Device{{
			Hostname: "node-45", GPU: "0", UUID: "GPU-45000000-0000-0000-0000-000000000000", Name: "nvidia0",
			Model: "Tesla T4", PCIBusID: "00000000:37:00.0", Driver: "590.48.01",
		}},
		rows: []readings{{
			c.FramebufferUsed: 5368709120, c.FramebufferFree: 10266607616, c.FramebufferReserved: 470810624,
			c.FramebufferTotal: 16106127360, c.FramebufferUsedRatio: 1.0 / 3, c.PowerLimit: 70, c.RecoveryAction: 2,
			c.TemperatureSlowdown: 96, c.PCIeLinkGeneration: 3, c.PCIeLinkWidth: 16, c.ThrottledApplicationClocks: 140737.488355328,
		}},
		report: Report{UnknownFamilies: []string{"DCGM_FI_DEV_VGPU_LICENSE_STATUS"}},
	},
	{
		file: "v4.8.3.prom",
		devices: []c.Device{{
			Hostname: "node-483", GPU: "0", UUID: "GPU-48300000-0000-0000-0000-000000000000", Name: "nvidia0",
			Model: "Tesla T4", PCIBusID: "00000000:00:04.0",
		}},
		rows:   []readings{{c.Power: 15.507, c.Energy: 140737488355.329, c.FP16Active: 0.000025}},
		holds:  []c.Allocation{{Workload: c.Workload{Namespace: "n", Pod: "p", Container: "c"}}},
		report: Report{Dropped: dropped(2, 0, 0, 0)},
	},
	{
		file: "v4.6-renames.prom",
		devices: []c.Device{{
			Hostname: "node-46", GPU: "1", UUID: "GPU-46000000-0000-0000-0000-000000000001", Name: "nvidia1",
			Model: "NVIDIA H200", PCIBusID: "00000000:1B:00.0", Driver: "580.1",
		}},
		rows: []readings{{
			c.Power: 700.5, c.Temperature: 71, c.NVMLUtilization: 0.91, c.SMClock: 1.98e9, c.NVLinkBytes: 206848000000,
			c.ClockEvents: 4, c.XIDLast: 79, c.RecoveryAction: 1, c.SMActive: 0.75, c.RemappedRowsCorrectable: 5,
		}},
	},
	{
		file: "v4.9.prom",
		devices: []c.Device{{
			Hostname: "node-49", GPU: "0", UUID: "GPU-49000000-0000-0000-0000-000000000000", Name: "nvidia0",
			Model: "NVIDIA B200", PCIBusID: "00000000:1B:00.0", Driver: "590.1",
		}},
		rows: []readings{{
			c.SMClock: 1.98e9, c.Energy: 15152422, c.NVMLUtilization: 1, c.MemoryCopyUtilization: 0.73,
			c.FramebufferTotal: 8589934592, c.FramebufferUsed: 2147483632, c.FramebufferUsedRatio: 2147483632.0 / 8589934592,
			c.ThrottledPower: 2.5, c.NVLinkBytes: 206848000,
		}},
	},
	{
		file: "mig-with-board.prom",
		devices: []c.Device{
			{Hostname: "node-mig", GPU: "0", UUID: "GPU-a0000000-0000-0000-0000-000000000000", Name: "nvidia0"},
			{Hostname: "node-mig", GPU: "0", UUID: "GPU-a0000000-0000-0000-0000-000000000000", Name: "nvidia0", Instance: "7", Profile: "1g.5gb"},
			{Hostname: "node-mig", GPU: "0", UUID: "GPU-a0000000-0000-0000-0000-000000000000", Name: "nvidia0", Instance: "13", Profile: "1g.5gb"},
		},
		rows: []readings{
			{c.Power: 410, c.Temperature: 61, c.XIDLast: 43, c.GraphicsEngineActive: 0.99563},
			{c.GraphicsEngineActive: 0.25},
			{
				c.GraphicsEngineActive: 0.5, c.FramebufferUsed: 1 << 30, c.FramebufferFree: 3 << 30,
			},
		},
	},
	{
		file: "mig-without-board.prom",
		devices: []c.Device{
			{Hostname: "node-a800", GPU: "1", UUID: "GPU-a8000000-0000-0000-0000-000000000001", Name: "nvidia1", Model: "NVIDIA A800-SXM4-80GB", PCIBusID: "00000000:4D:00.0", Driver: "550.1"},
			{Hostname: "node-a800", GPU: "2", UUID: "GPU-a8000000-0000-0000-0000-000000000002", Name: "nvidia2", Model: "NVIDIA A800-SXM4-80GB", PCIBusID: "00000000:4E:00.0", Driver: "550.1", Implied: true, Board: 1},
			{Hostname: "node-a800", GPU: "2", UUID: "GPU-a8000000-0000-0000-0000-000000000002", Name: "nvidia2", Model: "NVIDIA A800-SXM4-80GB", PCIBusID: "00000000:4E:00.0", Driver: "550.1", Board: 1, Instance: "1", Profile: "4g.40gb"},
			{Hostname: "node-a800", GPU: "2", UUID: "GPU-a8000000-0000-0000-0000-000000000002", Name: "nvidia2", Model: "NVIDIA A800-SXM4-80GB", PCIBusID: "00000000:4E:00.0", Driver: "550.1", Board: 1, Instance: "2", Profile: "3g.40gb"},
		},
		rows: []readings{
			{c.Power: 60.25},
			{c.Power: 102.5, c.Temperature: 33},
			{},
			{c.SMActive: 0.125},
		},
		report: Report{Dropped: dropped(1, 0, 0, 0)},
	},
	{
		file: "time-slicing.prom",
		devices: []c.Device{
			{Hostname: "node-ts", GPU: "0", UUID: "GPU-75000000-0000-0000-0000-000000000000", Name: "nvidia0", Model: "Tesla T4"},
		},
		rows: []readings{{c.NVMLUtilization: 0.41, c.Power: 55.125}},
		holds: []c.Allocation{
			{Workload: c.Workload{Namespace: "n", Pod: "a", Container: "c"}},
			{Workload: c.Workload{Namespace: "n", Pod: "b", Container: "c"}},
			{Workload: c.Workload{Namespace: "n", Pod: "c", Container: "c"}},
			{Workload: c.Workload{Namespace: "n", Pod: "c", Container: "c", Job: "17"}},
		},
	},
	{
		file: "links-and-cpus.prom",
		devices: []c.Device{
			{Hostname: "node-l", GPU: "0", UUID: "GPU-11000000-0000-0000-0000-000000000000"},
		},
		rows: []readings{{c.Temperature: 40, c.NVLinkTransmit: 100}},
	},
	{
		file: "duplicates.prom",
		devices: []c.Device{
			{Hostname: "node-d", GPU: "0", UUID: "GPU-d0000000-0000-0000-0000-000000000000"},
		},
		rows:   []readings{{c.XIDLast: 31, c.SMClock: 1.5e9, c.PowerLimit: 300}},
		report: Report{Dropped: dropped(2, 2, 0, 0)},
	},
	{
		file: "dmon-mig.prom",
		devices: []c.Device{
			{Hostname: "upstream", GPU: "0"},
			{Hostname: "upstream", GPU: "0", Instance: "9"},
			{Hostname: "upstream", GPU: "0", Instance: "10"},
			{Hostname: "upstream", GPU: "1", Board: 3},
		},
		rows: []readings{
			{c.GraphicsEngineActive: 0.429, c.Power: 300.25},
			{c.TensorActive: 0.5},
			{c.GraphicsEngineActive: 0.75},
			{
				c.NVMLUtilization: 0.91, c.MemoryCopyUtilization: 0.73, c.FramebufferUsed: 1 << 30, c.FramebufferFree: 3 << 30,
				c.Energy: 1.5, c.NVLinkBytes: 10240000,
				c.ThrottledPower: 1.5, c.ClockEvents: 1,
			},
		},
	},
}

func TestGolden(t *testing.T) {
	for _, g := range slices.Concat(goldens, amdGoldens) {
		t.Run(g.file, func(t *testing.T) {
			r := translated(t, Options{FallbackHost: "upstream"}, testdata(t, g.file))
			r.checkDevices(g.devices...)
			for i, want := range g.rows {
				r.checkRow(i, want)
			}
			r.checkHolds(g.holds...)
			r.checkDropped(g.report)
			if !slices.Equal(r.report.UnknownFamilies, g.report.UnknownFamilies) {
				t.Errorf("unknown families %q, want %q", r.report.UnknownFamilies, g.report.UnknownFamilies)
			}
			if r.batch.Skipped != 0 {
				t.Errorf("%d malformed lines in the capture", r.batch.Skipped)
			}
		})
	}
}
