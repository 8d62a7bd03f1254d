package e2e

import (
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute/computetest"
)

// faults are the times at which programs failed with a code on a board.
type faults struct {
	last  time.Time   // also on other boards
	alone []time.Time // incidents of this board alone, in order
}

// programs are the codes in stories that programs cause.
var programs = []int{13, 31, 94}

// blame records the program failures of this reading. A code that recurs within ten seconds is the
// same incident. If another present board of the node had it within a minute, the program is at
// fault on both.
func (c *chronicle) blame(at time.Time) {
	for _, code := range programs {
		failed := map[*past]bool{}
		for _, d := range c.boards() {
			if h := d.history; len(h) < 2 || !slices.Contains(computetest.Came(h), code) {
				continue
			}
			failed[d] = true
			if d.faults[code] == nil {
				d.faults[code] = &faults{}
			}
			f := d.faults[code]
			if at.Sub(f.last) >= 10*time.Second {
				f.alone = append(f.alone, at)
			}
			f.last = at
		}
		for d := range failed {
			for _, other := range c.boards() {
				if f := other.faults[code]; other != d && f != nil && at.Sub(f.last) <= time.Minute {
					d.faults[code].acquit(at)
					f.acquit(at)
				}
			}
		}
	}
}

// boards returns the boards that are present; all are of one node.
func (c *chronicle) boards() (all []*past) {
	for _, d := range c.devices {
		if d.left.IsZero() && d.id.instance == "" {
			all = append(all, d)
		}
	}
	return all
}

// acquit drops incidents within a minute of at.
func (f *faults) acquit(at time.Time) {
	f.alone = slices.DeleteFunc(f.alone, func(t time.Time) bool { return at.Sub(t) <= time.Minute })
}

// today returns the number of incidents within 24 hours.
func (f *faults) today(at time.Time) (n int) {
	for _, t := range f.alone {
		if at.Sub(t) <= 24*time.Hour {
			n++
		}
	}
	return n
}

// blameBoard raises xid_repeated on a board that had a code five times within 24 hours, if no other
// board had it three times.
func (c *chronicle) blameBoard(d *past, at time.Time) {
	for code, f := range d.faults {
		others := 0
		for _, other := range c.boards() {
			if g := other.faults[code]; other != d && g != nil {
				others = max(others, g.today(at))
			}
		}
		if f.today(at) >= 5 && others < 3 {
			d.found[canonical.CondXIDRepeated] = "warn"
			if d.state != "crit" {
				d.state = "warn"
			}
		}
	}
}

// actions are the recommended actions, mildest first.
var actions = []string{"none", "restart_application", "check_hardware", "reset_gpu", "restart_vm", "reboot_node", "replace"}

// askedBy is the action that a raised condition asks for, by state where that matters. For other
// conditions the driver and the codes decide.
var askedBy = map[string]string{
	"row_remap_failure": "replace", "uncorrectable_remapped_rows": "check_hardware", "pcie_replay": "check_hardware",
	"gpu_temperature": "check_hardware", "memory_temperature": "check_hardware",
	"ecc_double_bit": "reset_gpu", "row_remap_pending": "reset_gpu", "retired_pages_pending": "reboot_node",
	"memory_worn crit": "replace", "memory_worn warn": "check_hardware",
	"thermal_slowdown": "check_hardware", "power_brake": "check_hardware", "nvlink_errors": "check_hardware",
	"nvlink_down": "reset_gpu", "fabric": "check_hardware",
}

// drivers are the actions that the driver asks for, by its recovery action.
var drivers = []string{"none", "reset_gpu", "reboot_node", "restart_application", "reset_gpu", "check_hardware"}

// asks returns the action for a board: the gravest that its conditions ask for. The driver's
// overrides those of XIDs.
func (d *past) asks() string {
	codes, most := "none", "none"
	raise := func(action *string, to string) {
		if slices.Index(actions, to) > slices.Index(actions, *action) {
			*action = to
		}
	}
	for i, state := range d.found {
		if state == "absent" || state == "clear" {
			continue
		}
		switch name := canonical.Condition(i).String(); name {
		case "xid_repeated":
			raise(&codes, "check_hardware")
		case "xid_fatal":
			for _, code := range computetest.XIDs(d.history).Fatal {
				action := map[int]string{79: "reboot_node", 151: "restart_vm"}[code]
				if action == "" {
					action = "reset_gpu"
				}
				raise(&codes, action)
			}
		case "xid_recent":
			for _, code := range computetest.XIDs(d.history).Warned {
				if slices.Contains([]int{54, 74, 144, 145, 146, 149, 150, 154, 166, 167, 168, 169, 170, 171, 172, 173}, code) {
					raise(&codes, "check_hardware")
				}
			}
		default:
			raise(&most, askedBy[name])
			raise(&most, askedBy[name+" "+state])
		}
	}
	if v := d.readings[canonical.RecoveryAction]; v > 0 {
		codes = "check_hardware"
		if int(v) < len(drivers) {
			codes = drivers[int(v)]
		}
	}
	raise(&most, codes)
	return most
}
