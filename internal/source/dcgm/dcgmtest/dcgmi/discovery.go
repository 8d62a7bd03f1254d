package main

import (
	"fmt"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

func (f *fake) discovery(set map[string]string) status {
	if _, hierarchy := set["-c"]; hierarchy {
		f.hierarchy()
		return ok
	}
	if refused, is := f.failure(dcgmtest.ListRefused, "discovery", false); is {
		f.printf("Error: Cannot get GPU list from remote node. Return: %s\n", status(refused.Code))
		return status(refused.Code)
	}
	_, all := set["-a"]
	f.boards(all && f.release.Since("4.5.0"))
	if refused, is := f.failure(dcgmtest.SwitchesRefused, "discovery", false); is {
		f.printf("Error: Cannot get NvSwitch list from remote node. Return: %s\n", status(refused.Code))
		return status(refused.Code)
	}
	f.printf("0 NvSwitches found.\n%s| Switch ID |\n%s%s", rule("-", 11), rule("-", 11), rule("-", 11))
	return ok
}

// rule returns a line of c as wide as the columns, and cells one of two texts.
func rule(c string, widths ...int) string {
	line := "+"
	for _, width := range widths {
		line += strings.Repeat(c, width) + "+"
	}
	return line + "\n"
}

func cells(left string, widthLeft int, right string, widthRight int) string {
	return fmt.Sprintf("| %-*s | %-*s |\n", widthLeft-2, left, widthRight-2, right)
}

// boards prints the table of boards, from 4.5 on with lost ones only if all is set.
func (f *fake) boards(all bool) {
	const null = "<<<NULL>>>" // is printed for a text that the driver does not provide
	between := rule("-", 8, 70)
	text, found, inactive := between+cells("GPU ID", 8, "Device Information", 70), 0, false
	for _, gpu := range f.scenario.GPUs {
		known, lines := "", []string(nil)
		if gpu.Lost {
			gpu.Name, gpu.BusID, gpu.UUID = null, null, null
		}
		if gpu.Lost && f.release.Since("4.5.0") {
			known, lines, inactive = " (last known)", []string{"Status: LOST"}, true
			if !all {
				continue
			}
		}
		found++
		text += between
		for i, line := range append(lines, "Name: "+gpu.Name+known, "PCI Bus ID: "+gpu.BusID+known, "Device UUID: "+gpu.UUID) {
			left := ""
			if i == 0 {
				left = fmt.Sprint(gpu.Index)
			}
			text += cells(left, 8, line, 70)
		}
	}
	plural := map[bool]string{true: "", false: "s"}[found == 1]
	switch {
	case all:
		f.printf("%d GPU%s found (All).\n", found, plural)
	case f.release.Since("4.5.0"):
		f.printf("%d GPU%s found (Active).\n", found, plural)
		if inactive {
			f.printf("Note: Use -a flag to show all GPUs, including those that are not active.\n")
		}
	default:
		f.printf("%d GPU%s found.\n", found, plural)
	}
	f.printf("%s%s", text, between)
}

// hierarchy prints the tree of MIG instances, for the boards that have any.
func (f *fake) hierarchy() {
	const left, right = 19, 68
	f.printf("%s| %-*s|\n%s", rule("-", left, right), left+right, "Instance Hierarchy", rule("=", left, right))
	first := true
	for _, gpu := range f.scenario.GPUs {
		if len(gpu.Instances) == 0 {
			continue
		}
		if !first {
			f.printf("%s", rule("-", left, right))
		}
		first = false
		node := func(name, what string, entity int) {
			f.printf("%s", cells(name, left, fmt.Sprintf("%s (EntityID: %d)", what, entity), right))
		}
		node(fmt.Sprintf("GPU %d", gpu.Index), "GPU "+gpu.UUID, gpu.Index)
		for _, i := range gpu.Instances {
			node(fmt.Sprintf("-> I %d/%d", gpu.Index, i.ID), "GPU Instance", i.Entity)
			node(fmt.Sprintf("   -> CI %d/%d/0", gpu.Index, i.ID), "Compute Instance", i.Entity)
		}
	}
	f.printf("%s", rule("-", left, right))
}
