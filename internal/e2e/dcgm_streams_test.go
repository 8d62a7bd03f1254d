package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// theValue returns the only sample of family with those labels.
func theValue(t *testing.T, body, family string, labels map[string]string) float64 {
	t.Helper()
	s, err := parseExposition([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	got := samplesOf(s, family, labels)
	if len(got) != 1 {
		t.Fatalf("%d samples of %s%v:\n%.2000s", len(got), family, labels, body)
	}
	return got[0]
}

// TestDCGMMissedTicks: during an outage /-/metrics serves the streams' totals, ticks that fail to
// come count as missed, and both endpoints keep their totals.
func TestDCGMMissedTicks(t *testing.T) {
	t.Parallel()
	const period = 100 * time.Millisecond
	world := dcgmtest.Scenario{GPUs: dcgmtest.Boards(2)}
	exe := dcgmtest.Install(t, world)
	c := startDCGM(t, exe, "--poll="+period.String())
	device := map[string]string{"stream": "device"}
	awaitPage(t, c, "/metrics", 200, `kpulse_source_ticks_total\{[^}]*stream="device"\} ([5-9]|\d\d)`)
	_, before := page(t, c, "/metrics")
	missed := theValue(t, before, "kpulse_source_ticks_missed_total", device)
	if n := theValue(t, before, "kpulse_source_read_bytes_total", device); n < 1000 {
		t.Errorf("%v bytes of some ticks", n)
	}

	world.Failures = []dcgmtest.Failure{{Kind: dcgmtest.HostEngineDies}, {Kind: dcgmtest.HostEngineDown}}
	world.Write(t, dcgmtest.Beside(exe))
	awaitPage(t, c, "/metrics", http.StatusBadGateway, `host engine`)
	begun := time.Now()
	code, telemetry := page(t, c, "/-/metrics")
	ticks := theValue(t, telemetry, "kpulse_proxy_source_ticks_total", device)
	owed := theValue(t, telemetry, "kpulse_proxy_source_ticks_missed_total", device)
	if code != 200 || ticks < 5 || owed < missed {
		t.Errorf("%d: %v ticks, %v missed after %v", code, ticks, owed, missed)
	}
	if n := theValue(t, telemetry, "kpulse_proxy_source_read_bytes_total", device); n < 100*ticks { // each row is longer
		t.Errorf("%v bytes of %v ticks", n, ticks)
	}
	if at := theValue(t, telemetry, "kpulse_proxy_source_last_missed_tick_timestamp_seconds", device); at < float64(begun.Unix()-60) || at > float64(begun.Unix()+60) {
		t.Errorf("the last tick was missed at %v, asked at %v", at, begun)
	}
	for _, family := range []string{"ticks_evicted_total", "restarts_total"} {
		for _, stream := range []string{"device", "profiling"} {
			theValue(t, telemetry, "kpulse_proxy_source_"+family, map[string]string{"source": "dcgmi", "stream": stream})
		}
	}
	// A second has ten periods: 20 more ticks are missed 2 s later.
	var later float64
	for end := time.Now().Add(patience); later < owed+20 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		_, telemetry = page(t, c, "/-/metrics")
		later = theValue(t, telemetry, "kpulse_proxy_source_ticks_missed_total", device)
	}
	if took := time.Since(begun); took < 19*period || later < owed+20 || later > owed+float64(took/period)+1 {
		t.Errorf("%v missed more in %s", later-owed, took)
	}
	if code, _ := page(t, c, "/metrics"); code != http.StatusBadGateway {
		t.Errorf("/metrics is %d", code)
	}
	if got := theValue(t, telemetry, "kpulse_proxy_source_ticks_total", device); got != ticks {
		t.Errorf("%v ticks, were %v", got, ticks)
	}

	outage := time.Since(begun)
	world.Failures = nil
	world.Write(t, dcgmtest.Beside(exe))
	body := awaitPage(t, c, "/metrics", 200, `kpulse_gpu_temperature_celsius`)
	after := theValue(t, body, "kpulse_source_ticks_missed_total", device)
	if after < missed+float64(outage/period)-1 || after < later {
		t.Errorf("%v missed over an outage of more than %s, were %v", after, outage, missed)
	}
	last := theValue(t, body, "kpulse_source_last_missed_tick_timestamp_seconds", device)
	if at := time.UnixMicro(int64(last * 1e6)); at.Before(begun.Add(outage-2*period)) || at.After(time.Now()) {
		t.Errorf("the last was due at %s, the outage was from %s for %s", at, begun, outage)
	}
}

// TestDCGMFieldsOfTheGPU: fields that some GPUs multiplex are served as the exporter's rows and as
// our series, from each GPU that counts them, unless they are left out.
func TestDCGMFieldsOfTheGPU(t *testing.T) {
	t.Parallel()
	rounds := dcgmtest.Boards(2)
	for i := range rounds {
		rounds[i].Name = "NVIDIA A100-SXM4-80GB"
	}
	fields := map[int]string{1007: "fp32", 1008: "fp16", 1013: "tensor_imma", 1014: "tensor_hmma", 1015: "tensor_dfma", 1016: "int"}
	var readings []dcgmtest.Reading
	for id := range fields {
		readings = append(readings, dcgmtest.Reading{Field: id, Value: float64(id-1000) / 100})
	}
	for _, test := range []struct {
		name  string
		gpus  []dcgmtest.GPU
		flags []string
		last  int // last field that is served, by id
	}{
		{"H100", dcgmtest.Boards(2), nil, 1016},
		{"H100, core", dcgmtest.Boards(2), []string{"--dcgm.fields=core"}, 0},
		{"A100", rounds, []string{"--dcgm.host=" + dcgmtest.FarHost}, 1014},
		{"A100, core", rounds, []string{"--dcgm.host=" + dcgmtest.FarHost, "--dcgm.fields=core"}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := startDCGM(t, dcgmtest.Install(t, dcgmtest.Scenario{GPUs: test.gpus, Readings: readings}), test.flags...)
			body := awaitPage(t, c, "/metrics", 200, `kpulse_gpu_sm_active_ratio`)
			s, err := parseExposition([]byte(body))
			if err != nil {
				t.Fatal(err)
			}
			for id, field := range fields {
				theirs := "DCGM_FI_PROF_PIPE_" + strings.ToUpper(field) + "_ACTIVE"
				for _, family := range []string{theirs, "kpulse_gpu_" + field + "_active_ratio"} {
					got := samplesOf(s, family, map[string]string{"gpu": "1"})
					if id > test.last && len(got) != 0 || id <= test.last && (len(got) != 1 || got[0] != float64(id-1000)/100) {
						t.Errorf("%s reads %v", family, got)
					}
				}
			}
			if n := theValue(t, body, "kpulse_source_restarts_total", map[string]string{"stream": "profiling"}); n != 0 {
				t.Errorf("started again %v times", n)
			}
		})
	}
}
