package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

func (f *fake) discovery(set map[string]string) status {
	if _, hierarchy := set["-c"]; hierarchy {
		f.hierarchy()
		return ok
	}
	_, all := set["-a"]
	f.boards(all)
	if refused, is := f.failure(dcgmtest.SwitchesRefused, "discovery"); is {
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

// boards prints the table of boards, with lost ones only if all is set.
func (f *fake) boards(all bool) {
	const null = "<<<NULL>>>" // is printed for a text that the driver does not provide
	between := rule("-", 8, 70)
	text, found, note := between+cells("GPU ID", 8, "Device Information", 70), 0, ""
	for _, gpu := range f.scenario.GPUs {
		lines := []string{"Name: " + gpu.Name, "PCI Bus ID: " + gpu.BusID, "Device UUID: " + gpu.UUID}
		if gpu.Lost {
			note = "Note: Use -a flag to show all GPUs, including those that are not active.\n"
			lines = []string{"Status: LOST", "Name: " + null + " (last known)", "PCI Bus ID: " + null + " (last known)", "Device UUID: " + null}
			if !all {
				continue
			}
		}
		found++
		text += between
		left := fmt.Sprint(gpu.Index)
		for _, line := range lines {
			text += cells(left, 8, line, 70)
			left = ""
		}
	}
	kind := "Active"
	if all {
		kind, note = "All", ""
	}
	f.printf("%d GPU%s found (%s).\n%s%s%s", found, map[bool]string{true: "", false: "s"}[found == 1], kind, note, text, between)
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

// together are the profiling fields of a GPU that counts all at once, from Hopper on, which are all in group A.0, and
// inTurns are the groups of an A100, as printed by EAR, a public program.
const (
	together = "A.0 1001 1002 1003 1004 1005 1006 1007 1008 1009 1010 1011 1012 1013 1014 1015 1016"
	inTurns  = "A.1 1002 1003 1004 1006\nA.2 1008 1013 1014\nA.3 1007\nB.0 1005\nC.0 1009 1010\nD.0 1001\nE.0 1011 1012"
)

// profile prints the profiling fields of one board.
func (f *fake) profile(set map[string]string) status {
	groups := inTurns
	for _, gpu := range f.scenario.GPUs {
		if gpu.Index == number(cmp.Or(set["-i"], "0")) && strings.Contains(gpu.Name, "H100") {
			groups = together
		}
	}
	rule := rule("-", 16, 10, 54)
	f.printf("%s| Group.Subgroup | Field ID | Field Tag                                            |\n%s", rule, rule)
	for group := range strings.Lines(groups) {
		words := strings.Fields(group)
		for _, id := range words[1:] {
			f.printf("| %-14s | %-8s | %-52s |\n", words[0], id, "field_"+id)
		}
	}
	f.printf("%s", rule)
	return ok
}
