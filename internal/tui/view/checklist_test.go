package view

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shown is an item that KempnerPulse shows, the golden frame in which we show it, and its text
// there.
type shown struct{ what, frame, text string }

// checklist is everything that KempnerPulse shows, in the order of its screens. An item that we
// show in another form says how.
var checklist = []shown{
	{"a screen that is too small says what is needed", "fleet_020x05_one", "need 40×10"},
	{"an empty selection says why", "fleet_080x24_eight_set", "temp>120"},
	{"a missing value is no 0", "fleet_080x24_missing", "real --"},

	{"summary: GPUs", "fleet_160x45_eight", "8 GPUs"},
	{"summary: active, by class", "fleet_160x45_eight", "7 busy 1 idle"},
	{"summary: what GPU util claims, and wastes", "fleet_080x24_wasted", "GPU-Util 77% real 36.2% 2.9 of 7 GPUs wasted 1 forgotten, 58 GiB"},
	{"summary: mean real utilization", "fleet_160x45_eight", "real 44.4%"},
	{"summary: power, together and of one", "fleet_160x45_eight", "power 2.82/5.60 kW avg 353W"},
	{"summary: device memory", "fleet_160x45_eight", "mem 490.4/1126.4 GiB 44%"},
	{"summary: CPU of the node", "fleet_240x67_eight", "CPU 34.2/112 30%"},
	{"summary: memory of the node", "fleet_240x67_eight", "RAM 409.6/2048.0 GiB 20%"},
	{"summary: health, all well", "fleet_160x45_eight", "● all ok"},
	{"summary: health, how many are not", "fleet_120x40_sick", "✖ 1 crit ▲ 1 warn ▲ 1 hot"},

	{"card: index", "fleet_240x67_eight", "─ GPU 7 ─"},
	{"card: model", "fleet_240x67_eight", "NVIDIA H200"},
	{"card: health", "fleet_120x40_sick", "✖ CRIT"},
	{"card: workload class", "fleet_240x67_eight", "tensor-heavy compute"},
	{"card: real utilization, with a bar", "fleet_240x67_eight", "real █████████████▋░░░│········ 52.5% /68%"},
	{"card: NVML utilization", "fleet_240x67_eight", "GPU util 68.3%"},
	{"card: graphics engine", "fleet_240x67_eight", "GR active 63.0%"},
	{"card: SM active", "fleet_240x67_eight", "SM active 52.5%"},
	{"card: SM occupancy", "fleet_240x67_eight", "SM occup. 31.5%"},
	{"card: tensor", "fleet_240x67_eight", "Tensor 36.8%"},
	{"card: DRAM", "fleet_240x67_eight", "DRAM 26.2%"},
	{"card: memory used, in all and its share", "fleet_300x80_four", "71.0/140.8 GiB 50.4%"},
	{"card: power and its limit", "fleet_240x67_eight", "400W/700W"},
	{"card: temperature of the GPU", "fleet_240x67_eight", "GPU temp 53°C"},
	{"card: temperature of the memory", "fleet_240x67_eight", "MEM temp 59°C"},
	{"card: memory copies", "fleet_240x67_eight", "Memcpy 21.0%"},
	{"card: PCIe in", "fleet_240x67_eight", "PCIe ↓ 1.16 GB/s"},
	{"card: PCIe out", "fleet_240x67_eight", "PCIe ↑ 0.21 GB/s"},
	{"card: NVLink", "fleet_240x67_eight", "NVLink 163 GB/s"},
	{"card: PCIe replays, as the counter that it is", "fleet_300x80_four", "Replays 0"},
	{"card: SM clock", "fleet_300x80_four", "SM clk 1980 MHz"},
	{"card: memory clock", "fleet_300x80_four", "MEM clk 3201 MHz"},
	{"card: energy", "fleet_300x80_four", "Energy 638.9 kWh"},

	{"focus: info, PCI address and driver", "focus_080x24_sick", "PCI 00000000:13:00.0 driver 570.86.15"},
	{"focus: the other GPUs beside it", "focus_160x45_sick", "0 ● OK"},
	{"focus: links together", "focus_120x40_one", "PCIe RX+TX 1.36/126 GB/s"},
	{"focus: section", "focus_120x40_one", "Power and temperature ──"},
	{"focus: real utilization with its history", "focus_120x40_one", "Real util 52.5% ━━"},
	{"focus: GPU util", "focus_120x40_one", "GPU util 68.3%"},
	{"focus: GR active", "focus_120x40_one", "GR active 63.0%"},
	{"focus: SM active", "focus_120x40_one", "SM active 52.5%"},
	{"focus: SM occupancy", "focus_120x40_one", "SM occupancy 31.5%"},
	{"focus: tensor", "focus_120x40_one", "Tensor 36.8%"},
	{"focus: FP16", "focus_120x40_one", "FP16 pipe 5.3%"},
	{"focus: FP32", "focus_120x40_one", "FP32 pipe 10.5%"},
	{"focus: FP64", "focus_120x40_one", "FP64 pipe 0.0%"},
	{"focus: tensor cores by type", "focus_120x40_one", "TC FP16/BF16 34.1%"},
	{"focus: integer tensor cores", "focus_120x40_one", "TC INT8"},
	{"focus: FP64 tensor cores", "focus_120x40_one", "TC FP64"},
	{"focus: FP8 tensor cores", "focus_120x40_one", "TC FP8"},
	{"focus: DRAM", "focus_120x40_one", "DRAM 26.2%"},
	{"focus: memory used", "focus_120x40_one", "Memory used 71.0/140.8 GiB"},
	{"focus: power", "focus_120x40_one", "Power 400W/700W"},
	{"focus: temperature", "focus_120x40_one", "GPU temp 53°C/95°C"},
	{"focus: NVLink", "focus_120x40_one", "NVLink 163/956 GB/s"},
	{"focus: PCIe", "focus_120x40_one", "PCIe RX 1.16/63.0 GB/s"},
	{"focus: clocks", "focus_120x40_one", "SM clock 1980 MHz"},
	{"focus: energy", "focus_120x40_one", "Energy 638.9 kWh"},
	{"focus: replays", "focus_120x40_one", "PCIe replays"},

	{"plot: legend", "plot_160x45_four", "━━ GPU 0 NVIDIA H200 ━━ GPU 1"},
	{"plot: real utilization", "plot_160x45_four", "Real util"},
	{"plot: GPU util", "plot_160x45_four", "GPU util"},
	{"plot: GR active", "plot_160x45_four", "GR active"},
	{"plot: SM active", "plot_160x45_four", "SM active"},
	{"plot: SM occupancy", "plot_160x45_four", "SM occupancy"},
	{"plot: tensor", "plot_160x45_four", "Tensor"},
	{"plot: DRAM", "plot_160x45_four", "DRAM"},
	{"plot: memory copies", "plot_160x45_four", "Memcpy"},
	{"plot: PCIe both ways, with the link", "plot_160x45_four", "PCIe RX+TX GB/s Gen5 x16"},
	{"plot: times on the axis", "plot_160x45_four", "11:58"},
	{"plot: scale on the axis", "plot_160x45_four", "100%"},

	{"jobs: who holds which GPU", "jobs_080x24_eight", "train-7b-0"},
	{"jobs: the job that it was started in", "jobs_080x24_four_set", "we run in job_id 4711 step_id 0"},
	{"jobs: what is the device's is marked", "jobs_080x24_eight", "* of the device"},

	{"footer: keys, those of the view", "fleet_160x45_eight", "? help"},
	{"header: which view", "fleet_160x45_eight", "kpulse 1 fleet 2 focus 3 plot 4 jobs 5 nodes"},
	{"footer: what is visible", "fleet_080x24_sorted", "/power>300"},
	{"footer: workflow of the weights", "fleet_160x45_eight", "AI/ML"},
	{"footer: source", "fleet_160x45_eight", "from dgx-03:9401/metrics"},
	{"footer: period", "fleet_160x45_eight", "every 2s"},
	{"footer: date", "fleet_240x67_eight", "2026-03-14"},
	{"time", "fleet_160x45_eight", "12:00:00"},
}

func TestChecklistIsShown(t *testing.T) {
	frames := map[string]string{}
	for _, row := range checklist {
		if _, ok := frames[row.frame]; !ok {
			b, err := os.ReadFile(filepath.Join("testdata", "frames", row.frame+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			frames[row.frame] = oneBlank(string(b))
		}
		if !strings.Contains(frames[row.frame], row.text) {
			t.Errorf("%s: %s does not show %q", row.what, row.frame, row.text)
		}
	}
}

// oneBlank returns text with one blank where there are several.
func oneBlank(text string) string { return strings.Join(strings.Fields(text), " ") }
