package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
)

// The chart of deploy/helm, rendered by helm. kubernetes_chart_test.go applies the result.

const chart = "../../deploy/helm/kpulse-proxy"

// helm runs helm, which `make kubernetes` builds beside the servers, and returns its output, errors
// included.
func helm(t *testing.T, args ...string) (output string, err error) {
	t.Helper()
	slow.Test(t, "KPULSE_KUBERNETES, for its helm")
	bin := os.Getenv("KPULSE_KUBERNETES")
	if bin == "" && os.Getenv("KPULSE_REQUIRE_KUBERNETES") == "" {
		t.Skip("KPULSE_KUBERNETES is not set; make kubernetes builds helm: see CONTRIBUTING.md")
	}
	cmd := exec.Command(filepath.Join(bin, "helm"), args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if failed := new(exec.ExitError); err != nil && !errors.As(err, &failed) {
		t.Fatalf("%v; make kubernetes builds it", err)
	}
	// helm reports each symbolic link that it follows.
	for line := range strings.Lines(stderr.String()) {
		if !strings.Contains(line, "found symbolic link in path") {
			stdout.WriteString(line)
		}
	}
	return stdout.String(), err
}

// rendered returns the chart rendered in a namespace, for the version of Kubernetes that the tests
// run.
func rendered(t *testing.T, namespace string, flags ...string) string {
	t.Helper()
	out, err := helm(t, append([]string{"template", "kpulse-proxy", chart, "--namespace=" + namespace, "--kube-version=1.34.4"}, flags...)...)
	if err != nil {
		t.Fatalf("helm template %v: %v\n%s", flags, err, out)
	}
	return out
}

// valueSets returns the values files that the chart is tested with.
func valueSets(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/kubernetes/values/*.yaml")
	if err != nil || len(files) < 8 {
		t.Fatal(files, err)
	}
	return files
}

// TestChartLints: helm lint accepts all value sets.
func TestChartLints(t *testing.T) {
	t.Parallel()
	for _, values := range append(valueSets(t), chart+"/values.yaml") {
		out, err := helm(t, "lint", "--strict", "--kube-version=1.34.4", "--values="+values, chart)
		if err != nil || strings.Contains(out, "[WARNING]") || strings.Contains(out, "[ERROR]") {
			t.Errorf("%s: %v\n%s", values, err, out)
		}
	}
}

// TestChartRefuses: the chart refuses impossible values and says what to set.
func TestChartRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ set, want string }{
		{"mode=foo", "at '/mode': value must be one of 'exporter', 'sidecar', 'dcgm', 'nvml'"},
		{"exporter.ulr=x", "at '/exporter': additional properties 'ulr' not allowed"},
		{"exporter.url=localhost:9400", "at '/exporter/url'"},
		{"exporter.namespace=A_b", "at '/exporter/namespace'"},
		{"kube.podResources=maybe", "at '/kube/podResources': value must be one of 'auto', true, false"},
		{"port=70000", "at '/port': maximum: got 70,000, want 65,535"},
		{"image.digest=abc", "at '/image/digest'"},
		{"monitor.kind=Both", "at '/monitor/kind': value must be one of 'none', 'ServiceMonitor', 'PodMonitor'"},
		{"monitor.interval=15", "at '/monitor/interval'"},
		{"resources=much", "at '/resources': got string, want object"},
		{"dcgm.fields=everything", "at '/dcgm/fields'"},
		{"exporter.url=http://x,exporter.allNamespaces=true", "exporter.url takes the place of"},
		{"exporter.namespace=gpu,exporter.allNamespaces=true", "exporter.allNamespaces means all; set one of them"},
		{"existingConfigMap=x,config.preset=hpc", "existingConfigMap takes the place of config"},
		{"web.tls=true", "name that Secret in web.secret"},
		{"kube.workloadLabels={a}", "set kube.workloads=true"},
		{"kube.dra=true", "set kube.podResources=true too"},
		{"hostNetwork=true", "set updateStrategy.rollingUpdate to {maxSurge: 0"},
		{"mode=sidecar,monitor.kind=ServiceMonitor", "the exporter's own ServiceMonitor scrapes a sidecar"},
		{"mode=sidecar,networkPolicy.enabled=true", "and so under their NetworkPolicy; set networkPolicy.enabled=false"},
		{"service.enabled=false,monitor.kind=ServiceMonitor", "set service.enabled=true, or monitor.kind=PodMonitor"},
		{"mode=sidecar,monitor.kind=PodMonitor,monitor.telemetry=false", "set monitor.telemetry=true, or monitor.kind=none"},
		{"hostNetwork=true,networkPolicy.enabled=true", "close the port by the firewall of the node"},
		{"updateStrategy.rollingUpdate.maxUnavailable=1", "maxSurge 10% and maxUnavailable 1, and Kubernetes wants one of them to be 0"},
		{"updateStrategy.rollingUpdate.maxSurge=0", "set {maxSurge: 0, maxUnavailable: 10%}"},
		{"mode=nvml,dcgm.host=a:1,exporter.url=http://x,nvml.runtimeClassName=", "mode=nvml does not use dcgm.host (of mode dcgm), exporter.url (of mode exporter); leave that out"},
		{"mode=dcgm,sidecar.port=9401,nvml.runtimeClassName=x", "mode=dcgm does not use nvml.runtimeClassName (of mode nvml), sidecar.port (of mode sidecar);"},
		{"sidecar.selector.app=x,dcgm.fields=core", "mode=exporter does not use dcgm.fields (of mode dcgm), sidecar.selector (of mode sidecar);"},
		{"mode=sidecar,port=9400", "mode=sidecar does not use port (of mode exporter, dcgm, nvml);"},
	} {
		out, err := helm(t, "template", "x", chart, "--kube-version=1.34.4", "--set="+test.set)
		if err == nil || !strings.Contains(out, test.want) {
			t.Errorf("--set %s: %v, want %q:\n%.300s", test.set, err, test.want, out)
		}
	}
}

// TestChartPackage: a package contains the files that the chart's links point to.
func TestChartPackage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if out, err := helm(t, "package", chart, "--destination="+dir); err != nil {
		t.Fatalf("helm package: %v\n%s", err, out)
	}
	flags := []string{"--kube-version=1.34.4", "--set=prometheusRule.recording=true,prometheusRule.alerts=true,dashboards.enabled=true,kube.workloads=true"}
	packed, err := helm(t, append([]string{"template", "kpulse-proxy", only(t, dir, "kpulse-proxy-*.tgz"), "--namespace=gpu"}, flags...)...)
	if err != nil || packed != rendered(t, "gpu", flags...) {
		t.Errorf("the package renders differently from the folder (%v):\n%.500s", err, packed)
	}
	if out := command(t, "tar", "-tvzf", only(t, dir, "*.tgz")); strings.Contains(out, " -> ") || !strings.Contains(out, "kpulse-proxy/files/alerts.yaml") {
		t.Errorf("the package holds\n%s", out)
	}
}

// TestChartLetsTheExporterBeRead: the NetworkPolicy allows the port of the source.
func TestChartLetsTheExporterBeRead(t *testing.T) {
	t.Parallel()
	for set, port := range map[string]string{
		"mode=exporter": "9400",
		"exporter.url=http://$(HOST_IP):9500/metrics":  "9500",
		"exporter.url=http://exporter.gpu:19400":       "19400",
		"exporter.url=http://exporter.gpu/m?at=a:1":    "80",
		"exporter.url=https://exporter.gpu/metrics":    "443",
		"exporter.url=https://[fd00::1]:9443/metrics":  "9443",
		"mode=dcgm,dcgm.host=nvidia-dcgm.gpu-operator": "5555",
		"mode=dcgm,dcgm.host=$(HOST_IP):5556":          "5556",
	} {
		out := rendered(t, "gpu", "--show-only=templates/networkpolicy.yaml", "--set=networkPolicy.enabled=true,"+set)
		if want := "\n  - ports: [{port: " + port + ", protocol: TCP}]\n"; !strings.Contains(out, want) {
			t.Errorf("--set %s: port %s is closed:\n%s", set, port, out)
		}
	}
}

// TestChartCarriesTheMixin: rules and dashboards equal the mixin's; with another job, they select
// only that job.
func TestChartCarriesTheMixin(t *testing.T) {
	t.Parallel()
	flags := []string{"--set=prometheusRule.recording=true,prometheusRule.alerts=true,dashboards.enabled=true"}
	dashboards, rules := 0, 0
	for _, o := range documents(t, rendered(t, "monitoring", flags...)) {
		switch {
		case o.at("kind") == "PrometheusRule":
			rules++
			file := "../../mixin/prometheus_" + map[bool]string{true: "alerts", false: "rules"}[strings.HasSuffix(o.name(), "-alerts")] + ".yaml"
			if want := readYAML(t, file); !reflect.DeepEqual(o["spec"], want) {
				t.Errorf("%s differs from %s", o.name(), file)
			}
		case o.at("metadata", "labels", "grafana_dashboard") == "1":
			dashboards++
			for name, text := range o["data"].(map[string]any) {
				want, err := os.ReadFile("../../mixin/dashboards_out/" + name)
				if err != nil || strings.TrimSpace(text.(string)) != strings.TrimSpace(string(want)) {
					t.Errorf("%s is not the mixin's: %v", name, err)
				}
			}
		}
	}
	if dashboards != 9 || rules != 2 {
		t.Errorf("%d dashboards and %d PrometheusRules", dashboards, rules)
	}
	out := rendered(t, "monitoring", append(flags, "--set=monitor.job=gpu")...)
	if strings.Contains(out, `job="kpulse`) || strings.Contains(out, `job=\"kpulse`) || !strings.Contains(out, `job=\"gpu-telemetry\"`) {
		t.Error("with another job, the selectors name ours or lack that one")
	}
}

// TestChartGrantsWhatTheFileDoes: the chart's roles have the rules of deploy/kubernetes/rbac.yaml,
// for the enabled features alone.
func TestChartGrantsWhatTheFileDoes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/kubernetes/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{}
	for _, o := range documents(t, string(text)) {
		if o.at("kind") == "ClusterRole" {
			want[o.name()] = o["rules"]
		}
	}
	for set, roles := range map[string][]string{
		"mode=exporter": {"kpulse-proxy-discovery"}, "exporter.url=http://x": nil, "mode=nvml": nil, "rbac.create=false": nil,
		"kube.workloads=true,mode=sidecar": {"kpulse-proxy-workloads"}, "kube.dra=true,mode=dcgm": {"kpulse-proxy-dra"},
	} {
		var got []string
		for _, o := range documents(t, rendered(t, "gpu", "--set="+set)) {
			if kind := o.at("kind"); kind == "Role" || kind == "ClusterRole" {
				got = append(got, o.name())
				if !reflect.DeepEqual(o["rules"], want[o.name()]) {
					t.Errorf("--set %s: %s %s grants %v, not %v", set, kind, o.name(), o["rules"], want[o.name()])
				}
				if (kind == "Role") != (o.name() == "kpulse-proxy-discovery") {
					t.Errorf("--set %s: %s is a %s", set, o.name(), kind)
				}
			}
		}
		if !slices.Equal(got, roles) {
			t.Errorf("--set %s: %v, want %v", set, got, roles)
		}
	}
}

// TestChartReplacesPodsOfAnotherConfig: the pods' checksum annotation follows the ConfigMap.
func TestChartReplacesPodsOfAnotherConfig(t *testing.T) {
	t.Parallel()
	sum := func(set string) string {
		for _, o := range documents(t, rendered(t, "gpu", "--set="+set)) {
			if o.at("kind") == "DaemonSet" {
				return o.at("spec", "template", "metadata", "annotations", "checksum/config")
			}
		}
		return "none"
	}
	a, b, file := sum("config.preset=ai"), sum("config.preset=hpc"), sum("config.preset=hpc,configFiles.a=b")
	if a == "" || a == b || b == file || b != sum("config.preset=hpc,port=9999") || sum("port=1") != "" {
		t.Errorf("checksums %q, %q and with a file %q", a, b, file)
	}
}

// property is the JSON Schema of a value.
type property struct {
	Description          string
	Properties           map[string]property
	AdditionalProperties any
}

// TestChartValuesAreDescribed: values.yaml and its schema have the same keys, and the table in the
// chart's README.md has the schema's descriptions.
func TestChartValuesAreDescribed(t *testing.T) {
	text, err := os.ReadFile(chart + "/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema property
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	delete(schema.Properties, "global") // helm's own
	text, err = os.ReadFile(chart + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values yaml.Node
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| value | default | |\n|---|---|---|\n")
	describe(t, &table, "", values.Content[0], schema)
	checkTable(t, chart+"/README.md", "values", table.String())
}

// describe writes a row for each value below a key, in the order of values.yaml.
func describe(t *testing.T, table *strings.Builder, prefix string, values *yaml.Node, schema property) {
	t.Helper()
	known := slices.Collect(maps.Keys(schema.Properties))
	for i := 0; i < len(values.Content); i += 2 {
		name, value := values.Content[i].Value, values.Content[i+1]
		p, ok := schema.Properties[name]
		if !ok || p.Description == "" {
			t.Errorf("values.schema.json does not describe %s%s", prefix, name)
		}
		known = slices.DeleteFunc(known, func(other string) bool { return other == name })
		if p.Properties != nil {
			if p.AdditionalProperties != false {
				t.Errorf("values.schema.json takes any key below %s%s", prefix, name)
			}
			describe(t, table, prefix+name+".", value, p)
			continue
		}
		value.Style, value.HeadComment = yaml.FlowStyle, ""
		var plain any
		if err := value.Decode(&plain); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(plain)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(table, "| `%s%s` | `%s` | %s |\n", prefix, name, text, strings.ReplaceAll(p.Description, "|", `\|`))
	}
	if len(known) > 0 {
		t.Errorf("values.yaml lacks %v of %q", known, prefix)
	}
}

// readYAML reads a file with one document.
func readYAML(t *testing.T, file string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var value map[string]any
	if err := yaml.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}
