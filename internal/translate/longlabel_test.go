package translate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	c "github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestLongLabels checks what each label costs if it is longer than allowed. Beside each row is
// one of another GPU, which loses nothing.
func TestLongLabels(t *testing.T) {
	const limit = 16
	over, fits := strings.Repeat("x", limit+1), strings.Repeat("x", limit)
	row := func(labels string) string { return temp(`gpu="0",UUID="GPU-0",`+labels, 40) }
	for _, tt := range []struct {
		name, body, note string
		devices, holders int
	}{
		{"fits", row(`pod="` + fits + `",modelName="` + fits + `"`), "", 2, 1},
		{"UUID", temp(`gpu="0",UUID="`+over+`"`, 40), "the label UUID has 17 bytes, more than --source.max-label-value=16: its GPU is left out", 1, 0},
		{"gpu", temp(`gpu="`+over+`",UUID="GPU-0"`, 40), "its GPU is left out", 1, 0},
		{"gpu beside its like", temp(`other="`+over+`",gpu="`+over+`",UUID="GPU-0"`, 40), "the label gpu", 1, 0},
		{"GPU_I_ID", row(`GPU_I_ID="` + over + `"`), "the label GPU_I_ID has 17 bytes", 1, 0},
		{"model", row(`modelName="` + over + `"`), "the label modelName has 17 bytes, more than --source.max-label-value=16: it is left out", 2, 0},
		{"hostname", row(`Hostname="` + over + `"`), "the label Hostname", 2, 0},
		{"pod", row(`pod="` + over + `",namespace="n"`), "the label pod has 17 bytes, more than --source.max-label-value=16: the holder of this GPU is not named", 2, 1},
		{"two pods", row(`pod="`+over+`1"`) + row(`pod="`+over+`2"`), "the label pod", 2, 2},
		{"pod in two rows", row(`pod="`+over+`"`) + row(`pod="`+over+`",device="d"`), "the label pod", 2, 1},
		{"job beside a pod", row(`hpc_job="` + over + `",pod="p"`), "the label hpc_job", 2, 1},
		{"pod that Prometheus renamed", row(`pod="exporter",exported_pod="` + over + `"`), "the label exported_pod", 2, 1},
		{"pod of the target", row(`pod="` + over + `",exported_pod="p"`), "", 2, 1},
		{"owner of a pod", row(`pod="p",ray_io_cluster="` + over + `"`), "the label ray_io_cluster has 17 bytes, more than --source.max-label-value=16: it is left out", 2, 1},
		{"model and pod", row(`modelName="` + over + `",pod="` + over + `"`), "the label pod", 2, 1},
		{"gpu and UUID", temp(`gpu="`+over+`",UUID="`+over+`"`, 40), "the label gpu", 1, 0},
		{"UUID and pod", temp(`gpu="0",UUID="`+over+`",pod="`+over+`"`, 40), "the label UUID", 1, 0},
		{"row of a link", row(`nvlink="` + over + `"`), "", 1, 0},
		{"no family of ours", `other{gpu="0",UUID="` + over + `"} 1` + "\n", "", 1, 0},
		{"no label of ours", row(`other="` + over + `"`), "", 2, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := translated(t, Options{MaxLabelValue: limit}, temp(`gpu="1",UUID="GPU-1"`, 41)+tt.body)
			set := r.frame.AllocationSet
			held := 0
			for _, n := range set.Holders {
				held += n
			}
			if r.frame.Len() != tt.devices || held != tt.holders {
				t.Errorf("%d devices with %d holders, want %d with %d", r.frame.Len(), held, tt.devices, tt.holders)
			}
			note := ""
			if n := r.report.LongLabel; n != nil {
				note = n.Cause + "; " + n.Remedy
			}
			var dropped uint64
			if tt.note != "" {
				dropped = uint64(strings.Count(tt.body, "\n")) // each row has the label
			}
			if !strings.Contains(note, tt.note) || (note == "") != (tt.note == "") || r.report.Dropped[c.DropLabelTooLong] != dropped {
				t.Errorf("the note is %q with %d counted, want %q", note, r.report.Dropped[c.DropLabelTooLong], tt.note)
			}
			if text := fmt.Sprint(r.frame.Topology.Devices, set.Allocations); strings.Contains(text, over) {
				t.Errorf("the label is kept: %s", text)
			}
			if tt.note != "" && !strings.Contains(tt.note, "ray") && len(set.Allocations) > 0 {
				t.Errorf("a holder without a name is given as %+v", set.Allocations)
			}
		})
	}
}

// TestLongLabelCosts checks what each known label costs, by the end of the note about it.
func TestLongLabelCosts(t *testing.T) {
	labels := map[string][]string{
		"": {"nvlink", "nvswitch", "cpu", "cpucore", "gpu_ci_id", "job", "instance"},
		"it is left out": {"hostname", "modelname", "model_name", "device", "pci_bus_id", "dcgm_fi_driver_version", "dcgm_fi_system_driver_version",
			"dcgm_fi_dev_fabric_cluster_uuid", "dcgm_fi_dev_fabric_clique_id", "gpu_i_profile", "jobset_sigs_k8s_io_jobset_name",
			"leaderworkerset_sigs_k8s_io_name", "ray_io_cluster", "serving_kserve_io_inferenceservice", "training_kubeflow_org_operator_name",
			"training_kubeflow_org_job_name", "workflows_argoproj_io_workflow", "batch_kubernetes_io_job_name", "job_name",
			"statefulset_kubernetes_io_pod_name", "apps_kubernetes_io_pod_index", "pod_template_hash"},
		"the holder of this GPU is not named": {"namespace", "pod", "container", "pod_namespace", "pod_name", "container_name", "hpc_job",
			"dra_mig_profile", "dra_mig_device_uuid"},
		"its GPU is left out": {"gpu", "uuid", "gpu_uuid", "gpu_i_id", "gpu_instance_entity", "entity"},
	}
	known := 0
	for want, names := range labels {
		known += len(names)
		for _, name := range names {
			r := translated(t, Options{MaxLabelValue: 8}, temp(name+`="123456789",Gpu="0",Uuid="A"`, 40))
			cost := ""
			if r.report.LongLabel != nil {
				_, cost, _ = strings.Cut(r.report.LongLabel.Cause, "--source.max-label-value=8: ")
			}
			if _, ok := labelNames[name]; !ok || cost != want {
				t.Errorf("%s: %q, want %q", name, cost, want)
			}
		}
	}
	if known != len(labelNames) {
		t.Errorf("%d of %d labels are tried", known, len(labelNames))
	}
}

// TestCostliestLongLabel: of several rows, the note is about the first of the costliest labels.
func TestCostliestLongLabel(t *testing.T) {
	rows := []string{
		temp(`gpu="0",UUID="A",modelName="123456789"`, 40),
		temp(`gpu="1",UUID="B",pod="123456789"`, 40),
		temp(`gpu="2",UUID="123456789"`, 40),
	}
	for _, test := range []struct{ body, want string }{
		{rows[0] + rows[1] + rows[2], "the label UUID"},
		{rows[2] + rows[1] + rows[0], "the label UUID"},
		{rows[0] + rows[1], "the label pod"},
		{rows[1] + rows[0], "the label pod"},
		{rows[1] + strings.ReplaceAll(rows[1], "123456789", "1234567890"), "the label pod has 9 bytes"},
	} {
		if note := translated(t, Options{MaxLabelValue: 8}, test.body).report.LongLabel; note == nil || !strings.HasPrefix(note.Cause, test.want) {
			t.Errorf("%+v, want %s", note, test.want)
		}
	}
}

// TestHoldersWithoutName: a holder whose name is too long has no series, so it takes no other's
// place within the limit.
func TestHoldersWithoutName(t *testing.T) {
	r := translated(t, Options{MaxLabelValue: 8, MaxAllocations: 1}, podOn("0", "123456789")+podOn("1", "p"))
	if got := r.frame.AllocationSet.Allocations; !slices.Equal(got, []c.Allocation{onPod(1, "p")}) || r.report.DroppedAllocations != 0 {
		t.Errorf("%+v, %d dropped", got, r.report.DroppedAllocations)
	}
}

// TestLongLabelGoes: once the label is short, its cost and its note are gone.
func TestLongLabelGoes(t *testing.T) {
	over := temp(`gpu="0",UUID="GPU-0",pod="0123456789"`, 40)
	r := newReader(t, Options{MaxLabelValue: 8})
	for _, body := range []string{over, temp(`gpu="0",UUID="GPU-0",pod="p"`, 40), over} {
		r.read(body)
		set, long := r.frame.AllocationSet, body == over
		if named := len(set.Allocations) == 1; named == long || !slices.Equal(set.Holders, []int{1}) || (r.report.LongLabel != nil) != long {
			t.Errorf("%q: %+v, %v", body, set, r.report.LongLabel)
		}
	}
	if n := testing.AllocsPerRun(100, func() { r.tr.Translate(&r.frame, &r.batch, &r.report) }); n != 0 {
		t.Errorf("a steady reading with a long label allocates %v times", n)
	}
}
