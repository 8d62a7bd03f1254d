package expose

import "github.com/kpulse/kpulse-proxy/internal/canonical"

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
// between infoFamily and utilizationFamily.
const (
	infoFamily family = iota
	utilizationFamily
	coverageFamily
	classFamily
	healthFamily
	conditionFamily
	weightFamily
	upFamily
	readDurationFamily
	lastReadFamily
	periodFamily
	devicesFamily
	samplesFamily
	missingFamily
	unknownFamily
	skippedFamily
	droppedValuesFamily
	clampedFamily
	droppedFamiliesFamily
	droppedSeriesFamily
	sourceInfoFamily
	buildFamily
	numFamilies
)

const ofSource = "source,backend"

// families describes the families; their names lack canonical.Prefix.
var families = [numFamilies]Series{
	infoFamily:            {"gpu_info", canonical.Gauge, "model,device,pci_bus_id,driver_version", "What the device is; always 1."},
	utilizationFamily:     {"gpu_real_utilization_ratio", canonical.Gauge, "", "How much of the device is really used: the weighted mean of its SM, tensor, DRAM and engine activity; absent where that cannot be known."},
	coverageFamily:        {"gpu_real_utilization_coverage_ratio", canonical.Gauge, "", "Share of the weights of real utilization whose input was read."},
	classFamily:           {"gpu_workload_class", canonical.Gauge, "class,bottleneck", "1 for the class of work the device is doing, 0 for the others; unknown where the readings leave it open."},
	healthFamily:          {"gpu_health", canonical.Gauge, "state", "1 for the state the board is in, the worst of its raised conditions; 0 for the others."},
	conditionFamily:       {"gpu_health_condition", canonical.Gauge, "condition,state", "1 while the condition is raised, which puts the board into the state; 0 while it is not; absent where its input was not read."},
	weightFamily:          {"real_utilization_weight", canonical.Gauge, "input,preset", "Weight of an input of real utilization; they sum to 1."},
	upFamily:              {"source_up", canonical.Gauge, ofSource, "1 if the source could be read for this scrape, else 0."},
	readDurationFamily:    {"source_read_duration_seconds", canonical.Gauge, ofSource, "Time that the reading served here took."},
	lastReadFamily:        {"source_last_read_timestamp_seconds", canonical.Gauge, ofSource, "When the reading served here was asked for, in Unix time."},
	periodFamily:          {"source_period_seconds", canonical.Gauge, ofSource, "Time between two readings of a source that streams."},
	devicesFamily:         {"source_devices", canonical.Gauge, ofSource, "GPUs and MIG instances in the reading."},
	samplesFamily:         {"source_samples", canonical.Gauge, ofSource, "Samples in the reading."},
	missingFamily:         {"source_field_missing", canonical.Gauge, ofSource + ",field", "1 for a reading that real utilization, class or health want and that no device gave."},
	unknownFamily:         {"source_unknown_families", canonical.Gauge, ofSource, "Families that look like GPU readings and that we have no name for; the landing page lists them."},
	skippedFamily:         {"source_skipped_lines_total", canonical.Counter, ofSource, "Lines that are no exposition."},
	droppedValuesFamily:   {"source_dropped_values_total", canonical.Counter, ofSource + ",reason", "Values that were not translated, by reason."},
	clampedFamily:         {"source_clamped_values_total", canonical.Counter, ofSource, "Values a little out of range that were taken for its end."},
	droppedFamiliesFamily: {"source_dropped_families_total", canonical.Counter, ofSource, "Families named like ours that were dropped."},
	droppedSeriesFamily:   {"source_dropped_series_total", canonical.Counter, ofSource, "Series that were not translated for being beyond the limit."},
	sourceInfoFamily:      {"source_info", canonical.Gauge, ofSource + ",aggregation,version", "How the source reads: each value a point in time, or the average of a window; always 1."},
	buildFamily:           {"build_info", canonical.Gauge, "version,revision,branch,goversion,goos,goarch,tags", "The program that serves this; always 1."},
}

// SeriesTable returns every family of ours in the order of the exposition.
func SeriesTable() []Series {
	table := []Series{families[infoFamily]}
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

// beginsFamily tells whether f is the first field of its family.
func beginsFamily(f canonical.Field) bool {
	return f == 0 || canonical.Fields[f-1].Name != canonical.Fields[f].Name
}

// fieldLabels returns the names of the labels that tell the series of a field's
// family on one device apart.
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
	return header{name, "# HELP " + name + " " + s.Help + "\n# TYPE " + name + " " + string(s.Type) + "\n"}
}

// MaxDevices returns how many devices of one source, at least one, never make
// more series of ours than limit.
func MaxDevices(limit int) int {
	perDevice := 1 // gpu_info
	for _, f := range deviceFamilies() {
		perDevice += len(f.lines)
	}
	fixed := len(weights) + 2 // source_info, build_info
	for _, f := range sourceFamilies() {
		fixed += len(f.lines)
	}
	return max(1, (limit-fixed)/perDevice)
}
