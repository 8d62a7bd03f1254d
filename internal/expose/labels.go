package expose

import (
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// appendDevice appends the labels that all series of d have, after an opening
// brace and without the closing one.
func appendDevice(dst []byte, d *canonical.Device) []byte {
	dst = exposition.AppendLabel(append(dst, '{'), "hostname", d.Hostname)
	dst = exposition.AppendLabel(append(dst, ','), "gpu", d.GPU)
	dst = exposition.AppendLabel(append(dst, ','), "uuid", d.UUID)
	if d.IsInstance() {
		dst = exposition.AppendLabel(append(dst, ','), "mig_instance", d.Instance)
		dst = exposition.AppendLabel(append(dst, ','), "mig_profile", d.Profile)
	}
	return dst
}

// appendInfo appends the further labels of gpu_info, and the end of the label block.
func appendInfo(dst []byte, d *canonical.Device) []byte {
	dst = exposition.AppendLabel(append(dst, ','), "model", d.Model)
	dst = exposition.AppendLabel(append(dst, ','), "device", d.Name)
	dst = exposition.AppendLabel(append(dst, ','), "pci_bus_id", d.PCIBusID)
	dst = exposition.AppendLabel(append(dst, ','), "driver_version", d.Driver)
	return append(dst, "} "...)
}

// appendFabric appends the further labels of gpu_fabric_info, and the end of the label block;
// nothing if there is no such series.
func appendFabric(dst []byte, d *canonical.Device) []byte {
	if d.IsInstance() || d.Cluster == "" && d.Clique == "" {
		return dst
	}
	dst = exposition.AppendLabel(append(dst, ','), "cluster_uuid", d.Cluster)
	dst = exposition.AppendLabel(append(dst, ','), "clique_id", d.Clique)
	return append(dst, "} "...)
}

// appendAllocation appends the labels of all series of a beyond those of its device, without
// the closing brace.
func appendAllocation(dst []byte, a *canonical.Allocation) []byte {
	dst = exposition.AppendLabel(append(dst, ','), "workload_namespace", a.Namespace)
	dst = exposition.AppendLabel(append(dst, ','), "workload_pod", a.Pod)
	dst = exposition.AppendLabel(append(dst, ','), "workload_container", a.Container)
	dst = exposition.AppendLabel(append(dst, ','), "workload_kind", a.Kind)
	dst = exposition.AppendLabel(append(dst, ','), "workload_name", a.Name)
	return exposition.AppendLabel(append(dst, ','), "hpc_job", a.Job)
}

// appendBatch appends the further labels of allocation_info for a batch job, without the
// closing brace.
func appendBatch(dst []byte, a *canonical.Allocation) []byte {
	if a.Job == "" {
		return dst
	}
	dst = exposition.AppendLabel(append(dst, ','), "hpc_user", a.User)
	dst = exposition.AppendLabel(append(dst, ','), "hpc_account", a.Account)
	return exposition.AppendLabel(append(dst, ','), "hpc_partition", a.Partition)
}

// appendSource appends the labels that all series of a source have, after an
// opening brace and without the closing one.
func appendSource(dst []byte, s *canonical.Source) []byte {
	dst = exposition.AppendLabel(append(dst, '{'), "source", s.Name)
	return exposition.AppendLabel(append(dst, ','), "backend", s.Backend)
}

// appendSourceInfo appends the further labels of source_info, and the end of the label block.
func appendSourceInfo(dst []byte, s *canonical.Source) []byte {
	dst = exposition.AppendLabel(append(dst, ','), "aggregation", s.Aggregation)
	dst = exposition.AppendLabel(append(dst, ','), "version", s.Version)
	return append(dst, "} "...)
}

// tail returns what follows the common labels of a series: its own labels in exposition syntax,
// the closing brace and the space before the value.
func tail(labels ...string) string {
	if len(labels) == 0 || labels[0] == "" {
		return "} "
	}
	return "," + strings.Join(labels, ",") + "} "
}

// labelNames returns the names in labels, which are in exposition syntax and have no comma in
// their values.
func labelNames(labels string) string {
	if labels == "" {
		return ""
	}
	var names []string
	for label := range strings.SplitSeq(labels, ",") {
		name, _, _ := strings.Cut(label, "=")
		names = append(names, name)
	}
	return strings.Join(names, ",")
}
