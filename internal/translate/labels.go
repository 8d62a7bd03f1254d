package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// role is the meaning of a label.
type role uint8

const (
	roleGPU role = iota
	roleUUID
	roleHostname
	roleModel
	roleName
	rolePCIBusID
	roleDriver
	roleCluster
	roleClique
	roleInstance
	roleProfile
	roleOrdinal // a row of the exporter of Jobstats, whose other labels follow
	roleMinor
	roleMinorModel
	roleMinorJob
	roleCard // a row of AMD's exporter: see asCard
	roleCardSerial
	roleCardSeries
	roleCardModel
	roleCardDriver
	roleCardMode
	roleCardPart
	roleCardJob
	roleCardUser
	roleCardPartition
	roleEntity   // a row of dmon, whose devices have no uuid
	roleNVLink   // a row of a link; see links
	roleNoDevice // a row of something inside or beside a GPU

	// What Prometheus adds to each series of a target.
	roleTargetJob
	roleTargetInstance

	// The allocation: see allocationOf.
	roleNamespace
	rolePod
	roleContainer
	roleOldNamespace
	roleOldPod
	roleOldContainer
	roleHPCJob
	roleClaimedProfile // of a MIG device that the workload holds through a claim
	roleClaimedUUID    // of that device

	// What the pod belongs to: see owners.
	roleJobSet
	roleLeaderWorkerSet
	roleRayCluster
	roleInferenceService
	roleTrainingOperator
	roleTrainingJob
	roleWorkflow
	roleBatchJob
	roleLegacyJob
	roleStatefulPod
	rolePodIndex
	rolePodTemplateHash
	numRoles
)

// values are the labels of a row by role, "" if a label is absent or blank.
type values [numRoles]string

// labelNames gives the role of each label, by its name in lower case: versions differ in
// case, as in Hostname and hostname, UUID and uuid. Rows of links and, since 4.9, of GPUs
// spell some words out.
var labelNames = map[string]role{
	"gpu":                           roleGPU,
	"uuid":                          roleUUID,
	"gpu_uuid":                      roleUUID,
	"hostname":                      roleHostname,
	"modelname":                     roleModel,
	"model_name":                    roleModel,
	"device":                        roleName,
	"pci_bus_id":                    rolePCIBusID,
	"dcgm_fi_driver_version":        roleDriver,
	"dcgm_fi_system_driver_version": roleDriver,

	"dcgm_fi_dev_fabric_cluster_uuid": roleCluster,
	"dcgm_fi_dev_fabric_clique_id":    roleClique,

	"gpu_i_id":                   roleInstance,
	"gpu_instance_entity":        roleInstance,
	"gpu_i_profile":              roleProfile,
	"ordinal":                    roleOrdinal,
	"minor_number":               roleMinor,
	"name":                       roleMinorModel,
	"jobid":                      roleMinorJob,
	"gpu_id":                     roleCard,
	"serial_number":              roleCardSerial,
	"card_series":                roleCardSeries,
	"card_model":                 roleCardModel,
	"driver_version":             roleCardDriver,
	"gpu_compute_partition_type": roleCardMode,
	"gpu_partition_id":           roleCardPart,
	"job_id":                     roleCardJob,
	"job_user":                   roleCardUser,
	"job_partition":              roleCardPartition,
	"entity":                     roleEntity,
	"nvlink":                     roleNVLink,
	"nvswitch":                   roleNoDevice,
	"cpu":                        roleNoDevice,
	"cpucore":                    roleNoDevice,
	"gpu_ci_id":                  roleNoDevice,
	"job":                        roleTargetJob,
	"instance":                   roleTargetInstance,

	"namespace":      roleNamespace,
	"pod":            rolePod,
	"container":      roleContainer,
	"pod_namespace":  roleOldNamespace, // dcgm-exporter 1.x, and --use-old-namespace
	"pod_name":       roleOldPod,
	"container_name": roleOldContainer,
	"hpc_job":        roleHPCJob,

	"dra_mig_profile":     roleClaimedProfile,
	"dra_mig_device_uuid": roleClaimedUUID,

	// Labels of pods that --kubernetes-enable-pod-labels copies, with _ for each
	// character that label names do not allow.
	"jobset_sigs_k8s_io_jobset_name":      roleJobSet,
	"leaderworkerset_sigs_k8s_io_name":    roleLeaderWorkerSet,
	"ray_io_cluster":                      roleRayCluster,
	"serving_kserve_io_inferenceservice":  roleInferenceService,
	"training_kubeflow_org_operator_name": roleTrainingOperator,
	"training_kubeflow_org_job_name":      roleTrainingJob,
	"workflows_argoproj_io_workflow":      roleWorkflow,
	"batch_kubernetes_io_job_name":        roleBatchJob,
	"job_name":                            roleLegacyJob,
	"statefulset_kubernetes_io_pod_name":  roleStatefulPod,
	"apps_kubernetes_io_pod_index":        rolePodIndex,
	"pod_template_hash":                   rolePodTemplateHash,
}

// exportedPrefix is the prefix that Prometheus adds to a scraped label if the target has one
// of that name. The label without the prefix is then the target's.
const exportedPrefix = "exported_"

// podUIDLabel is on the rows of pods if dcgm-exporter looks up their processes.
const podUIDLabel = "pod_uid"

// variant is the device and the allocation in the labels of a row. Rows of one device may have
// different variants; rows that differ only in other labels share one.
type variant struct {
	canonical.Device
	// allocation is what the labels of the row name, without the index of its device; see
	// holderOf. It has no Workload if the device is free.
	allocation canonical.Allocation
	// claimed is set if the workload holds a MIG device of the board through a claim, with the
	// profile if that is known.
	claimed bool
	profile string
	// exported is set if Prometheus renamed the pod label of the row; target, if the row has
	// been through a Prometheus that did not.
	exported, target bool
	// nameless is set if the exporter did not learn the UID of the row's pod, which it needs
	// to find the pod's processes.
	nameless bool
	// virtual is set if the row has the label vgpu, even an empty one: dcgm-exporter 4.4.2 to 4.7.0
	// then write rows of the GPUs alone that a pod holds (NVIDIA/dcgm-exporter#611).
	virtual bool
	silent  bool // the row has the label silentLabel
}

// holderOf returns the allocation of a row. If Prometheus renamed the pod label of any row of a
// reading, a pod label without the prefix names the exporter's own pod, which holds nothing.
func (t *Translator) holderOf(v *variant) canonical.Allocation {
	if t.relabelled && v.target {
		return canonical.Allocation{Workload: canonical.Workload{Job: v.allocation.Job}}
	}
	return v.allocation
}

// The variants of rows that belong to no device.
const (
	noDevice  = -1
	longLabel = -2 // because a label is longer than Options.MaxLabelValue
)

// resolve returns the variant of a label block. Each block is parsed here, once.
func (t *Translator) resolve(d *raw.Dict, block uint32) int32 {
	t.labels = d.Labels(block, t.labels[:0])
	row := valuesOf(t.labels)
	if row[roleNoDevice] != "" || row[roleNVLink] != "" || row[roleGPU] == "" || row[roleUUID] == "" && row[roleEntity] == "" {
		return noDevice
	}
	if row[roleOrdinal] != "" && (t.vendor || t.cards.read || strings.HasPrefix(row[roleUUID], "MIG-")) {
		return noDevice // the page has it from the vendor's exporter too, or nothing names its board
	}
	v := t.describe(&row, t.labels)
	if t.isTooLong(&row, t.labels) {
		return longLabel
	}
	if id, known := t.variantID[v]; known {
		return id
	}
	v.Device, v.allocation, v.profile = cloneDevice(v.Device), cloneAllocation(v.allocation), strings.Clone(v.profile)
	id := int32(len(t.variants))
	t.variants = append(t.variants, v)
	t.positions = append(t.positions, position{row: notHere})
	t.variantID[v] = id
	return id
}

// isTooLong reports whether a value of a row is longer than allowed, and notes the first. What
// Prometheus adds to each series describes no device.
func (t *Translator) isTooLong(row *values, labels []raw.Label) bool {
	row[roleTargetJob], row[roleTargetInstance] = "", ""
	i := slices.IndexFunc(row[:], func(value string) bool { return len(value) > t.opts.MaxLabelValue })
	if i < 0 || t.opts.MaxLabelValue == 0 {
		return false
	}
	if t.long == nil {
		name := labels[slices.IndexFunc(labels, func(l raw.Label) bool { return l.Value == row[i] })].Name
		t.long = &canonical.Note{
			Cause:  fmt.Sprintf("the label %s has %d bytes, more than --source.max-label-value=%d: its row is left out", name, len(row[i]), t.opts.MaxLabelValue),
			Remedy: "have the exporter shorten it, or raise --source.max-label-value",
		}
	}
	return true
}

// valuesOf returns labels by role. Of several labels with one role, the first that is not
// blank counts, since the exporter writes its own labels before those of pods. Labels that
// Prometheus renamed take precedence.
func valuesOf(labels []raw.Label) (row values) {
	var exported values
	for _, l := range labels {
		r, renamed, known := placeOf(l.Name)
		of := &row
		if renamed {
			of = &exported
		}
		if known && of[r] == "" && !isBlank(l.Value) {
			of[r] = l.Value
		}
	}
	for r := range row {
		row[r] = cmp.Or(exported[r], row[r])
	}
	row.asCard()
	if row[roleGPU] != "" {
		row[roleOrdinal] = "" // any pod may have such labels
	}
	if row[roleOrdinal] != "" {
		row[roleGPU], row[roleName], row[roleModel], row[roleHPCJob] = row[roleOrdinal], fileOf(row[roleMinor]), row[roleMinorModel], row[roleMinorJob]
	}
	row[roleMinor], row[roleMinorModel], row[roleMinorJob] = "", "", ""
	return row
}

// fileOf returns the name of the device file with a minor number.
func fileOf(minor string) string {
	if minor == "" {
		return ""
	}
	return "nvidia" + minor
}

// placeOf is roleOf for a name that Prometheus may have renamed.
func placeOf(name string) (r role, renamed, known bool) {
	if n := len(exportedPrefix); len(name) > n && strings.EqualFold(name[:n], exportedPrefix) {
		r, known = roleOf(name[n:])
		return r, true, known
	}
	r, known = roleOf(name)
	return r, false, known
}

// describe returns the variant that a row with these labels describes.
func (t *Translator) describe(row *values, labels []raw.Label) variant {
	v := variant{Device: t.deviceOf(row), allocation: allocationOf(row)}
	if !v.IsInstance() {
		v.profile = row[roleClaimedProfile]
		v.claimed = v.profile != "" || row[roleClaimedUUID] != ""
	}
	v.exported = slices.ContainsFunc(labels, func(l raw.Label) bool {
		r, renamed, _ := placeOf(l.Name)
		return renamed && r == rolePod && !isBlank(l.Value)
	})
	v.nameless = slices.ContainsFunc(labels, func(l raw.Label) bool { return l.Name == podUIDLabel && l.Value == "" })
	v.virtual = slices.ContainsFunc(labels, func(l raw.Label) bool { return l.Name == "vgpu" })
	v.silent = slices.ContainsFunc(labels, func(l raw.Label) bool { return l.Name == silentLabel })
	v.target = !v.exported && row[rolePod] != "" && row[roleTargetJob] != "" && row[roleTargetInstance] != ""
	return v
}

// deviceOf returns the device of a row as its labels describe it.
func (t *Translator) deviceOf(row *values) canonical.Device {
	d := canonical.Device{
		Hostname: cmp.Or(t.opts.NodeName, ownHostname(row[roleHostname])),
		GPU:      row[roleGPU],
		UUID:     row[roleUUID],
		Instance: row[roleInstance],
		Model:    row[roleModel],
		Name:     row[roleName],
		PCIBusID: row[rolePCIBusID],
		Driver:   row[roleDriver],
		Cluster:  row[roleCluster],
		Clique:   row[roleClique],
	}
	if d.Instance != "" {
		d.Profile = row[roleProfile]
	}
	return d
}

// ownHostname returns a hostname, or "" for a name of the loopback interface: an exporter that
// queries the host engine of localhost uses that as the name of the node.
func ownHostname(hostname string) string {
	if canonical.NamesLoopback(hostname) {
		return ""
	}
	return hostname
}

// roleOf looks a label name up, ignoring case.
func roleOf(name string) (role, bool) {
	const longest = len("training_kubeflow_org_operator_name")
	if len(name) > longest {
		return 0, false
	}
	var lower [longest]byte
	for i := range len(name) {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	r, ok := labelNames[string(lower[:len(name)])]
	return r, ok
}

// isBlank reports whether a label has no value: it is empty, one of the vendor's blank
// strings (<<<NULL>>>, <<<NOT_FOUND>>>, <<<NOT_SUPPORTED>>>, <<<NOT_PERM>>>), or the
// text that dcgm-exporter or AMD's exporter writes instead on some rows.
func isBlank(value string) bool {
	return value == "" || value == "SKIPPING DCGM VALUE" || value == "N/A" ||
		strings.HasPrefix(value, "<<<") && strings.Contains(value, ">>>")
}

// cloneDevice copies the strings of d, which would otherwise keep whole label blocks alive.
func cloneDevice(d canonical.Device) canonical.Device {
	for _, s := range []*string{&d.Hostname, &d.GPU, &d.UUID, &d.Instance, &d.Profile, &d.Model, &d.Name, &d.PCIBusID, &d.Driver, &d.Cluster, &d.Clique} {
		*s = strings.Clone(*s)
	}
	return d
}

// cloneAllocation does the same for an allocation, whose Kind is of no label.
func cloneAllocation(a canonical.Allocation) canonical.Allocation {
	for _, s := range []*string{&a.Namespace, &a.Pod, &a.Container, &a.Job, &a.Name, &a.User, &a.Partition} {
		*s = strings.Clone(*s)
	}
	return a
}
