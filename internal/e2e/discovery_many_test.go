package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/holders/kubetest"
	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
	"github.com/kpulse/kpulse-proxy/internal/slow"
)

// fleet is many nodes with an exporter each.
type fleet struct {
	cluster   *kubetest.Server
	now, most atomic.Int32 // exporters being read
	takes     time.Duration
}

// startFleet starts nodes whose exporters serve body, each with UUIDs of its own.
func startFleet(t *testing.T, nodes int, body []byte, takes time.Duration) *fleet {
	t.Helper()
	f := &fleet{cluster: kubetest.New(t), takes: takes}
	for i := range nodes {
		own := bytes.ReplaceAll(body, []byte(`UUID="GPU-`), fmt.Appendf(nil, `UUID="GPU-%03d-`, i))
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			n := f.now.Add(1)
			defer f.now.Add(-1)
			for most := f.most.Load(); n > most && !f.most.CompareAndSwap(most, n); most = f.most.Load() {
			}
			time.Sleep(f.takes)
			_, _ = w.Write(own)
		}))
		t.Cleanup(server.Close)
		f.cluster.Put(exporterPod(t, fmt.Sprintf("exporter-%03d", i), fmt.Sprintf("node-%03d", i), &upstream{url: server.URL}))
	}
	return f
}

// awaitFleet polls until a scrape has all sources.
func awaitFleet(t *testing.T, c *child, nodes int) string {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if code, text := page(t, c, "/metrics"); code == 200 && allUp(text, nodes) {
			return text
		}
	}
	t.Fatalf("not all of %d exporters are read", nodes)
	return ""
}

// allUp reports whether all sources were read.
func allUp(page string, nodes int) bool {
	_, ups, _ := strings.Cut(page, "# TYPE kpulse_source_up gauge\n")
	ups, _, _ = strings.Cut(ups, "# ")
	return strings.Count(ups, "} 1\n") == nodes
}

// TestManyExporters: many exporters are read at the same time, and one scrape has all of them,
// family by family.
func TestManyExporters(t *testing.T) {
	slow.Test(t, "discovers sixty exporters, and loses them")
	t.Parallel()
	const nodes = 60
	f := startFleet(t, nodes, rawtest.Body(2, 10, 1), 20*time.Millisecond)
	c := discovering(t, f.cluster, "--source.timeout=60s")
	whole := awaitFleet(t, c, nodes)
	if err := checkExposition([]byte(whole)); err != nil {
		t.Error(err)
	}
	if n := strings.Count(whole, "\nkpulse_gpu_present{"); n != 2*nodes {
		t.Errorf("%d GPUs, want %d", n, 2*nodes)
	}
	if most := f.most.Load(); most < 2 {
		t.Errorf("%d exporters were read at a time, want several", most)
	}
}

// TestTargetsOfManySources measures the cost of one proxy for many nodes of 16 GPUs × 60 fields:
// make bench.
func TestTargetsOfManySources(t *testing.T) {
	if os.Getenv("KPULSE_BENCH") == "" {
		t.Skip("run by make bench")
	}
	binary, body := buildProxy(t), rawtest.Body(16, 60, 1)
	t.Logf("%7s %12s %12s %12s %12s %12s", "sources", "body in MB", "scrape in s", "CPU in s", "CPU each ms", "peak RSS MB")
	var each []float64
	for _, nodes := range []int{25, 50, 100, 200} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			f := startFleet(t, nodes, body, 0)
			c := startProxy(t, binary, "--kube.discover", "--kube.config="+f.cluster.Kubeconfig(t), "--source.min-interval=0s", "--poll=0", "--source.timeout=60s", "--web.min-read-rate=1")
			size := len(awaitFleet(t, c, nodes))
			const rounds = 5
			var took time.Duration
			cpu := cpuOf(t, c, func() {
				begun := time.Now()
				for range rounds {
					if code, text := page(t, c, "/metrics"); code != 200 || !allUp(text, nodes) {
						t.Errorf("%d, or not all exporters were read", code)
					}
				}
				took = time.Since(begun)
			}) / rounds
			each = append(each, cpu/float64(nodes))
			t.Logf("%7d %12.1f %12.2f %12.2f %12.2f %12.0f", nodes, float64(size)/1e6, took.Seconds()/rounds, cpu, 1e3*cpu/float64(nodes), peakMemory(t, c))
		})
	}
	if last := each[len(each)-1]; last > 2*each[0] {
		t.Errorf("a source of many costs %.1f times one of few", last/each[0])
	}
}
