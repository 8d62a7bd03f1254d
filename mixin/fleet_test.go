package mixin_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
)

// TestFleetOnThanos runs the files of deploy/fleet: two clusters whose hosts have the same
// names, a Prometheus in each that writes to three receivers of Thanos, and Thanos' querier,
// ruler and store. A receiver dies, a GPU is lost meanwhile, and the receiver returns. At the
// end, the counters agree with the script.
func TestFleetOnThanos(t *testing.T) {
	slow.Test(t, "KPULSE_THANOS, which make thanos builds; prometheus, prometheus-alertmanager")
	t.Parallel()
	f := startFleet(t)
	steady := `count(abs(sum by (cluster) (host:kpulse_gpu_class_gpus:rate5m) - 4) < .1) == 2`
	f.await(t, steady)
	began := time.Now()

	f.kill(1)
	answers := f.askAll(t, func() {
		lost := &f.exporters["west"][1].gpus[1]
		lost.xid.Store(79)
		f.await(t, `max(kpulse_gpu_xid_last{cluster="west"}) == 79`)
		lost.gone.Store(true)
		f.watch(t, 5*time.Minute, []string{"KpulseGPUMissing of 1 on " + f.exporters["west"][1].host})
	})
	if answers.whole == 0 {
		t.Error("with a receiver down, no answer was complete")
	}
	if answers.wrong > 0 {
		t.Errorf("%d of %d answers lacked GPUs without a warning", answers.wrong, answers.whole+answers.warned+answers.failed+answers.wrong)
	}
	t.Logf("with a receiver down: %+v", answers)
	f.startReceiver(t, 1)
	f.await(t, `count(abs(sum(host:kpulse_gpu_class_gpus:rate5m{cluster="west"}) - 3) < .1 and on () abs(sum(host:kpulse_gpu_class_gpus:rate5m{cluster="east"}) - 4) < .1) == 1`)
	ended := time.Now()

	f.checkCounters(t)
	f.checkHours(t, began, ended)
	f.checkAlerts(t)
	f.checkPanels(t, choice{gpu: f.exporters["west"][0].uuid(0)}, emptyInFleet)
	f.checkStore(t)
}

// checkCounters compares the counters of each cluster with the time since its exporters were
// first scraped.
func (f *deployed) checkCounters(t *testing.T) {
	t.Helper()
	at := time.Now().Add(-fleetOffset)
	for cluster, exporters := range f.exporters {
		var observed, utilized, devices float64
		for _, e := range exporters {
			for i := range e.gpus {
				if e.gpus[i].gone.Load() {
					continue
				}
				seconds := at.Sub(time.Unix(0, e.began.Load())).Seconds()
				observed, utilized, devices = observed+seconds, utilized+seconds*e.gpus[i].busy, devices+1
			}
		}
		here := `{cluster="` + cluster + `"} and on (cluster, hostname, gpu) kpulse_gpu_present == 1`
		interval := devices * (fleetScrape + time.Second).Seconds() // a scrape, and the proxy's last reading before it
		for expr, want := range map[string]float64{
			`count(kpulse_gpu_observed_seconds_total` + here + `)`:                    devices,
			`sum(kpulse_gpu_observed_seconds_total` + here + `)`:                      observed,
			`sum(kpulse_gpu_real_utilization_seconds_total` + here + `)`:              utilized,
			`sum(kpulse_allocation_seconds_total{cluster="` + cluster + `",gpu="0"})`: observed * 2 / devices,
		} {
			if got := f.value(t, expr, at); math.Abs(got-want) > interval {
				t.Errorf("%s is %v, want %v within %v", expr, got, want, interval)
			}
		}
		t.Logf("%s: %.1f s observed by script", cluster, observed)
	}
}

// checkHours sums the samples that the ruler recorded between two times.
func (f *deployed) checkHours(t *testing.T, from, to time.Time) {
	t.Helper()
	last := to.Add(-fleetOffset)
	evaluations := last.Sub(from).Truncate(fleetInterval)
	over := func(function, series, cluster string) float64 {
		return f.value(t, fmt.Sprintf(`%s_over_time(sum(%s{cluster=%q})[%dms:%dms])`, function, series, cluster, evaluations.Milliseconds(), fleetInterval.Milliseconds()), last)
	}
	for _, c := range []struct {
		series, cluster string
		least, most     float64 // GPUs
	}{
		{"host:kpulse_gpu_class_gpus:rate5m", "east", 4, 4},
		{"host:kpulse_gpu_utilized_gpus:rate5m", "east", 2, 2},
		{"host:kpulse_allocation_held_gpus:rate5m", "east", 4, 4},
		{"host:kpulse_gpu_class_gpus:rate5m", "west", 3, 4},
		{"host:kpulse_gpu_utilized_gpus:rate5m", "west", 1.2, 2},
		{"host:kpulse_allocation_held_gpus:rate5m", "west", 3, 4},
	} {
		// A rate over half a minute is accurate to a scrape interval.
		off := c.most * fleetScrape.Seconds() / fleetTime.window5m().Seconds()
		if least, most := over("min", c.series, c.cluster), over("max", c.series, c.cluster); least < c.least-off || most > c.most+off {
			t.Errorf("%s of %s was between %v and %v, want %v to %v within %v", c.series, c.cluster, least, most, c.least, c.most, off)
		}
		if c.least != c.most {
			continue
		}
		counted, want := over("avg", c.series, c.cluster)*evaluations.Seconds(), c.most*evaluations.Seconds()
		if math.Abs(counted-want) > c.most*fleetScrape.Seconds() {
			t.Errorf("%s of %s is %v GPU-seconds, want %v within a scrape of each", c.series, c.cluster, counted, want)
		}
		due := evaluations.Seconds() / fleetInterval.Seconds()
		t.Logf("%s of %s: %.1f GPU-seconds, want %.1f; %v of %v evaluations", c.series, c.cluster, counted, want, over("count", c.series, c.cluster), due)
	}
	if n := f.value(t, `count(host:kpulse_gpu_utilized_gpus:rate5m)`, last); n != 2*hostsOfEach {
		t.Errorf("%v hosts, want %d: hosts of two clusters with one name are two", n, 2*hostsOfEach)
	}
}

// window5m returns what five minutes are shortened to.
func (s shorter) window5m() time.Duration { return 5 * time.Minute / time.Duration(s.by) }

// checkAlerts checks Alertmanager at the end: it has one alert for the lost GPU, which was
// never resolved.
func (f *deployed) checkAlerts(t *testing.T) {
	t.Helper()
	var alerts []struct {
		Labels   map[string]string
		StartsAt time.Time
	}
	if err := get(f.alertmanager+"/api/v2/alerts?filter=alertname=KpulseGPUMissing", &alerts); err != nil {
		t.Fatal(err)
	}
	lost := f.exporters["west"][1]
	if len(alerts) != 1 || alerts[0].Labels["cluster"] != "west" || alerts[0].Labels["hostname"] != lost.host || alerts[0].Labels["uuid"] != lost.uuid(1) {
		t.Fatalf("%+v, want one for GPU 1 of node-1 in west", alerts)
	}
	if again := f.value(t, `max(changes(ALERTS_FOR_STATE{alertname="KpulseGPUMissing"}[5m]))`, time.Now().Add(-fleetOffset)); again != 0 {
		t.Errorf("the alert was resolved and fired again, %v times", again)
	}
}

// emptyInFleet are panels for which the script has no data.
var emptyInFleet = []string{
	"Batch jobs", "Users", "Accounts", "Users by unused GPU-hours", "Accounts by unused GPU-hours", "Job stragglers", // pods hold the GPUs, and no workload has four
	"Devices held and idle", "Memory held by idle GPUs", "Waiting for data, or busy and empty", // no GPU is in these states
	"Restarts and lost ticks of streams per hour", // the sources are scraped
	"XIDs by code", // the selected GPU is healthy
	// The exporters have no such counters.
	"Arithmetic pipes", "PCIe traffic", "NVLink traffic", "What holds the clocks down", "Memory errors per hour", "NVLink errors per hour", "PCIe replays per minute", "Memory errors and remapped rows",
	"PCIe below its maximum", "PCIe lanes", "NVLinks up", "NVLinks down", "NVLink fabric", "Fabric", "SXIDs of NVSwitches", "CPU and memory of the host", "Encoder and decoder", "NVLink traffic of each board", "CPU of its hosts", "Memory of its hosts", "Conditions of its boards", "Power against the limit", "Throttled share of busy time", "GPU-hours of throttling by board",
}

// checkStore waits until the store alone, which has only the blocks in the bucket, answers.
func (f *deployed) checkStore(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(time.Second) {
		answer, err := f.instant(`count(count by (cluster) (last_over_time(kpulse_gpu_observed_seconds_total[10m])))`, time.Now(),
			url.Values{"storeMatch[]": {`{__address__="` + f.addresses["thanos-store:10901"] + `"}`}})
		if err == nil && answer.one() == 2 {
			return
		}
		if time.Now().After(end) {
			blocks, _ := filepath.Glob(filepath.Join(f.dir, "thanos", "bucket", "*"))
			t.Fatalf("the store answers %v (%v); %d blocks in the bucket", answer, err, len(blocks))
		}
	}
}

// answer is Thanos' answer to an instant query.
type answer struct {
	Status, Error string
	Warnings      []string
	Data          struct {
		Result []struct{ Value [2]json.RawMessage }
	}
}

// one returns the value of the only series of an answer, NaN if there is not exactly one.
func (a answer) one() float64 {
	if len(a.Data.Result) != 1 {
		return math.NaN()
	}
	text, err := strconv.Unquote(string(a.Data.Result[0].Value[1]))
	if err != nil {
		return math.NaN()
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// instant runs an instant query on Thanos.
func (f *deployed) instant(expr string, at time.Time, more url.Values) (answer, error) {
	query := url.Values{"query": {expr}, "time": {strconv.FormatFloat(float64(at.UnixMilli())/1e3, 'f', 3, 64)}}
	for name, values := range more {
		query[name] = values
	}
	var a answer
	err := get(f.prometheus+"/api/v1/query?"+query.Encode(), &a)
	if err == nil && a.Error != "" {
		err = fmt.Errorf("%s", a.Error)
	}
	return a, err
}

// value returns the value of the only series of a query.
func (f *deployed) value(t *testing.T, expr string, at time.Time) float64 {
	t.Helper()
	a, err := f.instant(expr, at, nil)
	if err != nil || len(a.Warnings) > 0 || len(a.Data.Result) != 1 {
		t.Fatalf("%s: %+v, %v", expr, a, err)
	}
	return a.one()
}

// await waits until an expression has a result.
func (f *deployed) await(t *testing.T, expr string) {
	t.Helper()
	for end := time.Now().Add(4 * time.Minute); !f.holds(expr); time.Sleep(500 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s does not hold after 4 minutes", expr)
		}
	}
}

// answers counts Thanos' answers while a receiver was down.
type answers struct{ whole, warned, failed, wrong int }

// askAll queries the number of GPUs again and again while do runs. An answer fails, or is
// complete, or warns that it may not be, or is wrong.
func (f *deployed) askAll(t *testing.T, do func()) answers {
	t.Helper()
	var counted answers
	done, asked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(asked)
		for {
			select {
			case <-done:
				return
			case <-time.After(300 * time.Millisecond):
			}
			a, err := f.instant(`count(last_over_time(kpulse_gpu_observed_seconds_total[1m]))`, time.Now(), nil)
			switch {
			case err != nil:
				counted.failed++
			case len(a.Warnings) > 0:
				counted.warned++
			case a.one() != 2*hostsOfEach*gpusOfEach:
				counted.wrong++
			default:
				counted.whole++
			}
		}
	}()
	do()
	close(done)
	<-asked
	return counted
}

// TestFleetFiles checks the files of deploy/fleet that TestFleetOnThanos does not run, and
// with promtool the unchanged files of Prometheus.
func TestFleetFiles(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"mimir/mimir.yaml", "victoriametrics/compose.yaml"} {
		text, err := os.ReadFile(filepath.Join("../deploy/fleet", file))
		if err != nil {
			t.Fatal(err)
		}
		var any map[string]any
		if err := yaml.Unmarshal(text, &any); err != nil || len(any) < 2 {
			t.Errorf("%s has %d keys, %v", file, len(any), err)
		}
	}
	promtool := program(t, "promtool")
	for file, flags := range map[string][]string{"agent.yml": {"--agent"}, "shard.yml": nil} {
		check := exec.Command(promtool, append(append([]string{"check", "config"}, flags...), file)...)
		check.Dir = "../deploy/fleet/prometheus"
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
}
