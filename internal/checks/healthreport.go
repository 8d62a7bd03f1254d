package checks

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// staleHealth is the greatest age of a reading: that of the oldest reading that a proxy serves,
// and as much again for clocks that differ.
const staleHealth = 10 * time.Minute

// HealthReport is the output of `check health`.
type HealthReport struct {
	Worst canonical.Health `json:"-"`

	State string `json:"state"` // the worst
	// Problem is why not everything is known, and what to do.
	Problem string `json:"problem,omitempty"`
	// Note says if the readings are not live.
	Note     string         `json:"note,omitempty"`
	Switches []switchReport `json:"switches,omitempty"`
	GPUs     []gpuReport    `json:"gpus"`
}

// switchReport is the report on an NVSwitch with fatal SXIDs. It has the state of its condition on the boards.
type switchReport struct {
	Hostname string `json:"hostname"`
	PCIBusID string `json:"pci_bus_id"`
	State    string `json:"state"`
	Action   string `json:"action"`
	Reason   string `json:"reason"`
	state    canonical.Health
}

// gpuReport is the report on a board: a line of text.
type gpuReport struct {
	state canonical.Health
	label string

	Hostname string `json:"hostname"`
	GPU      string `json:"gpu"`
	UUID     string `json:"uuid"`
	State    string `json:"state"`
	// Action is what to do; "" if the proxy does not report it.
	Action     string            `json:"action,omitempty"`
	Conditions []conditionReport `json:"conditions"`
	Reason     string            `json:"reason,omitempty"`
}

// conditionReport is a raised condition.
type conditionReport struct {
	Condition string `json:"condition"`
	State     string `json:"state"`
}

// remedyDoubt is what to do about a GPU of the job that the proxy does not know.
const remedyDoubt = ". If it is lost, start the proxy with --expected-gpus, which reports it as gone; " +
	"if Slurm numbers GPUs differently, check all with --show-all"

// HealthOf reports on the boards that choose selects on a node, of which events, the newest last, are known.
func HealthOf(n *client.Node, events []client.ServedEvent, choose func(*client.Node) client.Selection, now time.Time) *HealthReport {
	problem, nothing := whyUnknown(n, now)
	if nothing {
		return NewHealthReport(nil, problem)
	}
	chosen := choose(n)
	if chosen.Doubt != "" {
		problem = chosen.Doubt + remedyDoubt
	}
	r := NewHealthReport(boardsOf(n, events, chosen.Shown), cmp.Or(chosen.Trouble, problem))
	r.Switches = switchesOf(n, r.GPUs)
	return r
}

// switchesOf returns reports on the switches with fatal SXIDs, if these count on a board.
func switchesOf(n *client.Node, boards []gpuReport) (all []switchReport) {
	state := canonical.HealthOK
	for i := range boards {
		for _, c := range boards[i].Conditions {
			if h := slices.Index(canonical.HealthStates[:], c.State); c.Condition == canonical.CondNVSwitch.String() && h >= 0 {
				state = max(state, canonical.Health(h))
			}
		}
	}
	for _, s := range n.Switches {
		if state != canonical.HealthOK {
			all = append(all, switchReport{s.Hostname, s.PCIBusID, state.String(), canonical.CondNVSwitch.ActionIn(state).String(), s.Text(), state})
		}
	}
	return all
}

// lines returns the reports on switches and boards as lines of text, the worst first, switches before boards.
func (r *HealthReport) lines() (all []gpuReport) {
	for _, s := range r.Switches {
		raised := []conditionReport{{canonical.CondNVSwitch.String(), s.State}}
		label := "NVSwitch " + client.OneLine(s.PCIBusID)
		all = append(all, gpuReport{state: s.state, label: label, State: s.State, Action: s.Action, Conditions: raised, Reason: s.Reason})
	}
	all = append(all, r.GPUs...)
	sortReports(all)
	return all
}

// sortReports puts the worst first.
func sortReports(all []gpuReport) {
	slices.SortStableFunc(all, func(a, b gpuReport) int { return badness[b.state] - badness[a.state] })
}

// whyUnknown returns why nothing, or only part, is known of the GPUs of n; "" if all is.
func whyUnknown(n *client.Node, now time.Time) (problem string, nothing bool) {
	asked, see := n.URL, "the landing page says why"
	if n.URL == client.InProcess {
		if asked, see = "the source", "the log says why"; len(n.Sources) > 0 {
			asked = more(n.Sources[0].Name, len(n.Sources))
		}
	}
	decided := func(g *client.GPU) bool { return !g.Gone || g.Health == canonical.HealthCrit }
	long := func(s client.Source) bool { return s.LongLabels > 0 }
	age, unchanged := now.Sub(n.At), n.Unchanged()
	source, unread := n.Unread()
	nothing = true
	switch {
	case n.Err != "" && n.URL == client.InProcess:
		return n.Err, nothing // it names the source
	case n.Err != "":
		problem = n.Err
	case !n.Up:
		problem = "no source could be read; " + see
	case len(n.GPUs) == 0 && slices.ContainsFunc(n.Sources, long):
		problem = "the reading has no GPU, because labels that identify GPUs are longer than --source.max-label-value; " +
			"the log names one: have the exporter shorten it, or raise the limit"
	case len(n.GPUs) == 0:
		problem = "there is no GPU in the reading; check that the source sees the node's GPUs, and that it is the right one"
	case !slices.ContainsFunc(n.GPUs, decided):
		problem = "the reading has none of the GPUs that were there, as from an exporter that has just started; check that it and nvidia-smi find them"
	case !n.At.IsZero() && age > staleHealth && !slices.ContainsFunc(n.Sources, Replays):
		problem = fmt.Sprintf("the latest reading is %s old; see why its source is no longer read, or correct the clocks", age.Round(time.Second))
	default:
		nothing = false
	}
	switch {
	case nothing:
	case unread > 0:
		problem = fmt.Sprintf("%s could not be read, and its GPUs are not known; %s", more(source, unread), see)
	case unchanged > 0:
		problem = fmt.Sprintf("no value of a source has changed for %s; check that the exporter still collects", unchanged.Round(time.Second))
	case n.Skipped > 0:
		problem = fmt.Sprintf("the answer has %s that cannot be read; check whether a proxy in between changes it", diag.Count(n.Skipped, "line"))
	default:
		return "", false
	}
	return asked + ": " + problem, nothing
}

// Replays reports whether a source is a recording.
func Replays(s client.Source) bool { return s.Backend == "replay" }

// more returns the name of the first of some, and the number of others.
func more(first string, count int) string {
	if first = client.OneLine(first); count == 1 {
		return first
	}
	return fmt.Sprintf("%s and %d more", first, count-1)
}

// boardsOf returns reports on the boards of the shown devices. An instance has the health of its
// board.
func boardsOf(n *client.Node, events []client.ServedEvent, shown []int) []gpuReport {
	board := func(g *client.GPU) [3]string { return [3]string{g.Hostname, g.GPU, g.UUID} }
	chosen := map[[3]string]bool{}
	for _, i := range shown {
		chosen[board(n.GPUs[i])] = true
	}
	var all []gpuReport
	for _, g := range n.GPUs {
		if g.IsInstance() || !chosen[board(g)] {
			continue
		}
		label := "GPU " + g.GPU
		if n.Machines > 1 {
			label = g.Hostname + " " + label
		}
		r := reportOn(g, events, client.OneLine(label))
		for _, s := range n.Switches[:min(1, len(n.Switches))] {
			r.Reason = strings.Replace(r.Reason, g.ConditionText(canonical.CondNVSwitch), s.Text()+" of NVSwitch "+client.OneLine(s.PCIBusID), 1)
		}
		all = append(all, r)
	}
	sortReports(all)
	return all
}

// reportOn returns the report on a board. One that is missing is crit once it is gone.
func reportOn(g *client.GPU, events []client.ServedEvent, label string) gpuReport {
	r := gpuReport{state: g.Health, label: label, Hostname: g.Hostname, GPU: g.GPU, UUID: g.UUID, Conditions: []conditionReport{}, Reason: g.Why()}
	if g.Action < canonical.NumActions {
		r.Action = g.Action.String()
	}
	for _, c := range g.Raised {
		r.Conditions = append(r.Conditions, conditionReport{c.Condition.String(), c.State.String()})
	}
	switch fatal := fatalXID(g, events); {
	case g.Gone && !g.Lost():
		r.state, r.Reason = canonical.HealthUnknown, "it is missing from the latest reading; it is gone if that lasts"
	case g.Lost():
		action, meaning := g.Loss()
		r.Action = cmp.Or(r.Action, action.String())
		r.Reason += prefixed(", ", cmp.Or(fatal, meaning))
		r.Reason += prefixed(", held by ", holdersOf(g))
	case fatal != "":
		r.Reason = strings.Replace(r.Reason, g.ConditionText(canonical.CondXIDFatal), fatal, 1)
	}
	if r.State = r.state.String(); r.state == canonical.HealthUnknown {
		undecided := "no reading decides it"
		if canonical.Given(g.Values[canonical.Temperature]) {
			undecided = "an earlier fault may not be resolved; the proxy's log and landing page say more"
		}
		r.Reason = cmp.Or(r.Reason, undecided)
	}
	return r
}

// holdersOf names the jobs and pods that held a board.
func holdersOf(g *client.GPU) string {
	var names []string
	for _, a := range g.Allocations {
		names = append(names, cmp.Or(prefixed("job ", a.Job), strings.Trim(a.Namespace+"/"+a.Pod, "/"), a.Container))
	}
	slices.Sort(names)
	return client.OneLine(strings.Join(slices.Compact(names), ", "))
}

// prefixed returns text after a prefix, "" for none.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// fatalXID describes the latest fatal XID of a board, with what the driver said beside it, such as
// `XID 149 NVLINK_NETIR_ERROR (NETIR_LINK_EVT Fatal XC0 i0 Link 08)`; "" for none.
func fatalXID(g *client.GPU, events []client.ServedEvent) string {
	resolved := map[uint32]bool{}
	for _, e := range slices.Backward(events) {
		if e.UUID != g.UUID || e.GPU != g.GPU && g.UUID == "" {
			continue
		}
		if e.Kind == canonical.EventResolved {
			resolved[e.Code] = true
		}
		if e.Kind != canonical.EventXID || e.Severity != canonical.SeverityFatal || resolved[e.Code] {
			continue
		}
		row, _ := canonical.XIDOf(e.Code)
		said, _, _ := strings.Cut(e.Text, " (0x") // registers
		text := fmt.Sprintf("fatal XID %d", e.Code)
		text += prefixed(" ", row.Mnemonic)
		if said != "" {
			text += " (" + diag.Line(said, 60) + ")"
		}
		return text
	}
	// The proxy forgets events when it restarts, but not fatal codes.
	text := g.ConditionText(canonical.CondXIDFatal)
	if code, err := strconv.ParseUint(text[strings.LastIndexByte(text, ' ')+1:], 10, 32); err == nil && isFatal(g) {
		row, _ := canonical.XIDOf(uint32(code))
		return text + prefixed(" ", row.Mnemonic)
	}
	return ""
}

func isFatal(g *client.GPU) bool {
	return slices.ContainsFunc(g.Raised, func(c client.RaisedCondition) bool { return c.Condition == canonical.CondXIDFatal })
}

// badness orders states: unknown may be worse than a warning, but must not hide a GPU that is
// crit.
var badness = [canonical.NumHealth]int{
	canonical.HealthOK: 0, canonical.HealthHot: 1, canonical.HealthWarn: 2, canonical.HealthUnknown: 3, canonical.HealthCrit: 4,
}

// NewHealthReport sums up gpus. Without a GPU, or with a problem, the state is unknown unless a
// GPU is crit.
func NewHealthReport(gpus []gpuReport, problem string) *HealthReport {
	r := &HealthReport{Problem: problem, GPUs: append([]gpuReport{}, gpus...)}
	if len(gpus) == 0 {
		r.Problem = cmp.Or(problem, "no GPU is chosen; --show-all looks at all")
	}
	if r.Problem != "" {
		r.Worst = canonical.HealthUnknown
	}
	for i := range gpus {
		if badness[gpus[i].state] > badness[r.Worst] {
			r.Worst = gpus[i].state
		}
	}
	r.State = r.Worst.String()
	return r
}

// WriteJSON writes the report as JSON.
func (r *HealthReport) WriteJSON(out io.Writer) error { return writeJSON(out, r) }

// nagios are the words of the first line, by state, as plugins of Nagios have them.
var nagios = [canonical.NumHealth]string{"OK", "WARNING", "WARNING", "CRITICAL", "UNKNOWN"}

// Summary returns the first line: the worst state, and what to do about each switch and GPU that is in it, and why.
// It leaves out GPUs with no other condition than that of a switch.
func (r *HealthReport) Summary() string {
	var parts []string
	for _, g := range r.lines() {
		ofSwitch := len(r.Switches) > 0 && g.GPU != "" && len(g.Conditions) == 1 && g.Conditions[0].Condition == canonical.CondNVSwitch.String()
		if !ofSwitch && g.state == r.Worst && g.state != canonical.HealthOK {
			todo := ""
			if g.Action != "" && g.Action != canonical.ActionNone.String() {
				todo = g.Action + " "
			}
			parts = append(parts, todo+g.label+prefixed(": ", client.OneLine(g.Reason)))
		}
	}
	switch {
	case r.Worst == canonical.HealthOK:
		parts = []string{diag.Count(len(r.GPUs), "GPU")}
	case len(parts) == 0:
		parts = []string{client.OneLine(r.Problem)}
	}
	return nagios[r.Worst] + " - " + strings.Join(parts, "; ")
}

// WriteText writes the summary, and then a line for each switch and GPU, the worst first: state, index, UUID, action,
// conditions with their states, reason. An empty field is a dash.
func (r *HealthReport) WriteText(out io.Writer) error {
	if _, err := fmt.Fprintln(out, r.Summary()); err != nil {
		return err
	}
	columns := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, g := range r.lines() {
		var conditions []string
		for _, c := range g.Conditions {
			conditions = append(conditions, c.Condition+"="+c.State)
		}
		fmt.Fprintf(columns, "%s\t%s\t%s\t%s\t%s\t%s\n", g.State, g.label, cmp.Or(client.OneLine(g.UUID), "-"), cmp.Or(g.Action, "-"),
			cmp.Or(strings.Join(conditions, ","), "-"), cmp.Or(g.Reason, "-"))
	}
	return columns.Flush()
}

// lineLimit is how much of a plugin's output node-problem-detector keeps by default
// (max_output_length).
const lineLimit = 80

// Line returns the worst state in one line of at most lineLimit bytes.
func (r *HealthReport) Line() string {
	is := func(g gpuReport) bool { return g.state == r.Worst }
	worst := slices.DeleteFunc(r.lines(), func(g gpuReport) bool { return !is(g) })
	count := len(worst)
	first, rest := r.State+": "+r.Problem, ""
	if r.Worst == canonical.HealthOK {
		return diag.Count(count, "GPU") + " ok"
	} else if count > 0 {
		g := &worst[0]
		if first = r.State + ": " + g.label + " " + g.Reason; g.Action != "" && g.Action != canonical.ActionNone.String() {
			rest = " (" + g.Action + ")"
		}
		if count > 1 {
			rest += fmt.Sprintf(", %d more", count-1)
		}
	}
	const dots = "..."
	first = client.OneLine(first)
	if most := lineLimit - len(rest); len(first) > most {
		first = strings.ToValidUTF8(first[:max(0, most-len(dots))], "") + dots
	}
	return first + rest
}
