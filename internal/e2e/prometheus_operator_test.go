package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// The chart's monitors and rules with the Prometheus operator: a real Prometheus reads the
// operator's configuration.

// operatorKinds are the kinds that the operator needs to handle a Prometheus.
var operatorKinds = map[string]string{
	"prometheuses": "Prometheus", "servicemonitors": "ServiceMonitor", "podmonitors": "PodMonitor",
	"probes": "Probe", "prometheusrules": "PrometheusRule",
}

// startOperator runs the Prometheus operator for one namespace, until the test ends.
func (c *cluster) startOperator(t *testing.T, ns string) *process {
	t.Helper()
	binary := filepath.Join(os.Getenv("KPULSE_KUBERNETES"), "operator")
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("%v; make kubernetes builds it", err)
	}
	c.monitoring(t, slices.Collect(maps.Keys(operatorKinds))...)
	for _, kind := range operatorKinds {
		c.path(t, "monitoring.coreos.com/v1", kind, ns, "") // the operator looks for them once, at its start
	}
	cmd := exec.Command(binary, "--namespaces="+ns, "--web.listen-address="+freeAddress(t))
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.file("admin.kubeconfig"))
	p := startProcess(t, cmd, filepath.Join(t.TempDir(), "operator.log"))
	t.Cleanup(func() {
		if t.Failed() {
			log := p.output()
			t.Logf("the operator:\n%s", log[max(0, len(log)-4000):])
		}
	})
	return p
}

// podAddress replaces kwok's address in the pod's status, because Endpoints must not be in
// 127.0.0.0/8. It is a documentation address without a host.
const podAddress = "198.51.100.7"

// prometheusObject returns a Prometheus that selects objects with the label prometheus=NAMESPACE.
// Its scrape class redirects the pod's address to the program.
func prometheusObject(ns, node, version, program string) string {
	return fmt.Sprintf(`
apiVersion: monitoring.coreos.com/v1
kind: Prometheus
metadata: {name: main}
spec:
  version: v%[3]s
  nodeSelector: {kubernetes.io/hostname: %[2]s}
  evaluationInterval: 1s
  serviceMonitorSelector: {matchLabels: {prometheus: %[1]s}}
  podMonitorSelector: {matchLabels: {prometheus: %[1]s}}
  ruleSelector: {matchLabels: {prometheus: %[1]s}}
  scrapeClasses:
  - name: here
    default: true
    relabelings:
    - {sourceLabels: [__address__], regex: '%[4]s:9401', targetLabel: __address__, replacement: '%[5]s'}
`, ns, node, version, regexp.QuoteMeta(podAddress), program)
}

// monitored applies the chart with a ServiceMonitor, rules and alerts, and the PodMonitor of the
// chart with honorLabels and the job "pods". It returns the name of the only pod.
func (c *cluster) monitored(t *testing.T, ns, node string) (pod string) {
	t.Helper()
	flags := []string{"--set=fullnameOverride=" + ns, "--set=nodeSelector.kubernetes\\.io/hostname=" + node,
		"--set=monitor.interval=1s,monitor.scrapeTimeout=1s,monitor.labels.prometheus=" + ns,
		"--set=prometheusRule.recording=true,prometheusRule.alerts=true,prometheusRule.labels.prometheus=" + ns}
	c.apply(t, ns, rendered(t, ns, append(flags, "--set=monitor.kind=ServiceMonitor")...))
	for _, o := range documents(t, rendered(t, ns, append(flags, "--set=monitor.kind=PodMonitor,monitor.job=pods,monitor.honorLabels=true")...)) {
		if o.at("kind") == "PodMonitor" {
			c.apply(t, ns, mustJSON(t, o))
		}
	}
	pod = c.awaitPods(t, ns, "app.kubernetes.io/name=kpulse-proxy", 1)[0].name()
	c.merge(t, "v1", "Pod", ns, pod, "status", `{"status": {"podIP": "`+podAddress+`", "podIPs": [{"ip": "`+podAddress+`"}]}}`)
	return pod
}

// generated waits until the operator has written the configuration of the Prometheus main with all
// four endpoints, and returns it as its reloader would pass it to Prometheus.
func (c *cluster) generated(t *testing.T, ns string, operator *process) (config string) {
	t.Helper()
	awaitTrue(t, "configuration of the operator", func() bool {
		if !operator.runs() {
			t.Fatal("the operator has ended")
		}
		packed, _ := base64.StdEncoding.DecodeString(c.get(t, "v1", "Secret", ns, "prometheus-main").at("data", "prometheus.yaml.gz"))
		r, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return false
		}
		text, err := io.ReadAll(r)
		config = string(text)
		for _, job := range []string{"serviceMonitor/" + ns + "/" + ns + "/0", "serviceMonitor/" + ns + "/" + ns + "/1", "podMonitor/" + ns + "/" + ns + "/0", "podMonitor/" + ns + "/" + ns + "/1"} {
			if err != nil || !strings.Contains(config, "job_name: "+job+"\n") {
				return false
			}
		}
		return strings.Contains(config, "rulefiles-0")
	})
	return strings.NewReplacer("$(POD_NAME)", "prometheus-main-0", "$(SHARD)", "0").Replace(config)
}

// mountRules writes the rules of the operator's ConfigMap to dir, checks them with promtool, and
// returns the configuration with dir as their directory.
func (c *cluster) mountRules(t *testing.T, ns, dir, config string) string {
	t.Helper()
	const mounted = "/etc/prometheus/rules/prometheus-main-rulefiles-0/"
	rules, _ := c.get(t, "v1", "ConfigMap", ns, "prometheus-main-rulefiles-0")["data"].(map[string]any)
	if len(rules) != 2 || !strings.Contains(config, mounted) {
		t.Errorf("%d files of rules, for\n%s", len(rules), config)
	}
	for name, text := range rules {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text.(string)), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("promtool", "check", "rules", file).CombinedOutput(); err != nil {
			t.Errorf("promtool: %v\n%s", err, out)
		}
	}
	return strings.ReplaceAll(config, mounted, dir+"/")
}

// discovered replaces Kubernetes' service discovery, which Debian's Prometheus lacks, with the same
// labels of our pod from the API server.
func (c *cluster) discovered(t *testing.T, ns, pod, config string) string {
	t.Helper()
	var all struct {
		Rest   map[string]any   `yaml:",inline"`
		Scrape []map[string]any `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal([]byte(config), &all); err != nil {
		t.Fatal(err)
	}
	for _, scrape := range all.Scrape {
		var labels map[string]string
		switch found := mustJSON(t, scrape["kubernetes_sd_configs"]); found {
		case `[{"namespaces":{"names":["` + ns + `"]},"role":"endpoints"}]`:
			labels = c.ofEndpoints(t, ns, pod)
		case `[{"namespaces":{"names":["` + ns + `"]},"role":"pod"}]`:
			labels = c.ofPod(t, ns, pod)
			named(labels, "pod", c.get(t, "v1", "Pod", ns, pod))
		default:
			t.Errorf("%s discovers %s", scrape["job_name"], found)
		}
		delete(scrape, "kubernetes_sd_configs")
		scrape["static_configs"] = []any{map[string]any{"targets": []string{labels["__address__"]}, "labels": labels}}
	}
	text, err := yaml.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// ofPod returns the labels that Prometheus documents for the role pod, for its only port.
func (c *cluster) ofPod(t *testing.T, ns, name string) map[string]string {
	t.Helper()
	pod := c.get(t, "v1", "Pod", ns, name)
	container := []any{"spec", "containers", 0}
	return map[string]string{
		"__address__":                               net.JoinHostPort(pod.at("status", "podIP"), pod.at(append(container, "ports", 0, "containerPort")...)),
		"__meta_kubernetes_namespace":               ns,
		"__meta_kubernetes_pod_name":                name,
		"__meta_kubernetes_pod_phase":               pod.at("status", "phase"),
		"__meta_kubernetes_pod_node_name":           pod.at("spec", "nodeName"),
		"__meta_kubernetes_pod_container_name":      pod.at(append(container, "name")...),
		"__meta_kubernetes_pod_container_port_name": pod.at(append(container, "ports", 0, "name")...),
	}
}

// ofEndpoints returns those of the role endpoints, once the Service has found the pod.
func (c *cluster) ofEndpoints(t *testing.T, ns, pod string) map[string]string {
	t.Helper()
	var found object
	awaitTrue(t, "Endpoints with the pod", func() bool {
		found = c.get(t, "v1", "Endpoints", ns, ns)
		return found.at("subsets", 0, "addresses", 0, "ip") == podAddress
	})
	labels := c.ofPod(t, ns, pod)
	labels["__address__"] = net.JoinHostPort(podAddress, found.at("subsets", 0, "ports", 0, "port"))
	labels["__meta_kubernetes_service_name"] = ns
	labels["__meta_kubernetes_endpoint_port_name"] = found.at("subsets", 0, "ports", 0, "name")
	labels["__meta_kubernetes_endpoint_address_target_kind"] = found.at("subsets", 0, "addresses", 0, "targetRef", "kind")
	labels["__meta_kubernetes_endpoint_address_target_name"] = found.at("subsets", 0, "addresses", 0, "targetRef", "name")
	named(labels, "service", c.get(t, "v1", "Service", ns, ns))
	return labels
}

// named adds the labels of an object.
func named(labels map[string]string, kind string, o object) {
	metadata, _ := o["metadata"].(map[string]any)
	own, _ := metadata["labels"].(map[string]any)
	for name, value := range own {
		name = regexp.MustCompile(`\W`).ReplaceAllString(name, "_")
		labels["__meta_kubernetes_"+kind+"_label_"+name] = fmt.Sprint(value)
		labels["__meta_kubernetes_"+kind+"_labelpresent_"+name] = "true"
	}
}

// TestPrometheusOperatorHasUsScraped: with the operator's configuration of the ServiceMonitor, the
// PodMonitor and the PrometheusRules, a real Prometheus scrapes both endpoints of our pod and loads
// the rules.
func TestPrometheusOperatorHasUsScraped(t *testing.T) {
	t.Parallel()
	binary, k := prometheusBinary(t), kubernetes(t)
	version, err := exec.Command(binary, "--version").CombinedOutput()
	m := regexp.MustCompile(`version (\d+\.\d+\.\d+)`).FindSubmatch(version)
	if m == nil {
		t.Fatalf("prometheus --version: %v\n%s", err, version)
	}
	ns, node := k.namespace(t), k.gpuNode(t)
	operator := k.startOperator(t, ns)
	up := startUpstream(func() ([]byte, error) { return []byte(operatorBody), nil })
	t.Cleanup(up.stop)
	program := strings.TrimPrefix(startProxy(t, itself(t), "--source="+up.url+"/metrics", "--source.min-interval=0s").URL, "http://")
	pod := k.monitored(t, ns, node)
	k.apply(t, ns, prometheusObject(ns, node, string(m[1]), program))

	dir := t.TempDir()
	config := k.discovered(t, ns, pod, k.mountRules(t, ns, dir, k.generated(t, ns, operator)))
	var server *prometheus
	t.Cleanup(func() {
		if t.Failed() {
			log := server.log.String()
			t.Logf("the configuration:\n%s\nPrometheus:\n%s", config, log[max(0, len(log)-4000):])
		}
	})
	server = runPrometheus(t, binary, dir, config)
	server.await(t, `count(up == 1) == 4 and count(kpulse_gpu_real_utilization_ratio) == 2`)
	checkOperated(t, server, ns, node, pod, program)
	checkLabels(t, server, ns, node, pod)
	checkGroups(t, server)
	server.stop()
	for line := range strings.Lines(server.log.String()) {
		if strings.Contains(line, "level=error") {
			t.Errorf("Prometheus complains: %s", line)
		}
	}
}

// operatorBody is the page of a dcgm-exporter with one GPU that a pod holds.
var operatorBody = func() (body string) {
	for _, reading := range []string{"GR_ENGINE_ACTIVE %s 0.5", "SM_ACTIVE %s 0.5", "PIPE_TENSOR_ACTIVE %s 0.25"} {
		body += "DCGM_FI_PROF_" + strings.Replace(reading, " %s", `{gpu="0",UUID="GPU-a",device="nvidia0",modelName="H100",Hostname="a",container="main",namespace="team",pod="train-0"}`, 1) + "\n"
	}
	return body
}()

// checkOperated checks the four targets: up, and named after the node. Their URL, the program's,
// shows that they were found at the pod's address.
func checkOperated(t *testing.T, server *prometheus, ns, node, pod, program string) {
	t.Helper()
	var data struct {
		ActiveTargets []struct {
			target
			Labels map[string]string
		}
	}
	if err := server.get("/api/v1/targets", &data); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"kpulse-proxy": "/metrics", "kpulse-proxy-telemetry": "/-/metrics", "pods": "/metrics", "pods-telemetry": "/-/metrics"}
	for _, got := range data.ActiveTargets {
		l, path := got.Labels, want[got.Labels["job"]]
		delete(want, l["job"])
		if got.Health != "up" || got.LastError != "" || got.ScrapeURL != "http://"+program+path ||
			l["instance"] != node || l["namespace"] != ns || l["pod"] != pod || l["container"] != "kpulse-proxy" || l["endpoint"] != "metrics" {
			t.Errorf("target %+v", got)
		}
	}
	if len(want) > 0 || len(data.ActiveTargets) != 4 {
		t.Errorf("%d targets; none of %v", len(data.ActiveTargets), want)
	}
}

// checkLabels checks what was stored. Our labels differ from those that the operator adds, so none
// is renamed to exported_*; dcgm-exporter's are, unless honorLabels is set.
func checkLabels(t *testing.T, server *prometheus, ns, node, pod string) {
	t.Helper()
	for _, job := range []string{"kpulse-proxy", "kpulse-proxy-telemetry", "pods", "pods-telemetry"} {
		stored := server.query(t, `{job="`+job+`",__name__!~"DCGM_.*"}`)
		if len(stored) < 20 {
			t.Errorf("%d series of job %s", len(stored), job)
		}
		for labels := range stored {
			if strings.Contains(labels, "exported_") {
				t.Errorf("job %s has %s", job, labels)
			}
		}
	}
	for expr, n := range map[string]int{
		`kpulse_gpu_real_utilization_ratio{instance="` + node + `",hostname="a",gpu="0",uuid="GPU-a"} > 0`:                         2,
		`kpulse_allocation_info{namespace="` + ns + `",pod="` + pod + `",workload_namespace="team",workload_pod="train-0"}`:        2,
		`DCGM_FI_PROF_SM_ACTIVE{job="kpulse-proxy",pod="` + pod + `",exported_pod="train-0",exported_namespace="team"}`:            1,
		`DCGM_FI_PROF_SM_ACTIVE{job="pods",pod="train-0",namespace="team",container="main",exported_pod="",exported_namespace=""}`: 1,
	} {
		if got := server.query(t, `count(`+expr+`)`); got["{}"] != fmt.Sprint(n) {
			t.Errorf("%s: %v, want %d", expr, got, n)
		}
	}
}

// checkGroups checks that every group of the mixin's rules and alerts is loaded without errors.
func checkGroups(t *testing.T, server *prometheus) {
	t.Helper()
	type group struct {
		Name  string
		Rules []struct{ LastError string }
	}
	var loaded struct{ Groups []group }
	if err := server.get("/api/v1/rules", &loaded); err != nil {
		t.Fatal(err)
	}
	rules := map[string]int{}
	for _, g := range loaded.Groups {
		rules[g.Name] = len(g.Rules)
		for _, r := range g.Rules {
			if r.LastError != "" {
				t.Errorf("group %s: %s", g.Name, r.LastError)
			}
		}
	}
	for _, file := range []string{"prometheus_rules.yaml", "prometheus_alerts.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "mixin", file))
		if err != nil {
			t.Fatal(err)
		}
		var want struct {
			Groups []struct {
				Name  string
				Rules []any
			}
		}
		if err := yaml.Unmarshal(text, &want); err != nil || len(want.Groups) == 0 {
			t.Fatalf("%s: %v", file, err)
		}
		for _, g := range want.Groups {
			if rules[g.Name] != len(g.Rules) {
				t.Errorf("group %s has %d rules, want %d", g.Name, rules[g.Name], len(g.Rules))
			}
		}
	}
}
