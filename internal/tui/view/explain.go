package view

import (
	"fmt"
	"strconv"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// explainView says what the selected device's numbers mean and what to do.
type explainView struct{}

// advice is what a class of work means, and what to do about it.
var advice = [canonical.NumClasses]string{
	canonical.Idle:               "Nothing runs. If somebody holds the GPU, ask whether they still need it.",
	canonical.TensorHeavyCompute: "The tensor cores are busy at least half of the time and the SMs well used: as good as it gets for training.",
	canonical.TensorCompute:      "The tensor cores are used. More may be had from larger batches, fused kernels or lower precision.",
	canonical.FP64HPCCompute:     "The 64-bit pipes do the work, as in simulations.",
	canonical.IOOrDataLoading:    "Data moves and the SMs wait for it. Look at data loaders, pinned memory, storage and transfers between GPUs.",
	canonical.MemoryBound:        "The device memory is the limit: kernels wait for it. Fusing kernels, reuse in caches or smaller types help.",
	canonical.ComputeHeavy:       "The SMs are busy almost all of the time, without tensor cores. Where the numbers allow it, tensor cores do more.",
	canonical.ComputeActive:      "The SMs are busy more than half of the time, without tensor cores.",
	canonical.MemoryActive:       "Much memory traffic beside the computing; no single limit.",
	canonical.BusyLowSMUse:       "Something always runs, but on few SMs: kernels are small or launched one by one. GPU util looks high and is not.",
	canonical.LowUtilization:     "Hardly used: small batches, long waits, or a notebook.",
	canonical.MixedOrModerate:    "Used in moderation, with no single limit.",
	canonical.ClassUnknown:       "What is needed to tell was not read: see the fields the node misses. Exporters leave SM activity out unless their counters file asks for it; kpulse-proxy check counters names the line.",
}

// remedies is what to do about a condition.
var remedies = [canonical.NumConditions]string{
	canonical.CondRowRemapFailure:           "A broken memory row could not be replaced. Drain the node and have the board replaced.",
	canonical.CondUncorrectableRemappedRows: "Rows with uncorrectable errors were replaced. Watch it: run the vendor's field diagnostics, and replace the board if there are more.",
	canonical.CondPCIeReplay:                "The PCIe link repeated packets. If it goes on, reseat the board or riser, and look at the slot's signal.",
	canonical.CondGPUTemperature:            "Too hot for this model. Look at fans, air flow and the inlet temperature.",
	canonical.CondMemoryTemperature:         "The memory is too hot. Look at fans, air flow and the inlet temperature.",
	canonical.CondXIDFatal:                  "The driver reported an error after which the GPU is not fit for work. Drain the node, reset the GPU or reboot, and look the XID up in the vendor's list.",
	canonical.CondXIDRecent:                 "The driver reported an error. Many come from the program itself: look the XID up in the vendor's list and at the job that ran.",
	canonical.CondECCDoubleBit:              "Memory errors that could not be corrected. Jobs on this GPU may have failed; reset it to remap the rows.",
	canonical.CondRowRemapPending:           "A memory row is to be replaced at the next reset. Reset the GPU when it is free.",
	canonical.CondThermalSlowdown:           "The GPU lowers its clocks because it is hot. Look at fans, air flow and the inlet temperature.",
	canonical.CondPowerBrake:                "The power supply asks for less. Look at PSUs, cabling and the rack's power.",
	canonical.CondNVLinkErrors:              "NVLink had errors. If it goes on, look at the bridge or baseboard, and at the fabric manager's log.",
	canonical.CondProfilingStalled:          "The profiling counters stand at 0 while the GPU works: often another profiler holds them. Stop it, or restart the host engine.",
}

// Draw implements view.
func (v *explainView) Draw(r screen.Rect, s *State) { drawText(r, s, 16, explainLines(s)) }

// explainLines are about the selected device first, then about all readings and
// classes.
func explainLines(s *State) []textLine {
	var lines []textLine
	if info := &client.Metrics[s.Metric]; s.Metric > client.MetricReal {
		lines = append(lines, textLine{word: info.Title, heading: true}, textLine{word: info.Name, text: info.Help}, textLine{})
	}
	if g := s.SelectedGPU(); g != nil {
		lines = append(lines, textLine{word: g.Label() + " now", heading: true},
			textLine{word: classLabels[g.Class].Long, text: advice[g.Class], style: stylePlain})
		for _, raised := range g.Raised {
			lines = append(lines, textLine{word: client.Conditions[raised.Condition].Name, text: remedies[raised.Condition], style: healthBadges[raised.State].style})
		}
		lines = append(lines, missingLines(s, g)...)
		lines = append(lines, textLine{})
	}
	lines = append(lines, textLine{word: "Real utilization", heading: true}, textLine{word: "weights", text: weightWords(s)},
		textLine{word: "GPU util", text: "says only that some kernel ran, however small: 100 % of it with little real use is a GPU that waits."},
		textLine{word: "active", text: fmt.Sprintf("counts GPUs with at least %.0f %% of real utilization, or of their memory in use: an idle one that holds memory, too.", client.ActiveFrom*100)},
		textLine{})
	lines = append(lines, textLine{word: "Readings", heading: true})
	for m := client.MetricReal; m < client.NumMetrics; m++ {
		info := &client.Metrics[m]
		lines = append(lines, textLine{word: info.Name, text: info.Title + ". " + info.Help})
	}
	lines = append(lines, textLine{}, textLine{word: "Classes of work, the first that fits", heading: true})
	for c := range canonical.NumClasses {
		lines = append(lines, textLine{word: classLabels[c].Short, text: classLabels[c].Long + ". " + advice[c]})
	}
	lines = append(lines, textLine{}, textLine{word: "Health", heading: true})
	for c := range canonical.NumConditions {
		lines = append(lines, textLine{word: client.Conditions[c].Name, text: remedies[c]})
	}
	return lines
}

// missingLines tell which inputs of the scores the node of g does not give.
func missingLines(s *State, g *client.GPU) []textLine {
	n := s.Nodes.Of(g)
	if n == nil {
		return nil
	}
	var lines []textLine
	for _, o := range n.Sources {
		for _, f := range o.Missing {
			lines = append(lines, textLine{word: "not read", text: f, style: styleWarn})
		}
	}
	return lines
}

// weightWords say what real utilization is made of.
func weightWords(s *State) string {
	for _, n := range s.Nodes {
		if w := n.Weights; canonical.Given(w.SM) {
			share := func(v float64) string {
				if !canonical.Given(v) {
					return missing + " "
				}
				return strconv.FormatFloat(v*100, 'f', -1, 64) + " % "
			}
			return share(w.SM) + "SM active, " + share(w.Tensor) + "tensor, " + share(w.DRAM) + "DRAM, " + share(w.Engine) + "graphics engine (" + n.Preset + ")"
		}
	}
	return "not told yet"
}

// Key scrolls.
func (v *explainView) Key(key string, s *State) bool { return scrollKey(key, s) }
