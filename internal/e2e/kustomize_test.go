package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// deploy/kustomize, which is rendered from the chart, built by kubectl.

const kustomizations = "../../deploy/kustomize/"

// kustomized runs `kubectl kustomize`, which `make kubernetes` builds beside the servers.
func kustomized(t *testing.T, folder string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(os.Getenv("KPULSE_KUBERNETES"), "kubectl"), "kustomize", folder)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl kustomize %s: %v\n%s", folder, err, out)
	}
	return string(out)
}

// TestKustomizeIsRenderedFromTheChart checks the committed files against the chart; -update
// rewrites them.
func TestKustomizeIsRenderedFromTheChart(t *testing.T) {
	for file, set := range map[string]string{
		"base/resources.yaml": "mode=exporter", "overlays/dcgm/resources.yaml": "mode=dcgm",
		"overlays/nvml/resources.yaml": "mode=nvml", "sidecar/patch.yaml": "mode=sidecar",
	} {
		want := rendered(t, "kpulse", "--set="+set, "--no-hooks")
		if filepath.Base(file) == "patch.yaml" {
			want = documents(t, want)[0].at("data", "patch.yaml")
		}
		want = "# Rendered from the chart; do not edit.\n" + strings.ReplaceAll(want, "managed-by: Helm", "managed-by: kustomize")
		if *update {
			if err := os.WriteFile(kustomizations+file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(kustomizations + file); err != nil || string(got) != want {
			t.Errorf("%s differs from the chart's output (%v); run go test ./internal/e2e -run TestKustomize -update", file, err)
		}
	}
}

// TestKubernetesKustomize: the API server accepts what base and overlays build, and the Pod
// Security of the namespace refuses no pod.
func TestKubernetesKustomize(t *testing.T) {
	t.Parallel()
	k := kubernetes(t)
	k.put(t, "", object{"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": map[string]any{"name": "nvidia"}, "handler": "nvidia"})
	for folder, profile := range map[string]string{"base": "restricted", "overlays/gpu-operator": "restricted", "overlays/dcgm": "privileged", "overlays/nvml": "privileged"} {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			built := kustomized(t, kustomizations+folder)
			ns, node, home := k.secured(t, profile), k.gpuNode(t), "kpulse"
			if strings.HasSuffix(folder, "gpu-operator") {
				home = "gpu-operator"
				if strings.Contains(built, "namespace: kpulse\n") || !strings.Contains(built, "--kube.discover-namespace=gpu-operator") {
					t.Errorf("it looks in another namespace:\n%s", built)
				}
			}
			built = strings.ReplaceAll(built, "namespace: "+home+"\n", "namespace: "+ns+"\n")
			for _, o := range documents(t, built) {
				if o.at("kind") == "DaemonSet" {
					o["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["nodeSelector"] = map[string]any{"kubernetes.io/hostname": node}
				}
				k.apply(t, ns, mustJSON(t, o))
			}
			k.awaitPods(t, ns, "app.kubernetes.io/name=kpulse-proxy", 1)
		})
	}
}

// TestKustomizeSidecar builds the sidecar as a component of a folder with dcgm-exporter's
// DaemonSet.
func TestKustomizeSidecar(t *testing.T) {
	t.Parallel()
	rendered(t, "gpu") // skips without helm
	dir := t.TempDir()
	for from, to := range map[string]string{"testdata/kubernetes/dcgm-exporter.yaml": "all.yaml", kustomizations + "sidecar/kustomization.yaml": "sidecar/kustomization.yaml", kustomizations + "sidecar/patch.yaml": "sidecar/patch.yaml"} {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(dir, to)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte("resources: [all.yaml]\ncomponents: [sidecar]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ds := documents(t, kustomized(t, dir))[0]
	containers := ds["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)
	text := mustJSON(t, ds)
	if len(containers) != 2 || ds.name() != "dcgm-exporter" || !strings.Contains(text, "127.0.0.1:9402") || strings.Count(text, `"containerPort":9400`) != 1 {
		t.Errorf("%s", text)
	}
}
