package expose

import (
	"fmt"
	"math/bits"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// identityFamilies returns the families that only name the devices of a reading.
func identityFamilies() []deviceFamily {
	return []deviceFamily{
		{Series: Series{"gpu_info", canonical.Gauge, "model,device,pci_bus_id,driver_version", "Identity of the device; always 1."},
			of: ofInfo, kinds: everyDevice, fill: always},
		{Series: Series{"gpu_fabric_info", canonical.Gauge, "cluster_uuid,clique_id",
			"NVLink fabric of the board, and its clique, within which boards reach each other; always 1, absent if the source gives neither."},
			of: ofFabric, kinds: boards, fill: always},
	}
}

// verdictFamilies returns the families of the verdicts on each reading. A board that the source
// did not read itself has no utilization and no class. Only boards have health.
func verdictFamilies() []deviceFamily {
	return []deviceFamily{
		{Series: Series{"gpu_real_utilization_ratio", canonical.Gauge, "",
			"How much of the device is really used: the weighted mean of its SM, tensor, DRAM and engine activity; absent if it cannot be known."},
			kinds: readDevices, fill: verdict(func(v *canonical.Verdict) float64 { return v.RealUtilization })},
		{Series: Series{"gpu_real_utilization_coverage_ratio", canonical.Gauge, "", "Share of the weights of real utilization whose input was read."},
			kinds: readDevices, fill: verdict(func(v *canonical.Verdict) float64 { return v.Coverage })},
		{Series: Series{"gpu_workload_class", canonical.Gauge, "class,bottleneck",
			"1 for the class of work that the device is doing, with --series=full 0 for the others; unknown if the readings do not decide it."},
			kinds: readDevices, tails: classTails(true), fill: fillClass},
		{Series: Series{"gpu_health", canonical.Gauge, "state",
			"1 for the state of the board, the worst of its raised conditions; with --series=full 0 for the others. A board that is missing is unknown, " +
				"and crit once it is gone: after three readings without it over at least a minute, or three in which the source calls it lost."},
			reach: judged, kinds: boards, tails: stateTails(), fill: fillHealth},
		{Series: Series{"gpu_health_condition", canonical.Gauge, "condition,state",
			"1 while the condition is raised, with the state that it puts the board into. A rise of a counter or a new XID keeps it raised for 10 " +
				"minutes. With --series=full 0 while it is not raised, and absent if its input was not read."},
			kinds: boards, tails: conditionTails(), fill: fillConditions},
		{Series: Series{"gpu_health_conditions_read", canonical.Gauge, "", "Number of health conditions whose input was read."},
			kinds: boards, fill: verdict(func(v *canonical.Verdict) float64 { return float64(bits.OnesCount32(uint32(v.Findings.Read))) })},
		{Series: Series{"gpu_recommended_action", canonical.Gauge, "action",
			"1 for what to do about the board: the strongest action that its raised conditions ask for. The driver's own recovery action outranks the " +
				"table of XIDs. A board that is gone asks for reboot_node. Absent while health is unknown."},
			reach: judged, kinds: boards, tails: actionTails(), fill: fillAction, one: true},
	}
}

// ledgerFamilies returns the families of device accounts, also of devices that left and are
// remembered: their counts since the last scrape would otherwise be lost. Activity is served for
// devices that were ever read themselves: it stays while a board is implied for a time.
func ledgerFamilies() []deviceFamily {
	return []deviceFamily{
		{Series: Series{"gpu_xid_changes_total", canonical.Counter, "", "How often the code of the last XID error changed; a repeated code is not seen."},
			reach: remembered, kinds: boards, fill: ofDevice(func(a *canonical.Account) float64 { return float64(a.XIDChanges) })},
		{Series: Series{"gpu_xid_last_change_timestamp_seconds", canonical.Gauge, "",
			"When the code of the last XID error was first read, in Unix time; absent for a code that was there at the first reading."},
			reach: remembered, kinds: boards, fill: ofDevice(func(a *canonical.Account) float64 { return unixSeconds(a.XIDChanged) })},
		{Series: Series{"gpu_xid_errors_total", canonical.Counter, "xid",
			"XID errors by code, since the code was first seen. An error that several sources report counts once. A code reads 0 for twice " +
				"the longest scrape interval, at least --series.birth (a minute), so that increase() sees its first error."},
			reach: remembered, kinds: boards, codes: true},
		{Series: Series{"gpu_present", canonical.Gauge, "",
			"1 for a board that is present; 0 for one that disappeared within the last hour or is gone, that the source names but cannot read, or that was " +
				"expected and never seen."},
			reach: missed, kinds: boards, fill: fillPresent},
		{Series: Series{"gpu_observed_seconds_total", canonical.Counter, "",
			"Time over which the device was read: the sum of its seconds in all classes, and, for a board, in all states of health."},
			reach: remembered, kinds: everyDevice, fill: ofDevice(observed)},
		{Series: Series{"gpu_real_utilization_seconds_total", canonical.Counter, "",
			"Real utilization summed over time: one second of full use, or two of half; divide by the known seconds for the mean."},
			reach: remembered, kinds: everyDevice, fill: ifRead(ofDevice(utilized))},
		{Series: Series{"gpu_real_utilization_known_seconds_total", canonical.Counter, "", "Time for which real utilization was known."},
			reach: remembered, kinds: everyDevice, fill: ifRead(ofDevice(known))},
		{Series: Series{"gpu_workload_class_seconds_total", canonical.Counter, "class,bottleneck", "Time the device spent doing each class of work."},
			reach: remembered, kinds: everyDevice, tails: classTails(true), fill: ifRead(fillClassSeconds)},
		{Series: Series{"gpu_health_seconds_total", canonical.Counter, "state", "Time the board spent in each state of health."},
			reach: remembered, kinds: boards, tails: stateTails(), fill: fillHealthSeconds},
		{Series: Series{"gpu_allocations", canonical.Gauge, "", "Number of workloads that hold the device."},
			kinds: readDevices, fill: fillHolders},
	}
}

// allocationFamilies returns the families of allocations and their accounts, including those
// that ended and are remembered.
func allocationFamilies() []deviceFamily {
	return []deviceFamily{
		{Series: Series{"allocation_info", canonical.Gauge, workloadLabels + ",hpc_user,hpc_account,hpc_partition,share",
			"Which workload holds which device; always 1. share says how the seconds and the energy of the device are divided among its workloads: " +
				"measured (by the utilization that the source reports for each) or equal."},
			of: ofHolders, kinds: everyDevice, tails: []string{tail(`share="measured"`), tail(`share="equal"`)}, fill: fillShare, one: true},
		{Series: Series{"allocation_nvml_utilization_ratio", canonical.Gauge, workloadLabels,
			"Fraction of time that any kernel of the workload ran, if the source measures it; the containers of a pod share the pod's equally."},
			of: ofAllocations, kinds: everyDevice, fill: ofUse(func(u *canonical.Use) float64 { return u.NVMLUtilization })},
		{Series: Series{"allocation_framebuffer_used_bytes", canonical.Gauge, workloadLabels,
			"Device memory that the workload uses, if the source measures it; the containers of a pod share the pod's equally."},
			of: ofAllocations, kinds: everyDevice, fill: ofUse(func(u *canonical.Use) float64 { return u.Framebuffer })},
		{Series: Series{"allocation_seconds_total", canonical.Counter, workloadLabels,
			"Time that the workload held the device. Workloads on one device divide its seconds by their utilization if the source measures it for all of " +
				"them, else equally."},
			of: ofAllocations, reach: remembered, kinds: everyDevice, fill: ofAllocation(observed)},
		{Series: Series{"allocation_real_utilization_seconds_total", canonical.Counter, workloadLabels,
			"The workload's share of the device's real utilization summed over time."},
			of: ofAllocations, reach: remembered, kinds: everyDevice, fill: ofAllocation(utilized)},
		{Series: Series{"allocation_real_utilization_known_seconds_total", canonical.Counter, workloadLabels,
			"The part of the workload's seconds for which real utilization was known."},
			of: ofAllocations, reach: remembered, kinds: everyDevice, fill: ofAllocation(known)},
		{Series: Series{"allocation_class_seconds_total", canonical.Counter, workloadLabels + ",class",
			"The workload's seconds by the class of work its device was doing."},
			of: ofAllocations, reach: remembered, kinds: everyDevice, tails: classTails(false), fill: fillAllocationClasses},
		{Series: Series{"allocation_energy_joules_total", canonical.Counter, workloadLabels,
			"Estimate of the energy that the workload used: the energy of the device, divided as its seconds are. MIG instances divide that of their " +
				"board by compute slices times real utilization. The energy of a board without a holder is not counted."},
			of: ofAllocations, reach: remembered, kinds: everyDevice, fill: ofAllocation(energy)},
	}
}

// hostFamilies returns the families of machines in the order of the exposition.
func hostFamilies() []deviceFamily {
	return []deviceFamily{
		{Series: Series{"host_cpus", canonical.Gauge, "hostname", "Logical CPUs of the machine that are online."},
			of: ofHost, kinds: everyDevice, fill: host(func(h *canonical.Host) float64 { return h.CPUs })},
		{Series: Series{"host_cpu_utilization_ratio", canonical.Gauge, "hostname",
			"Fraction of the machine's CPU time that was neither idle nor waiting for I/O, since a reading at least a second earlier."},
			of: ofHost, kinds: everyDevice, fill: host(func(h *canonical.Host) float64 { return h.CPUUtilization })},
		{Series: Series{"host_memory_total_bytes", canonical.Gauge, "hostname", "Memory of the machine."},
			of: ofHost, kinds: everyDevice, fill: host(func(h *canonical.Host) float64 { return h.MemoryTotal })},
		{Series: Series{"host_memory_available_bytes", canonical.Gauge, "hostname", "Memory that new work on the machine can use without swapping."},
			of: ofHost, kinds: everyDevice, fill: host(func(h *canonical.Host) float64 { return h.MemoryAvailable })},
	}
}

// classTails returns a tail for each class, with its bottleneck or without.
func classTails(bottleneck bool) []string {
	return tails(canonical.NumClasses, func(c canonical.Class) string {
		if bottleneck {
			return fmt.Sprintf("class=%q,bottleneck=%q", c, canonical.Classes[c].Bottleneck)
		}
		return fmt.Sprintf("class=%q", c)
	})
}

// stateTails returns a tail for each state of health.
func stateTails() []string {
	return tails(canonical.NumHealth, func(h canonical.Health) string { return fmt.Sprintf("state=%q", h) })
}

// actionTails returns a tail for each action.
func actionTails() []string {
	return tails(canonical.NumActions, func(a canonical.Action) string { return fmt.Sprintf("action=%q", a) })
}

// firstRaised and endRaised bound the states that a condition can raise.
const (
	firstRaised = canonical.HealthOK + 1
	endRaised   = canonical.HealthUnknown
)

// conditionTails returns a tail for each condition and each state that it can be set to raise.
func conditionTails() (list []string) {
	for condition := range canonical.NumConditions {
		for state := firstRaised; state < endRaised; state++ {
			list = append(list, tail(fmt.Sprintf("condition=%q,state=%q", condition, state)))
		}
	}
	return list
}
