package fake

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgmi/dcgmitest"
)

func (f *fake) discovery(set map[string]string) (status, error) {
	_, list := set["list"]
	_, hierarchy := set["compute-hierarchy"]
	if list == hierarchy { // the real parser lists the options
		return 0, usageError{"Exactly one of the options must be present", "list"}
	}
	if result := f.connect("discovery", set); result != ok {
		return result, nil
	}
	if hierarchy {
		f.printHierarchy()
		return ok, nil
	}
	if refused, is := f.failure(dcgmitest.ListRefused, "discovery", false); is {
		f.out.printf("Error: Cannot get GPU list from remote node. Return: %s\n", status(refused.Code))
		return status(refused.Code), nil
	}
	_, all := set["all"]
	f.printBoards(all && f.release.Since("4.5.0"))
	if refused, is := f.failure(dcgmitest.SwitchesRefused, "discovery", false); is {
		f.out.printf("Error: Cannot get NvSwitch list from remote node. Return: %s\n", status(refused.Code))
		return status(refused.Code), nil
	}
	f.printCounted("Switch ID", f.scenario.Switches, "NvSwitch", "NvSwitches", 11)
	if f.release.Since("4.2.3") {
		f.printCounted("ConnectX", f.scenario.ConnectX, "ConnectX", "ConnectX", 10)
	}
	if f.release.Since("3.3.9") {
		f.printProcessors()
	}
	return ok, nil
}

// null is what is printed of a text that the driver does not give.
const null = "<<<NULL>>>"

// printBoards prints the table of boards, the inactive ones only if all.
func (f *fake) printBoards(all bool) {
	var sections [][][]string
	inactive := 0
	for _, gpu := range f.scenario.GPUs {
		suffix := ""
		if gpu.Lost {
			gpu.Name, gpu.BusID, gpu.UUID = null, null, null
			gpu.Inactive = f.release.Since("4.5.0")
		}
		if gpu.Inactive {
			inactive++
			if !all {
				continue
			}
			suffix = " (last known)"
		}
		section := [][]string{{"", "Name: " + gpu.Name + suffix}, {"", "PCI Bus ID: " + gpu.BusID + suffix}, {"", "Device UUID: " + gpu.UUID}}
		if gpu.Inactive { // the words are seen for a lost board, and assumed for another
			section = slices.Insert(section, 0, []string{"", "Status: " + map[bool]string{false: "INACTIVE", true: "LOST"}[gpu.Lost]})
		}
		section[0][0] = strconv.Itoa(gpu.Index)
		sections = append(sections, section)
	}
	f.out.printf("%d %s found", len(sections), plural(len(sections), "GPU", "GPUs"))
	switch {
	case all:
		f.out.printf(" (All).\n")
	case f.release.Since("4.5.0"):
		f.out.printf(" (Active).\n")
		if inactive > 0 {
			f.out.printf("Note: Use -a flag to show all GPUs, including those that are not active.\n")
		}
	default:
		f.out.printf(".\n")
	}
	f.out.printf("%s", table([]string{"GPU ID", "Device Information"}, sections, true, 8, 70))
}

// printCounted prints the table of things that are no more than a number.
func (f *fake) printCounted(heading string, n int, single, many string, width int) {
	var sections [][][]string
	for id := range n {
		sections = append(sections, [][]string{{strconv.Itoa(id)}})
	}
	f.out.printf("%d %s found.\n", n, plural(n, single, many))
	f.out.printf("%s", table([]string{heading}, sections, false, width))
}

// printProcessors prints the table of CPUs. What stands in it is assumed but for
// the name.
func (f *fake) printProcessors() {
	var sections [][][]string
	for id := range f.scenario.CPUs {
		sections = append(sections, [][]string{{strconv.Itoa(id), "Name: Grace"}})
	}
	f.out.printf("%d %s found.\n", f.scenario.CPUs, plural(f.scenario.CPUs, "CPU", "CPUs"))
	f.out.printf("%s", table([]string{"CPU ID", "Device Information"}, sections, true, 8, 70))
}

func plural(n int, single, many string) string {
	if n == 1 {
		return single
	}
	return many
}

// printHierarchy prints the tree of MIG instances: the boards that have any.
func (f *fake) printHierarchy() {
	const left, right = 19, 68
	f.out.printf("%s", rule("-", left, right))
	f.out.printf("| %-*s|\n", left+right, "Instance Hierarchy")
	f.out.printf("%s", rule("=", left, right))
	first := true
	for _, gpu := range f.scenario.GPUs {
		if len(gpu.Instances) == 0 {
			continue
		}
		if !first {
			f.out.printf("%s", rule("-", left, right))
		}
		first = false
		for _, line := range hierarchyLines(gpu) {
			f.out.printf("%s", tableRow(line, left, right))
		}
	}
	f.out.printf("%s", rule("-", left, right))
}

// hierarchyLines returns the two cells of each line of one board.
func hierarchyLines(gpu dcgmitest.GPU) [][]string {
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
		for _, c := range i.Compute {
			lines = append(lines, node(2, fmt.Sprintf("CI %d/%d/%d", gpu.Index, i.ID, c.ID), "Compute Instance", c.Entity))
		}
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

// tableRow returns one line of cells; a column's text is two narrower than it.
func tableRow(cells []string, widths ...int) string {
	line := "|"
	for i, width := range widths {
		line += fmt.Sprintf(" %-*s |", width-2, cells[i])
	}
	return line + "\n"
}

// table returns a table with the headings and sections, each of which is a list
// of rows. Sections are parted by a rule only if separate is set.
func table(headings []string, sections [][][]string, separate bool, widths ...int) string {
	text := rule("-", widths...) + tableRow(headings, widths...) + rule("-", widths...)
	for i, section := range sections {
		if i > 0 && separate {
			text += rule("-", widths...)
		}
		for _, cells := range section {
			text += tableRow(cells, widths...)
		}
	}
	return text + rule("-", widths...)
}
