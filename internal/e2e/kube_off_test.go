package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// silentAPI starts a Kubernetes API server that accepts connections and never answers. most is the
// maximum number of open connections.
func silentAPI(t *testing.T) (address string, most *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	most = new(atomic.Int32)
	t.Cleanup(func() { l.Close() })
	go func() {
		var open atomic.Int32
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			most.Store(max(most.Load(), open.Add(1)))
			t.Cleanup(func() { c.Close() })
			go func() {
				io.Copy(io.Discard, c) // until the client gives up
				open.Add(-1)
			}()
		}
	}()
	return l.Addr().String(), most
}

// manyPods returns the page of an exporter with n pods that hold a GPU each.
func manyPods(n int) []byte {
	var b []byte
	for i := range n {
		for _, family := range []string{"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_DEV_POWER_USAGE"} {
			b = fmt.Appendf(b, "%s{gpu=\"%d\",UUID=\"GPU-%d\",namespace=\"n\",pod=\"p-%d\",container=\"main\"} 0.5\n", family, i, i, i)
		}
	}
	return b
}

// TestKubernetesOffIsOff: in a pod, but without --kube.*, no Kubernetes code runs and no request is
// sent.
func TestKubernetesOffIsOff(t *testing.T) {
	t.Parallel()
	address, connections := silentAPI(t)
	up := startUpstream(func() ([]byte, error) { return manyPods(8), nil })
	defer up.stop()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	start := func(flags ...string) *child {
		cmd := exec.Command(itself(t), append([]string{"--web.listen-address=127.0.0.1:0", "--source=" + up.url + "/metrics", "--source.min-interval=0s", "--poll=1s", "--web.enable-pprof"}, flags...)...)
		cmd.Env = append(os.Environ(), "KUBERNETES_SERVICE_HOST="+host, "KUBERNETES_SERVICE_PORT="+port, "KUBECONFIG="+silentKubeconfig(t, address))
		c, err := startChild(cmd, filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Stop() })
		return c
	}
	// kube returns the goroutines of Kubernetes code.
	kube := func(c *child) (of []string) {
		for range 3 {
			if code, _ := page(t, c, "/metrics"); code != http.StatusOK {
				t.Fatal(code)
			}
		}
		_, text := page(t, c, "/debug/pprof/goroutine?debug=2")
		for goroutine := range strings.SplitSeq(text, "\n\n") {
			if strings.Contains(goroutine, "k8s.io/") || strings.Contains(goroutine, "internal/holders") {
				of = append(of, goroutine)
			}
		}
		return of
	}
	off := start()
	if of := kube(off); len(of) != 0 || connections.Load() != 0 {
		t.Errorf("%d connections, and these run:\n%s", connections.Load(), strings.Join(of, "\n\n"))
	}
	if _, own := page(t, off, "/-/metrics"); strings.Contains(own, "kube") {
		t.Error("/-/metrics has series of Kubernetes")
	}
	if on := start("--kube.workloads", "--kube.config="+silentKubeconfig(t, address)); len(kube(on)) == 0 {
		t.Error("no Kubernetes code runs with --kube.workloads either")
	}
}

// silentKubeconfig writes a kubeconfig for that API server.
func silentKubeconfig(t *testing.T, address string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("{current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: \"http://%s\"}}]}", address)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
