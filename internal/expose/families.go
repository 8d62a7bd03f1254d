package expose

import (
	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// Series documents one kpulse_ family.
type Series struct {
	Name string // with canonical.Prefix; without it in the tables of this package
	Type canonical.Type
	// Labels are the names of its labels, separated by commas, without those
	// that every series of a device has: hostname, gpu, uuid, and on MIG
	// instances mig_instance, mig_profile.
	Labels string
	Help   string
}

// The labels of the families of a source, of a stream, and of an allocation.
const (
	sourceLabels   = "source,backend"
	streamLabels   = sourceLabels + ",stream"
	workloadLabels = "workload_namespace,workload_pod,workload_container,workload_kind,workload_name,hpc_job"
)

// The families that are no table of rows.
var (
	weightSeries = Series{"real_utilization_weight", canonical.Gauge, "input,preset", "Weight of an input of real utilization; they sum to 1."}
	switchSeries = Series{"nvswitch_sxid_errors_total", canonical.Counter, "hostname,pci_bus_id,sxid,severity",
		"SXID errors of the machine's NVSwitches by code and severity (fatal or warning), with --kernel-log; a code reads 0 for twice " +
			"the longest scrape interval, at least --series.birth (a minute), so that increase() sees its first error."}
	faultSeries = Series{"nvswitch_fatal_sxid", canonical.Gauge, "hostname,pci_bus_id,sxid",
		"1 for each fatal SXID of an NVSwitch that neither a reboot nor an operator resolved, which is the health condition nvswitch of the boards."}
	buildSeries = Series{"build_info", canonical.Gauge, "version,revision,branch,goversion,goos,goarch,tags", "The program that serves this; always 1."}
)

// SeriesTable returns every kpulse_ family in the order of the exposition.
func SeriesTable() []Series {
	var table []Series
	for _, f := range deviceFamilies() {
		table = append(table, f.Series)
	}
	table = append(table, weightSeries)
	for _, f := range hostFamilies() {
		table = append(table, f.Series)
	}
	table = append(table, switchSeries, faultSeries)
	for _, f := range sourceFamilies() {
		table = append(table, f.Series)
	}
	table = append(table, buildSeries)
	for i := range table {
		table[i].Name = canonical.Prefix + table[i].Name
	}
	return table
}

// header is the name of a family with its prefix, and its HELP and TYPE lines.
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

// tail returns what follows the common labels of a series: its own labels in exposition syntax, if
// any, the closing brace and the space before the value.
func tail(labels string) string {
	if labels == "" {
		return "} "
	}
	return "," + labels + "} "
}

// tails returns a tail for each of n values.
func tails[T ~uint8](n T, labels func(T) string) []string {
	var list []string
	for i := range n {
		list = append(list, tail(labels(i)))
	}
	return list
}

// allocationShare divides the limit: a quarter is for series of allocations.
const allocationShare = 4

// Limits returns how many devices and allocations of one source, including remembered ones, never
// make more kpulse_ series than limit; at least one of each. Series of XIDs, which few boards have,
// are not counted.
func (f Form) Limits(limit, absent int) (devices, allocations int) {
	var perRow [numSubjects]int
	perAbsent := 0
	for _, f := range f.deviceFamilies() {
		n := len(f.tails)
		switch {
		case f.codes:
			continue
		case f.one:
			n = 1
		}
		perRow[f.of] += n
		if f.reach >= missed {
			perAbsent += n
		}
	}
	fixed := len(weights) + len(hostFamilies()) + 1 + absent*perAbsent // build_info
	for _, f := range sourceFamilies() {
		fixed += len(f.tails)
	}
	forAllocations := limit / allocationShare
	perDevice := perRow[ofDevices] + perRow[ofInfo] + perRow[ofFabric]
	return max(1, (limit-forAllocations-fixed)/perDevice), max(1, forAllocations/(perRow[ofAllocations]+perRow[ofHolders]))
}
