package expose

import (
	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// appendLabels appends names and values in turn, after an opening brace or other labels.
func appendLabels(dst []byte, pairs ...string) []byte {
	for i := 0; i < len(pairs); i += 2 {
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = exposition.AppendLabel(dst, pairs[i], pairs[i+1])
	}
	return dst
}

// appendDevice appends the labels that all series of d have, with the opening brace only.
func appendDevice(dst []byte, d *canonical.Device) []byte {
	dst = appendLabels(append(dst, '{'), "hostname", d.Hostname, "gpu", d.GPU, "uuid", d.UUID)
	if d.IsInstance() {
		dst = appendLabels(dst, "mig_instance", d.Instance, "mig_profile", d.Profile)
	}
	return dst
}

// appendInfo appends the further labels of gpu_info.
func appendInfo(dst []byte, d *canonical.Device) []byte {
	return appendLabels(dst, "model", d.Model, "device", d.Name, "pci_bus_id", d.PCIBusID, "driver_version", d.Driver)
}

// appendAllocation appends the labels of all series of a beyond those of its device, without
// the closing brace.
func appendAllocation(dst []byte, a *canonical.Allocation) []byte {
	return appendLabels(dst, "workload_namespace", a.Namespace, "workload_pod", a.Pod, "workload_container", a.Container,
		"workload_kind", a.Kind, "workload_name", a.Name, "hpc_job", a.Job)
}

// appendBatch appends the further labels of allocation_info for a batch job.
func appendBatch(dst []byte, a *canonical.Allocation) []byte {
	if a.Job == "" {
		return dst
	}
	return appendLabels(dst, "hpc_user", a.User, "hpc_account", a.Account, "hpc_partition", a.Partition)
}

// appendSource appends the labels that all series of a source have, with the opening brace only.
func appendSource(dst []byte, s *canonical.Source) []byte {
	return appendLabels(append(dst, '{'), "source", s.Name, "backend", s.Backend)
}

// appendSourceInfo appends the further labels of source_info.
func appendSourceInfo(dst []byte, s *canonical.Source, _ int) []byte {
	return appendLabels(dst, "aggregation", s.Aggregation, "version", s.Version)
}

// appendStream appends the label of the i-th stream of a source.
func appendStream(dst []byte, s *canonical.Source, i int) []byte {
	return appendLabels(dst, "stream", s.Streams[i].Name)
}
