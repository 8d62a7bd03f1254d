package expose

import (
	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// Series documents one kpulse_ family.
type Series struct {
	Name string // with canonical.Prefix
	Type canonical.Type
	// Labels are the names of its labels, separated by commas, without those
	// that every series of a device has: hostname, gpu, uuid, and on MIG
	// instances mig_instance, mig_profile.
	Labels string
	Help   string
}

// family is a kpulse_ family that is not a canonical.Field.
type family uint8

// The families in the order of the exposition. The canonical.Fields are between fabricFamily and
// utilizationFamily.
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
	infoFamily:               {"gpu_info", canonical.Gauge, "model,device,pci_bus_id,driver_version", "Identity of the device; always 1."},
	fabricFamily:             {"gpu_fabric_info", canonical.Gauge, "cluster_uuid,clique_id", "NVLink fabric of the board, and its clique, within which boards reach each other; always 1, absent if the source gives neither."},
	utilizationFamily:        {"gpu_real_utilization_ratio", canonical.Gauge, "", "How much of the device is really used: the weighted mean of its SM, tensor, DRAM and engine activity; absent if it cannot be known."},
	coverageFamily:           {"gpu_real_utilization_coverage_ratio", canonical.Gauge, "", "Share of the weights of real utilization whose input was read."},
	classFamily:              {"gpu_workload_class", canonical.Gauge, "class,bottleneck", "1 for the class of work that the device is doing, with --series=full 0 for the others; unknown if the readings do not decide it."},
	healthFamily:             {"gpu_health", canonical.Gauge, "state", "1 for the state of the board, the worst of its raised conditions; with --series=full 0 for the others."},
	conditionFamily:          {"gpu_health_condition", canonical.Gauge, "condition,state", "1 while the condition is raised, with the state that it puts the board into. A rise of a counter or a new XID keeps it raised for 10 minutes. With --series=full 0 while it is not raised, and absent if its input was not read."},
	conditionsReadFamily:     {"gpu_health_conditions_read", canonical.Gauge, "", "Number of health conditions whose input was read."},
	actionFamily:             {"gpu_recommended_action", canonical.Gauge, "action", "1 for what to do about the board: the strongest action that its raised conditions ask for. The driver's own recovery action outranks the table of XIDs. Absent while health is unknown."},
	xidChangesFamily:         {"gpu_xid_changes_total", canonical.Counter, "", "How often the code of the last XID error changed; a repeated code is not seen."},
	xidChangedFamily:         {"gpu_xid_last_change_timestamp_seconds", canonical.Gauge, "", "When the code of the last XID error was first read, in Unix time; absent for a code that was there at the first reading."},
	xidErrorsFamily:          {"gpu_xid_errors_total", canonical.Counter, "xid", "XID errors by code, since the code was first seen. An error that several sources report counts once. A code reads 0 for its first minute, so that increase() sees its first error."},
	presentFamily:            {"gpu_present", canonical.Gauge, "", "1 for a board that is present; 0 for one that disappeared within the last hour, that the source names but cannot read, or that was expected and never seen."},
	observedFamily:           {"gpu_observed_seconds_total", canonical.Counter, "", "Time over which the device was read: the sum of its seconds in all classes, and, for a board, in all states of health."},
	utilizedFamily:           {"gpu_real_utilization_seconds_total", canonical.Counter, "", "Real utilization summed over time: one second of full use, or two of half; divide by the known seconds for the mean."},
	knownFamily:              {"gpu_real_utilization_known_seconds_total", canonical.Counter, "", "Time for which real utilization was known."},
	classSecondsFamily:       {"gpu_workload_class_seconds_total", canonical.Counter, "class,bottleneck", "Time the device spent doing each class of work."},
	healthSecondsFamily:      {"gpu_health_seconds_total", canonical.Counter, "state", "Time the board spent in each state of health."},
	allocationsFamily:        {"gpu_allocations", canonical.Gauge, "", "Number of workloads that hold the device."},
	allocationInfoFamily:     {"allocation_info", canonical.Gauge, ofWorkload + ",hpc_user,hpc_account,hpc_partition,share", "Which workload holds which device; always 1. share says how the seconds and the energy of the device are divided among its workloads: measured (by the utilization that the source reports for each) or equal."},
	allocationUseFamily:      {"allocation_nvml_utilization_ratio", canonical.Gauge, ofWorkload, "Fraction of time that any kernel of the workload ran, if the source measures it; the containers of a pod share the pod's equally."},
	allocationMemoryFamily:   {"allocation_framebuffer_used_bytes", canonical.Gauge, ofWorkload, "Device memory that the workload uses, if the source measures it; the containers of a pod share the pod's equally."},
	allocatedFamily:          {"allocation_seconds_total", canonical.Counter, ofWorkload, "Time that the workload held the device. Workloads on one device divide its seconds by their utilization if the source measures it for all of them, else equally."},
	allocationUtilizedFamily: {"allocation_real_utilization_seconds_total", canonical.Counter, ofWorkload, "The workload's share of the device's real utilization summed over time."},
	allocationKnownFamily:    {"allocation_real_utilization_known_seconds_total", canonical.Counter, ofWorkload, "The part of the workload's seconds for which real utilization was known."},
	allocationClassFamily:    {"allocation_class_seconds_total", canonical.Counter, ofWorkload + ",class", "The workload's seconds by the class of work its device was doing."},
	allocationEnergyFamily:   {"allocation_energy_joules_total", canonical.Counter, ofWorkload, "Estimate of the energy that the workload used. The board's idle power, the lowest that it was seen idle at, is divided equally; the rest is divided as the seconds are. MIG instances divide the idle power by compute slices, and the rest by slices times real utilization. The energy of a board without a holder is not counted."},
	weightFamily:             {"real_utilization_weight", canonical.Gauge, "input,preset", "Weight of an input of real utilization; they sum to 1."},
	hostCPUsFamily:           {"host_cpus", canonical.Gauge, "hostname", "Logical CPUs of the machine that are online."},
	hostUtilizationFamily:    {"host_cpu_utilization_ratio", canonical.Gauge, "hostname", "Fraction of the machine's CPU time that was neither idle nor waiting for I/O, since a reading at least a second earlier."},
	hostMemoryFamily:         {"host_memory_total_bytes", canonical.Gauge, "hostname", "Memory of the machine."},
	hostAvailableFamily:      {"host_memory_available_bytes", canonical.Gauge, "hostname", "Memory that new work on the machine can use without swapping."},
	sxidsFamily:              {"nvswitch_sxid_errors_total", canonical.Counter, "hostname,pci_bus_id,sxid", "SXID errors of the machine's NVSwitches by code, with --kernel-log; a code appears with its first error, as 1."},
	upFamily:                 {"source_up", canonical.Gauge, ofSource, "1 if the source could be read for this scrape, else 0."},
	readDurationFamily:       {"source_read_duration_seconds", canonical.Gauge, ofSource, "How long the served reading took."},
	lastReadFamily:           {"source_last_read_timestamp_seconds", canonical.Gauge, ofSource, "When the served reading was requested, in Unix time."},
	periodFamily:             {"source_period_seconds", canonical.Gauge, ofSource, "Time between two readings of a streaming source."},
	unchangedFamily:          {"source_unchanged_seconds", canonical.Gauge, ofSource, "How long no value of the source has changed; after some minutes its exporter has most likely stopped collecting."},
	devicesFamily:            {"source_devices", canonical.Gauge, ofSource, "GPUs and MIG instances in the reading."},
	sharedDevicesFamily:      {"source_shared_devices", canonical.Gauge, ofSource, "GPUs and MIG instances in the reading that an earlier source has too; the series come from the earlier source."},
	samplesFamily:            {"source_samples", canonical.Gauge, ofSource, "Samples in the reading."},
	missingFamily:            {"source_field_missing", canonical.Gauge, ofSource + ",field", "1 for a reading that real utilization, class or the first five health conditions need and that no device gave."},
	unknownFamily:            {"source_unknown_families", canonical.Gauge, ofSource, "Families named like the exporter's that kpulse-proxy does not know; the landing page lists them."},
	skippedFamily:            {"source_skipped_lines_total", canonical.Counter, ofSource, "Lines that are not valid exposition."},
	droppedValuesFamily:      {"source_dropped_values_total", canonical.Counter, ofSource + ",reason", "Values that were not translated, by reason; label_too_long also counts values that only lost a label."},
	clampedFamily:            {"source_clamped_values_total", canonical.Counter, ofSource, "Values slightly out of range that were set to the nearest limit."},
	droppedFamiliesFamily:    {"source_dropped_families_total", canonical.Counter, ofSource, "Upstream families named kpulse_* that were dropped."},
	droppedSeriesFamily:      {"source_dropped_series_total", canonical.Counter, ofSource, "Samples of devices beyond --series-limit, which are not translated."},
	droppedAllocationsFamily: {"source_dropped_allocations_total", canonical.Counter, ofSource, "Allocations beyond --series-limit, for which no counters are kept."},
	restartsFamily:           {"source_restarts_total", canonical.Counter, ofStream, "Times the stream was started again."},
	ticksFamily:              {"source_ticks_total", canonical.Counter, ofStream, "Complete ticks that the stream delivered."},
	missedFamily:             {"source_ticks_missed_total", canonical.Counter, ofStream, "Ticks that were due after the stream's first one and did not come; a slightly late tick is not missed."},
	lastMissedFamily:         {"source_last_missed_tick_timestamp_seconds", canonical.Gauge, ofStream, "When the latest missed tick was due, in Unix time."},
	evictedFamily:            {"source_ticks_evicted_total", canonical.Counter, ofStream, "Ticks that newer ones replaced before they were read."},
	bytesFamily:              {"source_read_bytes_total", canonical.Counter, ofStream, "Bytes of text read from the stream."},
	sourceInfoFamily:         {"source_info", canonical.Gauge, ofSource + ",aggregation,version", "How the source reads: each value is a point in time or the average of a window; always 1."},
	buildFamily:              {"build_info", canonical.Gauge, "version,revision,branch,goversion,goos,goarch,tags", "The program that serves this; always 1."},
}

// SeriesTable returns every kpulse_ family in the order of the exposition.
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

// header is common to the series of a family: the name with its prefix, and the HELP and TYPE
// lines before the first series.
type header struct{ name, lines string }

// newHeader returns the header of a family whose name lacks the prefix.
func newHeader(s Series) header {
	name := canonical.Prefix + s.Name
	return header{name, string(exposition.AppendHeader(nil, name, s.Help, string(s.Type)))}
}

// excluded reports whether the family is left out.
func (h *header) excluded() bool { return h.name == "" }

// begin appends the name of a series, preceded by HELP and TYPE if it is the first of its
// family.
func (h *header) begin(dst []byte, headed *bool) []byte {
	if !*headed {
		*headed = true
		dst = append(dst, h.lines...)
	}
	return append(dst, h.name...)
}

// allocationShare divides the limit: a quarter is for series of allocations.
const allocationShare = 4

// Limits returns how many devices and allocations of one source, including remembered ones,
// never make more kpulse_ series than limit even if missed boards were never seen; at least one
// of each. Series of XIDs are not counted: few boards have any, and those have few codes.
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
	fixed += missed // each has only gpu_present
	for _, f := range sourceFamilies() {
		fixed += len(f.tails)
	}
	forAllocations := limit / allocationShare
	return max(1, (limit-forAllocations-fixed)/perRow[ofDevices]), max(1, forAllocations/(perRow[ofAllocations]+perRow[ofHolders]))
}
