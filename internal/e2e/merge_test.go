package e2e

import (
	"bytes"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
)

// startTwo runs a proxy in front of two exporters, and returns their URLs and bodies.
func startTwo(t *testing.T) (proxy *child, urls []string, bodies [2]string) {
	t.Helper()
	var sources strings.Builder
	for i, families := range []int{30, 45} {
		body := string(rawtest.Body(4, families, uint64(i+1)))
		if i == 1 {
			body = strings.NewReplacer("gpu-node-0042", "other", `UUID="GPU-`, `UUID="GPU-f`).Replace(body)
		}
		up := startUpstream(func() ([]byte, error) { return []byte(body), nil })
		t.Cleanup(up.stop)
		bodies[i], urls = body, append(urls, up.url+"/metrics")
		sources.WriteString("\n- {source: " + up.url + "/metrics, poll: 1}")
	}
	_, flag := fed(t, "sources:"+sources.String()+"\n")
	return startProxy(t, itself(t), flag, "--source.min-interval=0s"), urls, bodies
}

// seriesLines counts each line of the exporter's series in a text.
func seriesLines(text string) map[string]int {
	lines := map[string]int{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "DCGM_") {
			lines[strings.TrimSpace(line)]++
		}
	}
	return lines
}

// TestSourcesAreMerged: a family of several sources is one group with one HELP and TYPE, so strict
// parsers accept it, and nothing is lost; each source alone is byte for byte what its exporter
// wrote.
func TestSourcesAreMerged(t *testing.T) {
	t.Parallel()
	proxy, urls, bodies := startTwo(t)
	whole := awaitPage(t, proxy, "/metrics", 200, `\nkpulse_gpu_present\{hostname="other"`)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(whole))
	if err != nil {
		t.Fatalf("a strict parser rejects the page: %v", err)
	}
	if n := len(families["DCGM_FI_DEV_GPU_TEMP"].GetMetric()); n != 8 {
		t.Errorf("%d temperatures", n)
	}
	got, want := seriesLines(whole), seriesLines(bodies[0]+bodies[1])
	for line := range want {
		if got[line] != 1 {
			t.Errorf("%d times %s", got[line], line)
		}
	}
	if len(got) != len(want) || len(want) != 4*(30+45) {
		t.Errorf("%d series of %d", len(got), len(want))
	}
	if promtool, err := exec.LookPath("promtool"); err == nil {
		check := exec.CommandContext(t.Context(), promtool, "check", "metrics")
		check.Stdin = strings.NewReader(whole)
		if out, err := check.CombinedOutput(); err != nil && bytes.Contains(out, []byte("error while linting")) { // it objects to the exporter's names too
			t.Errorf("promtool: %s", out)
		}
	}
	for i := range bodies {
		if _, alone := page(t, proxy, "/metrics?source="+url.QueryEscape(urls[i])); !strings.HasPrefix(alone, bodies[i]+"# HELP kpulse_") {
			t.Errorf("the source %d alone begins with %.300s", i, alone)
		}
	}
}
