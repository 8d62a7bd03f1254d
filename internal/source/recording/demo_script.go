package recording

import (
	_ "embed" // demo.json
	"encoding/json"
	"fmt"
	"sync"
)

// demoSeconds is the length of the demo's script, which then starts over.
const demoSeconds = 240

// DemoStory is a tick of the demo with several problems: GPU 3 is lost, GPU 5 is
// hot, and a notebook has held GPU 6 idle for eleven minutes of the script.
const DemoStory = 2*demoSeconds + 182

// demoScript is the content of demo.json.
type demoScript struct {
	// Boards are the GPUs 0 to 7. Power limits and clocks are NVIDIA's for the models.
	Boards []demoBoard
	// Devices have rows of their own. GPU 7 is cut into three instances and has no rows of its own, as with dcgm-exporter.
	Devices []demoDevice
	// Readings are the names of the Readings of a phase.
	Readings []string
	// Phases has one for each of the 12 classes, and an idle one with memory in use.
	Phases []demoPhase
	// Scenes is what devices do. A device that is lost has no scene.
	Scenes []demoScene
	Pods   map[string]struct{ Namespace, Container string }
	Faults []demoFault
	// Families follow dcgm-exporter 4.8: names, types, units and which of them MIG instances have (a board's power,
	// clocks, temperatures and error counters are repeated on each).
	Families []demoFamily
}

// demoBoard is one physical GPU.
type demoBoard struct {
	Model, UUID, Bus   string
	Idle, Limit        float64 // W
	Clock, MemoryClock float64 // MHz, at full boost
	NVLink             bool
}

// demoDevice is a whole GPU, or a MIG instance.
type demoDevice struct {
	Board       int
	Profile, ID string  // of an instance
	Slices      float64 // of the board's seven
	Framebuffer float64 // MiB
}

// demoPhase is the readings of a device under a workload: ratios, percent of NVML, B/s (link: each way), load as a share of
// the way from idle to the power limit, and the filled share of the framebuffer. Every reading differs from the thresholds
// of the class cascade (DESIGN §4) by more than the noise of a few percent.
type demoPhase struct {
	Name, Class string
	Readings    []float64
}

// demoScene makes a device (an index) play a phase in the seconds [From, To), while a pod, "" for none, holds it.
type demoScene struct {
	Device, From, To int
	Phase, Pod       string
}

// demoFault is a fault of a board in the seconds [From, To).
type demoFault struct {
	Board, From, To    int
	XID                float64 // the last XID
	Hot                bool    // cooling fails
	Replays, Corrected float64 // PCIe replays and corrected ECC errors a second
}

// demoFamily is one metric family.
type demoFamily struct {
	Name, Type, Help string
	Reading          string // its name in a demoUnit
	BoardsOnly       bool   // MIG instances have no row
	Decimals         int    // 6 for DCGM's doubles, 0 for its integers
}

//go:embed demo.json
var demoJSON []byte

var theDemo = sync.OnceValue(func() *demoScript {
	s := &demoScript{}
	if err := json.Unmarshal(demoJSON, s); err != nil {
		panic(fmt.Sprintf("demo.json: %v", err))
	}
	return s
})

// DemoClass returns the workload class of a device in a second of the script,
// which starts over after 240; tick n plays second n at any period. instance is
// the GPU_I_ID of a MIG instance, "" for a whole GPU: the devices are the GPUs 0
// to 6, and the instances 1, 3 and 9 of GPU 7. The class is that of the cascade
// with the weights of preset ai, and "" if there is no such device.
func DemoClass(gpu int, instance string, second int) string {
	for i, d := range theDemo().Devices {
		if d.Board == gpu && d.ID == instance {
			if _, phase := theDemo().at(i, second%demoSeconds); phase != nil {
				return phase.Class
			}
		}
	}
	return ""
}

// at returns the scene and phase of a device at a second of the script, nil if the device is lost.
func (s *demoScript) at(device, second int) (*demoScene, *demoPhase) {
	for i := range s.Scenes {
		scene := &s.Scenes[i]
		if scene.Device != device || second < scene.From || second >= scene.To {
			continue
		}
		for j := range s.Phases {
			if s.Phases[j].Name == scene.Phase {
				return scene, &s.Phases[j]
			}
		}
	}
	return nil, nil
}
