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

// jobsView lists the allocations of the devices, and their processes if the nodes list
// processes.
type jobsView struct{}

// gpuTitle is the column of the device, jobTitle that of the job or the pod's owner.
const gpuTitle, jobTitle = "GPU", "JOB"

var allocationColumns = []listColumn{
	{gpuTitle, 10, true}, {"REAL*", widthPercent, false}, {"UTIL*", 5, false}, {"MEM*", widthWhole, false}, {"POWER*", 6, false}, {"MEAN", widthPercent, false}, {"TIME", 5, false},
	{"CLASS*", shortClass, true}, {"NAMESPACE", 14, true}, {jobTitle, 12, true}, {"CONTAINER", 12, true}, {"POD", 0, true},
}

var processColumns = []listColumn{
	{"PID", 8, false}, {"USER", 12, true}, {gpuTitle, 10, true}, {"GPU MEM", 8, false}, {"REAL*", widthPercent, false}, {"UTIL*", widthPercent, false},
	{"TENSOR*", 7, false}, {"CLASS*", longClass, true}, {"GROUP", 12, true}, {"COMMAND", 0, true},
}

// footnote explains the asterisk of a title.
const footnote = "* of the device, shared by all its jobs"

// allocation is a line of the list of allocations.
type allocation struct {
	gpu *client.GPU
	*client.Allocation
}

// Draw lists the allocations and then the processes, below the job that the program was started
// in.
func (v *jobsView) Draw(r screen.Rect, s *State) {
	if r.H >= jobFrom {
		used := drawJob(r.Inset(1, 0), s.Job)
		r = r.Sub(0, used, r.W, r.H)
	}
	var allocations []allocation
	for _, g := range s.GPUs {
		for i := range g.Allocations {
			allocations = append(allocations, allocation{g, &g.Allocations[i]})
		}
	}
	processes := visible(s)
	upper := r.H - 1
	switch {
	case len(processes) > 0:
		upper = min(len(allocations)+2, max(4, r.H/2))
	case s.ProcessesErr != "" || s.Processes != nil:
		upper = min(len(allocations)+2, r.H-2) // a line explains why there are none
	}
	if len(allocations) == 0 {
		r.Text(1, 1, r.W-2, "No allocation is read. Allocations come from the pod and job labels of the exporter.", styleLabel)
		upper = 3
	} else {
		v.allocations(r.Sub(0, 0, r.W, upper), s, allocations)
	}
	rest := r.Sub(0, upper, r.W, r.H-upper-1)
	switch {
	case len(processes) > 0:
		v.processes(rest, s, processes)
	case s.ProcessesErr != "":
		rest.Text(1, 0, rest.W-2, s.ProcessesErr, styleFaint)
	case s.Processes != nil:
		rest.Text(1, 0, rest.W-2, "No process runs on these GPUs.", styleLabel)
	}
	r.Text(1, r.H-1, r.W-2, footnote, styleFaint)
}

func (v *jobsView) allocations(r screen.Rect, s *State, all []allocation) {
	l := newList(r, fitNames(allocationColumns, s), emptyColumns(all)...)
	for _, a := range all[scrollTo(s, len(all), l.rows()):] {
		line, ok := l.newLine()
		if !ok {
			break
		}
		g, mean, seconds := s.current(a.gpu), math.NaN(), missing
		freshness, _ := s.Freshness(a.gpu)
		if a.KnownSeconds > 0 && freshness != client.Expired {
			mean = a.UtilizedSeconds / a.KnownSeconds
		}
		if d := client.Seconds(a.Seconds); freshness != client.Expired && (d > 0 || a.Seconds == 0) {
			seconds = AgeText(d)
		}
		l.text(s.Nodes.ID(g), styleStrong)
		l.number(g.RealUtilization, percent, utilStyle(g.RealUtilization))
		l.number(g.Values[canonical.NVMLUtilization], whole, stylePlain)
		l.number(g.Values[canonical.FramebufferUsedRatio], whole, stylePlain)
		l.number(g.Values[canonical.Power], watts, stylePlain)
		l.number(mean, percent, stylePlain)
		l.text(seconds, styleLabel)
		l.text(classLabels[g.Class].Short, classLabels[g.Class].style)
		l.text(a.Namespace, styleLabel)
		l.text(jobOf(a.Allocation), stylePlain)
		l.text(a.Container, styleLabel)
		l.text(a.Pod, stylePlain)
		if freshness == client.Stale {
			line.Dim(styleFaint)
		}
		hitLine(line, s, a.gpu)
	}
}

// jobOf returns the job of an allocation, or the owner of its pod.
func jobOf(a *client.Allocation) string { return cmp.Or(a.Job, a.Name) }

// emptyColumns returns the titles of columns that are empty for all allocations.
func emptyColumns(all []allocation) (titles []string) {
	given := func(f canonical.Field) func(allocation) bool {
		return func(a allocation) bool { return canonical.Given(a.gpu.Values[f]) }
	}
	for _, column := range []struct {
		title string
		has   func(allocation) bool
	}{
		{"UTIL*", given(canonical.NVMLUtilization)},
		{"MEM*", given(canonical.FramebufferUsedRatio)},
		{"POWER*", given(canonical.Power)},
		{"MEAN", func(a allocation) bool { return a.KnownSeconds > 0 }},
		{"NAMESPACE", func(a allocation) bool { return a.Namespace != "" }},
		{jobTitle, func(a allocation) bool { return jobOf(a.Allocation) != "" }},
		{"CONTAINER", func(a allocation) bool { return a.Container != "" }},
		{"POD", func(a allocation) bool { return a.Pod != "" }},
	} {
		if !slices.ContainsFunc(all, column.has) {
			titles = append(titles, column.title)
		}
	}
	return titles
}

// visible returns the processes on the devices of s, in the order of the devices.
func visible(s *State) []client.Process {
	order := map[client.Key]int{}
	for i, g := range s.GPUs {
		order[g.Key] = i
	}
	all := slices.DeleteFunc(slices.Clone(s.Processes), func(p client.Process) bool {
		_, shown := order[p.Key]
		return !shown
	})
	slices.SortStableFunc(all, func(a, b client.Process) int { return cmp.Compare(order[a.Key], order[b.Key]) })
	return all
}

func (v *jobsView) processes(r screen.Rect, s *State, all []client.Process) {
	l := newList(r, fitNames(processColumns, s))
	byKey := map[client.Key]*client.GPU{}
	for _, g := range s.GPUs {
		byKey[g.Key] = g
	}
	for _, p := range all[min(s.Scroll, max(0, len(all)-l.rows())):] {
		line, ok := l.newLine()
		if !ok {
			break
		}
		g := s.current(byKey[p.Key])
		l.text(strconv.Itoa(p.PID), styleStrong)
		l.text(cmp.Or(p.User, missing), stylePlain)
		l.text(s.Nodes.ID(g), stylePlain)
		l.number(p.MemoryUsed, gibibytes, stylePlain)
		l.number(g.RealUtilization, percent, utilStyle(g.RealUtilization))
		l.number(g.Values[canonical.NVMLUtilization], percent, stylePlain)
		l.number(g.Values[canonical.TensorActive], percent, stylePlain)
		l.text(classLabels[g.Class].Long, classLabels[g.Class].style)
		l.text(cmp.Or(p.Group, missing), styleLabel)
		l.text(p.Command, styleLabel)
		if freshness, _ := s.Freshness(g); freshness == client.Stale {
			line.Dim(styleFaint)
		}
		hitLine(line, s, g)
	}
}

// fitNames returns columns with room for an index after the name of its node: a name alone does
// not identify a device.
func fitNames(columns []listColumn, s *State) []listColumn {
	names := nodeWidth(s)
	if names == 0 {
		return columns
	}
	const index = len("/12.10")
	wide := slices.Clone(columns)
	for i := range wide {
		if wide[i].title == gpuTitle {
			wide[i].width = max(wide[i].width, names+index)
		}
	}
	return wide
}

// Key scrolls by pages; other keys move the selection, as in all views.
func (v *jobsView) Key(key string, s *State) bool {
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
		need := screen.Width(v.Name) + 1 + screen.Width(v.Value)
		if x > left && x+need > r.W {
			x, y = left, y+1
		}
		if y >= min(r.H, jobRows) {
			return y
		}
		x = r.Text(x, y, r.W-x, v.Name, styleLabel) + 1
		x = r.Text(x, y, r.W-x, v.Value, stylePlain) + 2
	}
	return y + 1
}
