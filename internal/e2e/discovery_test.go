package e2e

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/holders/kubetest"
)

// exporterPod returns a pod whose exporter is an upstream of the test.
func exporterPod(t *testing.T, name, node string, up *upstream) kubetest.Pod {
	t.Helper()
	u, err := url.Parse(up.url)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return kubetest.Pod{
		Namespace: "gpu", Name: name, UID: name, Node: node, IP: u.Hostname(), PortName: "metrics", Port: port,
		Labels: map[string]string{"app": "nvidia-dcgm-exporter"},
	}
}

// xidUpstream returns an exporter of one GPU whose last XID the test sets.
func xidUpstream(host, uuid string, xid int64) (up *upstream, last *atomic.Int64) {
	last = &atomic.Int64{}
	last.Store(xid)
	return startUpstream(func() ([]byte, error) {
		labels := fmt.Sprintf("{gpu=\"0\",UUID=%q,Hostname=%q}", uuid, host)
		return fmt.Appendf(nil, "# HELP DCGM_FI_DEV_GPU_TEMP t\n# TYPE DCGM_FI_DEV_GPU_TEMP gauge\nDCGM_FI_DEV_GPU_TEMP%s 40\nDCGM_FI_DEV_XID_ERRORS%[1]s %d\n", labels, last.Load()), nil
	}), last
}

// discovering starts a proxy that discovers the exporters of a cluster.
func discovering(t *testing.T, cluster *kubetest.Server, flags ...string) *child {
	t.Helper()
	return startProxy(t, itself(t), append([]string{"--kube.discover", "--kube.config=" + cluster.Kubeconfig(t), "--source.min-interval=0s", "--poll=1s"}, flags...)...)
}

// up returns a pattern for the series that tells whether a source was read.
func up(source string, value int) string {
	return fmt.Sprintf(`(?m)^kpulse_source_up\{source="%s",backend="prometheus"\} %d$`, source, value)
}

// TestDiscovery: exporters appear, move and die while the proxy runs; health and counters of a node
// continue when its exporter moves.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	cluster := kubetest.New(t)
	cluster.Hang(true)
	c := discovering(t, cluster, "--web.enable-lifecycle")
	awaitPage(t, c, "/metrics", 502, `^no source: the exporters that the Kubernetes API server lists have not been read yet`)
	awaitPage(t, c, "/-/ready", 503, `^no source: `)
	cluster.Hang(false)
	none := awaitPage(t, c, "/metrics", 200, `(?m)^kpulse_build_info`) // a cluster without GPU nodes
	if strings.Contains(none, "kpulse_source") {
		t.Errorf("without an exporter:\n%s", none)
	}
	awaitPage(t, c, "/-/ready", 200, "there is no source now")

	a, xid := xidUpstream("pod-a", "GPU-a", 0)
	defer a.stop()
	b, _ := xidUpstream("pod-b", "GPU-b", 0)
	defer b.stop()
	cluster.Put(exporterPod(t, "a", "node-a", a))
	cluster.Put(exporterPod(t, "b", "node-b", b))
	awaitPage(t, c, "/metrics", 200, up("node-b", 1))
	whole := awaitPage(t, c, "/metrics", 200, up("node-a", 1))
	if err := checkExposition([]byte(whole)); err != nil {
		t.Error(err)
	}
	wants(t, whole, `kpulse_gpu_temperature_celsius{hostname="node-a",gpu="0",uuid="GPU-a"} 40`, `kpulse_gpu_temperature_celsius{hostname="node-b",gpu="0",uuid="GPU-b"} 40`)
	if n := strings.Count(whole, "# TYPE DCGM_FI_DEV_GPU_TEMP "); n != 1 {
		t.Errorf("the family has %d TYPE lines", n)
	}
	aloneAsByItself(t, c, "node-a", a)
	xid.Store(79)
	awaitPage(t, c, "/metrics", 200, `kpulse_gpu_health\{hostname="node-a",gpu="0",uuid="GPU-a",state="crit"\} 1`)
	before := observed(t, awaitPage(t, c, "/metrics", 200, up("node-a", 1)), "node-a")

	// A pod at another address replaces it, which knows of no XID.
	cluster.Delete("a")
	awaitPage(t, c, "/sd", 200, `^\[\{"targets":\["[^"]+"\],"labels":\{"__metrics_path__":"/metrics","__param_source":"node-b","instance":"node-b"\}\}\]`)
	awaitPage(t, c, "/metrics?source=node-a", 404, `no source is named "node-a"; name one of: node-b`)
	again, _ := xidUpstream("pod-c", "GPU-a", 0)
	defer again.stop()
	cluster.Put(exporterPod(t, "c", "node-a", again))
	whole = awaitPage(t, c, "/metrics", 200, up("node-a", 1))
	wants(t, whole, `kpulse_gpu_health{hostname="node-a",gpu="0",uuid="GPU-a",state="crit"} 1`)
	if after := observed(t, whole, "node-a"); after < before {
		t.Errorf("%v s observed, and %v s before the exporter moved", after, before)
	}
	awaitPage(t, c, "/events", 200, `"xid":79`)
	// The exporter dies and its pod runs on: this is reported.
	again.stop()
	awaitPage(t, c, "/metrics", 200, up("node-a", 0))
	awaitPage(t, c, "/", 200, `check that dcgm-exporter runs there: curl http://[^;]*/metrics; and look at its pod: kubectl describe pod -n gpu c`)
	// The API server disappears: the known exporters stay.
	cluster.Close()
	awaitPage(t, c, "/", 200, "known exporters are still read")
	awaitPage(t, c, "/metrics", 200, up("node-b", 1))
}

// aloneAsByItself compares ?source=name with a proxy that reads only that source.
func aloneAsByItself(t *testing.T, c *child, name string, up *upstream) {
	t.Helper()
	alone := startProxy(t, itself(t), "--source="+up.url+"/metrics", "--node-name="+name, "--source.min-interval=0s", "--poll=1s")
	names, times := regexp.MustCompile(`source="[^"]*"`), regexp.MustCompile(`(?m)^(kpulse_\w*(seconds|seconds_total)(\{[^}]*\})?) .*$`)
	plain := func(text string) string { return times.ReplaceAllString(names.ReplaceAllString(text, ""), "$1") }
	one, other := awaitPage(t, c, "/metrics?source="+name, 200, "kpulse_build"), awaitPage(t, alone, "/metrics", 200, "kpulse_build")
	if !strings.HasPrefix(one, "# HELP DCGM_FI_DEV_GPU_TEMP t\n") {
		t.Errorf("%s alone begins with %.100s", name, one)
	}
	theirs := strings.Split(plain(other), "\n")
	for i, line := range strings.Split(plain(one), "\n") {
		if i >= len(theirs) || theirs[i] != line {
			t.Errorf("?source=%s has\n%s\nwhere a proxy of that source alone has\n%s", name, line, theirs[min(i, len(theirs)-1)])
			return
		}
	}
}

// observed returns how long the GPU of a node was observed.
func observed(t *testing.T, page, node string) float64 {
	t.Helper()
	found := regexp.MustCompile(`(?m)^kpulse_gpu_observed_seconds_total\{hostname="` + node + `",.*\} (.*)$`).FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("%s has no observed seconds:\n%s", node, page)
	}
	seconds, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return seconds
}

// TestDiscoveryOfOneNode: in a DaemonSet, a proxy reads only its own node's exporter, and fails
// like that exporter if it is missing.
func TestDiscoveryOfOneNode(t *testing.T) {
	t.Parallel()
	cluster := kubetest.New(t)
	mine, _ := xidUpstream("m", "GPU-m", 0)
	defer mine.stop()
	other, _ := xidUpstream("o", "GPU-o", 0)
	defer other.stop()
	cluster.Put(exporterPod(t, "o", "other", other))
	c := discovering(t, cluster, "--node-name=mine")
	awaitPage(t, c, "/metrics", 502, `^no source: there is no pod of an exporter \(pods on node mine with`)
	cluster.Put(exporterPod(t, "m", "mine", mine))
	page := awaitPage(t, c, "/metrics", 200, up("mine", 1))
	if strings.Contains(page, "GPU-o") {
		t.Error("the exporter of another node is read")
	}
	// A new pod of the node starts before the old one ends, and is then read in its place.
	cluster.Put(exporterPod(t, "n", "mine", other))
	awaitPage(t, c, "/-/metrics", 200, `kpulse_proxy_kube_discovered_pods\{state="read"\} 2`)
	if page := awaitPage(t, c, "/metrics", 200, up("mine", 1)); strings.Contains(page, "GPU-o") {
		t.Error("the second exporter of a node is read too")
	}
	cluster.Delete("m")
	awaitPage(t, c, "/metrics", 200, `kpulse_gpu_temperature_celsius\{hostname="mine",gpu="0",uuid="GPU-o"\}`)
	awaitPage(t, c, "/sd", 200, `^\[\{[^{]*\{[^{]*"__param_source":"mine",`)
}

// TestDiscoveryDenied: without the right, the proxy says what to grant, and recovers once it is
// granted.
func TestDiscoveryDenied(t *testing.T) {
	t.Parallel()
	cluster := kubetest.New(t)
	cluster.Deny(true)
	a, _ := xidUpstream("a", "GPU-a", 0)
	defer a.stop()
	cluster.Put(exporterPod(t, "a", "node-a", a))
	c := discovering(t, cluster)
	awaitPage(t, c, "/metrics", 502, `denies the right to list and watch .*deploy/kubernetes/rbac.yaml`)
	awaitPage(t, c, "/", 200, "deploy/kubernetes/rbac.yaml")
	cluster.Deny(false)
	awaitPage(t, c, "/metrics", 200, up("node-a", 1))
	if n := strings.Count(c.Logged(), "exporter discovery failed"); n != 1 {
		t.Errorf("the log reports it %d times:\n%s", n, c.Logged())
	}
}

// TestDiscoveredByPrometheus: Prometheus makes a target of each source in /sd.
func TestDiscoveredByPrometheus(t *testing.T) {
	t.Parallel()
	binary := prometheusBinary(t)
	cluster := kubetest.New(t)
	a, _ := xidUpstream("a", "GPU-a", 0)
	defer a.stop()
	b, _ := xidUpstream("b", "GPU-b", 0)
	defer b.stop()
	cluster.Put(exporterPod(t, "a", "node-a", a))
	c := discovering(t, cluster)
	awaitPage(t, c, "/metrics", 200, up("node-a", 1))
	dir := t.TempDir()
	server := runPrometheus(t, binary, dir, "global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: gpus\n  honor_labels: true\n  http_sd_configs: [{url: '"+c.URL+"/sd', refresh_interval: 1s}]\n")
	server.await(t, `up{job="gpus",instance="node-a"} == 1`)
	cluster.Put(exporterPod(t, "b", "node-b", b))
	server.await(t, `up{job="gpus",instance="node-b"} == 1`)
	var seen []string
	for labels := range server.query(t, `kpulse_gpu_temperature_celsius{job="gpus"}`) {
		seen = append(seen, labels)
	}
	slices.Sort(seen)
	if len(seen) != 2 || !strings.Contains(seen[0], "GPU-a") || !strings.Contains(seen[1], "GPU-b") {
		t.Errorf("Prometheus has %q", seen)
	}
	cluster.Delete("a")
	server.await(t, `count(up{job="gpus"}) == 1`)
	server.stop()
}
