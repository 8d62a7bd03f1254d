package checks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// adviceFinding is one sentence of advice.
type adviceFinding struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// The limits of advice, as shares.
const (
	unusedFrom   = 0.9  // of a GPU's time without work
	often        = 0.2  // of the time, in which GPUs wait
	mostly       = 0.5  // of the time, of what limits them otherwise
	littleMemory = 0.15 // of a GPU's memory
	littleUse    = 0.25 // real utilization with which a smaller GPU does the same
	goodUse      = 0.4  // what kernels without tensor cores reach at most
	// A GPU below half of the median of at least four is slow, if the median is at least 0.2, as in the mixin's alert.
	slowFrom, slowMedian, slowShare = 4, 0.2, 0.5
)

// adviceRow is a row of the table of advice: a sentence, and when it applies. That is a least share of the time in some classes, the
// value of its verb; or what applies returns: the values of its verbs, nil if it does not.
type adviceRow struct {
	name, text string
	classes    []canonical.Class
	least      reading
	applies    func(r *JobReport) []any
	unless     string // another row that says the same better
}

// jobAdvice is the table of advice, the most urgent first. A report has the first three rows that apply, and the last two only alone.
var jobAdvice = []adviceRow{
	{name: "faulty_gpu", text: "Have the operators check %s before the next run: %s while the job ran.", applies: faultyGPUs},
	{name: "unused", text: "Nothing ran on the GPUs for %s of the time: release them sooner, or check that the program uses GPUs at all.",
		classes: []canonical.Class{canonical.Idle}, least: unusedFrom},
	{name: "unused_gpus", text: "%d of %d GPUs did nothing (%s): request %d, or start a rank on each GPU.", applies: unusedGPUs},
	{name: "stopped", text: "From %s on, for %s, the GPUs did less than a quarter of what they did before: if no step advances, the job hangs; look at its log, and cancel it.",
		applies: func(r *JobReport) []any { return r.Fell.values() }},
	{name: "idle_now", text: "All GPUs are idle now, and were for %s of the time: if no step advances, the job may have stopped; ask --prometheus.url since when.",
		applies: idleNow},
	{name: "paused", text: "From %s, for %s, all GPUs were idle: see in the log what the job did then, such as a checkpoint or a download.",
		applies: func(r *JobReport) []any {
			if r.Fell != nil || r.Sum.share(canonical.Idle) >= unusedFrom {
				return nil
			}
			return r.AllIdle.values()
		}},
	{name: "input_bound", text: "The GPUs waited for data for %s of the time: more loader workers, pinned memory, prefetching or local storage feed them faster.",
		classes: []canonical.Class{canonical.IOOrDataLoading}, least: often},
	{name: "launch_bound", text: "Kernels used few of the multiprocessors for %s of the time. If steps advance, larger batches, CUDA graphs or torch.compile fill a GPU; else ranks wait for each other.",
		classes: []canonical.Class{canonical.BusyLowSMUse}, least: often, unless: "stopped"},
	{name: "starved", text: "The GPUs that worked were idle for %s of the time: profile what the CPU does between steps, such as loading or evaluation.", applies: starved},
	{name: "slow_gpu", text: "%s did %s of the median of the job's GPUs, and the others may wait for it: check its share of the work, and its host.", applies: slowGPU},
	{name: "small_memory", text: "At most %s of %s GiB of memory was used, and little of the GPU: a smaller GPU or a MIG slice would do.", applies: littleUsed},
	{name: "hardly_used", text: "The GPUs were hardly used for %s of the time: run several such jobs on one GPU, or use a MIG slice.",
		classes: []canonical.Class{canonical.LowUtilization}, least: mostly, unless: "small_memory"},
	{name: "memory_bound", text: "Device memory was the limit for %s of the time: fused kernels, reuse in caches or smaller types move fewer bytes.",
		classes: []canonical.Class{canonical.MemoryBound}, least: mostly},
	{name: "no_tensor_cores", text: "The SMs worked without tensor cores for %s of the time: TF32 or BF16 does more, if the required precision allows it.",
		classes: []canonical.Class{canonical.ComputeHeavy, canonical.ComputeActive}, least: mostly},
	{name: "unknown_limit", text: "What limits the job is not known for %s of the time: have the exporter serve SM activity (deploy/dcgm-counters.csv).",
		classes: []canonical.Class{canonical.ClassUnknown}, least: mostly},
	{name: "healthy", text: "The GPUs were well used: nothing needs to change.", applies: func(r *JobReport) []any {
		if len(r.Missing) > 0 {
			return nil
		}
		if r.Sum.Real >= goodUse || r.Sum.share(canonical.FP64HPCCompute) >= mostly {
			return []any{}
		}
		return nil
	}},
	{name: "mixed", text: "No single limit stands out: profile some steps, such as with Nsight Systems, to see what the GPUs wait for.",
		applies: func(*JobReport) []any { return []any{} }},
}

// advise returns the advice that follows from a report. Without time on a GPU nothing does, and without classes little.
func advise(r *JobReport) []adviceFinding {
	const most, alone = 3, 2
	found := []adviceFinding{}
	for i := range jobAdvice {
		row := &jobAdvice[i]
		if len(found) == most || i >= len(jobAdvice)-alone && (len(found) > 0 || len(r.Sum.Classes) == 0) || !(r.Sum.Held > 0) {
			break
		}
		var values []any
		if row.unless != "" && slices.ContainsFunc(found, func(f adviceFinding) bool { return f.Name == row.unless }) {
			continue
		}
		if share := r.Sum.share(row.classes...); row.applies != nil {
			values = row.applies(r)
		} else if share >= row.least {
			values = []any{percent(share)}
		}
		if values != nil {
			found = append(found, adviceFinding{row.name, fmt.Sprintf(row.text, values...)})
		}
	}
	return found
}

// values returns the begin and the length of a stretch, nil for none.
func (s *stretch) values() []any {
	if s == nil {
		return nil
	}
	return []any{clock(s.Begin), hours(s.Seconds)}
}

// isUnused reports whether nothing ran on a GPU.
func (g *jobGPU) isUnused() bool { return g.share(canonical.Idle) >= unusedFrom }

// unusedGPUs finds GPUs on which nothing ran beside others that worked.
func unusedGPUs(r *JobReport) []any {
	names := r.namesIf((*jobGPU).isUnused)
	if n := len(names); n > 0 && n < len(r.GPUs) {
		return []any{n, len(r.GPUs), someOf(names), len(r.GPUs) - n}
	}
	return nil
}

// fault names the fatal XID or the condition that is crit of a GPU, "" for none.
func (g *jobGPU) fault() string {
	for _, code := range g.XIDs {
		row, _ := canonical.XIDOf(code)
		if severity, _ := row.On(g.Model); severity == canonical.SeverityFatal {
			return fmt.Sprintf("XID %d came", code)
		}
	}
	for _, c := range g.Conditions {
		if c.State == canonical.HealthCrit.String() {
			return c.Condition + " was crit"
		}
	}
	return ""
}

// faultyGPUs finds GPUs with a fault.
func faultyGPUs(r *JobReport) []any {
	what := ""
	names := r.namesIf(func(g *jobGPU) bool {
		what = cmp.Or(what, g.fault())
		return g.fault() != ""
	})
	if names == nil {
		return nil
	}
	return []any{someOf(names), what}
}

// starved finds that GPUs which worked were often idle, if neither a stretch nor data loading explains it.
func starved(r *JobReport) []any {
	working := sumOf(slices.DeleteFunc(slices.Clone(r.GPUs), func(g jobGPU) bool { return g.isUnused() }))
	share := working.share(canonical.Idle)
	if !(share >= often) || r.AllIdle != nil || r.Fell != nil || idleNow(r) != nil || r.Sum.share(canonical.IOOrDataLoading) >= often {
		return nil
	}
	return []any{percent(share)}
}

// idleNow finds that all GPUs, which worked before, are idle as their proxies are asked, and often were.
func idleNow(r *JobReport) []any {
	share := r.Sum.share(canonical.Idle)
	if !(share >= often && share < unusedFrom) || slices.ContainsFunc(r.GPUs, func(g jobGPU) bool {
		return g.Now == nil || g.Now.Class != canonical.Idle.String()
	}) {
		return nil
	}
	return []any{percent(share)}
}

// slowGPU finds the slowest GPU if it is far behind the others.
func slowGPU(r *JobReport) []any {
	known := slices.DeleteFunc(slices.Clone(r.GPUs), func(g jobGPU) bool { return g.Real.IsZero() })
	slices.SortStableFunc(known, func(a, b jobGPU) int { return cmp.Compare(a.Real, b.Real) })
	if len(known) < slowFrom {
		return nil
	}
	slowest, median := &known[0], (known[(len(known)-1)/2].Real+known[len(known)/2].Real)/2
	if median < slowMedian || slowest.Real >= slowShare*median || slowest.isUnused() {
		return nil
	}
	return []any{slowest.name(), percent(slowest.Real / median)}
}

// littleUsed finds that little memory of all GPUs was used, and little of their cores. Memory of now counts only if all work now: a
// job that begins or ends has none.
func littleUsed(r *JobReport) []any {
	var most, total reading
	for i := range r.GPUs {
		g := &r.GPUs[i]
		used, when := g.memory()
		if !(used < littleMemory*g.Total) || g.Shared || when == "now" && g.Now.Class == canonical.Idle.String() {
			return nil
		}
		if used >= most {
			most, total = used, g.Total
		}
	}
	if !(r.Sum.Real < littleUse) {
		return nil
	}
	return []any{gibibytes(most), gibibytes(total)}
}

// namesIf returns the names of the GPUs for which a condition holds.
func (r *JobReport) namesIf(holds func(*jobGPU) bool) (names []string) {
	for i := range r.GPUs {
		if holds(&r.GPUs[i]) {
			names = append(names, r.GPUs[i].name())
		}
	}
	return names
}

// someOf lists the first names, and how many others there are.
func someOf(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, " ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most-1], " "), len(names)-most+1)
}
