package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/holders/kubelettest"
)

// manifest is the container in a folder of deploy/kustomize: its flags, and the paths of its
// probes.
type manifest struct {
	flags                  []string
	startup, ready, living string
}

func manifestOf(t *testing.T, folder string) (m manifest) {
	t.Helper()
	text, err := os.ReadFile(kustomizations + folder + "/resources.yaml")
	if err != nil {
		t.Fatal(err)
	}
	container := object(podOf(t, string(text))["containers"].([]any)[0].(map[string]any))
	for _, flag := range asList(container["args"]) {
		m.flags = append(m.flags, flag.(string))
	}
	path := func(probe string) string { return container.at(probe, "httpGet", "path") }
	m.startup, m.ready, m.living = path("startupProbe"), path("readinessProbe"), path("livenessProbe")
	return m
}

// start runs the program with the manifest's flags, except those that need a cluster: edits are
// pairs of old and new text.
func (m *manifest) start(t *testing.T, n *realNode, edits ...string) *child {
	t.Helper()
	text := strings.NewReplacer(append(edits, "=:9401", "=127.0.0.1:0",
		"/var/lib/kubelet/pod-resources/kubelet.sock", kubelettest.New(t).Socket)...).Replace(strings.Join(m.flags, "\n"))
	cmd := exec.Command(itself(t), strings.Split(text, "\n")...)
	cmd.Env = append(n.env(), "NODE_NAME=n")
	return n.start(t, cmd)
}

// await waits until the readiness probe answers with a status and a text, while the process is
// alive.
func (m *manifest) await(t *testing.T, c *child, status int, text string) {
	t.Helper()
	awaitPage(t, c, m.ready, status, text)
	for _, path := range []string{m.startup, m.living} {
		if got := get(t, c.URL+path); got != 200 {
			t.Errorf("with %q at %s, %s answers %d", text, m.ready, path, got)
		}
	}
}

// TestRealStackProbes: on a host engine, with the chart's flags, the pod is always alive, and ready
// while the engine has readings: not before it starts, nor after it dies.
func TestRealStackProbes(t *testing.T) {
	t.Parallel()
	m := manifestOf(t, "overlays/dcgm")
	n := newRealNode(t, dcgm4, "h100")
	address := freeAddress(t)
	engine := func() {
		n.launch(t, address, []string{"-b", "127.0.0.1", "--port", address[strings.LastIndex(address, ":")+1:]})
	}
	c := m.start(t, n, "nvidia-dcgm.gpu-operator.svc:5555", address)
	m.await(t, c, 503, "systemctl start nvidia-dcgm|has not been read yet")
	engine()
	for again := range 2 {
		m.await(t, c, 200, "^ready")
		awaitPage(t, c, "/metrics", 200, present(7, 1))
		if again == 0 {
			n.engine.kill()
			m.await(t, c, 503, fmt.Sprintf("host engine.*%s", address))
			engine()
		}
	}
}

// TestRealStackProbesOfTheDriver: on the driver, the pod is ready once there is a reading, and
// stays ready when GPUs are lost, to report them.
func TestRealStackProbesOfTheDriver(t *testing.T) {
	t.Parallel()
	m := manifestOf(t, "overlays/nvml")
	n := newRealNode(t, "", "h100")
	c := m.start(t, n)
	m.await(t, c, 200, "^ready")
	n.override(t, lostBefore)
	awaitPage(t, c, "/metrics", 200, present(5, 0))
	m.await(t, c, 200, "^ready")
}
