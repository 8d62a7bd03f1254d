package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
)

// The chart of deploy/helm, rendered by helm. kubernetes_chart_test.go applies the result.

const chart = "../../deploy/helm/kpulse-proxy"

// helms are Helm 3 and 4, which `make kubernetes` builds beside the servers.
var helms = []string{"helm", "helm4"}

// built sets an image: the chart of a checkout has none.
const built = "--set=image.tag=built"

// helm runs one of helms, and returns its output, errors included.
func helm(t *testing.T, program string, args ...string) (output string, err error) {
	t.Helper()
	slow.Test(t, "KPULSE_KUBERNETES, for its helm")
	bin := os.Getenv("KPULSE_KUBERNETES")
	if bin == "" && os.Getenv("KPULSE_REQUIRE_KUBERNETES") == "" {
		t.Skip("KPULSE_KUBERNETES is not set; make kubernetes builds helm: see CONTRIBUTING.md")
	}
	cmd := exec.Command(filepath.Join(bin, program), args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if failed := new(exec.ExitError); err != nil && !errors.As(err, &failed) {
		t.Fatalf("%v; make kubernetes builds it", err)
	}
	return string(out), err
}

// rendered returns the chart rendered in a namespace, for the version of Kubernetes that the tests
// run. Helm 3 and 4 must agree.
func rendered(t *testing.T, namespace string, flags ...string) string {
	t.Helper()
	return renderedFrom(t, chart, namespace, append([]string{built}, flags...)...)
}

// ends matches the end of a document and empty lines before it: Helm 4 adds one.
var ends = regexp.MustCompile(`\n(?: *\n)*---\n`)

func renderedFrom(t *testing.T, chart, namespace string, flags ...string) (output string) {
	t.Helper()
	for i, program := range helms {
		out, err := helm(t, program, append([]string{"template", "kpulse-proxy", chart, "--namespace=" + namespace, "--kube-version=1.34.4"}, flags...)...)
		if err != nil {
			t.Fatalf("%s template %v: %v\n%s", program, flags, err, out)
		}
		out = strings.TrimRight(ends.ReplaceAllString(out, "\n---\n"), "\n") + "\n"
		if i > 0 && out != output {
			t.Errorf("%s template %v: Helm 3 and 4 differ:\n%.500s\n%.500s", program, flags, output, out)
		}
		output = out
	}
	return output
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
		for _, program := range helms {
			out, err := helm(t, program, "lint", "--strict", "--kube-version=1.34.4", built, "--values="+values, chart)
			if err != nil || strings.Contains(out, "[WARNING]") || strings.Contains(out, "[ERROR]") {
				t.Errorf("%s: %s: %v\n%s", program, values, err, out)
			}
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
		{"image.tag=", "this chart is that of a checkout, for which nobody published an image"},
		{"image.tag=,mode=sidecar", "and set image.repository and image.tag"},
		{"mode=sidecar,port=9400", "mode=sidecar does not use port (of mode exporter, dcgm, nvml);"},
	} {
		for _, program := range helms {
			out, err := helm(t, program, "template", "x", chart, "--kube-version=1.34.4", "--set=image.tag=built,"+test.set)
			if err == nil || !strings.Contains(out, test.want) {
				t.Errorf("%s --set %s: %v, want %q:\n%.300s", program, test.set, err, test.want, out)
			}
		}
	}
}

// TestChartPackage: the package that make release writes renders as the folder does, with the images of its version. Helm
// packs the same files.
func TestChartPackage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if out, err := helm(t, "helm", "package", chart, "--destination="+dir+"/helm"); err != nil {
		t.Fatalf("helm package: %v\n%s", err, out)
	}
	stamped(t, top+"/deploy/packages/chart", dir)
	packed := only(t, dir, "kpulse-proxy-1.2.3-rc.4.tgz")
	for mode, image := range map[string]string{"exporter": aVersion, "sidecar": aVersion, "dcgm": aVersion, "nvml": aVersion + "-nvml"} {
		flags := []string{"--set=prometheusRule.recording=true,prometheusRule.alerts=true,dashboards.enabled=true,kube.workloads=true,mode=" + mode}
		want := rendered(t, "gpu", append(flags, "--set=image.tag="+image)...)
		want = strings.ReplaceAll(strings.ReplaceAll(want, "kpulse-proxy-0.0.0", "kpulse-proxy-1.2.3-rc.4"), `version: "unreleased"`, `version: "`+aVersion+`"`)
		if got := renderedFrom(t, packed, "gpu", flags...); got != want || !strings.Contains(got, `image: "ghcr.io/kpulse/kpulse-proxy:`+image+`"`) {
			t.Errorf("mode %s: the package renders differently from the folder:\n%.500s", mode, got)
		}
	}
	files := func(archive string) string {
		list := strings.Fields(command(t, "sh", "-c", "tar -tzf "+archive+" | grep -v '/$'"))
		slices.Sort(list)
		return strings.Join(list, "\n")
	}
	if ours, helms := files(packed), files(only(t, dir, "helm/*.tgz")); ours != helms {
		t.Errorf("the package has the files\n%s\nthat of helm\n%s", ours, helms)
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
	if all, _ := filepath.Glob("../../mixin/dashboards_out/*.json"); dashboards != len(all) || rules != 2 {
		t.Errorf("%d of %d dashboards and %d PrometheusRules", dashboards, len(all), rules)
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

// TestPagesHelm renders what each command of helm on the pages installs from the chart's folder, with both versions of Helm.
func TestPagesHelm(t *testing.T) {
	t.Parallel()
	found := 0
	for page, text := range markdown(t) {
		for _, m := range regexp.MustCompile(`(?m)^ *helm install \S+ deploy/helm/kpulse-proxy ((?:.*\\\n)*.*)$`).FindAllStringSubmatch(text, -1) {
			flags := regexp.MustCompile(`'[^']*'|\S+`).FindAllString(strings.ReplaceAll(m[1], "\\\n", " "), -1)
			for i, flag := range flags {
				flags[i] = strings.NewReplacer("'", "", "NAMESPACE", "gpu", "REGISTRY", "registry.example.com").Replace(flag)
			}
			if strings.Contains(m[1], "dcgm.toolsImage") {
				flags = append(flags, "--set=mode=dcgm")
			}
			out := renderedFrom(t, chart, "gpu", flags...)
			if !regexp.MustCompile(`image: "registry.example.com/\S*kpulse-proxy:VERSION"`).MatchString(out) {
				t.Errorf("%s: %s installs another image:\n%s", page, m[0], out)
			}
			found++
		}
	}
	if found < 5 {
		t.Errorf("the pages have %d commands", found)
	}
}

// property is the JSON Schema of a value.
type property struct {
	Description          string
	Properties           map[string]property
	AdditionalProperties any
}

// TestChartValuesAreDescribed: values.yaml and its schema have the same keys, and the comments in values.yaml and the
// table in the chart's README.md are the schema's descriptions.
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
		_, comment, last := strings.Cut(values.Content[i].HeadComment, "\n\n") // the first one begins with that of the file
		if !last {
			comment = values.Content[i].HeadComment
		}
		if said := strings.Join(strings.Fields(strings.ReplaceAll("\n"+comment, "\n# ", " ")), " "); said != p.Description {
			t.Errorf("the comment of %s%s in values.yaml is %q, and the schema says %q", prefix, name, said, p.Description)
		}
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
