package expose

import (
	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// Series documents one family of ours.
type Series struct {
	Name string // with canonical.Prefix
	Type canonical.Type
	// Labels are the names of its labels, separated by commas, without those
	// that every series of a device has: hostname, gpu, uuid, and on MIG
	// instances mig_instance, mig_profile.
	Labels string
	Help   string
}

// family is a family of ours that is no canonical.Field.
type family uint8

// The families in the order of the exposition. The canonical.Fields stand
// between fabricFamily and utilizationFamily.
const (
	infoFamily family = iota
	fabricFamily
	utilizationFamily
	coverageFamily
	classFamily
	healthFamily
	conditionFamily
	conditionsReadFamily
	actionFamily
	xidChangesFamily
	xidChangedFamily
	xidErrorsFamily
	presentFamily
	observedFamily
	utilizedFamily
	knownFamily
	classSecondsFamily
	healthSecondsFamily
	allocationsFamily
	allocationInfoFamily
	allocationUseFamily
	allocationMemoryFamily
	allocatedFamily
	allocationUtilizedFamily
	allocationKnownFamily
	allocationClassFamily
	allocationEnergyFamily
	weightFamily
	hostCPUsFamily
	hostUtilizationFamily
	hostMemoryFamily
	hostAvailableFamily
	sxidsFamily
	upFamily
	readDurationFamily
	lastReadFamily
	periodFamily
	unchangedFamily
	devicesFamily
	sharedDevicesFamily
	samplesFamily
	missingFamily
	unknownFamily
	skippedFamily
	droppedValuesFamily
	clampedFamily
	droppedFamiliesFamily
	droppedSeriesFamily
	droppedAllocationsFamily
	restartsFamily
	ticksFamily
	missedFamily
	lastMissedFamily
	evictedFamily
	bytesFamily
	sourceInfoFamily
	buildFamily
	numFamilies
)

const (
	ofSource   = "source,backend"
	ofStream   = ofSource + ",stream"
	ofWorkload = "workload_namespace,workload_pod,workload_container,workload_kind,workload_name,hpc_job"
)

// families describes the families; their names lack canonical.Prefix.
var families = [numFamilies]Series{
	infoFamily:               {"gpu_info", canonical.Gauge, "model,device,pci_bus_id,driver_version", "What the device is; always 1."},
	fabricFamily:             {"gpu_fabric_info", canonical.Gauge, "cluster_uuid,clique_id", "The NVLink fabric that the board is in, and the part of it within which boards reach each other; always 1, and absent where the source tells neither."},
	utilizationFamily:        {"gpu_real_utilization_ratio", canonical.Gauge, "", "How much of the device is really used: the weighted mean of its SM, tensor, DRAM and engine activity; absent where that cannot be known."},
	coverageFamily:           {"gpu_real_utilization_coverage_ratio", canonical.Gauge, "", "Share of the weights of real utilization whose input was read."},
	classFamily:              {"gpu_workload_class", canonical.Gauge, "class,bottleneck", "1 for the class of work the device is doing, with --series=full 0 for the others; unknown where the readings leave it open."},
	healthFamily:             {"gpu_health", canonical.Gauge, "state", "1 for the state the board is in, the worst of its raised conditions; with --series=full 0 for the others."},
	conditionFamily:          {"gpu_health_condition", canonical.Gauge, "condition,state", "1 while the condition is raised, which puts the board into the state; a rise of a counter or a new XID keeps it raised for 10 minutes. With --series=full 0 while it is not raised, and absent where its input was not read."},
	conditionsReadFamily:     {"gpu_health_conditions_read", canonical.Gauge, "", "How many health conditions could be looked at: those whose input was read."},
	actionFamily:             {"gpu_recommended_action", canonical.Gauge, "action", "1 for what to do about the board: the strongest action that its raised conditions ask for; the driver's own recovery action outranks the table of XIDs. Absent while health is unknown."},
	xidChangesFamily:         {"gpu_xid_changes_total", canonical.Counter, "", "How often the code of the last XID error turned into another one; the same code again does not show."},
	xidChangedFamily:         {"gpu_xid_last_change_timestamp_seconds", canonical.Gauge, "", "When the code of the last XID error was first read, in Unix time; absent for a code that was there from the start."},
	xidErrorsFamily:          {"gpu_xid_errors_total", canonical.Counter, "xid", "XID errors by code, since the code was first seen. An error that several sources report counts once. A code reads 0 for its first minute, so that increase() sees its first error."},
	presentFamily:            {"gpu_present", canonical.Gauge, "", "1 for a board that is there, 0 for one that went within the last hour, that the source names and cannot read, or that was expected and never seen."},
	observedFamily:           {"gpu_observed_seconds_total", canonical.Counter, "", "Time that the device was read over: the sum of its seconds in all classes, and of a board in all states of health."},
	utilizedFamily:           {"gpu_real_utilization_seconds_total", canonical.Counter, "", "Real utilization summed over time: one second of full use, or two of half; divide by the known seconds for the mean."},
	knownFamily:              {"gpu_real_utilization_known_seconds_total", canonical.Counter, "", "Time for which real utilization was known."},
	classSecondsFamily:       {"gpu_workload_class_seconds_total", canonical.Counter, "class,bottleneck", "Time the device spent doing each class of work."},
	healthSecondsFamily:      {"gpu_health_seconds_total", canonical.Counter, "state", "Time the board spent in each state of health."},
	allocationsFamily:        {"gpu_allocations", canonical.Gauge, "", "Workloads that hold the device; more than one share it."},
	allocationInfoFamily:     {"allocation_info", canonical.Gauge, ofWorkload + ",hpc_user,hpc_account,hpc_partition,share", "Which workload holds which device; always 1. share is how the device's seconds and energy are divided among its workloads: measured, by how much the source says that each utilizes it, or equal."},
	allocationUseFamily:      {"allocation_nvml_utilization_ratio", canonical.Gauge, ofWorkload, "Fraction of time some kernel of the workload ran, where the source measures that; containers of one pod have equal parts of the pod's."},
	allocationMemoryFamily:   {"allocation_framebuffer_used_bytes", canonical.Gauge, ofWorkload, "Device memory that the workload uses, where the source measures that; containers of one pod have equal parts of the pod's."},
	allocatedFamily:          {"allocation_seconds_total", canonical.Counter, ofWorkload, "Time the workload held the device; workloads that share a device share its seconds by how much each utilizes it, where the source measures that of all of them, else in equal parts."},
	allocationUtilizedFamily: {"allocation_real_utilization_seconds_total", canonical.Counter, ofWorkload, "The workload's share of the device's real utilization summed over time."},
	allocationKnownFamily:    {"allocation_real_utilization_known_seconds_total", canonical.Counter, ofWorkload, "The part of the workload's seconds for which real utilization was known."},
	allocationClassFamily:    {"allocation_class_seconds_total", canonical.Counter, ofWorkload + ",class", "The workload's seconds by the class of work its device was doing."},
	allocationEnergyFamily:   {"allocation_energy_joules_total", canonical.Counter, ofWorkload, "Estimate of the energy that the workload used. The idle power of the board, the least it was seen idle at, is divided equally, and the rest as the seconds are; MIG instances share their board by compute slices, beyond idle by slices times real utilization. The energy of a board that nobody holds is not counted."},
	weightFamily:             {"real_utilization_weight", canonical.Gauge, "input,preset", "Weight of an input of real utilization; they sum to 1."},
	hostCPUsFamily:           {"host_cpus", canonical.Gauge, "hostname", "Logical CPUs of the machine that are online."},
	hostUtilizationFamily:    {"host_cpu_utilization_ratio", canonical.Gauge, "hostname", "Fraction of the time of all CPUs of the machine that was neither idle nor spent waiting for I/O, since the reading a second or more before."},
	hostMemoryFamily:         {"host_memory_total_bytes", canonical.Gauge, "hostname", "Memory of the machine."},
	hostAvailableFamily:      {"host_memory_available_bytes", canonical.Gauge, "hostname", "Memory that new work on the machine could have without swapping."},
	sxidsFamily:              {"nvswitch_sxid_errors_total", canonical.Counter, "hostname,pci_bus_id,sxid", "SXID errors of the machine's NVSwitches by code, with --kernel-log; a code appears with its first error, as 1."},
	upFamily:                 {"source_up", canonical.Gauge, ofSource, "1 if the source could be read for this scrape, else 0."},
	readDurationFamily:       {"source_read_duration_seconds", canonical.Gauge, ofSource, "Time that the reading served here took."},
	lastReadFamily:           {"source_last_read_timestamp_seconds", canonical.Gauge, ofSource, "When the reading served here was asked for, in Unix time."},
	periodFamily:             {"source_period_seconds", canonical.Gauge, ofSource, "Time between two readings of a source that streams."},
	unchangedFamily:          {"source_unchanged_seconds", canonical.Gauge, ofSource, "For how long no value of the source had changed at all; above some minutes its exporter has most likely stopped collecting."},
	devicesFamily:            {"source_devices", canonical.Gauge, ofSource, "GPUs and MIG instances in the reading."},
	sharedDevicesFamily:      {"source_shared_devices", canonical.Gauge, ofSource, "GPUs and MIG instances in the reading that an earlier source has too: the series are of its readings."},
	samplesFamily:            {"source_samples", canonical.Gauge, ofSource, "Samples in the reading."},
	missingFamily:            {"source_field_missing", canonical.Gauge, ofSource + ",field", "1 for a reading that real utilization, class or the first five health conditions want and that no device gave."},
	unknownFamily:            {"source_unknown_families", canonical.Gauge, ofSource, "Families named like those of the exporter that we have no name for; the landing page lists them."},
	skippedFamily:            {"source_skipped_lines_total", canonical.Counter, ofSource, "Lines that are no exposition."},
	droppedValuesFamily:      {"source_dropped_values_total", canonical.Counter, ofSource + ",reason", "Values that were not translated, by reason; with label_too_long also those that lost a label alone."},
	clampedFamily:            {"source_clamped_values_total", canonical.Counter, ofSource, "Values a little out of range that were taken for its end."},
	droppedFamiliesFamily:    {"source_dropped_families_total", canonical.Counter, ofSource, "Families named like ours that were dropped."},
	droppedSeriesFamily:      {"source_dropped_series_total", canonical.Counter, ofSource, "Samples of devices beyond --series-limit, which were not translated."},
	droppedAllocationsFamily: {"source_dropped_allocations_total", canonical.Counter, ofSource, "Allocations beyond --series-limit, which no account is kept of."},
	restartsFamily:           {"source_restarts_total", canonical.Counter, ofStream, "Times the stream was started again."},
	ticksFamily:              {"source_ticks_total", canonical.Counter, ofStream, "Whole ticks that the stream gave."},
	missedFamily:             {"source_ticks_missed_total", canonical.Counter, ofStream, "Ticks that the stream, once it had given one, should have given by its period and did not; a little late is not missed."},
	lastMissedFamily:         {"source_last_missed_tick_timestamp_seconds", canonical.Gauge, ofStream, "When the last tick that was missed was due, in Unix time."},
	evictedFamily:            {"source_ticks_evicted_total", canonical.Counter, ofStream, "Ticks that made room for newer ones before they were read."},
	bytesFamily:              {"source_read_bytes_total", canonical.Counter, ofStream, "Bytes of text that were read of the stream."},
	sourceInfoFamily:         {"source_info", canonical.Gauge, ofSource + ",aggregation,version", "How the source reads: each value a point in time, or the average of a window; always 1."},
	buildFamily:              {"build_info", canonical.Gauge, "version,revision,branch,goversion,goos,goarch,tags", "The program that serves this; always 1."},
}

// SeriesTable returns every family of ours in the order of the exposition.
func SeriesTable() []Series {
	table := []Series{families[infoFamily], families[fabricFamily]}
	for f := range canonical.NumFields {
		info := &canonical.Fields[f]
		if beginsFamily(f) {
			table = append(table, Series{info.Name, info.Type, fieldLabels(info), info.Help})
		}
	}
	table = append(table, families[utilizationFamily:]...)
	for i := range table {
		table[i].Name = canonical.Prefix + table[i].Name
	}
	return table
}

// beginsFamily reports whether f is the first field of its family.
func beginsFamily(f canonical.Field) bool {
	return f == 0 || canonical.Fields[f-1].Name != canonical.Fields[f].Name
}

// fieldLabels returns the names of the labels that distinguish the series of a
// field's family on one device.
func fieldLabels(info *canonical.FieldInfo) string {
	if info.Unit == canonical.Bitmask {
		return "reason"
	}
	return labelNames(info.Labels)
}

// header is what the series of a family have in common: the name with its
// prefix, and the HELP and TYPE lines that stand before the first of them.
type header struct{ name, lines string }

// newHeader returns the header of a family whose name lacks the prefix.
func newHeader(s Series) header {
	name := canonical.Prefix + s.Name
	return header{name, string(exposition.AppendHeader(nil, name, s.Help, string(s.Type)))}
}

// excluded reports whether the family is left out.
func (h *header) excluded() bool { return h.name == "" }

// begin appends the name of a series, and the lines before the first of its family.
func (h *header) begin(dst []byte, headed *bool) []byte {
	if !*headed {
		*headed = true
		dst = append(dst, h.lines...)
	}
	return append(dst, h.name...)
}

// allocationShare of the limit, a quarter, is for series of allocations.
const allocationShare = 4

// Limits returns how many devices and how many allocations of one source, at least
// one of each and those that are remembered included, never make more series of
// ours than limit, even where so many boards are missed. The XIDs that a board had come on
// top: few boards have any, and those some codes.
func (f Form) Limits(limit, missed int) (devices, allocations int) {
	perRow := [numSubjects]int{ofDevices: 2} // gpu_info, gpu_fabric_info
	for _, f := range f.deviceFamilies() {
		if f.one {
			perRow[f.of]++
		} else {
			perRow[f.of] += len(f.tails)
		}
	}
	fixed := len(weights) + 2 // source_info, build_info
	fixed += len(hostFamilies())
	fixed += missed // each is in gpu_present alone
	for _, f := range sourceFamilies() {
		fixed += len(f.tails)
	}
	forAllocations := limit / allocationShare
	return max(1, (limit-forAllocations-fixed)/perRow[ofDevices]), max(1, forAllocations/(perRow[ofAllocations]+perRow[ofHolders]))
}
