package checks

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// The size of the text, of its bars, and the least of it for GPUs.
const textRows, textColumns, barWidth, leastRows = 24, 80, 20, 4

// saturated says what saturating work scores with the default weights, as measured on an H200.
const saturated = "reachable: GEMM 77, copy 61, FP32 44 %"

// Text returns the report in at most 24 lines of 80 columns. The last of many GPUs are summed up.
func (r *JobReport) Text() string {
	var tail []string
	line := func(name, format string, values ...any) {
		tail = append(tail, diag.Line(fmt.Sprintf("%-11s "+format, append([]any{name}, values...)...), textColumns))
	}
	owner := prefixed(" of ", r.User) + prefixed(", account ", r.Account) + prefixed(", partition ", r.Partition) + prefixed(" in ", r.Namespace)
	line("job", "%s%s", r.Job, owner)
	line("held", "%s on %s, %s", r.devices(), diag.Count(r.distinct(func(g *jobGPU) string { return g.Hostname }), "node"), r.times())
	s := &r.Sum
	line("GPU-hours", "%s held, %s utilized, %s unused, of which %s idle", digits(s.Held), digits(s.Utilized), digits(s.Unused), digits(s.Idle))
	line("real util", "%s  %s", bar(s.Real), saturated)
	if !s.NVML.IsZero() {
		line("GPU-Util", "%s  of the time some kernel ran", bar(s.NVML))
	}
	if g := r.fullest(); g != nil {
		used, when := g.memory()
		line("memory", "%s  %s, %s of %s GiB on %s", bar(used/g.Total), when, gibibytes(used), gibibytes(g.Total), g.name())
	}
	if !s.Energy.IsZero() {
		line("energy", "%s kWh, %s W for each GPU on average", digits(s.Energy/3.6e6), digits(s.Power))
	}
	line("classes", "%s", s.classes())
	head := tail
	tail = nil
	if faults := r.faults(); faults != "" {
		line("faults", "%s", faults)
	}
	if !r.Earlier.IsZero() {
		line("not in it", "an earlier run of the same name, which ended by %s", clock(r.Earlier))
	}
	for i, m := range r.Missing {
		if i > 0 {
			line("", "and %s more", diag.Count(len(r.Missing)-1, "node"))
			break
		}
		line("missing", "%s", m.Node+": "+m.Problem)
	}
	for _, found := range r.Findings {
		tail = append(tail, wrapped("- ", found.Text)...)
	}
	return strings.Join(slices.Concat(head, r.table(max(leastRows, textRows-len(head)-len(tail))), tail), "\n") + "\n"
}

// devices names the GPUs, such as 8 H200.
func (r *JobReport) devices() string {
	if model := r.GPUs[0].Model; model != "" && r.distinct(func(g *jobGPU) string { return g.Model }) == 1 {
		return fmt.Sprintf("%d %s", len(r.GPUs), strings.TrimPrefix(model, "NVIDIA "))
	}
	return diag.Count(len(r.GPUs), "GPU")
}

// times says when the job held GPUs.
func (r *JobReport) times() string {
	took := hours(r.Seconds)
	switch {
	case r.Seconds == 0 && r.Source == fromProxies && slices.ContainsFunc(r.GPUs, func(g jobGPU) bool { return g.Shared }):
		return "shared with others, so its age is not known"
	case r.Source == fromProxies && slices.ContainsFunc(r.GPUs, func(g jobGPU) bool { return g.Now != nil }):
		return took + " so far"
	case r.Source == fromProxies:
		return took + ", and it is over"
	case r.End.IsZero():
		return "since " + clock(r.Begin) + ", " + took
	}
	end := r.End.Local().Format("01-02 15:04")
	if r.Begin.Local().Format(time.DateOnly) == r.End.Local().Format(time.DateOnly) {
		_, end, _ = strings.Cut(end, " ")
	}
	return clock(r.Begin) + " to " + end + ", " + took
}

// table returns a line for each GPU, at most most with the title.
func (r *JobReport) table(most int) []string {
	name, shown, util := len("GPU"), len(r.GPUs), "GPU-UTIL"
	for i := range r.GPUs {
		name = min(16, max(name, len(r.GPUs[i].name())))
	}
	if shown >= most {
		shown = most - 2
	}
	if r.Source == fromProxies {
		util = "UTIL NOW"
	}
	lines := []string{fmt.Sprintf("%-*s  %-*s  %6s  %8s  %6s  %6s", name, "GPU", barWidth+8, "REAL UTIL", "IDLE", util, "MEMORY", "POWER")}
	for i := range r.GPUs[:shown] {
		g := &r.GPUs[i]
		nvml := g.NVML
		if g.Now != nil && nvml.IsZero() {
			nvml = g.Now.NVML
		}
		used, _ := g.memory()
		lines = append(lines, fmt.Sprintf("%-*s  %s  %6s  %8s  %6s  %4s W", name, diag.Short(g.name(), name), bar(g.Real), percent(g.share(canonical.Idle)),
			percent(nvml), percent(used/g.Total), digits(g.Power)))
	}
	if rest := r.GPUs[shown:]; len(rest) > 0 {
		of := sumOf(rest)
		lines = append(lines, fmt.Sprintf("%-*s  %s  %6s", name, fmt.Sprintf("%d more", len(rest)), bar(of.Real), percent(of.share(canonical.Idle))))
	}
	return lines
}

// faults lists the conditions and XIDs of the first GPUs that have any.
func (r *JobReport) faults() string {
	var all []string
	for i := range r.GPUs {
		own := ""
		for _, c := range r.GPUs[i].Conditions {
			own += " " + c.Condition + "=" + c.State
		}
		for _, code := range r.GPUs[i].XIDs {
			own += fmt.Sprintf(" XID=%d", code)
		}
		if own != "" {
			all = append(all, r.GPUs[i].name()+own)
		}
	}
	if len(all) > 2 {
		all = append(all[:1], fmt.Sprintf("%d GPUs more", len(all)-1))
	}
	return strings.Join(all, "; ")
}

// Comment returns the report in one line.
func (r *JobReport) Comment() string {
	s := &r.Sum
	text := fmt.Sprintf("kpulse: job %s held %s GPU-hours on %s, %s unused; real utilization %s", r.Job, digits(s.Held), diag.Count(len(r.GPUs), "GPU"), digits(s.Unused), percent(s.Real))
	if !s.NVML.IsZero() {
		text += ", GPU-Util " + percent(s.NVML)
	}
	if g := r.fullest(); g != nil && !g.Peak.IsZero() {
		text += ", memory " + percent(g.Peak/g.Total)
	}
	if !s.Energy.IsZero() {
		text += ", " + digits(s.Energy/3.6e6) + " kWh"
	}
	if len(r.Missing) > 0 {
		text += ", " + diag.Count(len(r.Missing), "node") + " missing"
	}
	for i, found := range r.Findings {
		text += []string{"; advice: ", ", "}[min(i, 1)] + found.Name
	}
	return client.OneLine(text)
}

// distinct returns how many values GPUs have.
func (r *JobReport) distinct(of func(*jobGPU) string) int {
	values := map[string]bool{}
	for i := range r.GPUs {
		values[of(&r.GPUs[i])] = true
	}
	return len(values)
}

// memory returns the memory to show, of the whole life or of now.
func (g *jobGPU) memory() (used reading, when string) {
	if g.Now != nil && g.Peak.IsZero() {
		return g.Now.Memory, "now"
	}
	return g.Peak, "peak"
}

// fullest returns the GPU with the greatest share of its memory used; nil if that is known of none.
func (r *JobReport) fullest() (fullest *jobGPU) {
	most := reading(-1)
	for i := range r.GPUs {
		if used, _ := r.GPUs[i].memory(); used/r.GPUs[i].Total > most {
			most, fullest = used/r.GPUs[i].Total, &r.GPUs[i]
		}
	}
	return fullest
}

// classes lists the classes with the most hours.
func (u *usage) classes() string {
	const most = 3
	var order []canonical.Class
	for c := range canonical.NumClasses {
		if u.share(c) >= 0.01 {
			order = append(order, c)
		}
	}
	slices.SortStableFunc(order, func(a, b canonical.Class) int { return cmp.Compare(u.share(b), u.share(a)) })
	text := ""
	for _, c := range order[:min(most, len(order))] {
		text += ", " + canonical.Classes[c].Title + " " + percent(u.share(c))
	}
	if rest := order[min(most, len(order)):]; len(rest) > 0 {
		text += ", others " + percent(u.share(rest...))
	}
	return strings.TrimPrefix(text, ", ")
}

// bar draws a share, such as [|||||     ]  44 %.
func bar(share reading) string {
	filled := 0
	if share > 0 {
		filled = min(barWidth, int(math.Round(float64(share)*barWidth)))
	}
	return fmt.Sprintf("[%-*s] %5s", barWidth, strings.Repeat("|", filled), percent(share))
}

// percent returns a share such as 44 %, -- if it is not known. One above 0 is never 0 %.
func percent(share reading) string {
	switch {
	case share.IsZero():
		return "--"
	case share > 0 && share < 0.005:
		return "<1 %"
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

// digits returns a number with three significant digits, or all of those before the point, -- if it is not known.
func digits(v reading) string {
	switch {
	case v.IsZero():
		return "--"
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v > 0 && v < 0.001:
		return "<0.001"
	}
	return fmt.Sprintf("%.3g", v)
}

// gibibytes returns bytes as GiB, hours a time in minutes or hours, clock a time of this machine's zone.
func gibibytes(bytes reading) string { return fmt.Sprintf("%.0f", bytes/(1<<30)) }

func hours(seconds float64) string {
	switch {
	case seconds < 60:
		return fmt.Sprintf("%.0f s", seconds)
	case seconds < 3600:
		return fmt.Sprintf("%.0f min", seconds/60)
	}
	return fmt.Sprintf("%.1f h", seconds/3600)
}

func clock(at time.Time) string { return at.Local().Format("2006-01-02 15:04") }

// wrapped returns a text in lines of at most 80 columns, the first after a mark.
func wrapped(mark, text string) (lines []string) {
	line := mark
	for word := range strings.FieldsSeq(text) {
		switch {
		case len(line) == len(mark):
		case len(line)+1+len(word) > textColumns:
			lines, line = append(lines, line), strings.Repeat(" ", len(mark))
		default:
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
