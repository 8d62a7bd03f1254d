package translate

import (
	"cmp"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// allocationOf returns a row's allocation, without the index of its device. It has no
// Workload unless a pod, a job or a container is named: exporters also write labels of pods,
// as "", on the rows of free devices. A container without a pod and a namespace runs on the
// host itself (container runtime labels, since 4.8.3).
//
// The plain names go before the old ones, since a label copied from the pod may have an old
// name.
func allocationOf(v *values) canonical.Allocation {
	a := canonical.Allocation{Workload: canonical.Workload{
		Namespace: cmp.Or(v[roleNamespace], v[roleOldNamespace]),
		Pod:       cmp.Or(v[rolePod], v[roleOldPod]),
		Container: cmp.Or(v[roleContainer], v[roleOldContainer]),
		Job:       strings.TrimSpace(v[roleHPCJob]), // the exporter copies lines of the job's file unchanged
	}, User: v[roleCardUser], Partition: v[roleCardPartition]}
	if a.Pod == "" {
		if a.Namespace != "" {
			a.Namespace, a.Container = "", ""
		}
		return a
	}
	for i := range owners {
		if name := owners[i].name(v, a.Pod); name != "" {
			a.Kind, a.Name = owners[i].kind, name
			break
		}
	}
	return a
}

// owner is a kind of object that pods belong to. name returns the name of the one
// that a pod with these labels belongs to, "" if it belongs to none.
type owner struct {
	kind string
	name func(v *values, pod string) string
}

// owners are the kinds that the labels of a pod prove, because a controller sets these
// labels. Kinds that own others go first: the pods of a JobSet are those of its Jobs.
var owners = []owner{
	{"JobSet", labelled(roleJobSet)},
	{"LeaderWorkerSet", labelled(roleLeaderWorkerSet)},
	{"RayCluster", labelled(roleRayCluster)},
	{"InferenceService", labelled(roleInferenceService)},
	{"PyTorchJob", trained("pytorchjob-controller")},
	{"TFJob", trained("tfjob-controller")},
	{"MPIJob", trained("mpijob-controller")},
	{"MPIJob", trained("mpi-operator")},
	{"Workflow", labelled(roleWorkflow)},
	{"Job", labelled(roleBatchJob)},
	{"StatefulSet", statefulSet},
	{"Deployment", deployment},
	{"Job", legacyJob},
}

// labelled is for kinds whose name is the value of a label.
func labelled(r role) func(*values, string) string {
	return func(v *values, _ string) string { return v[r] }
}

// trained is for the kinds of Kubeflow's training operators, which share one label for the
// name.
func trained(operator string) func(*values, string) string {
	return func(v *values, _ string) string {
		if v[roleTrainingOperator] != operator {
			return ""
		}
		return v[roleTrainingJob]
	}
}

// statefulSet removes the ordinal from the pod's name. Kubernetes also puts the name and,
// since 1.28, the ordinal into labels.
func statefulSet(v *values, pod string) string {
	name, ordinal := cutLast(pod)
	if ordinal == "" || ordinal != v[rolePodIndex] && pod != v[roleStatefulPod] {
		return ""
	}
	return name
}

// deployment removes the hash of the ReplicaSet and the five random characters of
// the pod from its name.
func deployment(v *values, pod string) string {
	set, random := cutLast(pod)
	name, hash := cutLast(set)
	if len(random) != 5 || hash == "" || hash != v[rolePodTemplateHash] {
		return ""
	}
	return name
}

// legacyJob is for the label without a prefix, the only one before Kubernetes
// 1.27. Anyone may set it, as Kubeflow's operators do, so the pod's name has to agree.
func legacyJob(v *values, pod string) string {
	job := v[roleLegacyJob]
	if v[roleTrainingJob] != "" || !strings.HasPrefix(pod, job+"-") {
		return ""
	}
	return job
}

// cutLast cuts s at its last dash; both parts are "" if it has none.
func cutLast(s string) (before, after string) {
	i := strings.LastIndexByte(s, '-')
	if i < 0 {
		return "", ""
	}
	return s[:i], s[i+1:]
}
