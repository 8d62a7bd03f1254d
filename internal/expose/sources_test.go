package expose

import (
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestStreams: a source fed by streams shows their totals, even while it cannot be read, and
// the page names the one that fails.
func TestStreams(t *testing.T) {
	streams := [canonical.MaxStreams]canonical.Stream{
		{Name: "device", Ticks: 1000, Missed: 5, MissedAt: time.UnixMicro(1700000000250000), Evicted: 3, Restarts: 1, Bytes: 4096},
		{Name: `pro"filing`, Ticks: 7, Failure: &canonical.Failure{Cause: "the profiler lock is held", Remedy: "dcgmi profile --resume"}},
	}
	fed := snapshotOf("fed", board())
	fed.Source.Streams = streams
	broken := brokenSource("broken", refused)
	broken.state.Streams = streams
	server := serve(t, Options{Sources: NewSet(sourceOf(fed), broken, sourceOf(snapshotOf("plain", board())))})
	_, body := ask(t, "GET", server.URL+"/metrics")
	for _, source := range []string{"fed", "broken"} {
		for _, want := range []string{
			`kpulse_source_ticks_total{source="` + source + `",backend="prometheus",stream="device"} 1000`,
			`kpulse_source_ticks_total{source="` + source + `",backend="prometheus",stream="pro\"filing"} 7`,
			`kpulse_source_ticks_evicted_total{source="` + source + `",backend="prometheus",stream="device"} 3`,
			`kpulse_source_ticks_missed_total{source="` + source + `",backend="prometheus",stream="device"} 5`,
			`kpulse_source_ticks_missed_total{source="` + source + `",backend="prometheus",stream="pro\"filing"} 0`,
			`kpulse_source_last_missed_tick_timestamp_seconds{source="` + source + `",backend="prometheus",stream="device"} 1700000000.25`,
			`kpulse_source_read_bytes_total{source="` + source + `",backend="prometheus",stream="device"} 4096`,
			`kpulse_source_restarts_total{source="` + source + `",backend="prometheus",stream="device"} 1`,
			`kpulse_source_restarts_total{source="` + source + `",backend="prometheus",stream="pro\"filing"} 0`,
		} {
			if !strings.Contains(string(body), want+"\n") {
				t.Errorf("no %s", want)
			}
		}
	}
	if n := strings.Count(string(body), "stream="); n != 20 {
		t.Errorf("%d series of streams, want 20", n)
	}
	_, body = ask(t, "GET", server.URL+"/-/metrics")
	for _, want := range []string{
		`kpulse_proxy_source_ticks_total{source="broken",stream="device"} 1000`,
		`kpulse_proxy_source_ticks_missed_total{source="broken",stream="device"} 5`,
		`kpulse_proxy_source_ticks_evicted_total{source="broken",stream="device"} 3`,
		`kpulse_proxy_source_restarts_total{source="broken",stream="pro\"filing"} 0`,
	} {
		if !strings.Contains(string(body), want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	_, page := ask(t, "GET", server.URL+"/")
	if !strings.Contains(string(page), "the profiler lock is held; dcgmi profile --resume") {
		t.Error("the page does not say which stream fails")
	}
}
