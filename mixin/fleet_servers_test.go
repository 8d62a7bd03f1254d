package mixin_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// The fleet is two clusters whose hosts have the same names. Its durations are a tenth of the
// real ones: rates are over half a minute, and targets are scraped every 1.5 s, not 15 s.
const (
	fleetScrape   = 1500 * time.Millisecond
	fleetInterval = 6 * time.Second
	// fleetOffset is how long a sample may take to reach the receivers; senders send every
	// 5 s, as in production.
	fleetOffset = 12 * time.Second
	hostsOfEach = 2
	gpusOfEach  = 2
)

var fleetTime = shorter{by: 10, interval: fleetInterval, window: 3 * fleetScrape}

// script is what an exporter reports about a GPU: a constant load until it has an XID or is gone.
type script struct {
	busy float64
	xid  atomic.Int64
	gone atomic.Bool
}

// exporter serves the GPUs of one host in the text of dcgm-exporter.
type exporter struct {
	cluster, host string
	gpus          [gpusOfEach]script
	began         atomic.Int64 // time of the first scrape, in ns since 1970
}

func (e *exporter) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	e.began.CompareAndSwap(0, time.Now().UnixNano())
	began, watts := time.Unix(0, e.began.Load()), 500.
	busy := func(gpu *script) float64 { return gpu.busy }
	for _, family := range []struct {
		name  string
		value func(*script) float64
	}{
		{"DCGM_FI_DEV_GPU_UTIL", func(gpu *script) float64 { return 100 * gpu.busy }},
		{"DCGM_FI_PROF_SM_ACTIVE", busy},
		{"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", busy},
		{"DCGM_FI_PROF_DRAM_ACTIVE", busy},
		{"DCGM_FI_PROF_GR_ENGINE_ACTIVE", busy},
		{"DCGM_FI_DEV_MEM_COPY_UTIL", func(gpu *script) float64 { return 50 * gpu.busy }},
		{"DCGM_FI_DEV_FB_USED", func(gpu *script) float64 { return 60_000 * gpu.busy }},
		{"DCGM_FI_DEV_FB_FREE", func(gpu *script) float64 { return 80_000 - 60_000*gpu.busy }},
		{"DCGM_FI_DEV_SM_CLOCK", func(*script) float64 { return 1980 }},
		{"DCGM_FI_DEV_GPU_TEMP", func(*script) float64 { return 55 }},
		{"DCGM_FI_DEV_POWER_USAGE", func(*script) float64 { return watts }},
		{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", func(*script) float64 { return 1e3 * watts * time.Since(began).Seconds() }}, // mJ
		{"DCGM_FI_DEV_XID_ERRORS", func(gpu *script) float64 { return float64(gpu.xid.Load()) }},
	} {
		fmt.Fprintf(w, "# HELP %[1]s %[1]s\n# TYPE %[1]s gauge\n", family.name)
		for i := range e.gpus {
			if !e.gpus[i].gone.Load() {
				fmt.Fprintf(w, "%s{gpu=\"%d\",UUID=%q,device=\"nvidia%[2]d\",modelName=\"NVIDIA H100 80GB HBM3\",Hostname=%[4]q,namespace=\"train\",pod=\"run-%[2]d\",container=\"main\"} %[5]g\n",
					family.name, i, e.uuid(i), e.host, family.value(&e.gpus[i]))
			}
		}
	}
}

// uuid returns the UUID of a GPU, unique in the fleet.
func (e *exporter) uuid(gpu int) string {
	return fmt.Sprintf("GPU-%s-%s-0000-0000-%012d", map[string]string{"east": "ea500000", "west": "3e500000"}[e.cluster], strings.TrimPrefix(e.host, "node-")+"000", gpu)
}

// deployed is the running servers of deploy/fleet.
type deployed struct {
	servers
	dir       string                  // a copy of the repository's folders that it runs from
	addresses map[string]string       // replacements for names and ports in deploy/fleet
	exporters map[string][]*exporter  // by cluster
	alive     [3]atomic.Bool          // the receivers that are up
	stop      [3]func(syscall.Signal) // ends a receiver
	binary    string                  // Thanos
}

// startFleet starts, from the files in deploy/fleet, the proxies of two clusters, a Prometheus
// for each, which sends its samples to three receivers, and Thanos' querier, ruler and store.
func startFleet(t *testing.T) *deployed {
	t.Helper()
	f := &deployed{dir: t.TempDir(), addresses: map[string]string{}, exporters: map[string][]*exporter{}, binary: thanosProgram(t)}
	prometheus, alertmanager := program(t, "prometheus"), program(t, "prometheus-alertmanager", "alertmanager")
	for _, name := range []string{"alertmanager:9093", "thanos-query:10902", "thanos-receive:19291", "thanos-rule:10901", "thanos-store:10901",
		"thanos-receive-0:10901", "thanos-receive-1:10901", "thanos-receive-2:10901", "thanos-receive-0:19291", "thanos-receive-1:19291", "thanos-receive-2:19291"} {
		f.addresses[name] = freeAddress(t)
	}
	f.servers = servers{prometheus: "http://" + f.addresses["thanos-query:10902"], alertmanager: "http://" + f.addresses["alertmanager:9093"], time: fleetTime}
	f.copyFiles(t)

	start(t, f.addresses["alertmanager:9093"], alertmanager, "--config.file=alertmanager.example.yml",
		"--storage.path="+filepath.Join(f.dir, "alertmanager"), "--web.listen-address="+f.addresses["alertmanager:9093"], "--cluster.listen-address=")
	for i := range f.stop {
		f.startReceiver(t, i)
	}
	f.balance(t)
	f.startThanos(t, "store", f.addresses["thanos-store:10901"], freeAddress(t), "--sync-block-duration=5s", "--ignore-deletion-marks-delay=0s")
	f.startThanos(t, "query", freeAddress(t), f.addresses["thanos-query:10902"])
	proxy := buildProxy(t, f.dir)
	f.startCluster(t, "east", proxy, prometheus, "agent.yml", "--enable-feature=agent", "--storage.agent.path=")
	f.startCluster(t, "west", proxy, prometheus, "shard.yml", "--storage.tsdb.path=")
	f.startThanos(t, "rule", f.addresses["thanos-rule:10901"], freeAddress(t), `--label=ruler_replica="0"`, "--resend-delay=5s")
	return f
}

// thanosProgram returns the path of Thanos. CI sets KPULSE_REQUIRE_THANOS: there a missing
// Thanos is a failure.
func thanosProgram(t *testing.T) string {
	t.Helper()
	path := os.Getenv("KPULSE_THANOS")
	if path == "" {
		path = "thanos"
	}
	found, err := exec.LookPath(path)
	if err == nil {
		return found
	}
	if os.Getenv("KPULSE_REQUIRE_THANOS") != "" {
		t.Fatal(err)
	}
	t.Skipf("%v; make e2e-fleet builds it", err)
	return ""
}

// copyFiles copies the files of the fleet, with the durations and addresses of this test.
func (f *deployed) copyFiles(t *testing.T) {
	t.Helper()
	replace := []string{"/var/lib/thanos", filepath.Join(f.dir, "thanos"), "scrape_interval: 15s", fmt.Sprintf("scrape_interval: %dms", fleetScrape.Milliseconds()),
		"evaluation_interval: 1m", "evaluation_interval: " + fleetInterval.String(), "--eval-interval=1m", "--eval-interval=" + fleetInterval.String(),
		// With blocks of a minute, Thanos 0.42.0 prunes every two minutes, and panics if its database is not open by then.
		"--tsdb.retention=2d", "--tsdb.retention=0d", "--rule-query-offset=30s", "--rule-query-offset=" + fleetOffset.String()}
	for name, address := range f.addresses {
		replace = append(replace, name, address)
	}
	addresses := strings.NewReplacer(replace...)
	for _, pattern := range []string{"../deploy/fleet/*/*", "../rules/*.rules.yml", "prometheus_alerts.yaml"} {
		for file, text := range readAll(t, pattern) {
			shorter := addresses.Replace(string(text))
			if !strings.Contains(pattern, "deploy") {
				shorter = fleetTime.of(shorter)
			}
			to := filepath.Join(f.dir, "repository", "mixin", file)
			if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(to, []byte(shorter), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.MkdirAll(filepath.Join(f.dir, "thanos", "bucket"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// folder returns a folder in the copy of deploy/fleet.
func (f *deployed) folder(name string) string {
	return filepath.Join(f.dir, "repository", "deploy", "fleet", name)
}

// startThanos starts a component with the flags of its file; receive-N is one of several.
func (f *deployed) startThanos(t *testing.T, component, grpc, http string, more ...string) (stop func(syscall.Signal)) {
	t.Helper()
	return startIn(t, f.folder("thanos"), http, f.binary, append([]string{strings.TrimRight(component, "-012"), "@" + component + ".flags", "--grpc-address=" + grpc, "--http-address=" + http}, more...)...)
}

// startReceiver starts a receiver on its data on disk.
func (f *deployed) startReceiver(t *testing.T, i int) {
	t.Helper()
	grpc, write := f.addresses[fmt.Sprintf("thanos-receive-%d:10901", i)], f.addresses[fmt.Sprintf("thanos-receive-%d:19291", i)]
	// In production each has its own machine, here its own folder.
	name := fmt.Sprint("receive-", i)
	flags, err := os.ReadFile(filepath.Join(f.folder("thanos"), "receive.flags"))
	if err != nil {
		t.Fatal(err)
	}
	own := strings.ReplaceAll(string(flags), filepath.Join(f.dir, "thanos", "receive"), filepath.Join(f.dir, "thanos", name))
	if err := os.WriteFile(filepath.Join(f.folder("thanos"), name+".flags"), []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	f.stop[i] = f.startThanos(t, name, grpc, freeAddress(t), "--remote-write.address="+write, "--receive.local-endpoint="+grpc,
		fmt.Sprintf(`--label=receive_replica="%d"`, i), "--receive.capnproto-address="+freeAddress(t),
		// Blocks of a minute instead of two hours, so that some reach the bucket.
		"--tsdb.min-block-duration=1m", "--tsdb.max-block-duration=1m")
	f.alive[i].Store(true)
}

// kill kills a receiver, as the failure of its node does.
func (f *deployed) kill(i int) {
	f.alive[i].Store(false)
	f.stop[i](syscall.SIGKILL)
}

// balance forwards connections to the live receivers in turn, as a Service does.
func (f *deployed) balance(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", f.addresses["thanos-receive:19291"])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for next := 0; ; next++ {
			client, err := l.Accept()
			if err != nil {
				return
			}
			for !f.alive[next%len(f.alive)].Load() {
				next++
			}
			server, err := net.Dial("tcp", f.addresses[fmt.Sprintf("thanos-receive-%d:19291", next%len(f.alive))])
			if err != nil {
				client.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
				go func() {
					io.Copy(way[0], way[1])
					client.Close()
					server.Close()
				}()
			}
		}
	}()
}

// startCluster starts the exporters and proxies of a cluster, and the Prometheus that scrapes
// them. An agent evaluates no rules: its proxies do. The agent's proxies serve lean
// and full; the first of the other cluster is KPULSE_OLD, an older version, if that is set.
func (f *deployed) startCluster(t *testing.T, cluster, proxy, prometheus, config string, flags ...string) {
	t.Helper()
	var targets []string
	for h := range hostsOfEach {
		e := &exporter{cluster: cluster, host: fmt.Sprint("node-", h)}
		for i := range e.gpus {
			e.gpus[i].busy = .2 + .2*float64(h*gpusOfEach+i)
		}
		upstream := httptest.NewServer(e)
		t.Cleanup(upstream.Close)
		f.exporters[cluster] = append(f.exporters[cluster], e)
		address := freeAddress(t)
		binary, args := proxy, []string{"--source=" + upstream.URL + "/metrics", "--poll=1s", "--source.min-interval=500ms", "--web.listen-address=" + address}
		if config == "agent.yml" {
			args = append(args, "--series="+[hostsOfEach]string{"lean", "full"}[h],
				"--rules.file="+filepath.Join(f.dir, "repository", "rules", "kpulse-node.rules.yml"), "--rules.window=10m")
		} else if old := os.Getenv("KPULSE_OLD"); h == 0 && old != "" {
			binary = old
		}
		start(t, address, binary, args...)
		targets = append(targets, address)
	}
	dir := filepath.Join(f.dir, cluster)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(f.folder("prometheus"), config))
	if err != nil {
		t.Fatal(err)
	}
	settings := strings.NewReplacer("targets.yml", filepath.Join(dir, "targets.yml"), "../../../rules", filepath.Join(f.dir, "repository", "rules")).Replace(string(text))
	for name, text := range map[string]string{config: settings, "targets.yml": "- targets: ['" + strings.Join(targets, "', '") + "']\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address := freeAddress(t)
	flags[len(flags)-1] += filepath.Join(dir, "data")
	start(t, address, prometheus, append(flags, "--config.file="+filepath.Join(dir, config), "--web.listen-address="+address)...)
}
