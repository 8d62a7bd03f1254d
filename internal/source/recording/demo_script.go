package recording

// demoSeconds is the length of the demo's script, which then starts over.
const demoSeconds = 240

// DemoStory is a tick of the demo with several problems: GPU 3 is lost, GPU 5 is
// hot, and a notebook has held GPU 6 idle for eleven minutes of the script.
const DemoStory = 2*demoSeconds + 182

// demoBoard is one physical GPU of the demo.
type demoBoard struct {
	model, uuid, bus string
	idle, limit      float64 // W
	clock, memClock  float64 // MHz, at full boost
	framebuffer      float64 // MiB in total
	nvlink           bool
}

const (
	demoHost   = "demo-node"
	demoDriver = "580.105.08"
	demoSXM    = "NVIDIA H100 80GB HBM3"
	demoPCIe   = "NVIDIA H100 PCIe"
)

// demoBoards are the GPUs 0 to 7. Power limits and clocks are NVIDIA's for the
// models.
var demoBoards = [...]demoBoard{
	{demoSXM, "GPU-5d0e0001-3c41-4f0a-9a61-0b7c6e5f1a00", "00000000:19:00.0", 70, 700, 1980, 2619, 81559, true},
	{demoSXM, "GPU-5d0e0002-7b12-4c3e-8d24-1c8d7f602b11", "00000000:3B:00.0", 71, 700, 1980, 2619, 81559, true},
	{demoSXM, "GPU-5d0e0003-a9f3-4e57-b0c7-2d9e80713c22", "00000000:4C:00.0", 69, 700, 1980, 2619, 81559, true},
	{demoSXM, "GPU-5d0e0004-18d4-4a68-a3fa-3eaf91824d33", "00000000:5D:00.0", 72, 700, 1980, 2619, 81559, true},
	{demoPCIe, "GPU-5d0e0005-6ec5-4b79-962d-4fb0a2935e44", "00000000:9B:00.0", 47, 350, 1755, 1593, 81559, false},
	{demoPCIe, "GPU-5d0e0006-c4b6-4d8a-8950-50c1b3a46f55", "00000000:BB:00.0", 48, 350, 1755, 1593, 81559, false},
	{demoPCIe, "GPU-5d0e0007-2aa7-4e9b-bc83-61d2c4b58066", "00000000:CB:00.0", 46, 350, 1755, 1593, 81559, false},
	{demoSXM, "GPU-5d0e0008-8098-4fac-afb6-72e3d5c69177", "00000000:DB:00.0", 73, 700, 1980, 2619, 81559, true},
}

// demoUnit is a device with rows of its own: a whole GPU, or a MIG instance.
type demoUnit struct {
	board       int
	profile, id string  // of an instance
	slices      float64 // of the board's seven
	framebuffer float64 // MiB
}

// demoUnits are the devices of the demo. GPU 7 is cut into three instances and
// has no rows of its own, as with dcgm-exporter.
var demoUnits = [...]demoUnit{
	{0, "", "", 7, 81559},
	{1, "", "", 7, 81559},
	{2, "", "", 7, 81559},
	{3, "", "", 7, 81559},
	{4, "", "", 7, 81559},
	{5, "", "", 7, 81559},
	{6, "", "", 7, 81559},
	{7, "3g.40gb", "1", 3, 40448},
	{7, "2g.20gb", "3", 2, 20096},
	{7, "1g.10gb", "9", 1, 9984},
}

// demoPhase is the readings of a device under a workload. Every reading differs from the
// thresholds of the class cascade (DESIGN §4) by more than the noise of a few percent.
type demoPhase struct {
	name, class                                           string
	sm, occupancy, tensor, dram, engine, fp64, fp32, fp16 float64 // ratios
	util, copying, encode, decode                         float64 // percent
	transmit, receive, link                               float64 // PCIe, PCIe, NVLink each way: B/s
	power                                                 float64 // share of the way from idle to the limit
	filled                                                float64 // share of the framebuffer
}

// demoPhases has a phase for each of the 12 classes, and an idle one with memory in use.
var demoPhases = [...]demoPhase{
	{"idle", "idle", .001, .001, 0, .001, .002, 0, 0, 0, 0, 0, 0, 0, 4e4, 2e4, 0, 0, .001},
	{"parked", "idle", .002, .001, 0, .001, .004, 0, .001, 0, 0, 0, 0, 0, 9e4, 6e4, 0, .05, .74},
	{"pretrain", "tensor_heavy_compute", .86, .38, .64, .45, .98, .01, .12, .09, 100, 38, 0, 0, 6e8, 7e8, 1.6e11, .92, .91},
	{"prefill", "tensor_compute", .58, .31, .30, .32, .90, 0, .10, .08, 96, 30, 0, 0, 2e8, 3e8, 4e10, .66, .88},
	{"solver", "fp64_hpc_compute", .78, .42, .04, .30, .97, .46, .08, 0, 99, 28, 0, 0, 3e8, 2e8, 2e10, .80, .55},
	{"loading", "io_or_data_loading", .14, .06, .03, .12, .30, 0, .05, .01, 35, 52, 0, 0, 9e8, 9e9, 1e9, .22, .60},
	{"decode", "memory_bound", .36, .20, .09, .72, .88, 0, .06, .05, 93, 64, 0, 0, 2e8, 2e8, 1e10, .60, .93},
	{"render", "compute_heavy", .91, .55, .05, .28, .99, .02, .58, .02, 100, 24, 22, 3, 5e8, 3e8, 0, .86, .41},
	{"physics", "compute_active", .62, .40, .06, .22, .85, .08, .33, .02, 94, 20, 0, 0, 3e8, 3e8, 0, .58, .33},
	{"embedding", "memory_active", .36, .22, .05, .45, .60, 0, .12, .03, 70, 34, 0, 0, 5e8, 6e8, 0, .45, .79},
	{"launch", "busy_low_sm_use", .12, .04, .02, .10, .72, 0, .04, .01, 88, 8, 0, 0, 1e8, 1e8, 0, .25, .28},
	{"notebook", "low_utilization", .09, .03, .01, .06, .11, 0, .03, 0, 14, 4, 0, 0, 6e7, 5e7, 0, .12, .22},
	{"finetune", "mixed_or_moderate", .34, .18, .10, .25, .55, 0, .09, .04, 68, 20, 0, 0, 4e8, 5e8, 8e9, .47, .67},
}

// demoScene makes a device (an index of demoUnits) play a phase in the seconds
// [from, to) of the script.
type demoScene struct {
	unit, from, to int
	phase          string
}

// demoScenes is the script. A device that is lost has no scene.
var demoScenes = [...]demoScene{
	{0, 0, 70, "pretrain"}, {0, 70, 80, "loading"}, {0, 80, 150, "pretrain"}, {0, 150, 160, "loading"}, {0, 160, 240, "pretrain"},
	{1, 0, 50, "decode"}, {1, 50, 75, "prefill"}, {1, 75, 130, "decode"}, {1, 130, 150, "prefill"}, {1, 150, 200, "decode"}, {1, 200, 240, "prefill"},
	{2, 0, 62, "finetune"}, {2, 62, 80, "idle"}, {2, 80, 100, "loading"}, {2, 100, 170, "launch"}, {2, 170, 240, "finetune"},
	{3, 0, 120, "solver"}, {3, 120, 126, "idle"}, {3, 200, 215, "idle"}, {3, 215, 240, "solver"},
	{4, 0, 90, "render"}, {4, 90, 160, "physics"}, {4, 160, 240, "render"},
	{5, 0, 100, "embedding"}, {5, 100, 165, "physics"}, {5, 165, 205, "render"}, {5, 205, 240, "embedding"},
	{6, 0, 240, "parked"},
	{7, 0, 100, "decode"}, {7, 100, 240, "prefill"},
	{8, 0, 130, "notebook"}, {8, 130, 190, "launch"}, {8, 190, 240, "notebook"},
	{9, 0, 60, "idle"}, {9, 60, 180, "embedding"}, {9, 180, 240, "idle"},
}

// demoHolding makes a pod hold a device in the seconds [from, to).
type demoHolding struct {
	unit, from, to            int
	container, namespace, pod string
}

var demoHoldings = [...]demoHolding{
	{0, 0, 240, "trainer", "training", "pretrain-7b-worker-0"},
	{1, 0, 240, "server", "serving", "chat-6f9c7d5b8-x2lqz"},
	{2, 0, 62, "worker", "research", "finetune-lora-k8f4d"},
	{2, 80, 240, "worker", "research", "finetune-lora-p2m9s"},
	{3, 0, 126, "solver", "hpc", "cfd-wing-0"},
	{3, 215, 240, "solver", "hpc", "cfd-wing-1"},
	{4, 0, 90, "blender", "render", "frames-0180-9wz7c"},
	{4, 90, 160, "sim", "physics", "cloth-5tq2n"},
	{4, 160, 240, "blender", "render", "frames-0240-h6v3x"},
	{5, 0, 100, "ranker", "recsys", "embeddings-0"},
	{5, 100, 165, "sim", "physics", "fluid-b7k1r"},
	{5, 165, 205, "blender", "render", "frames-0300-m4d8p"},
	{5, 205, 240, "ranker", "recsys", "embeddings-0"},
	{6, 0, 240, "jupyter", "research", "notebook-forgotten-0"},
	{7, 0, 240, "server", "serving", "chat-small-58d7f6c9b4-t8wkm"},
	{8, 0, 240, "jupyter", "research", "notebook-ada-0"},
	{9, 60, 180, "builder", "recsys", "features-28841-zr5hj"},
}

// demoFault is a fault of a board in the seconds [from, to).
type demoFault struct {
	board, from, to int
	xid             int     // the last XID
	hot             bool    // cooling fails
	replays, ecc    float64 // PCIe replays and corrected ECC errors a second
}

var demoFaults = [...]demoFault{
	{board: 0, from: 30, to: 31, ecc: 1},
	{board: 2, from: 62, to: 200, xid: 31},  // its pod crashes
	{board: 3, from: 120, to: 126, xid: 79}, // then off the bus, and back after a reboot
	{board: 4, from: 92, to: 97, replays: 1},
	{board: 5, from: 165, to: 205, hot: true},
}

// DemoClass returns the workload class of a device in a second of the script,
// which starts over after 240; tick n plays second n at any period. instance is
// the GPU_I_ID of a MIG instance, "" for a whole GPU: the devices are the GPUs 0
// to 6, and the instances 1, 3 and 9 of GPU 7. The class is that of the cascade
// with the weights of preset ai, and "" if there is no such device.
func DemoClass(gpu int, instance string, second int) string {
	for i, u := range demoUnits {
		if u.board == gpu && u.id == instance {
			if p := demoPhaseAt(i, second%demoSeconds); p != nil {
				return p.class
			}
		}
	}
	return ""
}

// demoPhaseAt returns the phase of unit at a second of the script, nil if the
// unit is lost.
func demoPhaseAt(unit, second int) *demoPhase {
	for _, s := range demoScenes {
		if s.unit != unit || second < s.from || second >= s.to {
			continue
		}
		for i := range demoPhases {
			if demoPhases[i].name == s.phase {
				return &demoPhases[i]
			}
		}
	}
	return nil
}
