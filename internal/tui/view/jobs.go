package view

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// holding is a device and one of its allocations or processes. The device has no readings if they
// have expired.
type holding struct {
	gpu *client.GPU
	*client.Allocation
	*client.Process
}

// ofDevice returns the column of a reading of the whole device, whose title has an asterisk.
func ofDevice(title string, width int, m client.Metric) column[holding] {
	of := readingColumn(title, width, 0, m)
	return numeric(title, width, func(s *State, h holding) piece { return of.cell(s, h.gpu) })
}

// deviceColumn is the column of the name of a device, classColumn that of its class.
func deviceColumn(s *State) column[holding] {
	const index = len("/12:10")
	w := nodeWidth(s)
	return text("GPU", max(10, w+index), func(s *State, h holding) piece {
		if w == 0 {
			return piece{h.gpu.ID(), styleStrong}
		}
		return piece{ellipsize(h.gpu.Hostname, w) + "/" + h.gpu.ID(), styleStrong}
	})
}

var classColumn = text("CLASS*", shortClass, func(_ *State, h holding) piece { return piece{classOf(h.gpu).Short, classOf(h.gpu).style} })

func allocationColumns(s *State) []column[holding] {
	return []column[holding]{
		deviceColumn(s),
		ofDevice("REAL*", widthPercent, client.MetricReal),
		ofDevice("UTIL*", 5, client.MetricNVML),
		ofDevice("MEM*", widthWhole, client.MetricMemory),
		ofDevice("POWER*", 6, client.MetricPower),
		numeric("MEAN", widthPercent, func(s *State, h holding) piece {
			if freshness, _ := s.Freshness(h.gpu); !(h.KnownSeconds > 0) || freshness == client.Expired {
				return piece{missing, styleFaint}
			}
			return number(h.UtilizedSeconds/h.KnownSeconds, percent, stylePlain)
		}),
		numeric("TIME", 5, func(s *State, h holding) piece {
			d := client.Seconds(h.Seconds)
			if freshness, _ := s.Freshness(h.gpu); freshness == client.Expired || d == 0 && h.Seconds != 0 {
				return piece{missing, styleLabel}
			}
			return piece{AgeText(d), styleLabel}
		}),
		classColumn,
		text("NAMESPACE", 14, func(_ *State, h holding) piece { return piece{h.Namespace, styleLabel} }),
		text("JOB", 12, func(_ *State, h holding) piece { return piece{cmp.Or(h.Job, h.Name), stylePlain} }),
		text("BY", 20, func(_ *State, h holding) piece { return piece{h.Owner(), stylePlain} }),
		text("CONTAINER", 12, func(_ *State, h holding) piece { return piece{h.Container, styleLabel} }),
		rest("POD", func(_ *State, h holding) piece { return piece{h.Pod, stylePlain} }),
	}
}

// ofProcess are the columns of a process on a device that is shown besides.
var ofProcess = []column[holding]{
	numeric("PID", 8, func(_ *State, h holding) piece { return piece{strconv.Itoa(h.PID), styleStrong} }),
	text("USER", 12, func(_ *State, h holding) piece { return piece{cmp.Or(h.Process.User, missing), stylePlain} }),
	numeric("GiB", 8, func(_ *State, h holding) piece { return number(h.MemoryUsed, gibibytes, stylePlain) }),
	rest("COMMAND", func(_ *State, h holding) piece { return piece{cmp.Or(h.Command, missing), styleLabel} }),
}

func processColumns(s *State) []column[holding] {
	return []column[holding]{
		ofProcess[0], ofProcess[1],
		deviceColumn(s),
		ofProcess[2],
		ofDevice("REAL*", widthPercent, client.MetricReal),
		ofDevice("UTIL*", 5, client.MetricNVML),
		classColumn,
		text("GROUP", 12, func(_ *State, h holding) piece { return piece{cmp.Or(h.Process.Group, missing), styleLabel} }),
		ofProcess[3],
	}
}

// drawJobs lists the allocations and then the processes, if the nodes list these, below the job
// that the program was started in.
func drawJobs(r screen.Rect, s *State) {
	r = r.Inset(1, 0)
	const jobFrom = 12 // the least height with the job
	if r.H >= jobFrom {
		r = r.Sub(0, drawJob(r, s.Job), r.W, r.H)
	}
	var allocations, processes []holding
	for _, g := range s.GPUs {
		for i := range g.Allocations {
			allocations = append(allocations, holding{gpu: s.current(g), Allocation: &g.Allocations[i]})
		}
		for i := range s.Processes {
			if s.Processes[i].Key == g.Key {
				processes = append(processes, holding{gpu: s.current(g), Process: &s.Processes[i]})
			}
		}
	}
	upper := r.H - 1
	if len(processes) > 0 || s.ProcessesErr != "" || s.Processes != nil {
		upper = min(max(len(allocations), 1)+2, max(4, r.H/2))
	}
	if len(allocations) == 0 {
		r.Text(0, 1, r.W, "No allocation is read. Allocations come from the pod and job labels of the exporter.", styleLabel)
	} else {
		first := scrollTo(s, len(allocations), upper-1)
		drawHoldings(r.Sub(0, 0, r.W, upper), s, allocationColumns(s), allocations, first)
	}
	below := r.Sub(0, upper, r.W, r.H-upper-1)
	switch {
	case len(processes) > 0:
		drawHoldings(below, s, processColumns(s), processes, min(s.Scroll, max(0, len(processes)-below.H+1)))
	case s.ProcessesErr != "":
		below.Text(0, 0, below.W, s.ProcessesErr, styleFaint)
	case s.Processes != nil:
		below.Text(0, 0, below.W, "No process runs on these GPUs.", styleLabel)
	}
	r.Text(0, r.H-1, r.W, "* of the device, shared by all its jobs", styleFaint)
}

// drawHoldings draws a table without columns that are empty in all rows.
func drawHoldings(r screen.Rect, s *State, columns []column[holding], rows []holding, first int) {
	columns = slices.DeleteFunc(columns, func(c column[holding]) bool {
		return !slices.ContainsFunc(rows, func(h holding) bool { p := c.cell(s, h); return p.text != "" && p.text != missing })
	})
	drawTable(r, s, columns, rows[first:], func(line screen.Rect, h holding) int {
		line = line.Row(0)
		if freshness, _ := s.Freshness(h.gpu); freshness == client.Stale {
			line.Dim(styleFaint)
		}
		hitLine(line, s, h.gpu)
		return 0
	})
}

// jobsKey scrolls by pages; other keys move the selection, as in all views.
func jobsKey(key string, s *State) bool {
	return (key == "pgup" || key == "pgdn") && scrollKey(key, s)
}

// jobWords makes words of the names of a job's variables.
var jobWords = strings.NewReplacer("job_id", "job", "step_id", "step", "task_id", "task", "job_name", "name", "_", " ")

// drawJob writes the job that the program was started in into the first rows of r, and returns the number
// of rows.
func drawJob(r screen.Rect, job []canonical.Variable) int {
	const title, most = "started in ", 3 // rows
	if len(job) == 0 || r.Empty() {
		return 0
	}
	pairs := make([]string, 0, 2*len(job))
	for _, v := range job {
		pairs = append(pairs, jobWords.Replace(v.Name), v.Value)
	}
	return drawPairs(r.Sub(r.Text(0, 0, r.W, title, styleFaint), 0, r.W, most), pairs...)
}
