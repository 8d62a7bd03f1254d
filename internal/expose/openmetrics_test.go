package expose

import (
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// What scrapers send as Accept: Prometheus 2.48, 3.9, the same with created timestamps, and curl.
const (
	acceptOld     = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
	acceptNew     = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
	acceptCreated = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7," + acceptNew
)

// inOpenMetrics reads OpenMetrics with Prometheus' parser: the series, without created timestamps, the types of the
// families, and the created timestamps by series, in ms.
func inOpenMetrics(t *testing.T, body []byte) (series map[string]float64, types map[string]model.MetricType, created map[string]int64) {
	t.Helper()
	series, types, created = map[string]float64{}, map[string]model.MetricType{}, map[string]int64{}
	p := textparse.NewOpenMetricsParser(body, labels.NewSymbolTable(), textparse.WithOMParserSTSeriesSkipped())
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return series, types, created
		}
		if err != nil {
			t.Fatalf("textparse: %v", err)
		}
		switch entry {
		case textparse.EntryType:
			name, kind := p.Type()
			if _, twice := types[string(name)]; twice {
				t.Errorf("%s has two blocks", name)
			}
			types[string(name)] = kind
		case textparse.EntrySeries:
			var ls labels.Labels
			p.Labels(&ls)
			_, _, series[ls.String()] = p.Series()
			if at := p.StartTimestamp(); at != 0 {
				created[ls.String()] = at
			}
		}
	}
}

// TestOpenMetrics: with --passthrough=off, a scraper that prefers OpenMetrics gets it, with the series of the text format;
// one that also reads created timestamps gets the start of the program for the counters that are 0 then.
func TestOpenMetrics(t *testing.T) {
	rules := func(_ time.Time, pass func([]byte)) {
		pass([]byte("# HELP r:x Of a \"rule\" in C:\\\\.\n# TYPE r:x untyped\nr:x{a=\"b c } 1\"} 3\n"))
		pass([]byte("# HELP DCGM_FI_DEV_PCIE_REPLAY_TOTAL Retries.\n# TYPE DCGM_FI_DEV_PCIE_REPLAY_TOTAL counter\nDCGM_FI_DEV_PCIE_REPLAY_TOTAL{gpu=\"0\"} 2\n"))
		pass([]byte("# TYPE dcgm_nvlink_bandwidth_total gauge\ndcgm_nvlink_bandwidth_total{gpu=\"0\"} 2.5\nnothing_said 1\n"))
	}
	var before, after time.Time
	ask := func(mode Passthrough, accept string, headers ...string) (*http.Response, []byte) {
		before = time.Now()
		m := newMetrics(&Options{Sources: NewSet(sourceOf(lived())), Timeout: patience, Passthrough: mode, Results: rules, Form: Form{Full: true}})
		after = time.Now()
		r, rec := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody), httptest.NewRecorder()
		r.Header.Set("Accept", accept)
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		m.ServeHTTP(rec, r)
		return rec.Result(), rec.Body.Bytes()
	}
	for accept, want := range map[string]string{acceptOld: "1.0.0", acceptNew: "1.0.0", acceptCreated: "1.0.0", "application/openmetrics-text": "0.0.1",
		"": "", "*/*": "", "text/plain": "", "application/openmetrics-text;version=1.0.0;q=0.2,text/plain;q=0.8": "", "text/html": ""} {
		for mode := range PassOff + 1 {
			res, _ := ask(mode, accept)
			got := res.Header.Get("Content-Type")
			if open := strings.HasPrefix(got, "application/openmetrics-text; version="+want+"; charset=utf-8"); mode == PassOff && want != "" && !open || (mode != PassOff || want == "") && got != contentType {
				t.Errorf("%q, mode %v: %s", accept, mode, got)
			}
			if vary := res.Header.Get("Vary"); strings.Contains(vary, "Accept,") != (mode == PassOff) {
				t.Errorf("mode %v varies by %s", mode, vary)
			}
		}
	}

	_, text := ask(PassOff, "text/plain")
	res, body := ask(PassOff, acceptNew, "Accept-Encoding", "gzip")
	unpacked, err := gzip.NewReader(strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	if body, err = io.ReadAll(unpacked); err != nil || res.Header.Get("Content-Encoding") != "gzip" {
		t.Fatal(err)
	}
	plain := map[string]float64{}
	p := textparse.NewPromParser(text, labels.NewSymbolTable(), false)
	for entry, err := p.Next(); err == nil; entry, err = p.Next() {
		if entry == textparse.EntrySeries {
			var ls labels.Labels
			p.Labels(&ls)
			_, _, plain[ls.String()] = p.Series()
		}
	}
	series, types, created := inOpenMetrics(t, body)
	if len(plain) < 50 || !maps.Equal(plain, series) {
		t.Errorf("%d series in the text format, %d in OpenMetrics", len(plain), len(series))
	}
	if len(created) != 0 || strings.Contains(string(body), "_created{") {
		t.Error("created timestamps for a scraper that would make series of them")
	}
	for family, want := range map[string]model.MetricType{"kpulse_gpu_observed_seconds": "counter", "kpulse_gpu_present": "gauge", "r:x": "unknown",
		"DCGM_FI_DEV_PCIE_REPLAY_TOTAL": "unknown", "dcgm_nvlink_bandwidth_total": "gauge"} {
		if types[family] != want {
			t.Errorf("%s is %q, want %s", family, types[family], want)
		}
	}
	for _, line := range []string{"# HELP r:x Of a \\\"rule\\\" in C:\\\\.\n", "# HELP kpulse_gpu_observed_seconds "} {
		if !strings.Contains(string(body), line) {
			t.Errorf("no %q", line)
		}
	}

	_, body = ask(PassOff, acceptCreated)
	series, _, created = inOpenMetrics(t, body)
	if !maps.Equal(plain, series) {
		t.Errorf("%d series with created timestamps", len(series))
	}
	hardware := 0
	for one, value := range series {
		name, _, _ := strings.Cut(strings.TrimPrefix(one, `{__name__="`), `"`)
		at, has := created[one]
		board := strings.Contains(name, "_energy_joules_total") && !strings.Contains(name, "allocation") || strings.Contains(name, "_gpu_ecc_errors") ||
			strings.Contains(name, "remapped_rows") || strings.Contains(name, "pcie_replay") || strings.Contains(name, "retired_pages") ||
			strings.Contains(name, "nvlink_errors") || strings.Contains(name, "throttled") || strings.HasPrefix(name, "kpulse_nvswitch")
		if board {
			hardware++
		}
		if want := strings.HasPrefix(name, "kpulse_") && strings.HasSuffix(name, "_total") && !board; has != want {
			t.Errorf("%s %v is created: %v", one, value, has)
		} else if has && (at < before.UnixMilli() || at > after.UnixMilli()+1) {
			t.Errorf("%s is created at %d, the program at %d", one, at, before.UnixMilli())
		}
	}
	if len(created) < 10 || hardware == 0 {
		t.Errorf("%d created, %d counters of the board", len(created), hardware)
	}
}

// TestOpenMetricsIsWrittenAsItComes: a page of any length, in whatever parts, takes little memory.
func TestOpenMetricsIsWrittenAsItComes(t *testing.T) {
	var got strings.Builder
	out := buffer{w: &got}
	w := (&metrics{}).newOpenMetrics(&out, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	page := "# TYPE x counter\n" + strings.Repeat("x{a=\"b\"} 1\n", 1<<19)
	for part := range slices.Chunk([]byte(page), 65521) {
		_, _ = w.Write(part)
	}
	out.flush()
	if most := 1 << 20; cap(out.buf) > most || cap(w.rest) > 1<<10 {
		t.Errorf("%d and %d bytes are kept of a page of %d", cap(out.buf), cap(w.rest), len(page))
	}
	if got.String() != strings.Replace(page, "counter", "unknown", 1) {
		t.Errorf("%d bytes of %d are written", got.Len(), len(page))
	}
}
