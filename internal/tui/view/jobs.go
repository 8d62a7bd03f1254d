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

// jobsView lists who holds which device, and where the nodes tell, the processes
// on them.
type jobsView struct{}

// placeTitle is that of the column that says which device.
const placeTitle = "GPU"

var allocationColumns = []listColumn{
	{placeTitle, 10, true}, {"REAL*", widthPercent, false}, {"MEAN", widthPercent, false}, {"HELD", 5, false}, {"CLASS*", longClass, true},
	{"NAMESPACE", 14, true}, {"JOB", 12, true}, {"CONTAINER", 12, true}, {"POD", 0, true},
}

var processColumns = []listColumn{
	{"PID", 8, false}, {"USER", 12, true}, {placeTitle, 10, true}, {"GPU MEM", 8, false}, {"REAL*", widthPercent, false}, {"UTIL*", widthPercent, false},
	{"TENSOR*", 7, false}, {"CLASS*", longClass, true}, {"GROUP", 12, true}, {"COMMAND", 0, true},
}

// footnote says what the star of a title means.
const footnote = "* of the device, shared by all that is on it"

// holding is one line of the list of allocations.
type holding struct {
	gpu *client.GPU
	*client.Allocation
}

// Draw lists the allocations above and the processes below, under the job that we
// run in ourselves.
func (v *jobsView) Draw(r screen.Rect, s *State) {
	if r.H >= jobFrom {
		taken := drawJob(r.Inset(1, 0), s.Job)
		r = r.Sub(0, taken, r.W, r.H)
	}
	held := holdings(s)
	processes := visible(s)
	upper := r.H - 1
	switch {
	case len(processes) > 0:
		upper = min(len(held)+2, max(4, r.H/2))
	case s.ProcessesErr != "" || s.Processes != nil:
		upper = min(len(held)+2, r.H-2) // a line says why there are none
	}
	if len(held) == 0 {
		r.Text(1, 1, r.W-2, "Nobody holds a GPU, or nobody tells: that comes from the exporter's pod and job labels.", styleLabel)
		upper = 3
	} else {
		v.allocations(r.Sub(0, 0, r.W, upper), s, held)
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

// holdings are the allocations of the devices of s, in their order.
func holdings(s *State) []holding {
	var all []holding
	for _, g := range s.GPUs {
		for i := range g.Allocations {
			all = append(all, holding{g, &g.Allocations[i]})
		}
	}
	return all
}

func (v *jobsView) allocations(r screen.Rect, s *State, held []holding) {
	l := newList(r, withPlaces(allocationColumns, s))
	for _, h := range held[scrollTo(s, len(held), l.rows()):] {
		line, ok := l.next()
		if !ok {
			break
		}
		g := h.gpu
		l.text(s.Nodes.ID(g), styleStrong)
		g = shownNow(s, g)
		l.number(g.RealUtilization, percent, utilStyle(g.RealUtilization))
		l.number(h.UtilizedSeconds/nonzero(h.KnownSeconds), percent, stylePlain)
		l.text(heldFor(h.Seconds), styleLabel)
		l.text(classLabels[g.Class].Long, classLabels[g.Class].style)
		l.text(h.Namespace, styleLabel)
		l.text(cmp.Or(h.Job, h.Name), stylePlain)
		l.text(h.Container, styleLabel)
		l.text(h.Pod, stylePlain)
		mark(line, s, h.gpu)
	}
}

// mark makes a line the one of a device, for the mouse and for the selection.
func mark(line screen.Rect, s *State, g *client.GPU) {
	hit(line, s, g.Key)
	if g.Key == s.Selected {
		line.Pick()
	}
}

// visible are the processes on the devices of s, in the order of the devices.
func visible(s *State) []client.Process {
	order := map[client.Key]int{}
	for i, g := range s.GPUs {
		order[g.Key] = i
	}
	var all []client.Process
	for _, p := range s.Processes {
		if _, ok := order[p.Key]; ok {
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b client.Process) int { return cmp.Compare(order[a.Key], order[b.Key]) })
	return all
}

func (v *jobsView) processes(r screen.Rect, s *State, all []client.Process) {
	l := newList(r, withPlaces(processColumns, s))
	byKey := map[client.Key]*client.GPU{}
	for _, g := range s.GPUs {
		byKey[g.Key] = g
	}
	for _, p := range all[min(s.Scroll, max(0, len(all)-l.rows())):] {
		line, ok := l.next()
		if !ok {
			break
		}
		g := shownNow(s, byKey[p.Key])
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
		mark(line, s, g)
	}
}

// shownNow returns g, without its readings where these are too old to be shown.
func shownNow(s *State, g *client.GPU) *client.GPU {
	if age, _ := s.Freshness(g); age == client.Expired {
		return g.Blank()
	}
	return g
}

// withPlaces returns columns with room for what placeWord says: a name of a node that
// leaves none for the index behind it would tell devices apart by nothing.
func withPlaces(columns []listColumn, s *State) []listColumn {
	names := nodeWidth(s)
	if names == 0 {
		return columns
	}
	const index = len("/12.10")
	wide := slices.Clone(columns)
	for i := range wide {
		if wide[i].title == placeTitle {
			wide[i].width = max(wide[i].width, names+index)
		}
	}
	return wide
}

// heldFor writes for how long something was held, "--" where it was not told.
func heldFor(seconds float64) string {
	d := client.Seconds(seconds)
	if d == 0 && seconds != 0 {
		return missing
	}
	return AgeText(d)
}

// nonzero is v, NaN for 0: nothing can be divided by it.
func nonzero(v float64) float64 {
	if v == 0 {
		return math.NaN()
	}
	return v
}

// Key scrolls by pages; the selection moves by the keys that it has everywhere.
func (v *jobsView) Key(key string, s *State) bool {
	switch key {
	case "pgup", "pgdown":
		return scrollKey(key, s)
	}
	return false
}
