package translate

import (
	"reflect"
	"strings"
	"testing"
	"unsafe"

	c "github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Each dialect of the labels that name the holder of a device, as dcgm-exporter
// and Prometheus write them.
func TestAllocationOfARow(t *testing.T) {
	tests := []struct {
		name   string
		labels string
		want   c.Workload
	}{
		{"a pod", `container="main",namespace="team",pod="train-0"`, c.Workload{Namespace: "team", Pod: "train-0", Container: "main"}},
		{"the old names", `container_name="main",pod_name="train-0",pod_namespace="team"`, c.Workload{Namespace: "team", Pod: "train-0", Container: "main"}},
		{"behind honorLabels: false", `container="exporter",namespace="monitoring",pod="dcgm-exporter-x",exported_container="main",exported_namespace="team",exported_pod="train-0"`,
			c.Workload{Namespace: "team", Pod: "train-0", Container: "main"}},
		{"the same in another order", `exported_pod="train-0",exported_namespace="team",exported_container="main",pod="dcgm-exporter-x",namespace="monitoring",container="exporter"`,
			c.Workload{Namespace: "team", Pod: "train-0", Container: "main"}},
		{"a target without a container", `container="main",namespace="monitoring",pod="dcgm-exporter-x",exported_namespace="team",exported_pod="train-0"`,
			c.Workload{Namespace: "team", Pod: "train-0", Container: "main"}},
		{"exported, but empty", `pod="train-0",exported_pod="",namespace="team"`, c.Workload{Namespace: "team", Pod: "train-0"}},
		{"a pod's own label pod-name", `pod_name="nick",container="main",namespace="team",pod="train-0"`, c.Workload{Namespace: "team", Pod: "train-0", Container: "main"}},
		{"any case", `Container="main",NAMESPACE="team",Pod="train-0"`, c.Workload{Namespace: "team", Pod: "train-0", Container: "main"}},
		{"escapes", `pod="a\"b\\"`, c.Workload{Pod: `a"b\`}},
		{"a job", `hpc_job="4711"`, c.Workload{Job: "4711"}},
		{"a job as a file has it, blanks and all", `hpc_job=" 4711 "`, c.Workload{Job: "4711"}},
		{"an empty line of it", `hpc_job=" "`, c.Workload{}},
		{"a job in a pod", `container="main",namespace="team",pod="train-0",hpc_job="4711"`, c.Workload{Namespace: "team", Pod: "train-0", Container: "main", Job: "4711"}},
		{"a job with empty labels of a pod", `container="",namespace="",pod="",hpc_job="4711"`, c.Workload{Job: "4711"}},
		{"what is not a part of the identity", `pod="train-0",pod_uid="1-2",vgpu="3",app="x"`, c.Workload{Pod: "train-0"}},

		{"none", ``, c.Workload{}},
		{"empty ones", `container="",namespace="",pod="",hpc_job=""`, c.Workload{}},
		{"the old ones empty", `container_name="",pod_name="",pod_namespace=""`, c.Workload{}},
		{"a namespace alone", `container="main",namespace="team",pod=""`, c.Workload{}},
		{"a container of the host's own", `container="main"`, c.Workload{Container: "main"}},
		{"one with a job", `container="main",hpc_job="7"`, c.Workload{Container: "main", Job: "7"}},
		{"claims of dynamic resources", `pod="p",dra_claim_name="x",dra_claim_namespace="y",dra_driver_name="gpu.nvidia.com",dra_pool_name="n",dra_device_name="gpu-0"`, c.Workload{Pod: "p"}},
		{"the job of a scrape", `job="dcgm",job_name="train"`, c.Workload{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := translated(t, Options{}, temp(`gpu="0",UUID="A",`+test.labels, 40))
			if test.want == (c.Workload{}) {
				r.checkHolds()
				return
			}
			r.checkHolds(c.Allocation{Workload: test.want})
		})
	}
}

// TestOwnerOfAPod finds the owner of a pod by the labels that controllers put on pods, as
// dcgm-exporter sanitizes them.
func TestOwnerOfAPod(t *testing.T) {
	tests := []struct {
		name       string
		pod        string
		labels     string
		kind, want string
	}{
		{"Job", "train-7-x2lq9", `batch_kubernetes_io_job_name="train-7"`, "Job", "train-7"},
		// Kubernetes cuts a pod's name after 58 characters, and a Job's after 63.
		{"Job with a long name", strings.Repeat("j", 58) + "x2lq9", `batch_kubernetes_io_job_name="` + strings.Repeat("j", 63) + `"`, "Job", strings.Repeat("j", 63)},
		{"Job before 1.27", "train-7-x2lq9", `controller_uid="u",job_name="train-7"`, "Job", "train-7"},
		{"somebody's label job-name", "web-0", `job_name="train-7"`, "", ""},
		{"a longer name", "train-77-x2lq9", `job_name="train-7"`, "", ""},
		{"JobSet, by way of its Job", "sim-work-0-1-abcde", `batch_kubernetes_io_job_name="sim-work-0",jobset_sigs_k8s_io_jobset_name="sim"`, "JobSet", "sim"},
		{"LeaderWorkerSet, by way of its StatefulSet", "llm-0-1", `apps_kubernetes_io_pod_index="1",leaderworkerset_sigs_k8s_io_name="llm",statefulset_kubernetes_io_pod_name="llm-0-1"`, "LeaderWorkerSet", "llm"},
		{"RayCluster", "rc-gpu-worker-abcde", `ray_io_cluster="rc"`, "RayCluster", "rc"},
		{"InferenceService, by way of its Deployment", "llama-predictor-7c5d-abcde", `pod_template_hash="7c5d",serving_kserve_io_inferenceservice="llama"`, "InferenceService", "llama"},
		{"PyTorchJob", "bert-worker-0", `job_name="bert",training_kubeflow_org_job_name="bert",training_kubeflow_org_operator_name="pytorchjob-controller"`, "PyTorchJob", "bert"},
		{"TFJob", "tf-worker-0", `training_kubeflow_org_job_name="tf",training_kubeflow_org_operator_name="tfjob-controller"`, "TFJob", "tf"},
		{"MPIJob", "pi-worker-0", `training_kubeflow_org_job_name="pi",training_kubeflow_org_operator_name="mpijob-controller"`, "MPIJob", "pi"},
		{"MPIJob of its own operator, by way of a Job", "pi-launcher-abcde", `batch_kubernetes_io_job_name="pi-launcher",training_kubeflow_org_job_name="pi",training_kubeflow_org_operator_name="mpi-operator"`, "MPIJob", "pi"},
		{"an operator that nobody knows", "x-worker-0", `job_name="x",training_kubeflow_org_job_name="x",training_kubeflow_org_operator_name="ascendjob-controller"`, "", ""},
		{"Workflow", "flow-step-123", `workflows_argoproj_io_workflow="flow"`, "Workflow", "flow"},
		{"StatefulSet", "db-12", `apps_kubernetes_io_pod_index="12"`, "StatefulSet", "db"},
		{"StatefulSet before 1.28", "my-db-0", `statefulset_kubernetes_io_pod_name="my-db-0"`, "StatefulSet", "my-db"},
		{"another ordinal", "db-12", `apps_kubernetes_io_pod_index="2"`, "", ""},
		{"another pod's name", "db-12", `statefulset_kubernetes_io_pod_name="db-11"`, "", ""},
		{"Deployment", "my-web-6d4cf56db6-x2lq9", `pod_template_hash="6d4cf56db6"`, "Deployment", "my-web"},
		{"another hash", "my-web-6d4cf56db6-x2lq9", `pod_template_hash="6d4cf56db7"`, "", ""},
		{"nothing random behind the hash", "my-web-6d4cf56db6", `pod_template_hash="6d4cf56db6"`, "", ""},
		{"no dash", "web", `apps_kubernetes_io_pod_index="0",pod_template_hash="1",statefulset_kubernetes_io_pod_name="web"`, "", ""},
		{"empty labels", "a-b", `apps_kubernetes_io_pod_index="",batch_kubernetes_io_job_name="",job_name="",pod_template_hash=""`, "", ""},
		{"not five random characters", "my-web-6d4cf56db6-0", `pod_template_hash="6d4cf56db6"`, "", ""},
		{"no hash", "web--x2lq9", `app="web"`, "", ""},
		{"no ordinal", "web-", `app="web"`, "", ""},
		{"none", "web-0", `app="web"`, "", ""},
		{"no pod", "", `hpc_job="1",batch_kubernetes_io_job_name="train-7",job_name="train-7"`, "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			// Pod labels come before the exporter's own in some versions.
			for _, labels := range []string{test.labels + `,pod="` + test.pod + `"`, `pod="` + test.pod + `",` + test.labels} {
				r := translated(t, Options{}, temp(`gpu="0",UUID="A",`+labels, 40))
				if n := len(r.frame.AllocationSet.Allocations); n != 1 {
					t.Fatalf("%d allocations of %s", n, labels)
				}
				a := r.frame.AllocationSet.Allocations[0]
				if a.Kind != test.kind || a.Name != test.want {
					t.Errorf("%s: %q %q, want %q %q", labels, a.Kind, a.Name, test.kind, test.want)
				}
			}
		})
	}
}

// roleOf finds every name of the table.
func TestLabelNamesCanBeFound(t *testing.T) {
	for name, want := range labelNames {
		if got, ok := roleOf(name); !ok || got != want {
			t.Errorf("%s is %d, %v; want %d", name, got, ok, want)
		}
	}
}

// TestRelabelledScrape: labels that Prometheus renamed are the exporter's, and those with the
// plain name beside them are the target's. If pods were renamed, a free device only has the
// target's pod.
func TestRelabelledScrape(t *testing.T) {
	const target = `,instance="10.0.0.1:9400",job="dcgm",namespace="monitoring",pod="dcgm-exporter-x",container="exporter"`
	r := newReader(t, Options{})
	r.read(temp(`gpu="0",UUID="A",exported_namespace="n",exported_pod="p",exported_container="c"`+target, 40) + temp(`gpu="1",UUID="B"`+target, 50))
	r.checkHolds(c.Allocation{Workload: c.Workload{Namespace: "n", Pod: "p", Container: "c"}})
	// honorLabels: the pods have their own names.
	r.read(temp(`gpu="0",UUID="A",instance="i",job="j",namespace="n",pod="p"`, 40) + temp(`gpu="1",UUID="B",instance="i",job="j",namespace="n",pod="q"`, 50))
	r.checkHolds(c.Allocation{Workload: c.Workload{Namespace: "n", Pod: "p"}}, c.Allocation{Device: 1, Workload: c.Workload{Namespace: "n", Pod: "q"}})
	// Only a renamed pod shows that pods are renamed.
	r.read(temp(`gpu="0",UUID="A",exported_pod="p",pod="exporter",instance="i",job="j"`, 40) + temp(`gpu="1",UUID="B",pod="exporter",instance="i",job="j"`, 50))
	r.checkHolds(onPod(0, "p"))
	r.read(temp(`gpu="0",UUID="A",exported_pod="",instance="i",job="j",pod="p"`, 40) + temp(`gpu="1",UUID="B",instance="i",job="j",pod="q"`, 50))
	r.checkHolds(onPod(0, "p"), onPod(1, "q"))
	// Prometheus adds both labels to each series: a row with one of them is not of a target.
	r.read(temp(`gpu="0",UUID="A",exported_pod="p"`, 40) + temp(`gpu="1",UUID="B",instance="i",pod="q"`, 50) + temp(`gpu="2",UUID="C",job="j",pod="r"`, 50))
	r.checkHolds(onPod(0, "p"), onPod(1, "q"), onPod(2, "r"))
	// A row without a pod is not of a target with one, and the device of a job is not free, but
	// the exporter's pod has no part of it.
	r.read(temp(`gpu="0",UUID="A",exported_pod="p"`, 40) + temp(`gpu="1",UUID="B",instance="i",job="j",container="c"`, 50))
	r.checkHolds(onPod(0, "p"), c.Allocation{Device: 1, Workload: c.Workload{Container: "c"}})
	r.read(temp(`gpu="0",UUID="A",exported_pod="p"`, 40) + temp(`gpu="1",UUID="B",instance="i",job="j",pod="exporter",hpc_job="7"`, 50))
	r.checkHolds(onPod(0, "p"), c.Allocation{Device: 1, Workload: c.Workload{Job: "7"}})
	r = translated(t, Options{MaxLabelValue: 8}, temp(`gpu="0",UUID="A",exported_pod="p",pod="exporter",instance="10.0.0.1:9400",job="j"`, 40)+
		temp(`gpu="1",UUID="B",pod="exporter",instance="10.0.0.1:9400",job="j"`, 50))
	r.checkHolds(onPod(0, "p"))
	r.read(temp(`gpu="0",UUID="A",exported_container="c",instance="i",job="j",pod="p"`, 40) + temp(`gpu="1",UUID="B",instance="i",job="j",pod="q"`, 50))
	r.checkHolds(c.Allocation{Workload: c.Workload{Pod: "p", Container: "c"}}, onPod(1, "q"))
	r = translated(t, Options{}, temp(`gpu="9",exported_gpu="0",UUID="A",hostname="of-the-target",Exported_Hostname="n1",device="eth0",exported_device="nvidia0",exported_hpc_job="7"`, 40))
	r.checkDevices(c.Device{Hostname: "n1", GPU: "0", UUID: "A", Name: "nvidia0"})
	r.checkHolds(c.Allocation{Workload: c.Workload{Job: "7"}})
}

func TestBlankLabels(t *testing.T) {
	for value, want := range map[string]bool{
		"": true, "SKIPPING DCGM VALUE": true, "<<<NULL>>>": true, "<<<NOT_FOUND>>>": true, "<<<x": false, "x>>>": false, "x": false,
	} {
		if isBlank(value) != want {
			t.Errorf("%q is blank: %t", value, !want)
		}
	}
}

// TestVariantsOwnTheirStrings: a variant keeps none of its label block alive, which is far longer
// and may be forgotten first.
func TestVariantsOwnTheirStrings(t *testing.T) {
	const labels = `{gpu="0",UUID="A",Hostname="h",modelName="m",device="d",pci_bus_id="b",DCGM_FI_DRIVER_VERSION="v",GPU_I_ID="1",GPU_I_PROFILE="p",` +
		`DCGM_FI_DEV_FABRIC_CLUSTER_UUID="u",DCGM_FI_DEV_FABRIC_CLIQUE_ID="7",namespace="n",pod="q",container="c",hpc_job="j",` +
		`ray_io_cluster="r",dra_mig_profile="s",dra_mig_device_uuid="t"}`
	r := translated(t, Options{}, "DCGM_FI_DEV_GPU_TEMP"+labels+" 40\n")
	block := r.batch.Dict.Block(r.batch.Samples[0].Labels)
	begin := uintptr(unsafe.Pointer(unsafe.StringData(block)))
	given := 0
	var check func(name string, v reflect.Value)
	check = func(name string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				check(name+"."+v.Type().Field(i).Name, v.Field(i))
			}
		case reflect.String:
			if v.Len() > 0 {
				given++
			}
			if at := uintptr(unsafe.Pointer(unsafe.StringData(v.String()))); at >= begin && at < begin+uintptr(len(block)) {
				t.Errorf("%s is a part of the label block", name)
			}
		}
	}
	check("variant", reflect.ValueOf(r.tr.variants[0]))
	// Without the two of a claim, which an instance has no use for, and with the kind RayCluster.
	if want := strings.Count(labels, "=") - 1; given != want {
		t.Errorf("%d strings are given, want %d", given, want)
	}
}
