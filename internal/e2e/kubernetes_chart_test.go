package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// The chart on a real API server: server-side apply accepts every object, and pods run in
// namespaces that enforce Pod Security.

// enforced matches the first line of a value set: the profile of its namespace, and a stricter one
// that refuses its pods.
var enforced = regexp.MustCompile(`^# enforce: (\w+)(?:, not (\w+): .*)?\n`)

// monitoring defines kinds of the Prometheus operator with its own definitions, which `make
// kubernetes` downloads beside the servers.
func (c *cluster) monitoring(t *testing.T, kinds ...string) {
	t.Helper()
	for _, kind := range kinds {
		text, err := os.ReadFile(filepath.Join(os.Getenv("KPULSE_KUBERNETES"), "crds", "monitoring.coreos.com_"+kind+".yaml"))
		if err != nil {
			t.Fatalf("%v; make kubernetes puts it there", err)
		}
		for _, o := range documents(t, string(text)) {
			c.put(t, "", o)
		}
	}
}

// secured creates a namespace that enforces a profile of Pod Security.
func (c *cluster) secured(t *testing.T, profile string) string {
	t.Helper()
	name := unique(t)
	c.apply(t, "", fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {pod-security.kubernetes.io/enforce: %s}}}`, name, profile))
	return name
}

// gpuNode creates a node that GPU feature discovery has labelled.
func (c *cluster) gpuNode(t *testing.T) string {
	t.Helper()
	node := c.node(t, "")
	c.merge(t, "v1", "Node", "", node, "", `{"metadata": {"labels": {"nvidia.com/gpu.present": "true"}}}`)
	return node
}

// TestKubernetesChart: the API server accepts every object of each value set, and the DaemonSet's
// pod runs on the only node that matches, in a namespace that enforces the set's profile. A
// namespace with the set's too strict profile, if any, refuses the pod.
func TestKubernetesChart(t *testing.T) {
	t.Parallel()
	k := kubernetes(t)
	k.monitoring(t, "servicemonitors", "podmonitors", "prometheusrules")
	k.put(t, "", object{"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": map[string]any{"name": "nvidia"}, "handler": "nvidia"})
	for _, values := range valueSets(t) {
		t.Run(strings.TrimSuffix(filepath.Base(values), ".yaml"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(values)
			if err != nil {
				t.Fatal(err)
			}
			m := enforced.FindStringSubmatch(string(text))
			if m == nil {
				t.Fatalf("%s does not begin with # enforce: PROFILE", values)
			}
			ns, node := k.secured(t, m[1]), k.gpuNode(t)
			k.deploy(t) // creates the namespace kpulse
			flags := []string{"--values=" + values, "--set=fullnameOverride=" + ns}
			if !bytes.Contains(text, []byte("\nmode: sidecar\n")) { // a sidecar runs beside the exporter
				flags = append(flags, "--set=nodeSelector.kubernetes\\.io/hostname="+node)
			}
			for _, o := range k.apply(t, ns, rendered(t, ns, flags...)) {
				if o.at("kind") == "DaemonSet" {
					pod := k.awaitPods(t, ns, "app.kubernetes.io/name=kpulse-proxy", 1)[0]
					if pod.at("spec", "nodeName") != node {
						t.Errorf("the pod is on %s", pod.at("spec", "nodeName"))
					}
					k.refusedIn(t, m[2], o)
				}
			}
		})
	}
}

// refusedIn checks with a dry run that a namespace that enforces a profile refuses the pod of a
// DaemonSet; "" checks nothing.
func (c *cluster) refusedIn(t *testing.T, profile string, daemonSet object) {
	t.Helper()
	if profile == "" {
		return
	}
	template := daemonSet["spec"].(map[string]any)["template"].(map[string]any)
	body, err := json.Marshal(object{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "probe"}, "spec": template["spec"]})
	if err != nil {
		t.Fatal(err)
	}
	code, answer, err := c.ask(http.MethodPost, c.path(t, "v1", "Pod", c.secured(t, profile), "")+"?dryRun=All", "application/json", body)
	if err != nil || code != http.StatusForbidden || !strings.Contains(answer.at("message"), `violates PodSecurity "`+profile) {
		t.Errorf("a namespace that enforces %s: %d %s %v", profile, code, answer.at("message"), err)
	}
}

// TestKubernetesChartSidecar: patched, dcgm-exporter's DaemonSet has the proxy at the old port,
// under its old name; the exporter keeps its probes, mounts and variables. A second patch changes
// nothing.
func TestKubernetesChartSidecar(t *testing.T) {
	t.Parallel()
	k := kubernetes(t)
	ns, node := k.namespace(t), k.gpuNode(t)
	text, err := os.ReadFile("testdata/kubernetes/dcgm-exporter.yaml")
	if err != nil {
		t.Fatal(err)
	}
	k.apply(t, ns, strings.ReplaceAll(string(text), "NODE", node))
	k.awaitPods(t, ns, "app.kubernetes.io/name=dcgm-exporter", 1)
	var patch string
	for _, o := range documents(t, rendered(t, ns, "--set=mode=sidecar,config.preset=hpc,imagePullSecrets[0].name=registry")) {
		k.apply(t, ns, mustJSON(t, o))
		patch += o.at("data", "patch.yaml")
	}
	path := k.path(t, "apps/v1", "DaemonSet", ns, "dcgm-exporter")
	var before []byte
	for range 2 {
		spec := k.must(t, http.MethodPatch, path, "application/strategic-merge-patch+json", []byte(mustJSON(t, documents(t, patch)[0])))["spec"]
		after, _ := json.Marshal(spec)
		if before != nil && !bytes.Equal(before, after) {
			t.Errorf("patched again, it is\n%s\nwant\n%s", after, before)
		}
		before = after
	}
	var ds struct {
		Template struct {
			Spec struct {
				Containers []object
				Volumes    []object
			}
		}
	}
	if err := json.Unmarshal(before, &ds); err != nil {
		t.Fatal(err)
	}
	by := map[string]object{}
	for _, c := range ds.Template.Spec.Containers {
		by[c.at("name")] = c
	}
	exporter, proxy := by["exporter"], by["kpulse-proxy"]
	if len(by) != 2 || len(ds.Template.Spec.Volumes) != 2 || exporter.at("ports") != "" || exporter.at("livenessProbe", "httpGet", "port") != "9400" ||
		!strings.Contains(mustJSON(t, exporter), `{"name":"DCGM_EXPORTER_LISTEN","value":"127.0.0.1:9402"}`) || !strings.Contains(mustJSON(t, exporter), "pod-resources") ||
		!strings.Contains(string(before), `"imagePullSecrets":[{"name":"registry"}]`) || proxy.at("ports", 0, "name") != "metrics" || proxy.at("ports", 0, "containerPort") != "9400" || proxy.at("securityContext", "runAsNonRoot") != "true" || proxy.at("resources", "limits", "memory") == "" {
		t.Errorf("%s", before)
	}
	awaitTrue(t, "patched pod", func() bool {
		pods := k.list(t, "v1", "Pod", ns, "app.kubernetes.io/name=dcgm-exporter")
		return len(pods) == 1 && pods[0].at("status", "phase") == "Running" && strings.Contains(mustJSON(t, pods[0]), "kpulse-proxy:")
	})
}

// TestKubernetesHelmInstalls: Helm 3 and 4 install the chart's patch for a sidecar only if the image has run once.
func TestKubernetesHelmInstalls(t *testing.T) {
	t.Parallel()
	k := kubernetes(t)
	for _, program := range helms {
		for exit, want := range map[string]bool{"0": true, "1": false} {
			t.Run(program+" "+exit, func(t *testing.T) {
				t.Parallel()
				ns := k.namespace(t)
				k.gpuNode(t)
				var out string
				var err error
				var installed sync.WaitGroup
				installed.Go(func() {
					out, err = helm(t, program, "install", "kpulse-proxy", chart, "--kubeconfig="+k.file("admin.kubeconfig"), "--namespace="+ns, built, "--set=mode=sidecar")
				})
				awaitTrue(t, "pod that checks the image", func() bool { return len(k.list(t, "v1", "Pod", ns, "job-name=kpulse-proxy-check")) == 1 })
				pod := k.list(t, "v1", "Pod", ns, "job-name=kpulse-proxy-check")[0]
				k.merge(t, "v1", "Pod", ns, pod.name(), "", `{"metadata": {"annotations": {"kpulse.test/exit": "`+exit+`"}}}`)
				installed.Wait()
				code, _, _ := k.ask(http.MethodGet, k.path(t, "v1", "ConfigMap", ns, "kpulse-proxy-sidecar"), "", nil)
				if (err == nil) != want || (code == http.StatusOK) != want || want && !strings.Contains(out, "rollout undo daemonset DAEMONSET") {
					t.Errorf("%v; the patch: %d\n%s", err, code, out)
				}
			})
		}
	}
}

// TestKubernetesOperatorSlot: the API server runs the gpu-operator's DaemonSet with our image as the ClusterPolicy names it.
// With the environment of its pod, and at the pod's address, the program answers the pod's probes, and names pods.
func TestKubernetesOperatorSlot(t *testing.T) {
	t.Parallel()
	k := kubernetes(t)
	ns, node := k.namespace(t), k.gpuNode(t)
	k.merge(t, "v1", "Node", "", node, "", `{"metadata": {"labels": {"nvidia.com/gpu.deploy.dcgm-exporter": "true"}}}`)
	k.apply(t, ns, operatorDaemonSet(t))
	pod := k.awaitPods(t, ns, "app=nvidia-dcgm-exporter", 1)[0]
	spec := object(pod["spec"].(map[string]any))
	container := object(spec["containers"].([]any)[0].(map[string]any))
	const image = "registry.example.com/gpu/kpulse-proxy:VERSION-operator"
	if spec.at("nodeName") != node || container.at("image") != image || container.at("command")+container.at("args") != "" {
		t.Errorf("on %s it runs %s", spec.at("nodeName"), mustJSON(t, container))
	}
	if container.at("volumeMounts", 0, "mountPath") != kubeletSockets || spec.at("volumes", 0, "hostPath", "path") != kubeletSockets {
		t.Errorf("%s is not mounted: %s", kubeletSockets, mustJSON(t, spec))
	}

	n := newRealNode(t, dcgm4, "h100") // skips without NVIDIA's stack
	address := pod.at("status", "podIP")
	proxy := exec.Command(itself(t))
	proxy.Env = append(n.env(), slotOf(t, n, spec, node, address+":9400", ns)...)
	c := n.start(t, proxy)
	awaitPodNames(t, c, node, ns)
	for _, probe := range []string{"livenessProbe", "readinessProbe"} {
		asked := "http://" + address + ":" + container.at(probe, "httpGet", "port") + container.at(probe, "httpGet", "path")
		if status := get(t, asked); status != http.StatusOK {
			t.Errorf("%s: %s answers %d", probe, asked, status)
		}
	}
	if log := c.Logged(); strings.Contains(log, "no effect") || strings.Contains(log, "NVML") || !strings.Contains(log, "in the place of dcgm-exporter") {
		t.Error(log)
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
