package e2e

import (
	"bytes"
	"net/http"
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
		tag := map[bool]string{true: "VERSION-nvml", false: "VERSION"}[set == "mode=nvml"]
		want := rendered(t, "kpulse", "--set=image.repository=kpulse-proxy,image.tag="+tag+","+set, "--no-hooks")
		if filepath.Base(file) == "patch.yaml" { // Kubernetes refuses it without an image
			want = strings.Replace(documents(t, want)[0].at("data", "patch.yaml"), `"kpulse-proxy:VERSION"`, `""`, 1)
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

// TestKustomizeSidecar follows the page: Helm 3 and 4 install dcgm-exporter's DaemonSet through a post-renderer, which puts the
// proxy into it with the image that the folder names.
func TestKustomizeSidecar(t *testing.T) {
	t.Parallel()
	rendered(t, "gpu") // skips without helm
	page, err := os.ReadFile(kustomizations + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := map[string]string{"chart/Chart.yaml": "apiVersion: v2\nname: dcgm-exporter\nversion: 4.8.2\n"}
	for to, from := range map[string]string{"chart/templates/all.yaml": "testdata/kubernetes/dcgm-exporter.yaml", "FOLDER/sidecar/kustomization.yaml": kustomizations + "sidecar/kustomization.yaml", "FOLDER/sidecar/patch.yaml": kustomizations + "sidecar/patch.yaml"} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		files[to] = string(text)
	}
	for _, block := range fenced.FindAllStringSubmatch(string(page), -1) {
		if name, _, found := strings.Cut(strings.TrimPrefix(block[2], "# "), ".yaml"); found {
			files["FOLDER/"+name+".yaml"] = strings.ReplaceAll(block[2], "github.com/kpulse/kpulse-proxy/deploy/kustomize/sidecar?ref=main", "sidecar")
		}
	}
	_, script, _ := strings.Cut(string(page), "\n    #!/bin/sh\n")
	line, _, _ := strings.Cut(script, "\n")
	files["FOLDER/post"] = "#!/bin/sh\n" + strings.TrimSpace(line) + "\n"
	writeFiles(t, dir, files)
	for program, renderer := range map[string]string{"helm": dir + "/FOLDER/post", "helm4": "kpulse-sidecar"} {
		run := exec.Command("sh", "-euc", `[ "$1" = helm ] || "$1" plugin install "$0/FOLDER" >"$0/log"; "$1" template dcgm-exporter "$0/chart" --post-renderer "$2"`, dir, program, renderer)
		run.Env = append(os.Environ(), "HOME="+t.TempDir(), "PATH="+os.Getenv("KPULSE_KUBERNETES")+":"+os.Getenv("PATH"))
		out, err := run.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", program, err, out)
		}
		containers := podOf(t, string(out))["containers"].([]any)
		text := mustJSON(t, containers)
		if len(containers) != 2 || !strings.Contains(text, "127.0.0.1:9402") || strings.Count(text, `"containerPort":9400`) != 1 ||
			!strings.Contains(text, `"image":"registry.example.com/gpu/kpulse-proxy:VERSION"`) {
			t.Errorf("%s: %s", program, text)
		}
	}
}

// TestKubernetesSidecarApply: the script changes nothing unless the image has run, then patches the exporter's DaemonSet, and
// takes back this patch and nothing else if the pods do not get ready. Kubernetes refuses the patch as it is, without an image.
func TestKubernetesSidecarApply(t *testing.T) {
	t.Parallel()
	k := kubernetes(t)
	ns, node := k.namespace(t), k.gpuNode(t)
	text, err := os.ReadFile("testdata/kubernetes/dcgm-exporter.yaml")
	if err != nil {
		t.Fatal(err)
	}
	k.apply(t, ns, strings.ReplaceAll(string(text), "NODE", node))
	k.awaitPods(t, ns, "app.kubernetes.io/name=dcgm-exporter", 1)
	containers := func() string {
		var names []string
		for _, c := range k.get(t, "apps/v1", "DaemonSet", ns, "dcgm-exporter")["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any) {
			names = append(names, c.(map[string]any)["image"].(string))
		}
		return strings.Join(names, " ")
	}
	// The exporter is updated: its first revision must not come back.
	k.must(t, http.MethodPatch, k.path(t, "apps/v1", "DaemonSet", ns, "dcgm-exporter"), "application/strategic-merge-patch+json",
		[]byte(`{"spec": {"template": {"spec": {"containers": [{"name": "exporter", "image": "nvcr.io/nvidia/k8s/dcgm-exporter:4.8.3"}]}}}}`))
	alone := containers()
	bin := os.Getenv("KPULSE_KUBERNETES")
	env := append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "KUBECONFIG="+k.file("admin.kubeconfig"), "CHECK_TIMEOUT=100s", "TIMEOUT=100s")
	refused := exec.Command("kubectl", "-n", ns, "patch", "daemonset", "dcgm-exporter", "--patch-file", kustomizations+"sidecar/patch.yaml")
	refused.Path, refused.Env = filepath.Join(bin, "kubectl"), env
	if out, err := refused.CombinedOutput(); err == nil || !strings.Contains(string(out), "image: Required value") || containers() != alone {
		t.Errorf("the patch without an image: %v, %s", err, out)
	}

	// apply runs the script, which waits for pods, but not if TIMEOUT is no duration; the test plays the image, which ends with
	// a status, and later pods that are ready or not.
	apply := func(exit string, more ...string) (output string, err error) {
		k.awaitPods(t, ns, "app.kubernetes.io/name=dcgm-exporter", 1)
		cmd := exec.Command(kustomizations+"sidecar/apply", ns, "registry.example.com/kpulse-proxy:any")
		cmd.Env = append(env, more...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		awaitTrue(t, "pod that checks the image", func() bool {
			code, answer, err := k.ask(http.MethodGet, k.path(t, "v1", "Pod", ns, "kpulse-check"), "", nil)
			return err == nil && code == http.StatusOK && answer.at("metadata", "deletionTimestamp") == "" && answer.at("spec", "nodeName") == node
		})
		k.merge(t, "v1", "Pod", ns, "kpulse-check", "", `{"metadata": {"annotations": {"kpulse.test/exit": "`+exit+`"}}}`)
		err = cmd.Wait()
		return out.String(), err
	}
	if out, err := apply("1", "CHECK_TIMEOUT=3s"); err == nil || !strings.Contains(out, "the image does not run; nothing was changed") || containers() != alone {
		t.Errorf("an image that fails: %v, %s\n%s", err, containers(), out)
	}
	if out, err := apply("0", "TIMEOUT=none"); err == nil || !strings.Contains(out, "the patch was taken back") || containers() != alone {
		t.Errorf("pods that do not get ready: %v, %s\n%s", err, containers(), out)
	}
	if out, err := apply("0"); err != nil || containers() != alone+" registry.example.com/kpulse-proxy:any" || !strings.Contains(out, "to go back: kubectl --namespace "+ns+" rollout undo daemonset dcgm-exporter") {
		t.Errorf("%v, %s\n%s", err, containers(), out)
	}
	patched := containers()
	if out, err := apply("0", "TIMEOUT=none"); err == nil || !strings.Contains(out, "nothing was changed") || containers() != patched {
		t.Errorf("again: %v, %s\n%s", err, containers(), out)
	}
}
