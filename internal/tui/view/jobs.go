package view

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// gpuTitle is the column of the device, jobTitle that of the job or the pod's owner.
const gpuTitle, jobTitle = "GPU", "JOB"

// holding is a device and one of its allocations or processes. The device has no readings if they
// have expired.
type holding struct {
	gpu *client.GPU
	*client.Allocation
	*client.Process
}

// reading returns the cell of a reading of the device.
func (h holding) reading(f canonical.Field, as format) entry {
	return amountOf(h.gpu.Values[f], as, stylePlain)
}

func realOf(_ *State, h holding) entry {
	return amountOf(h.gpu.RealUtilization, percent, utilStyle(h.gpu.RealUtilization))
}

// allocationColumns and processColumns are those of the two lists. The titles with an asterisk are
// of the whole device.
var allocationColumns = []listColumn[holding]{
	{gpuTitle, 10, true, func(s *State, h holding) entry { return word(s.Nodes.ID(h.gpu), styleStrong) }},
	{"REAL*", widthPercent, false, realOf},
	{"UTIL*", 5, false, func(_ *State, h holding) entry { return h.reading(canonical.NVMLUtilization, whole) }},
	{"MEM*", widthWhole, false, func(_ *State, h holding) entry { return h.reading(canonical.FramebufferUsedRatio, whole) }},
	{"POWER*", 6, false, func(_ *State, h holding) entry { return h.reading(canonical.Power, watts) }},
	{"MEAN", widthPercent, false, func(s *State, h holding) entry {
		if freshness, _ := s.Freshness(h.gpu); !(h.KnownSeconds > 0) || freshness == client.Expired {
			return amountOf(math.NaN(), percent, stylePlain)
		}
		return amountOf(h.UtilizedSeconds/h.KnownSeconds, percent, stylePlain)
	}},
	{"TIME", 5, false, func(s *State, h holding) entry {
		d := client.Seconds(h.Seconds)
		if freshness, _ := s.Freshness(h.gpu); freshness == client.Expired || d == 0 && h.Seconds != 0 {
			return word(missing, styleLabel)
		}
		return word(AgeText(d), styleLabel)
	}},
	{"CLASS*", shortClass, true, func(_ *State, h holding) entry {
		return word(classLabels[h.gpu.Class].Short, classLabels[h.gpu.Class].style)
	}},
	{"NAMESPACE", 14, true, func(_ *State, h holding) entry { return word(h.Namespace, styleLabel) }},
	{jobTitle, 12, true, func(_ *State, h holding) entry { return word(cmp.Or(h.Job, h.Name), stylePlain) }},
	{"CONTAINER", 12, true, func(_ *State, h holding) entry { return word(h.Container, styleLabel) }},
	{"POD", 0, true, func(_ *State, h holding) entry { return word(h.Pod, stylePlain) }},
}

var processColumns = []listColumn[holding]{
	{"PID", 8, false, func(_ *State, h holding) entry { return word(strconv.Itoa(h.PID), styleStrong) }},
	{"USER", 12, true, func(_ *State, h holding) entry { return word(cmp.Or(h.Process.User, missing), stylePlain) }},
	{gpuTitle, 10, true, func(s *State, h holding) entry { return word(s.Nodes.ID(h.gpu), stylePlain) }},
	{"GPU MEM", 8, false, func(_ *State, h holding) entry { return amountOf(h.MemoryUsed, gibibytes, stylePlain) }},
	{"REAL*", widthPercent, false, realOf},
	{"UTIL*", widthPercent, false, func(_ *State, h holding) entry { return h.reading(canonical.NVMLUtilization, percent) }},
	{"TENSOR*", 7, false, func(_ *State, h holding) entry { return h.reading(canonical.TensorActive, percent) }},
	{"CLASS*", longClass, true, func(_ *State, h holding) entry {
		return word(classLabels[h.gpu.Class].Long, classLabels[h.gpu.Class].style)
	}},
	{"GROUP", 12, true, func(_ *State, h holding) entry { return word(cmp.Or(h.Process.Group, missing), styleLabel) }},
	{"COMMAND", 0, true, func(_ *State, h holding) entry { return word(h.Command, styleLabel) }},
}

// footnote explains the asterisk of a title.
const footnote = "* of the device, shared by all its jobs"

// drawJobs lists the allocations and then the processes, if the nodes list these, below the job
// that the program was started in.
func drawJobs(r screen.Rect, s *State) {
	if r.H >= jobFrom {
		used := drawJob(r.Inset(1, 0), s.Job)
		r = r.Sub(0, used, r.W, r.H)
	}
	var allocations []holding
	for _, g := range s.GPUs {
		for i := range g.Allocations {
			allocations = append(allocations, holding{gpu: s.current(g), Allocation: &g.Allocations[i]})
		}
	}
	processes := visible(s)
	upper := r.H - 1
	switch {
	case len(allocations) == 0:
		upper = 3
		r.Text(1, 1, r.W-2, "No allocation is read. Allocations come from the pod and job labels of the exporter.", styleLabel)
	case len(processes) > 0:
		upper = min(len(allocations)+2, max(4, r.H/2))
	case s.ProcessesErr != "" || s.Processes != nil:
		upper = min(len(allocations)+2, r.H-2) // a line explains why there are none
	}
	if len(allocations) > 0 {
		first := scrollTo(s, len(allocations), upper-1)
		drawHoldings(r.Sub(0, 0, r.W, upper), s, allocationColumns, allocations, first)
	}
	rest := r.Sub(0, upper, r.W, r.H-upper-1)
	switch {
	case len(processes) > 0:
		drawHoldings(rest, s, processColumns, processes, min(s.Scroll, max(0, len(processes)-rest.H+1)))
	case s.ProcessesErr != "":
		rest.Text(1, 0, rest.W-2, s.ProcessesErr, styleFaint)
	case s.Processes != nil:
		rest.Text(1, 0, rest.W-2, "No process runs on these GPUs.", styleLabel)
	}
	r.Text(1, r.H-1, r.W-2, footnote, styleFaint)
}

// drawHoldings draws a list without columns that are empty for all allocations.
func drawHoldings(r screen.Rect, s *State, columns []listColumn[holding], all []holding, first int) {
	fits := fitting(fitNames(columns, s), r.W-2, func(c *listColumn[holding]) bool {
		return all[0].Allocation != nil && c.title != gpuTitle && c.title != "REAL*" && !slices.ContainsFunc(all, func(h holding) bool {
			shown := c.cell(s, h)
			return shown.format != nil && canonical.Given(shown.number) || shown.text != ""
		})
	})
	drawList(r, s, fits, all[first:], func(line screen.Rect, h holding) int {
		line = line.Row(0)
		if freshness, _ := s.Freshness(h.gpu); freshness == client.Stale {
			line.Dim(styleFaint)
		}
		hitLine(line, s, h.gpu)
		return 0
	})
}

// visible returns the processes on the devices of s, in the order of the devices.
func visible(s *State) (all []holding) {
	for _, g := range s.GPUs {
		for i := range s.Processes {
			if s.Processes[i].Key == g.Key {
				all = append(all, holding{gpu: s.current(g), Process: &s.Processes[i]})
			}
		}
	}
	return all
}

// fitNames returns columns with room for an index after the name of its node: a name alone does
// not identify a device.
func fitNames(columns []listColumn[holding], s *State) []listColumn[holding] {
	const index = len("/12.10")
	wide := slices.Clone(columns)
	for i := range wide {
		if names := nodeWidth(s); names > 0 && wide[i].title == gpuTitle {
			wide[i].width = max(wide[i].width, names+index)
		}
	}
	return wide
}

// jobsKey scrolls by pages; other keys move the selection, as in all views.
func jobsKey(key string, s *State) bool {
	return (key == "pgup" || key == "pgdn") && scrollKey(key, s)
}

// jobRows bounds the rows of a job. A list shows the job from the height jobFrom on.
const jobRows, jobFrom = 3, 12

// drawJob writes the job that the program was started in into the first rows of r, each variable
// whole, and returns the number of rows. It omits variables that do not fit, and cuts a value
// that is longer than a row.
func drawJob(r screen.Rect, job []canonical.Variable) int {
	if len(job) == 0 || r.Empty() {
		return 0
	}
	const title = "we run in"
	left := len(title) + 1
	r.Text(0, 0, left, title, styleFaint)
	x, y := left, 0
	for _, v := range job {
		if need := screen.Width(v.Name) + 1 + screen.Width(v.Value); x > left && x+need > r.W {
			x, y = left, y+1
		}
		if y >= min(r.H, jobRows) {
			return y
		}
		x = write(r.Row(y), x, piece{v.Name, styleLabel}, piece{" ", stylePlain}, piece{v.Value, stylePlain}) + 2
	}
	return y + 1
}
