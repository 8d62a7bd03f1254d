package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// said is a reading by its names in exporters 2.x to 4.8 and in 4.9, whose values are factor times
// the older ones.
type said struct {
	legacy, modern string
	factor         float64
	values         [3]float64 // of a board, a MIG instance and a board with a pod
}

// oneTruth is what three exporters report, each under its own names.
var oneTruth = []said{
	{"DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_SM_CLOCK_HERTZ", 1e6, [3]float64{1980, 1410, 345}},
	{"DCGM_FI_DEV_MEM_CLOCK", "DCGM_FI_DEV_MEMORY_CLOCK_HERTZ", 1e6, [3]float64{2619, 1593, 405}},
	{"DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_TEMP_CELSIUS", 1, [3]float64{71, 64, 33}},
	{"DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_BOARD_POWER_WATTS", 1, [3]float64{611.25, 402.337, 76.75}},
	{"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO", 0.01, [3]float64{57, 29, 7}},
	{"DCGM_FI_DEV_MEM_COPY_UTIL", "DCGM_FI_DEV_MEMORY_UTIL_RATIO", 0.01, [3]float64{62, 14, 0}},
	{"DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_USED_BYTES", 1 << 20, [3]float64{39800, 1237, 0}},
	{"DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_FREE_BYTES", 1 << 20, [3]float64{40733, 8485, 81053}},
	{"DCGM_FI_DEV_FB_TOTAL", "DCGM_FI_DEV_FB_CAPACITY_BYTES", 1 << 20, [3]float64{81920, 9856, 81920}},
	{"DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_SM_UTIL_RATIO", 1, [3]float64{0.873, 0.21, 0}},
	{"DCGM_FI_PROF_SM_OCCUPANCY", "DCGM_FI_PROF_SM_OCCUPANCY_RATIO", 1, [3]float64{0.41, 0.125, 0}},
	{"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", 1, [3]float64{0.991, 0.3, 0.000001}},
	{"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_TENSOR_UTIL_RATIO", 1, [3]float64{0.55, 0.07, 0}},
}

// Labels of the three devices as each exporter writes them.
const (
	labelsOf2  = `gpu="%[1]d",UUID="GPU-%[1]d",device="nvidia%[1]d",modelName="NVIDIA A100"%[2]s,Hostname="node1"%[3]s`
	labelsOf48 = `gpu="%[1]d",UUID="GPU-%[1]d",pci_bus_id="00000000:1%[1]d:00.0",device="nvidia%[1]d",modelName="NVIDIA A100"%[2]s,hostname="node1",DCGM_FI_DRIVER_VERSION="580.1"%[3]s`
	labelsOf49 = `gpu="%[1]d",UUID="GPU-%[1]d",pci_bus_id="00000000:1%[1]d:00.0",device="nvidia%[1]d",modelName="NVIDIA A100"%[2]s,hostname="node1",DCGM_FI_SYSTEM_DRIVER_VERSION="595.1"%[3]s`
)

// sayTruth returns the page of an exporter.
func sayTruth(labels string, word func(*said) (name string, factor float64)) string {
	var body strings.Builder
	instance := [3]string{"", `,GPU_I_PROFILE="1g.10gb",GPU_I_ID="3"`, ""}
	pod := [3]string{"", "", `,container="c",namespace="ml",pod="train-0"`}
	for i := range oneTruth {
		s := &oneTruth[i]
		name, factor := word(s)
		for d, v := range s.values {
			if factor == 0.01 {
				v /= 100 // v * 0.01 differs
			} else {
				v *= factor
			}
			fmt.Fprintf(&body, "%s{%s} %s\n", name, fmt.Sprintf(labels, d, instance[d], pod[d]), strconv.FormatFloat(v, 'g', -1, 64))
		}
	}
	return body.String()
}

// published are the queries of one origin.
type published struct {
	Origin   string
	LabelsOf string `yaml:"labels_of"` // the version whose labels they need, "" for any
	Queries  []string
}

// TestPublishedQueriesGoOn runs queries of published rules and dashboards, written for the names of
// 2.x to 4.8, in a real Prometheus. For exporters of 2.x, 4.8 and 4.9 with the same readings, the
// proxy gives the answers of the 2.x exporter alone.
func TestPublishedQueriesGoOn(t *testing.T) {
	t.Parallel()
	binary := prometheusBinary(t)
	text, err := os.ReadFile("testdata/compat/queries.yml")
	if err != nil {
		t.Fatal(err)
	}
	var origins []published
	if err := yaml.Unmarshal(text, &origins); err != nil || len(origins) < 4 {
		t.Fatalf("%d origins, %v", len(origins), err)
	}
	legacy := func(s *said) (string, float64) { return s.legacy, 1 }
	modern := func(s *said) (string, float64) { return s.modern, s.factor }
	bodies := map[string]string{
		"two": sayTruth(labelsOf2, legacy), "four": sayTruth(labelsOf48, legacy), "nine": sayTruth(labelsOf49, modern),
	}
	jobs := map[string]string{"reference": exporterOf(t, bodies["two"]), "ceems": exporterOf(t, ceems)}
	for name, body := range bodies {
		for suffix, flags := range map[string][]string{
			"":      {"--compat=4.8"},
			"-2":    {"--compat=2", "--compat=4.8"},
			"-page": {"--passthrough=off", "--compat=2"},
		} {
			proxy := startProxy(t, itself(t), append(flags, "--source=http://"+exporterOf(t, body)+"/metrics")...)
			jobs[name+suffix] = strings.TrimPrefix(proxy.URL, "http://")
		}
	}
	server := runPrometheus(t, binary, t.TempDir(), ceemsConfig(jobs))
	server.await(t, fmt.Sprintf(`min(up) == 1 and count(up) == %d`, len(jobs)))
	delete(jobs, "reference")
	delete(jobs, "ceems")
	asked := 0
	for _, origin := range origins {
		for _, query := range origin.Queries {
			asked++
			want := answer(t, server, query, "reference", origin.LabelsOf)
			if len(want) == 0 {
				t.Errorf("%s: %s has no answer even from an exporter of 2.x", origin.Origin, query)
			}
			for job := range jobs {
				if origin.LabelsOf != "" && !strings.HasSuffix(job, "-page") && !strings.HasPrefix(job, "two") && job != "nine-2" {
					continue
				}
				if got := answer(t, server, query, job, origin.LabelsOf); !maps.Equal(got, want) {
					t.Errorf("%s, job %s: %s\n got %v\nwant %v", origin.Origin, job, query, got, want)
				}
			}
		}
	}
	if asked < 25 {
		t.Errorf("%d queries asked", asked)
	}
}

// exporterOf serves a body until the test ends, and returns its address.
func exporterOf(t *testing.T, body string) string {
	t.Helper()
	up := startUpstream(func() ([]byte, error) { return []byte(body), nil })
	t.Cleanup(up.stop)
	return strings.TrimPrefix(up.url, "http://")
}

// ceems is what CEEMS' own exporters serve for three jobs with a device each.
const ceems = `ceems_compute_unit_gpu_index_flag{uuid="101",gpuuuid="GPU-0"} 1
ceems_compute_unit_gpu_index_flag{uuid="102",gpuuuid="GPU-1",gpuiid="3"} 1
ceems_compute_unit_gpu_index_flag{uuid="103",gpuuuid="GPU-2"} 1
ceems_emissions_gCo2_kWh{country_code="FR",country="France",provider="owid"} 56.1
`

// ceemsConfig scrapes jobs, with the labels that CEEMS' documentation asks for beside
// those of the exporter.
func ceemsConfig(jobs map[string]string) string {
	config := "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n"
	for job, address := range jobs {
		config += fmt.Sprintf("- job_name: %s\n  static_configs: [{targets: ['%s']}]\n", job, address)
		if job == "ceems" {
			continue
		}
		config += "  metric_relabel_configs:\n" +
			"  - {source_labels: [modelName, UUID], target_label: gpuuuid, regex: 'NVIDIA(.*);(.*)', replacement: $2}\n" +
			"  - {source_labels: [modelName, GPU_I_ID], target_label: gpuiid, regex: 'NVIDIA(.*);(.*)', replacement: $2}\n"
	}
	return config
}

// answer returns the values of a query about a job, by the labels that identify them. Other labels
// differ between versions.
func answer(t *testing.T, server *prometheus, query, job, version string) map[string]string {
	t.Helper()
	query = strings.NewReplacer("$gpus", "0|1|2", "$gpu", `job="`+job+`"`, "$Hostname", "node1").Replace(query)
	kept := []string{"gpu", "UUID", "GPU_I_ID", "GPU_I_PROFILE", "gpuuuid", "gpuiid", "uuid", "pod", "namespace", "container", "provider", "country_code"}
	if version != "" {
		kept = append(kept, "Hostname")
	}
	values := map[string]string{}
	for series, value := range server.query(t, query) {
		labels := labelsOf(series)
		maps.DeleteFunc(labels, func(name, _ string) bool { return !slices.Contains(kept, name) })
		key := fmt.Sprint(labels)
		if _, twice := values[key]; twice {
			t.Errorf("%s answers twice for %s", query, key)
		}
		values[key] = value
	}
	return values
}

// TestJobstatsQueries asks as jobstats does (its jobstats.py, and docs/setup/summaries.md; job_defense_shield asks through it), by the
// label jobid and, for exporters before September 2025, by nvidia_gpu_jobId; as jobscope does (its docs/metrics.md), by UUID; and by
// the number of the user. The answers from a proxy with --compat=jobstats in front of dcgm-exporter are those from the exporter of
// jobstats itself.
func TestJobstatsQueries(t *testing.T) {
	t.Parallel()
	binary := prometheusBinary(t)
	const own = `nvidia_gpu_duty_cycle{%[1]s} 57
nvidia_gpu_memory_used_bytes{%[1]s} 1073741824
nvidia_gpu_memory_total_bytes{%[1]s} 85899345920
nvidia_gpu_power_usage_milliwatts{%[1]s} 611257
nvidia_gpu_graphics_util_percent{%[1]s} 0.75
nvidia_gpu_jobId{%[1]s} 4711
nvidia_gpu_jobUid{%[1]s} 1001
`
	const dcgm = `DCGM_FI_DEV_GPU_UTIL{%[1]s} 57
DCGM_FI_DEV_FB_USED{%[1]s} 1024
DCGM_FI_DEV_FB_TOTAL{%[1]s} 81920
DCGM_FI_DEV_POWER_USAGE{%[1]s} 611.257
DCGM_FI_PROF_GR_ENGINE_ACTIVE{%[1]s} 0.75
`
	reference := exporterOf(t, fmt.Sprintf(own, `GPU_I_ID="",jobid="4711",minor_number="2",name="NVIDIA H100",ordinal="0",userid="1001",uuid="GPU-a"`))
	upstream := exporterOf(t, fmt.Sprintf(dcgm, `gpu="0",UUID="GPU-a",device="nvidia2",modelName="NVIDIA H100",hpc_job="4711"`))
	info := t.TempDir()
	writeFile(t, filepath.Join(info, "4711"), "user=ada\nuid=1001\n")
	proxy := startProxy(t, itself(t), "--compat=jobstats", "--hpc-job-info-dir="+info, "--source=http://"+upstream+"/metrics")
	awaitPage(t, proxy, "/metrics", http.StatusOK, `nvidia_gpu_jobUid\{.*userid="1001"`) // the series do not change later
	config := "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\nscrape_configs:\n- job_name: gpus\n  static_configs:\n"
	for cluster, address := range map[string]string{"reference": reference, "proxy": strings.TrimPrefix(proxy.URL, "http://")} {
		config += fmt.Sprintf("  - {targets: ['%s'], labels: {cluster: %s, instance: 'node1:9445'}}\n", address, cluster)
	}
	server := runPrometheus(t, binary, t.TempDir(), config)
	server.await(t, `count(count_over_time(nvidia_gpu_jobId[1m]) > 1) == 2`)
	for query, want := range map[string]string{
		"max_over_time(nvidia_gpu_memory_total_bytes{cluster='$',jobid='4711'}[60s:])":                                                                      "85899345920",
		"max_over_time((nvidia_gpu_memory_total_bytes{cluster='$'} and nvidia_gpu_jobId == 4711)[60s:])":                                                    "85899345920",
		"max_over_time(nvidia_gpu_memory_used_bytes{cluster='$',jobid='4711'}[60s:])":                                                                       "1073741824",
		"max_over_time((nvidia_gpu_memory_used_bytes{cluster='$'} and nvidia_gpu_jobId == 4711)[60s:])":                                                     "1073741824",
		"avg_over_time((nvidia_gpu_duty_cycle{cluster='$',jobid='4711'} or (nvidia_gpu_graphics_util_percent{cluster='$',jobid='4711'} * 100))[60s:])":      "57",
		"avg_over_time(((nvidia_gpu_duty_cycle{cluster='$'} or (nvidia_gpu_graphics_util_percent{cluster='$'} * 100)) and nvidia_gpu_jobId == 4711)[60s:])": "57",
		"avg_over_time((nvidia_gpu_power_usage_milliwatts{cluster=\"$\"} and nvidia_gpu_jobId == 4711)[60s:])":                                              "611257",
		"max_over_time((nvidia_gpu_jobId{cluster='$'} == 4711)[60s:])":                                                                                      "4711",
		"avg_over_time((nvidia_gpu_duty_cycle{cluster='$',uuid=~'GPU-a|GPU-b'} and nvidia_gpu_jobId == 4711)[60s:])":                                        "57",
		"max_over_time((nvidia_gpu_memory_used_bytes{cluster='$',uuid=~'GPU-a'} and nvidia_gpu_jobId == 4711)[60s:])":                                       "1073741824",
		"nvidia_gpu_duty_cycle{cluster='$'} and nvidia_gpu_jobUid == 1001":                                                                                  "57",
		"nvidia_gpu_memory_used_bytes{cluster='$',userid='1001'}":                                                                                           "1073741824",
		"max_over_time((nvidia_gpu_memory_total_bytes{cluster='$'} and nvidia_gpu_jobId == 4712)[60s:])":                                                    "",
	} {
		for _, cluster := range []string{"reference", "proxy"} {
			answers := server.query(t, strings.ReplaceAll(query, "$", cluster))
			if len(answers) != min(1, len(want)) {
				t.Errorf("%s, %s: %v", cluster, query, answers)
			}
			for series, value := range answers {
				labels := labelsOf(series)
				if value != want || labels["minor_number"] != "2" || labels["uuid"] != "GPU-a" {
					t.Errorf("%s, %s: %s %s, want %s", cluster, query, series, value, want)
				}
			}
		}
	}
}
