package mixin_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// of returns the results of a panel's query after ten minutes, by a label, with some values chosen.
func (m memory) of(t *testing.T, page, title, refID, by string, chosen ...string) map[string]float64 {
	t.Helper()
	return at(m.asked(t, exprOf(t, page, title, refID), 10, by, chosen...), 10)
}

// shares returns recorded series of a namespace and a job on two hosts: in total, and for each device.
func shares(t *testing.T) memory {
	t.Helper()
	var series []string
	for holder, level := range map[string]string{`workload_namespace="ml"`: "namespace", `hpc_job="17"`: "job"} {
		for what, values := range map[string][3]string{"held": {"6", "3.6", "2.4"}, "utilized": {"3", "1.8", "1.2"}, "known": {"6", "3.6", "2.4"}} {
			series = append(series,
				level+`:kpulse_allocation_`+what+`_gpus:rate5m{cluster="c",`+holder+`} `+values[0]+`x40`,
				`allocation:kpulse_allocation_`+what+`_gpus:rate5m{cluster="c",hostname="n1",gpu="0",uuid="GPU-0",`+holder+`} `+values[1]+`x40`,
				`allocation:kpulse_allocation_`+what+`_gpus:rate5m{cluster="c",hostname="n2",gpu="0",uuid="GPU-1",`+holder+`} `+values[2]+`x40`)
		}
		series = append(series, level+`:kpulse_allocation_idle_gpus:rate5m{cluster="c",`+holder+`} 2.4x40`)
		for host, values := range map[string][2]string{`hostname="n1",gpu="0",uuid="GPU-0"`: {"1.8", "1.8"}, `hostname="n2",gpu="0",uuid="GPU-1"`: {"0.6", "1.8"}} {
			class := `allocation:kpulse_allocation_class_gpus:rate5m{cluster="c",` + host + `,` + holder
			series = append(series, class+`,class="idle"} `+values[0]+`x40`, class+`,class="io_or_data_loading"} `+values[1]+`x40`)
		}
		series = append(series, `holder:kpulse_allocation_class_gpus:rate5m{cluster="c",`+holder+`,class="io_or_data_loading"} 3.6x40`)
	}
	for _, host := range []string{"n1", "n2"} {
		series = append(series,
			`host:kpulse_allocation_idle_gpus:rate5m{cluster="c",hostname="`+host+`"} 6x40`,
			`host:kpulse_gpu_class_gpus:rate5m{cluster="c",hostname="`+host+`",class="idle",bottleneck="idle"} 6x40`,
			`host:kpulse_gpu_class_gpus:rate5m{cluster="c",hostname="`+host+`",class="io_or_data_loading",bottleneck="io"} 2x40`)
	}
	return recorded(t, series...)
}

// TestHostsReachTheLeagues: with a host chosen, a league counts what was held there. Six GPUs for ten minutes are one
// GPU-hour.
func TestHostsReachTheLeagues(t *testing.T) {
	m := shares(t)
	for title, by := range map[string][2]string{"Namespaces by idle GPU-hours": {"workload_namespace", "ml"}, "Jobs by idle GPU-hours": {"hpc_job", "17"}} {
		for chosen, values := range map[string][2]float64{".*": {.4, 1}, "n1": {.3, .6}, "(n1|n2)": {.4, 1}} {
			want(t, title+" of "+chosen+", idle", m.of(t, "kpulse-efficiency", title, "A", by[0], "$hostname", chosen), map[string]float64{by[1]: values[0]})
			want(t, title+" of "+chosen+", held", m.of(t, "kpulse-efficiency", title, "C", by[0], "$hostname", chosen), map[string]float64{by[1]: values[1]})
			want(t, title+" of "+chosen+", utilization", m.of(t, "kpulse-efficiency", title, "D", by[0], "$hostname", chosen), map[string]float64{by[1]: .5})
		}
	}
	busy := append(m, recorded(t, `allocation:kpulse_allocation_held_gpus:rate5m{cluster="c",hostname="n3",gpu="0",uuid="GPU-2",hpc_job="18"} 6x40`)...)
	want(t, "a job that is never idle", busy.of(t, "kpulse-efficiency", "Jobs by idle GPU-hours", "A", "hpc_job", "$hostname", "n3"), map[string]float64{"18": 0})
	for chosen, hours := range map[string]float64{".*": .6, "n2": .3} {
		want(t, "waiting on "+chosen, m.of(t, "kpulse-classes", "Waiting for data, or busy and empty", "A", "hpc_job", "$hostname", chosen), map[string]float64{"17": hours, "": hours})
	}
}

// TestNamespacesReachTheClasses: with a namespace chosen, classes and idle sums count what it held.
func TestNamespacesReachTheClasses(t *testing.T) {
	m := shares(t)
	for _, c := range []struct {
		page, title, by, chosen, host string
		want                          map[string]float64
	}{
		{"kpulse-efficiency", "Idle GPU-hours", "", ".*", ".*", map[string]float64{"": 2}},
		{"kpulse-efficiency", "Idle GPU-hours", "", "ml", ".*", map[string]float64{"": .4}},
		{"kpulse-efficiency", "Idle GPU-hours", "", "ml", "n1", map[string]float64{"": .3}},
		{"kpulse-classes", "Idle time", "", ".*", ".*", map[string]float64{"": .75}},
		{"kpulse-classes", "Idle time", "", "ml", ".*", map[string]float64{"": .4}},
		{"kpulse-classes", "Idle time", "", "ml", "n2", map[string]float64{"": .25}},
		{"kpulse-classes", "Waiting for data", "", ".*", ".*", map[string]float64{"": .25}},
		{"kpulse-classes", "Waiting for data", "", "ml", ".*", map[string]float64{"": .6}},
		{"kpulse-classes", "GPU-hours by class", "class", "ml", "n1", map[string]float64{"idle": .3, "io_or_data_loading": .3}},
		{"kpulse-classes", "Share of GPUs by class", "class", "ml", "n1", map[string]float64{"idle": .5}},
		{"kpulse-classes", "Share of GPUs by class", "class", "other", ".*", map[string]float64{}},
	} {
		want(t, c.title+" of "+c.chosen+" on "+c.host, m.of(t, c.page, c.title, "A", c.by, "$namespace", c.chosen, "$hostname", c.host), c.want)
	}
}

// TestNamespacesReachDevices: the choice of namespaces applies to stragglers, and to devices that are little used or whose
// GPU-Util is too high.
func TestNamespacesReachDevices(t *testing.T) {
	var series []string
	for uuid, namespace := range map[string]string{"GPU-0": "ml", "GPU-1": "web", "GPU-2": ""} {
		device := `{cluster="c",hostname="n",gpu="0",uuid="` + uuid + `"`
		series = append(series, `kpulse_gpu_real_utilization_ratio`+device+`} 0.1x40`, `device:kpulse_gpu_utilization_gap:avg1h`+device+`} 0.5x40`)
		if namespace != "" {
			held := device + `,workload_namespace="` + namespace + `"} `
			series = append(series, `allocation:kpulse_allocation_held_gpus:rate5m`+held+`1x40`, `allocation:kpulse_allocation_straggler:ratio5m`+held+`0.3x40`)
		}
	}
	m := recorded(t, series...)
	want(t, "stragglers", m.of(t, "kpulse-classes", "Job stragglers", "A", "uuid", "$namespace", "ml"), map[string]float64{"GPU-0": .3})
	for chosen, uuids := range map[string][]string{".*": {"GPU-0", "GPU-1", "GPU-2"}, "ml": {"GPU-0"}, "(ml|web)": {"GPU-0", "GPU-1"}} {
		used, gap := map[string]float64{}, map[string]float64{}
		for _, uuid := range uuids {
			used[uuid], gap[uuid] = .1, .5
		}
		want(t, "least used of "+chosen, m.of(t, "kpulse-classes", "Least used devices", "B", "uuid", "$namespace", chosen), used)
		want(t, "gap of "+chosen, m.of(t, "kpulse-efficiency", "GPU-Util far above real utilization", "A", "uuid", "$namespace", chosen), gap)
	}
}

// TestClassesAreBoundAsTheProxySays: the bottlenecks of the classes are those of the proxy.
func TestClassesAreBoundAsTheProxySays(t *testing.T) {
	var classes [][3]string // name, color, what bounds it
	decode(t, `(import 'lib/colors.libsonnet').classes`, &classes)
	bound := map[string]string{}
	for _, class := range classes {
		bound[class[0]] = class[2]
	}
	for _, class := range canonical.Classes {
		if bound[class.Name] != class.Bottleneck {
			t.Errorf("%s is bound by %q, not by %q", class.Name, class.Bottleneck, bound[class.Name])
		}
	}
}

// TestModelsReachBoardsAndHosts: boards of other models do not count, whether present, gone or silent; a board whose model was
// never known counts for every model.
func TestModelsReachBoardsAndHosts(t *testing.T) {
	info, health, heat := `device:kpulse_gpu_model:info{cluster="c",hostname=`, `kpulse_gpu_health{cluster="c",hostname=`, `kpulse_gpu_temperature_celsius{cluster="c",hostname=`
	m := append(goneBoards(t), recorded(t,
		info+`"n",gpu="0",uuid="GPU-0",model="H100"} 1x3`, info+`"n",gpu="1",uuid="GPU-1",model="A100"} 1x4`, info+`"n",gpu="2",uuid="GPU-2",model="A100"} 1x40`,
		info+`"n2",gpu="0",uuid="GPU-3",model="H100"} 1x40`, health+`"n2",gpu="0",uuid="GPU-3",state="warn"} 1x40`, heat+`"n2",gpu="0",uuid="GPU-3"} 90x40`,
		info+`"n3",gpu="0",uuid="GPU-5",model="A100"} 1x40`, health+`"n3",gpu="0",uuid="GPU-5",state="crit"} 1x40`, heat+`"n3",gpu="0",uuid="GPU-5"} 60x40`,
		info+`"n5",gpu="0",uuid="GPU-9",model="H100"} 1x3`, // silent
		info+`"n6",gpu="0",uuid="GPU-6",model="A100"} 1x40`, health+`"n6",gpu="0",uuid="GPU-6",state="hot"} 1x40`, heat+`"n6",gpu="0",uuid="GPU-6"} 70x40`, `kpulse_gpu_present{cluster="c",hostname="n6",gpu="0",uuid="GPU-6"} 1x40`,
		info+`"n6",gpu="1",uuid="GPU-7",model="H100"} 1x40`, health+`"n6",gpu="1",uuid="GPU-7",state="crit"} 1x40`, heat+`"n6",gpu="1",uuid="GPU-7"} 95x40`, `kpulse_gpu_present{cluster="c",hostname="n6",gpu="1",uuid="GPU-7"} 1x40`,
		`host:kpulse_gpus_present:max1d{cluster="c",hostname="n6"} 2x40`,
	)...)
	for _, c := range []struct {
		title, refID, by string
		want             map[string]float64
	}{
		{"Critical", "A", "", map[string]float64{"": 1}},
		{"Warning", "A", "", map[string]float64{"": 0}},
		{"Hot", "A", "", map[string]float64{"": 1}},
		{"Gone", "A", "", map[string]float64{"": 2}},
		{"GPUs", "A", "uuid", map[string]float64{"GPU-1": 4, "": 4, "GPU-5": 3, "GPU-6": 1}},
		{"Hosts", "A", "hostname", map[string]float64{"n": 4, "n3": 3, "n4": 4, "n6": 1}},
		{"Hosts", "B", "hostname", map[string]float64{"n": 1, "n3": 1, "n4": 0, "n6": 1}}, // here
		{"Hosts", "C", "hostname", map[string]float64{"n": 2, "n3": 1, "n6": 1}},          // of
		{"Hosts", "D", "hostname", map[string]float64{"n": 1, "n3": 1, "n4": 1, "n6": 1}}, // sick
		{"Hosts", "G", "hostname", map[string]float64{"n3": 60, "n6": 70}},                // hottest
	} {
		want(t, c.title+" "+c.refID, m.of(t, "kpulse-fleet", c.title, c.refID, c.by, "$model", "A100"), c.want)
	}
}

// TestWithoutClusters: if no series has the cluster label, a link of a row leaves the variable empty, and the page of the host
// is complete.
func TestWithoutClusters(t *testing.T) {
	m := recorded(t, `kpulse_gpu_present{hostname="n",gpu="0",uuid="GPU-0"} 1x40`, `kpulse_gpu_health{hostname="n",gpu="0",uuid="GPU-0",state="warn"} 1x40`,
		`host:kpulse_gpus_present:count{hostname="n"} 1x40`, `host:kpulse_gpus_present:max1d{hostname="n"} 1x40`)
	for _, cluster := range []string{"", ".*"} {
		want(t, "boards", m.of(t, "kpulse-node", "GPUs of the host", "A", "uuid", "$cluster", cluster, "$hostname", "n"), map[string]float64{"GPU-0": 2})
		want(t, "here", m.of(t, "kpulse-node", "GPUs present / expected", "A", "", "$cluster", cluster, "$hostname", "n"), map[string]float64{"": 1})
	}
	want(t, "picker", at(m.asked(t, gpuPicker(t), 10, "board"), 10), map[string]float64{" n GPU 0": 1})
}

// TestThePickerTellsClustersApart: the picker names the cluster, since hosts of two clusters may have the same name.
func TestThePickerTellsClustersApart(t *testing.T) {
	m := recorded(t, `kpulse_gpu_present{cluster="east",hostname="n",gpu="0",uuid="GPU-0"} 1x40`, `device:kpulse_gpu_gone:timestamp{cluster="west",hostname="n",gpu="0",uuid="GPU-1"} 60x40`)
	want(t, "picker", at(m.asked(t, gpuPicker(t), 10, "board"), 10), map[string]float64{"east n GPU 0": 1, "west n GPU 0": 60})
}

// gpuPicker returns the query of the GPU picker.
func gpuPicker(t *testing.T) string {
	t.Helper()
	list := dashboards(t)["kpulse-gpu.json"].Templating.List
	i := slices.IndexFunc(list, func(v variable) bool { return v.Name == "gpu" })
	var query struct{ Query string }
	if err := json.Unmarshal(list[i].Query, &query); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(strings.TrimPrefix(query.Query, "query_result("), ")")
}

// TestAlertsOfTheJobsOfAHost: a job's alert names no host, and belongs to each host on which the job has a GPU.
func TestAlertsOfTheJobsOfAHost(t *testing.T) {
	var series []string
	for labels, seconds := range map[string]string{
		`hpc_job="17"`: "60",
		`hpc_job="18"`: "120",
		`workload_namespace="ml",workload_kind="Job",workload_name="train"`: "180",
		`workload_namespace="ml",workload_kind="Job",workload_name="other"`: "240",
	} {
		alert := `{cluster="c",alertname="KpulseJobStalled",severity="warning",` + labels
		series = append(series, `ALERTS`+alert+`,alertstate="firing"} 1x40`, `ALERTS_FOR_STATE`+alert+"} "+seconds+"x40")
	}
	for _, member := range []string{`"n1",gpu="0",hpc_job="17"`, `"n2",gpu="0",hpc_job="17"`, `"n2",gpu="1",hpc_job="18"`, `"n1",gpu="2",workload_namespace="ml",workload_kind="Job",workload_name="train"`} {
		series = append(series, `gang:kpulse_allocation_member:info{cluster="c",hostname=`+member+"} 1x40")
	}
	m := recorded(t, series...)
	want(t, "Kubernetes", m.of(t, "kpulse-fleet", "Alerts", "B", "workload_name", "$hostname", "n1"), map[string]float64{"": 60e3, "train": 180e3})
	want(t, "Slurm", m.of(t, "kpulse-fleet", "Alerts", "B", "hpc_job", "$hostname", "n2"), map[string]float64{"17": 60e3, "18": 120e3})
}
