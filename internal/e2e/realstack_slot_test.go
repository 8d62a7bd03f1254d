package e2e

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/kpulse/kpulse-proxy/internal/holders/kubelettest"
)

// kubeletSockets is the folder of the kubelet's socket, on a node and in the exporter's pods.
const kubeletSockets = "/var/lib/kubelet/pod-resources"

// operatorDaemonSet returns a DaemonSet like the one that the gpu-operator makes for dcgm-exporter, with the image that the
// ClusterPolicy on the page names, as the operator puts it together.
func operatorDaemonSet(t *testing.T) string {
	t.Helper()
	manifest, err := os.ReadFile("testdata/kubernetes/operator.yaml")
	page, err2 := os.ReadFile(top + "/deploy/migration.md")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	for _, block := range fenced.FindAllStringSubmatch(string(page), -1) {
		if strings.HasPrefix(block[2], "dcgm:\n") {
			named := documents(t, block[2])[0]
			image := named.at("dcgmExporter", "repository") + "/" + named.at("dcgmExporter", "image") + ":" + named.at("dcgmExporter", "version")
			return strings.Replace(string(manifest), "image: IMAGE", "image: "+image, 1)
		}
	}
	t.Fatal("deploy/migration.md has no ClusterPolicy")
	return ""
}

// operatorEnv returns the environment of the exporter's container in a pod, on a node, with other values for what belongs
// to the machine: by variable, "" for none.
func operatorEnv(pod object, node string, changes map[string]string) (env []string) {
	for _, v := range asList(pod["containers"].([]any)[0].(map[string]any)["env"]) {
		v := object(v.(map[string]any))
		name, value := v.at("name"), v.at("value")
		if v.at("valueFrom", "fieldRef", "fieldPath") == "spec.nodeName" {
			value = node
		}
		if changed, is := changes[name]; is {
			value = changed
		}
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// imageCounters is the file that the image has at the paths of the exporter's default counters.
const imageCounters = "../../deploy/image/counters.csv"

// slotOf returns the environment of the program in the exporter's place in a pod of the gpu-operator, on a node of
// boards with a host engine and a kubelet: GPUs 1 and 2 belong to the pod train-0 of a namespace, GPU 3 to slice-0.
func slotOf(t *testing.T, n *realNode, pod object, node, listen, namespace string) (env []string) {
	t.Helper()
	n.startEngineTCP(t, "localhost")
	kubelet := kubelettest.New(t)
	const board = "GPU-01000100-0000-0000-0000-00000000000"
	kubelet.Set(
		kubelettest.Pod(namespace, "train-0", "nvidia.com/gpu", board+"1", board+"2"),
		kubelettest.Pod(namespace, "slice-0", "nvidia.com/gpu", board+"3::1"),
		kubelettest.Pod("web", "net", "example.com/nic", "nic0"),
		&podresources.PodResources{Namespace: namespace, Name: "cpu-only"},
	)
	counters, err := filepath.Abs(imageCounters)
	if err != nil {
		t.Fatal(err)
	}
	env = operatorEnv(pod, node, map[string]string{"DCGM_EXPORTER_LISTEN": listen, "DCGM_EXPORTER_COLLECTORS": counters, "DCGM_REMOTE_HOSTENGINE_INFO": n.address})
	return append(env, "DCGM_POD_RESOURCES_KUBELET_SOCKET="+kubelet.Socket)
}

// awaitPodNames waits until the page names the pods of slotOf, and returns it.
func awaitPodNames(t *testing.T, c *child, node, namespace string) string {
	t.Helper()
	page := awaitPage(t, c, "/metrics", 200, `DCGM_FI_PROF_DRAM_ACTIVE\{.*pod="train-0"`)
	for gpu, labels := range map[string]string{"1": `container="main",namespace="` + namespace + `",pod="train-0"`, "2": `pod="train-0"`, "3": `pod="slice-0"`} {
		if !regexp.MustCompile(`\nDCGM_FI_DEV_GPU_TEMP\{gpu="` + gpu + `",[^\n]*,hostname="` + node + `",[^\n]*` + labels).MatchString(page) {
			t.Errorf("GPU %s has no labels %s in\n%s", gpu, labels, family(page, "DCGM_FI_DEV_GPU_TEMP"))
		}
	}
	if !strings.Contains(page, "\nkpulse_gpu_real_utilization_ratio{") {
		t.Error("our series are not behind")
	}
	return page
}

// TestRealStackSlot: with the environment of the gpu-operator's DaemonSet alone, the program serves what the exporter
// 4.8.2 serves with it: the same lines but for values, with pods, on one host engine and one kubelet. Prometheus then
// has the same answers to the queries of dashboard 12239 from both.
func TestRealStackSlot(t *testing.T) {
	t.Parallel()
	n := newRealNode(t, dcgm4, "h100")
	env := append(slotOf(t, n, podOf(t, operatorDaemonSet(t)), "n", "127.0.0.1:0", "ml"), "DCGM_EXPORTER_INTERVAL=1000", "KUBERNETES_VIRTUAL_GPUS=false",
		"DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID=false", "DCGM_EXPORTER_SERVICE_HOST=10.0.0.1")
	theirs, ours := n.program("dcgm-exporter"), exec.Command(itself(t))
	theirs.Env, ours.Env = append([]string{"DISABLE_STARTUP_VALIDATE=true"}, env...), append(n.env(), env...)
	exporter, c := n.start(t, theirs), n.start(t, ours)

	const whole = `DCGM_FI_PROF_DRAM_ACTIVE\{.*pod="train-0"`
	var want, got []string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		want, got = upstreamLines(awaitPage(t, exporter, "/metrics", 200, whole)), upstreamLines(awaitPage(t, c, "/metrics", 200, whole))
		if slices.Equal(sorted(want), sorted(got)) {
			break
		}
	}
	if missing, more := without(want, got), without(got, want); len(missing)+len(more) > 0 || len(want) < 200 {
		t.Errorf("of %d lines we lack %d, such as %.300q, and have %d others, such as %.300q", len(want), len(missing), missing, len(more), more)
	}
	if page, readings := awaitPodNames(t, c, "n", "ml"), familiesOf(want); strings.Count(page, `,pod="train-0"`) != 2*len(readings) {
		t.Errorf("%d lines name the pod, of %d families", strings.Count(page, `,pod="train-0"`), len(readings))
	}
	if log := c.Logged(); strings.Contains(log, "no effect") || strings.Contains(log, "NVML") || !strings.Contains(log, "in the place of dcgm-exporter") {
		t.Error(log)
	}
	// The operator's default is an engine in the exporter's own process.
	driver := exec.Command(itself(t))
	driver.Env = append(n.env(), slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, "DCGM_REMOTE") })...)
	driver.Env = append(driver.Env, "KUBERNETES_VIRTUAL_GPUS=true", "DCGM_EXPORTER_CONFIGMAP_DATA=ns:counters")
	d := n.start(t, driver)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if got = upstreamLines(awaitPage(t, d, "/metrics", 200, whole)); slices.Equal(sorted(want), sorted(got)) {
			break
		}
	}
	if missing, more := without(want, got), without(got, want); len(missing)+len(more) > 0 {
		t.Errorf("by NVML we lack %d lines, such as %.300q, and have %d others, such as %.300q", len(missing), missing, len(more), more)
	}
	for _, line := range []string{`level=WARN .*GPUs before Hopper.*dcgm\.enabled=true`, `level=WARN .*DCGM_EXPORTER_CONFIGMAP_DATA=ns:counters KUBERNETES_VIRTUAL_GPUS=true"`} {
		if !regexp.MustCompile(line).MatchString(d.Logged()) {
			t.Errorf("no line %s in\n%s", line, d.Logged())
		}
	}
	for _, path := range []string{"/health", "/"} {
		awaitPage(t, c, path, 200, "")
		awaitPage(t, exporter, path, 200, "")
	}
	askBoth(t, exporter, c)
}

// askBoth asks a real Prometheus the queries of dashboard 12239 about both exporters, until the answers are the same: the
// two are not scraped at one moment.
func askBoth(t *testing.T, theirs, ours *child) {
	t.Helper()
	text, err := os.ReadFile("testdata/compat/queries.yml")
	if err != nil {
		t.Fatal(err)
	}
	var origins []published
	if err := yaml.Unmarshal(text, &origins); err != nil {
		t.Fatal(err)
	}
	config := "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n"
	for job, c := range map[string]*child{"theirs": theirs, "ours": ours} {
		config += fmt.Sprintf("- job_name: %s\n  honor_labels: true\n  static_configs: [{targets: ['%s']}]\n", job, strings.TrimPrefix(c.URL, "http://"))
	}
	server := runPrometheus(t, prometheusBinary(t), t.TempDir(), config)
	server.await(t, `count(count_over_time(DCGM_FI_PROF_DRAM_ACTIVE[1m]) > 2) == 16`)
	// The pods of a board, as alerts and dashboards join them.
	queries := []string{`sum by (namespace, pod) (DCGM_FI_DEV_FB_USED{$gpu})`, `count by (pod, container) (DCGM_FI_DEV_GPU_UTIL{$gpu, pod!=""})`}
	for _, origin := range origins {
		if strings.Contains(origin.Origin, "12239") {
			for _, query := range origin.Queries {
				queries = append(queries, strings.NewReplacer("Hostname=~", "hostname=~", "(Hostname,", "(hostname,", "$Hostname", "n", "$gpus", ".*").Replace(query))
			}
		}
	}
	for _, query := range queries {
		var want, got map[string]string
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
			want, got = answer(t, server, query, "theirs", ""), answer(t, server, query, "ours", "")
			if maps.Equal(want, got) {
				break
			}
		}
		if len(want) == 0 || !maps.Equal(want, got) {
			t.Errorf("%s: from the exporter %v, from us %v", query, want, got)
		}
	}
	if len(queries) < 12 {
		t.Errorf("%d queries", len(queries))
	}
}
