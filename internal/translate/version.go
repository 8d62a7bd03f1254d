package translate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// Version is a dialect of dcgm-exporter that readings can be rendered in.
type Version uint8

// The versions. V1 is also what later exporters write with --use-old-namespace and their
// counters file for it. V2 is 2.x and 3.x, and V48 is 4.0 to 4.8. Jobstats is another exporter.
const (
	V1 Version = iota
	V2
	V48
	V49
	Jobstats
	numVersions
)

// versionInfo is what distinguishes a version, apart from the names of its
// families, which newQuantities takes from the dialect table.
type versionInfo struct {
	word string
	// labels are those that it writes, in its order.
	labels []labelName
	// names are those of families that newQuantities would otherwise get wrong.
	names map[canonical.Field]string
	// types are the TYPE words that differ from those of canonical.Fields, by field.
	types map[canonical.Field]canonical.Type
}

// labelName is the name of a label in a version.
type labelName struct {
	role role
	name string
}

// ratesAsCounters are gauges that the counters files of the exporter call counters.
var ratesAsCounters = map[canonical.Field]canonical.Type{
	canonical.NVLinkBytes:         canonical.Counter,
	canonical.PCIeTransmit:        canonical.Counter,
	canonical.PCIeReceive:         canonical.Counter,
	canonical.RetiredPagesPending: canonical.Counter, // a flag; the others are rates
}

// versions is indexed by Version. Labels and TYPE words are those of the exporter's
// default counters and templates; 4.9 is known to differ from 4.8 only in the label of the
// driver.
var versions = [numVersions]versionInfo{
	V1: {word: "1", types: ratesAsCounters, labels: []labelName{
		{roleGPU, "gpu"}, {roleUUID, "uuid"}, {roleName, "device"}, {roleModel, "modelName"},
		{roleProfile, "GPU_I_PROFILE"}, {roleInstance, "GPU_I_ID"}, {roleHostname, "Hostname"},
		{roleContainer, "container_name"}, {rolePod, "pod_name"}, {roleNamespace, "pod_namespace"},
	}},
	V2: {word: "2", types: ratesAsCounters, labels: []labelName{
		{roleGPU, "gpu"}, {roleUUID, "UUID"}, {roleName, "device"}, {roleModel, "modelName"},
		{roleProfile, "GPU_I_PROFILE"}, {roleInstance, "GPU_I_ID"}, {roleHostname, "Hostname"},
		{roleDriver, "DCGM_FI_DRIVER_VERSION"},
		{roleContainer, "container"}, {roleNamespace, "namespace"}, {rolePod, "pod"},
	}},
	V48: {word: "4.8",
		types: map[canonical.Field]canonical.Type{
			canonical.NVLinkBytes:         canonical.Counter,
			canonical.RetiredPagesPending: canonical.Counter,
		},
		names: map[canonical.Field]string{canonical.ClockEvents: "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"},
		labels: []labelName{
			{roleGPU, "gpu"}, {roleUUID, "UUID"}, {rolePCIBusID, "pci_bus_id"}, {roleName, "device"}, {roleModel, "modelName"},
			{roleProfile, "GPU_I_PROFILE"}, {roleInstance, "GPU_I_ID"}, {roleHostname, "hostname"},
			{roleDriver, "DCGM_FI_DRIVER_VERSION"},
			{roleContainer, "container"}, {roleNamespace, "namespace"}, {rolePod, "pod"},
		}},
	V49: {word: "4.9", labels: []labelName{
		{roleGPU, "gpu"}, {roleUUID, "UUID"}, {rolePCIBusID, "pci_bus_id"}, {roleName, "device"}, {roleModel, "modelName"},
		{roleProfile, "GPU_I_PROFILE"}, {roleInstance, "GPU_I_ID"}, {roleHostname, "hostname"},
		{roleDriver, "DCGM_FI_SYSTEM_DRIVER_VERSION"},
		{roleContainer, "container"}, {roleNamespace, "namespace"}, {rolePod, "pod"},
	}},
	Jobstats: {word: "jobstats"}, // see jobRendering
}

// String returns the word that ParseVersion takes.
func (v Version) String() string { return versions[v].word }

// ParseVersion returns the Version of a version of dcgm-exporter, such as 4.8, 3.3 or 4.5.2, or of
// jobstats.
func ParseVersion(word string) (Version, error) {
	number, _ := strings.CutPrefix(word, "4.")
	minor, _, _ := strings.Cut(number, ".")
	switch numeric := strings.Trim(word, "0123456789.") == ""; {
	case word == versions[Jobstats].word:
		return Jobstats, nil
	case !numeric:
	case word == "1" || strings.HasPrefix(word, "1."):
		return V1, nil
	case word == "2" || word == "3" || strings.HasPrefix(word, "2.") || strings.HasPrefix(word, "3."):
		return V2, nil
	case number != word && len(minor) == 1 && minor < "9":
		return V48, nil
	case number != word && minor == "9":
		return V49, nil
	}
	return 0, fmt.Errorf("%q is not a dialect that readings can be served in; use a version of dcgm-exporter from 1 to 4.9, such as 4.8, or jobstats", word)
}

// header returns the HELP and TYPE lines of a quantity in v.
func (v Version) header(q *quantity) string {
	kind, ok := versions[v].types[q.field]
	if !ok {
		kind = canonical.Fields[q.field].Type
	}
	return string(exposition.AppendHeader(nil, q.worded[v].name, q.help(v), string(kind)))
}

// rewritten are the roles of the labels that versions name differently or lack. All other
// labels, such as the job or labels of the pod, stay as they are: they may be all that
// distinguishes two rows.
var rewritten = [numRoles]bool{
	roleGPU: true, roleUUID: true, roleHostname: true, roleModel: true, roleName: true, rolePCIBusID: true,
	roleDriver: true, roleInstance: true, roleProfile: true, roleEntity: true,
	roleNamespace: true, rolePod: true, roleContainer: true,
	roleOldNamespace: true, roleOldPod: true, roleOldContainer: true,
}

// appendLabels appends the label block that v writes for a row with these labels; row has
// their values by role.
func (v Version) appendLabels(dst []byte, row *values, labels []raw.Label) []byte {
	a := allocationOf(row)
	row[roleContainer], row[roleNamespace], row[rolePod] = a.Container, a.Namespace, a.Pod
	separator := byte('{')
	add := func(name, value string) {
		if value != "" { // an empty label is the same as none
			dst = exposition.AppendLabel(append(dst, separator), name, value)
			separator = ','
		}
	}
	for _, l := range versions[v].labels {
		add(l.name, row[l.role])
	}
	for _, l := range labels {
		if r, _, known := placeOf(l.Name); (!known || !rewritten[r]) && !isLeftOut(l.Name, labels) {
			add(l.Name, l.Value)
		}
	}
	return append(dst, "} "...)
}

// isLeftOut reports whether a Prometheus server drops a label: an empty value drops all labels
// of its name, so such a name may occur several times.
func isLeftOut(name string, labels []raw.Label) bool {
	return slices.Contains(labels, raw.Label{Name: name})
}
