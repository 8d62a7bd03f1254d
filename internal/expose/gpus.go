package expose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// glancer is a source that shows its last good reading without a new one.
type glancer interface {
	// Glance calls see with the frame, the verdicts and the host of that reading, if any, which see must not keep.
	Glance(see func(*canonical.Snapshot))
}

// gpuView is a row of the landing page.
type gpuView struct {
	Name, Model       string
	Real, Util, Class string
	// State is the health state, or gone.
	State, Conditions, Action string
	Memory, Power, Temp       string
	Holders                   string
	// Line is the path of the device's history, Advice what its class means, and Instance is set for a MIG
	// instance.
	Line, Advice string
	Instance     bool
	key          historyKey
}

// landingStates are the states of boards, worst first.
var landingStates = []string{"gone", "crit", "warn", "hot", "unknown", "ok"}

// stateCount is how many boards are in a state, or how many sources are down.
type stateCount struct {
	State string
	Count string // such as "2 GPUs"
}

// countStates counts the sources that are down, and the boards of all sources by state, worst first.
func countStates(views []sourceView) (counts []stateCount) {
	down := 0
	for _, v := range views {
		if v.State == "down" {
			down++
		}
	}
	if down > 0 {
		counts = append(counts, stateCount{"down", diag.Count(down, "source")})
	}
	for _, state := range landingStates {
		n := 0
		for _, v := range views {
			for i := range v.GPUs {
				is := v.GPUs[i].State
				if v.State == "down" {
					is = canonical.HealthUnknown.String() // the last reading says nothing of now
				}
				if !v.GPUs[i].Instance && is == state {
					n++
				}
			}
		}
		if n > 0 {
			counts = append(counts, stateCount{state, diag.Count(n, "GPU")})
		}
	}
	return counts
}

// worstFirst orders boards by state, each with its instances.
func worstFirst(rows []gpuView) []gpuView {
	var boards [][]gpuView
	for _, row := range rows {
		if n := len(boards); row.Instance && n > 0 {
			boards[n-1] = append(boards[n-1], row)
		} else {
			boards = append(boards, []gpuView{row})
		}
	}
	rank := func(board []gpuView) int { return slices.Index(landingStates, board[0].State) }
	slices.SortStableFunc(boards, func(a, b []gpuView) int { return rank(a) - rank(b) })
	return slices.Concat(boards...)
}

// none is shown for an absent reading.
const none = "–"

// addDevices adds the rows of the last good reading, and of boards that are not in it, worst first.
func (v *sourceView) addDevices(f Source, h *history) {
	g, able := f.(glancer)
	if !able {
		return
	}
	g.Glance(func(s *canonical.Snapshot) {
		for i := range min(s.Frame.Len(), len(s.Verdicts)) {
			row := rowOf(s, i)
			row.key = historyOf(&s.Frame.Topology.Devices[i])
			v.GPUs = append(v.GPUs, row)
		}
		if r := s.Ledger.Roster; r != nil {
			away := slices.Concat(r.Devices[r.Present:], r.Missed)
			for i := range min(len(away), len(s.Ledger.Absences)) {
				if !away[i].IsInstance() {
					v.GPUs = append(v.GPUs, rowOfAbsence(&away[i], &s.Ledger.Absences[i], r.HeldOnly))
				}
			}
		}
	})
	v.GPUs = worstFirst(v.GPUs)
	for i := range v.GPUs { // not within Glance, which holds a lock
		v.GPUs[i].Line = h.line(v.GPUs[i].key)
	}
}

// rowOfAbsence returns the row of a board that is not in the reading, which may list held boards only.
func rowOfAbsence(d *canonical.Device, a *canonical.Absence, heldOnly bool) gpuView {
	v := gpuView{
		Name: nameOf(d), Model: d.Model, Real: none, Util: none, Class: none, State: a.State.String(), Conditions: "missing",
		Memory: none, Power: none, Temp: none, Holders: none,
	}
	switch {
	case a.Gone:
		v.State, v.Conditions = "gone", ""
	case heldOnly:
		v.Conditions = "not held, so not listed"
	}
	if a.XID != 0 {
		v.Conditions = strings.TrimPrefix(fmt.Sprintf("%s, last XID %d", v.Conditions, a.XID), ", ")
	}
	if a.State != canonical.HealthUnknown {
		v.Action = todo(a.Action)
	}
	if a.Holder != nil {
		v.Holders = a.Holder.String()
	}
	return v
}

// todo names an action and says what it is; "" for none.
func todo(a canonical.Action) string {
	if a == canonical.ActionNone {
		return ""
	}
	return a.String() + ": " + canonical.ActionAdvice[a]
}

// nameOf returns the name of a device in a row.
func nameOf(d *canonical.Device) string {
	name := d.GPU
	if d.IsInstance() {
		name += ":" + d.Instance + " " + d.Profile
	}
	if d.Hostname != "" {
		name = d.Hostname + " " + name
	}
	return name
}

// rowOf returns the row of a device.
func rowOf(s *canonical.Snapshot, device int) gpuView {
	d, verdict, row := &s.Frame.Topology.Devices[device], &s.Verdicts[device], s.Frame.Row(device)
	board := s.Frame.Row(d.Board)
	v := gpuView{
		Name: nameOf(d), Model: d.Model,
		Real: percent(verdict.RealUtilization), Util: percent(row[canonical.NVMLUtilization]),
		Class: canonical.Classes[verdict.Class].Title, Advice: canonical.Classes[verdict.Class].Advice,
		State:  s.Verdicts[d.Board].Health.String(),
		Memory: used(row[canonical.FramebufferUsed], row[canonical.FramebufferTotal], 1<<30, "GiB"),
		Power:  none, Temp: none, Holders: heldBy(s, device), Instance: d.IsInstance(),
	}
	if d.Implied {
		v.Class, v.Advice = "in MIG", ""
	}
	if d.IsInstance() {
		return v // the rest is the board's
	}
	v.Power = used(board[canonical.Power], board[canonical.PowerLimit], 1, "W")
	if t := board[canonical.Temperature]; canonical.Given(t) {
		v.Temp = fmt.Sprintf("%.0f °C", t)
	}
	var conditions []string
	for c := range verdict.Findings.Raised.All() {
		if verdict.States[c] != canonical.HealthOK {
			conditions = append(conditions, c.String())
		}
	}
	if len(conditions) > 0 {
		v.Action = todo(verdict.Action)
	}
	if xid := row[canonical.XIDLast]; xid > 0 {
		conditions = append(conditions, fmt.Sprintf("last XID %.0f", xid))
	}
	v.Conditions = strings.Join(conditions, ", ")
	return v
}

// heldBy names the first few holders of a device.
func heldBy(s *canonical.Snapshot, device int) string {
	const most = 3
	var names []string
	if set := s.Frame.AllocationSet; set != nil {
		for i := range set.Allocations {
			if a := &set.Allocations[i]; a.Device == device && len(names) < most {
				names = append(names, a.String())
			}
		}
	}
	if more := holdersOf(s, device) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return cmp.Or(strings.Join(names, ", "), none)
}

// percent formats a fraction in percent.
func percent(fraction float64) string {
	if !canonical.Given(fraction) {
		return none
	}
	return fmt.Sprintf("%.0f %%", 100*fraction)
}

// used formats a value and, if given, its total, both divided by unit.
func used(value, of, unit float64, name string) string {
	switch {
	case !canonical.Given(value):
		return none
	case !canonical.Given(of):
		return fmt.Sprintf("%.0f %s", value/unit, name)
	}
	return fmt.Sprintf("%.0f of %.0f %s", value/unit, of/unit, name)
}
