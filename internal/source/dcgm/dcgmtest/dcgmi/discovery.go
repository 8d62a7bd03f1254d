package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

func (f *fake) discovery(set map[string]string) status {
	if _, hierarchy := set["-c"]; hierarchy {
		f.printHierarchy()
		return ok
	}
	if refused, is := f.failure(dcgmtest.ListRefused, "discovery", false); is {
		f.printf("Error: Cannot get GPU list from remote node. Return: %s\n", status(refused.Code))
		return status(refused.Code)
	}
	_, all := set["-a"]
	f.printBoards(all && f.release.Since("4.5.0"))
	if refused, is := f.failure(dcgmtest.SwitchesRefused, "discovery", false); is {
		f.printf("Error: Cannot get NvSwitch list from remote node. Return: %s\n", status(refused.Code))
		return status(refused.Code)
	}
	f.printf("0 NvSwitches found.\n%s", table([]string{"Switch ID"}, nil, 11))
	if f.release.Since("4.2.3") {
		f.printf("0 ConnectX found.\n%s", table([]string{"ConnectX"}, nil, 10))
	}
	if f.release.Since("3.3.9") {
		f.printf("0 CPUs found.\n%s", table([]string{"CPU ID", "Device Information"}, nil, 8, 70))
	}
	return ok
}

// null is printed for a text that the driver does not provide.
const null = "<<<NULL>>>"

// printBoards prints the table of boards, from 4.5 on with lost ones only if all is set.
func (f *fake) printBoards(all bool) {
	var sections [][][]string
	inactive := 0
	for _, gpu := range f.scenario.GPUs {
		suffix := ""
		if gpu.Lost {
			gpu.Name, gpu.BusID, gpu.UUID = null, null, null
		}
		lost := gpu.Lost && f.release.Since("4.5.0")
		if lost {
			inactive++
			if !all {
				continue
			}
			suffix = " (last known)"
		}
		section := [][]string{{"", "Name: " + gpu.Name + suffix}, {"", "PCI Bus ID: " + gpu.BusID + suffix}, {"", "Device UUID: " + gpu.UUID}}
		if lost {
			section = slices.Insert(section, 0, []string{"", "Status: LOST"})
		}
		section[0][0] = strconv.Itoa(gpu.Index)
		sections = append(sections, section)
	}
	f.printf("%d %s found", len(sections), plural(len(sections), "GPU", "GPUs"))
	switch {
	case all:
		f.printf(" (All).\n")
	case f.release.Since("4.5.0"):
		f.printf(" (Active).\n")
		if inactive > 0 {
			f.printf("Note: Use -a flag to show all GPUs, including those that are not active.\n")
		}
	default:
		f.printf(".\n")
	}
	f.printf("%s", table([]string{"GPU ID", "Device Information"}, sections, 8, 70))
}

func plural(n int, single, many string) string {
	if n == 1 {
		return single
	}
	return many
}

// printHierarchy prints the tree of MIG instances, for the boards that have any.
func (f *fake) printHierarchy() {
	const left, right = 19, 68
	f.printf("%s", rule("-", left, right))
	f.printf("| %-*s|\n", left+right, "Instance Hierarchy")
	f.printf("%s", rule("=", left, right))
	first := true
	for _, gpu := range f.scenario.GPUs {
		if len(gpu.Instances) == 0 {
			continue
		}
		if !first {
			f.printf("%s", rule("-", left, right))
		}
		first = false
		for _, line := range hierarchyLines(gpu) {
			f.printf("%s", tableRow(line, left, right))
		}
	}
	f.printf("%s", rule("-", left, right))
}

// hierarchyLines returns the two cells of each line of one board.
func hierarchyLines(gpu dcgmtest.GPU) [][]string {
	node := func(level int, name, what string, entity int) []string {
		arrow := ""
		if level > 0 {
			arrow = strings.Repeat("   ", level-1) + "-> "
		}
		return []string{arrow + name, fmt.Sprintf("%s (EntityID: %d)", what, entity)}
	}
	lines := [][]string{node(0, fmt.Sprintf("GPU %d", gpu.Index), "GPU "+gpu.UUID, gpu.Index)}
	for _, i := range gpu.Instances {
		lines = append(lines, node(1, fmt.Sprintf("I %d/%d", gpu.Index, i.ID), "GPU Instance", i.Entity))
		lines = append(lines, node(2, fmt.Sprintf("CI %d/%d/0", gpu.Index, i.ID), "Compute Instance", i.Entity))
	}
	return lines
}

// rule returns a line of c as wide as the columns.
func rule(c string, widths ...int) string {
	line := "+"
	for _, width := range widths {
		line += strings.Repeat(c, width) + "+"
	}
	return line + "\n"
}

// tableRow returns one line of cells; a cell's text is two characters narrower than its column.
func tableRow(cells []string, widths ...int) string {
	line := "|"
	for i, width := range widths {
		line += fmt.Sprintf(" %-*s |", width-2, cells[i])
	}
	return line + "\n"
}

// table returns a table with the headings and sections, each of which is a list
// of rows.
func table(headings []string, sections [][][]string, widths ...int) string {
	text := rule("-", widths...) + tableRow(headings, widths...) + rule("-", widths...)
	for i, section := range sections {
		if i > 0 {
			text += rule("-", widths...)
		}
		for _, cells := range section {
			text += tableRow(cells, widths...)
		}
	}
	return text + rule("-", widths...)
}
