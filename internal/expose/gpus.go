package expose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// glancer is a source that shows its last good reading without a new one.
type glancer interface {
	// Glance calls see with the frame and verdicts of that reading, if any, which see must not keep.
	Glance(see func(*canonical.Snapshot))
}

// gpuView is a row of the landing page.
type gpuView struct {
	Name, Model       string
	Real, Util, Class string
	// State is the health state, or gone.
	State, Conditions, Action string
	Memory, Power             string
	Holders                   string
}

// none is shown for an absent reading.
const none = "–"

// addDevices adds the rows of the last good reading, and of boards that are gone.
func (v *sourceView) addDevices(f Source) {
	if g, able := f.(glancer); able {
		g.Glance(func(s *canonical.Snapshot) {
			for i := range min(s.Frame.Len(), len(s.Verdicts)) {
				v.GPUs = append(v.GPUs, rowOf(s, i))
			}
		})
	}
	for _, gone := range slices.Concat(v.Gone, v.Named, v.Missed) {
		v.GPUs = append(v.GPUs, gpuView{nameOf(&gone), gone.Model, none, none, none, "gone", "", canonical.ActionIfGone.String(), none, none, none})
	}
}

// nameOf returns the name of a device in a row.
func nameOf(d *canonical.Device) string {
	name := d.GPU
	if d.IsInstance() {
		name += "." + d.Instance + " " + d.Profile
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
		Class:  canonical.Classes[verdict.Class].Title,
		State:  s.Verdicts[d.Board].Health.String(),
		Memory: used(row[canonical.FramebufferUsed], row[canonical.FramebufferTotal], 1<<30, "GiB"),
		Power:  none, Holders: heldBy(s, device),
	}
	if d.Implied {
		v.Class = "in MIG"
	}
	if d.IsInstance() {
		return v // the rest is the board's
	}
	v.Power = used(board[canonical.Power], board[canonical.PowerLimit], 1, "W")
	var conditions []string
	for c := range verdict.Findings.Raised.All() {
		if verdict.States[c] != canonical.HealthOK {
			conditions = append(conditions, c.String())
		}
	}
	v.Conditions = strings.Join(conditions, ", ")
	if len(conditions) > 0 {
		v.Action = verdict.Action.String()
	}
	return v
}

// heldBy names the first few holders of a device.
func heldBy(s *canonical.Snapshot, device int) string {
	const most = 3
	var names []string
	if set := s.Frame.AllocationSet; set != nil {
		for i := range set.Allocations {
			if a := &set.Allocations[i]; a.Device == device && len(names) < most {
				names = append(names, holderOf(a))
			}
		}
	}
	if more := holdersOf(s, device) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return cmp.Or(strings.Join(names, ", "), none)
}

// holderOf names an allocation.
func holderOf(a *canonical.Allocation) string {
	var parts []string
	if a.Job != "" {
		parts = append(parts, "job", a.Job, a.User)
	}
	if a.Pod != "" {
		parts = append(parts, strings.Trim(a.Namespace+"/"+a.Pod, "/"))
	}
	if a.Name != "" {
		parts = append(parts, "("+strings.TrimSpace(a.Kind+" "+a.Name)+")")
	}
	return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
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
