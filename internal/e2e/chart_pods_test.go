package e2e

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Privileges of the chart's containers and paths of their probes, for all value sets.

// Security contexts, as YAML.
const (
	nobodys    = `{runAsUser: 65534, runAsGroup: 65534, runAsNonRoot: true, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}`
	roots      = `{runAsUser: 0, runAsGroup: 0, runAsNonRoot: false, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}`
	privileged = `{runAsUser: 0, runAsGroup: 0, runAsNonRoot: false, readOnlyRootFilesystem: true, privileged: true}`
)

// podOf returns the spec of the pods that the chart makes or, as a sidecar, patches.
func podOf(t *testing.T, output string) object {
	t.Helper()
	for _, o := range documents(t, output) {
		if patch := o.at("data", "patch.yaml"); patch != "" {
			o = documents(t, patch)[0]
		}
		if o.at("kind") == "DaemonSet" {
			return o["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		}
	}
	t.Fatalf("there is no DaemonSet:\n%s", output)
	return nil
}

// TestChartPods: each container has the least privileges that its mode needs, the probes ask their
// paths, and the service account's token is mounted only if the API server is asked.
func TestChartPods(t *testing.T) {
	t.Parallel()
	const httpProbe, none = `{httpGet: {path: PATH, port: metrics, scheme: HTTP}}`, ""
	type want struct {
		set, context, probe string
		token               bool
	}
	wants := map[string][]want{
		"dcgm":            {{none, roots, httpProbe, true}},
		"dcgm-restricted": {{none, nobodys, httpProbe, false}},
		"exporter":        {{none, nobodys, httpProbe, true}, {"kube.podResources=true", roots, httpProbe, true}},
		"exporter-all":    {{none, nobodys, httpProbe, true}},
		"exporter-tls": {{none, nobodys, `{tcpSocket: {port: metrics}}`, true},
			{"web.auth=false", nobodys, `{httpGet: {path: PATH, port: metrics, scheme: HTTPS}}`, true}},
		"exporter-url":    {{none, nobodys, httpProbe, false}, {"kube.workloads=true", nobodys, httpProbe, true}},
		"nvml":            {{none, roots, httpProbe, false}},
		"nvml-kernel-log": {{none, privileged, httpProbe, false}},
		"nvml-restricted": {{none, nobodys, httpProbe, false}},
		"sidecar":         {{none, nobodys, httpProbe, true}, {"kube.workloads=false", nobodys, httpProbe, false}},
	}
	for _, file := range valueSets(t) {
		name := strings.TrimSuffix(file[strings.LastIndex(file, "/")+1:], ".yaml")
		if wants[name] == nil {
			t.Errorf("this test has no row for %s", file)
		}
		for _, w := range wants[name] {
			t.Run(name+"/"+w.set, func(t *testing.T) {
				t.Parallel()
				pod := podOf(t, rendered(t, "gpu", "--values="+file, "--set="+w.set))
				if token := pod.at("automountServiceAccountToken") == "true"; token != w.token {
					t.Errorf("the service account's token is mounted: %t", token)
				}
				checkContainers(t, pod, w.context, w.probe)
			})
		}
	}
}

// checkContainers checks the security context of our containers in a pod, and their probes, with
// PATH for the path.
func checkContainers(t *testing.T, pod object, context, probe string) {
	t.Helper()
	containers, _ := pod["initContainers"].([]any)
	containers = append(slices.Clone(containers), pod["containers"].([]any)...)
	probed := 0
	for _, c := range containers {
		container := object(c.(map[string]any))
		if container.at("name") == "exporter" { // the pod's own container
			continue
		}
		if container.at("name") == "dcgmi" { // the init container only copies files
			sameYAML(t, "dcgmi: securityContext", container["securityContext"], nobodys)
		} else {
			sameYAML(t, container.at("name")+": securityContext", container["securityContext"], context)
		}
		for _, o := range []struct{ probe, path string }{{"startupProbe", "/-/healthy"}, {"livenessProbe", "/-/healthy"}, {"readinessProbe", "/-/ready"}} {
			got, ok := container[o.probe].(map[string]any)
			if !ok {
				continue
			}
			probed++
			for _, timing := range []string{"periodSeconds", "failureThreshold", "timeoutSeconds"} {
				delete(got, timing)
			}
			sameYAML(t, o.probe, got, strings.ReplaceAll(probe, "PATH", o.path))
		}
		for _, m := range asList(container["volumeMounts"]) {
			if mount := object(m.(map[string]any)); mount.at("readOnly") != "true" && mount.at("mountPath") != "/more" && mount.at("name") != "state" && container.at("name") != "dcgmi" {
				t.Errorf("%s may write to %s", container.at("name"), mount.at("mountPath"))
			}
		}
	}
	if probed != 3 {
		t.Errorf("there are %d probes, want 3", probed)
	}
}

func asList(v any) []any { list, _ := v.([]any); return list }

// sameYAML requires got to equal the YAML text want.
func sameYAML(t *testing.T, what string, got any, want string) {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(want), &value); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, value) {
		t.Errorf("%s is %v, want %v", what, got, value)
	}
}
