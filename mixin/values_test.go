package mixin_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// memory is a storage.Queryable of series in memory.
type memory []storage.Series

// scraped returns series in the notation of promtool's tests, with a sample every 15 s from 0.
func scraped(t *testing.T, series ...string) (m memory) {
	t.Helper()
	return sampled(t, 15*time.Second, series)
}

// recorded is scraped with a sample every minute.
func recorded(t *testing.T, series ...string) memory {
	t.Helper()
	return sampled(t, time.Minute, series)
}

func sampled(t *testing.T, interval time.Duration, series []string) (m memory) {
	t.Helper()
	for _, text := range series {
		metric, values, err := parser.NewParser(parser.Options{}).ParseSeriesDesc(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		s := promql.Series{Metric: metric}
		for i, v := range values {
			if !v.Omitted {
				s.Floats = append(s.Floats, promql.FPoint{T: int64(i) * interval.Milliseconds(), F: v.Value})
			}
		}
		m = append(m, promql.NewStorageSeries(s))
	}
	return m
}

func (m memory) Querier(_, _ int64) (storage.Querier, error) { return memoryQuerier{m}, nil }

type memoryQuerier struct{ memory }

func (q memoryQuerier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	return &memorySet{left: slices.DeleteFunc(slices.Clone(q.memory), func(s storage.Series) bool {
		return slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.Labels().Get(m.Name)) })
	})}
}

func (memoryQuerier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (memoryQuerier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (memoryQuerier) Close() error { return nil }

type memorySet struct {
	at   storage.Series
	left memory
}

func (s *memorySet) Next() bool {
	if len(s.left) == 0 {
		return false
	}
	s.at, s.left = s.left[0], s.left[1:]
	return true
}

func (s *memorySet) At() storage.Series              { return s.at }
func (*memorySet) Err() error                        { return nil }
func (*memorySet) Warnings() annotations.Annotations { return nil }

// asked runs a query of a page at each minute from 0, and returns its values by one label or by
// none, NaN for a missing value. `chosen` are pairs of variable and value; other variables are all.
func (m memory) asked(t *testing.T, expr string, minutes int, by string, chosen ...string) map[string][]float64 {
	t.Helper()
	length := time.Duration(minutes) * time.Minute
	values := append(chosen, "$__rate_interval", "75s", "$__range", fmt.Sprintf("%ds", int(length.Seconds())), "$__interval", "1m", `"$gpu"`, `"GPU-0"`)
	for _, v := range []string{"$cluster", "$hostname", "$namespace", "$hpc_job", "$hpc_user", "$hpc_account", "$instance", "$model"} {
		values = append(values, v, ".*")
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e7, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, EnableAtModifier: true})
	expr = strings.NewReplacer(values...).Replace(expr)
	query, err := engine.NewRangeQuery(t.Context(), m, nil, expr, time.Unix(0, 0), time.Unix(0, 0).Add(length), time.Minute)
	if err != nil {
		t.Fatalf("%v\n%s", err, expr)
	}
	defer query.Close()
	matrix, err := query.Exec(t.Context()).Matrix()
	if err != nil {
		t.Fatalf("%v\n%s", err, expr)
	}
	found := map[string][]float64{}
	for _, s := range matrix {
		name := s.Metric.Get(by)
		if found[name] != nil {
			t.Fatalf("two lines of %s %q\n%s", by, name, expr)
		}
		line := slices.Repeat([]float64{math.NaN()}, minutes+1)
		for _, point := range s.Floats {
			line[point.T/time.Minute.Milliseconds()] = point.F
		}
		found[name] = line
	}
	return found
}

// exprOf returns a query of a panel.
func exprOf(t *testing.T, page, title, refID string) string {
	t.Helper()
	for _, p := range dashboards(t)[page+".json"].Panels {
		for _, target := range p.Targets {
			if p.Title == title && target.RefID == refID {
				return target.Expr
			}
		}
	}
	t.Fatalf("%s has no panel %q with a query %s", page, title, refID)
	return ""
}

// annotationOf returns the query of an annotation of a page.
func annotationOf(t *testing.T, page, name string) string {
	t.Helper()
	for _, a := range dashboards(t)[page+".json"].Annotations.List {
		if a.Name == name {
			return a.Expr
		}
	}
	t.Fatalf("%s has no annotation %q", page, name)
	return ""
}

const board0 = `cluster="c",hostname="n",gpu="0",uuid="GPU-0"`

// at returns the values of one step.
func at(lines map[string][]float64, minute int) map[string]float64 {
	values := map[string]float64{}
	for name, line := range lines {
		if !math.IsNaN(line[minute]) {
			values[name] = math.Round(line[minute]*1e6) / 1e6
		}
	}
	return values
}

func want(t *testing.T, what string, got, want map[string]float64) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestThrottledShareIsOverAllBusyBoards: two of four busy boards are throttled for 0.5 and 0.3 of
// their time, so the share is 0.8 / 4.
func TestThrottledShareIsOverAllBusyBoards(t *testing.T) {
	series := []string{`host:kpulse_gpus_busy:count{cluster="c",hostname="n"} 3x10`, `host:kpulse_gpus_busy:count{cluster="c",hostname="n2"} 1x10`, `device:kpulse_gpu_throttled_busy:share5m{` + board0 + `,reason="thermal"} 0.5x10`,
		`device:kpulse_gpu_throttled_busy:share5m{cluster="c",hostname="n",gpu="1",uuid="GPU-1",reason="thermal"} 0.3x10`}
	got := recorded(t, series...).asked(t, exprOf(t, "kpulse-power", "Throttled share of busy time", "A"), 10, "reason")
	want(t, "share", at(got, 10), map[string]float64{"thermal": 0.2})
}

// TestAPartOfNothingIsNotKnown: ratios are absent, not infinite, for a host without use or without held GPUs. 720 W for an
// hour, in which half a GPU was used, are 1.44 kWh per GPU-hour.
func TestAPartOfNothingIsNotKnown(t *testing.T) {
	of := func(metric, values string) string {
		return metric + `:rate5m{cluster="c",hostname="n",model="m"} ` + values
	}
	energy := exprOf(t, "kpulse-power", "Energy per utilized GPU-hour", "A")
	for values, told := range map[string]map[string]float64{"0x60": {}, "0.5x60": {"": 1.44}} {
		m := recorded(t, of("host:kpulse_gpu_energy", "720x60"), of("host:kpulse_gpu_utilized_gpus", values))
		want(t, "energy with "+values, at(m.asked(t, energy, 60, ""), 60), told)
	}
	idle := recorded(t, of("host:kpulse_allocation_held_gpus", "0x60"), of("host:kpulse_allocation_idle_gpus", "0x60"), of("host:kpulse_allocation_utilized_gpus", "0x60"))
	for _, title := range []string{"Idle share of held GPU-hours", "Utilized share of held GPU-hours"} {
		want(t, title, at(idle.asked(t, exprOf(t, "kpulse-efficiency", title, "A"), 60, ""), 60), map[string]float64{})
	}
}

// TestALeagueIsOfItsLargest: of 250 namespaces, with as many idle GPU-minutes as their number, all columns show the 200 with
// the most.
func TestALeagueIsOfItsLargest(t *testing.T) {
	var series []string
	for n := range 250 {
		for metric, value := range map[string]float64{"idle": float64(n) / 60, "held": 10, "utilized": 2, "known": 8} {
			series = append(series, fmt.Sprintf(`namespace:kpulse_allocation_%s_gpus:rate5m{cluster="c",workload_namespace="ns%d"} %gx60`, metric, n, value))
		}
	}
	m := recorded(t, series...)
	for refID, want := range map[string]float64{"A": 249. / 60, "B": 2.5 * 249. / 60, "C": 10, "D": .25} {
		got := m.asked(t, exprOf(t, "kpulse-efficiency", "Namespaces by idle GPU-hours", refID), 60, "workload_namespace")
		if last := got["ns249"]; len(got) != 200 || got["ns49"] != nil || got["ns50"] == nil || math.Abs(last[60]-want) > .05*want {
			t.Errorf("query %s: %d rows, %v of the first, want %v", refID, len(got), last, want)
		}
	}
}

// TestAShortStallIsSeen: two minutes of waiting for data between ten minutes of work, which
// five-minute averages would hide.
func TestAShortStallIsSeen(t *testing.T) {
	class := `kpulse_gpu_workload_class{` + board0 + `,class="%s",bottleneck="%s"} %s`
	got := scraped(t, fmt.Sprintf(class, "tensor_compute", "compute", "1x39 stale _x7 1x40"), fmt.Sprintf(class, "io_or_data_loading", "io", "_x40 1x7 stale")).
		asked(t, exprOf(t, "kpulse-gpu", "Class over time", "A"), 20, "mig_instance")
	// The numbers are indices into the table of colors, whose words the panel shows.
	var classes [][2]string
	decode(t, `(import 'lib/colors.libsonnet').classes`, &classes)
	var words []string
	for _, number := range got[""][8:14] {
		words = append(words, classes[int(number)][0])
	}
	if want := strings.Fields("tensor_compute tensor_compute io_or_data_loading io_or_data_loading tensor_compute tensor_compute"); !slices.Equal(words, want) {
		t.Errorf("%q, want %q", words, want)
	}
}

// TestTheWorstAreWholeLines: of twelve boards with a constant distance of 0 to 11 °C, the last is hot
// for a minute. The ten lines span the whole range.
func TestTheWorstAreWholeLines(t *testing.T) {
	var series []string
	for gpu := range 12 {
		values := fmt.Sprintf("%dx10", gpu)
		if gpu == 11 {
			values = "11 11 11 -5 11x6"
		}
		series = append(series, fmt.Sprintf(`device:kpulse_gpu_temperature_headroom:min5m{cluster="c",hostname="n",gpu="%d",uuid="GPU-%d"} %s`, gpu, gpu, values))
	}
	got := recorded(t, series...).asked(t, exprOf(t, "kpulse-power", "Distance to the warning temperature", "A"), 10, "gpu")
	if len(got) != 10 || got["11"] == nil || got["9"] != nil {
		t.Errorf("%d lines: %v", len(got), slices.Sorted(maps.Keys(got)))
	}
	for gpu, line := range got {
		if slices.ContainsFunc(line, math.IsNaN) {
			t.Errorf("GPU %s: %v", gpu, line)
		}
	}
}

// TestAStackHasItsWhole: a stack has the 20 largest of 25 hosts and the sum of the others, 1 to 5 W.
func TestAStackHasItsWhole(t *testing.T) {
	var series []string
	for host := 1; host <= 25; host++ {
		series = append(series, fmt.Sprintf(`host:kpulse_gpu_energy:rate5m{cluster="c",hostname="n%d",model="m"} %dx10`, host, host))
	}
	m := recorded(t, series...)
	if got := m.asked(t, exprOf(t, "kpulse-power", "Power by host", "A"), 10, "hostname"); len(got) != 20 || got["n6"] == nil || got["n5"] != nil {
		t.Errorf("%d hosts: %v", len(got), slices.Sorted(maps.Keys(got)))
	}
	want(t, "all others", at(m.asked(t, exprOf(t, "kpulse-power", "Power by host", "B"), 10, "hostname"), 10), map[string]float64{"": 1 + 2 + 3 + 4 + 5})
}

// TestCountsAreWhole: two errors count as 2 at any later time, not 2.67; a replay per minute counts
// as 1.
func TestCountsAreWhole(t *testing.T) {
	m := scraped(t, `kpulse_gpu_ecc_errors_total{`+board0+`,severity="correctable",scope="volatile"} 7x120 9x120`,
		`kpulse_gpu_ecc_errors_total{`+board0+`,severity="uncorrectable",scope="volatile"} 0x240`,
		`kpulse_gpu_pcie_replays_total{`+board0+`} 0+0.25x240`,
		`kpulse_source_skipped_lines_total{cluster="c",instance="a",source="s",backend="exporter"} 0x100 3x140`,
		`kpulse_source_skipped_lines_total{cluster="c",instance="b",source="s",backend="exporter"} 5x120 9x120`)
	errors := m.asked(t, exprOf(t, "kpulse-gpu", "Memory errors per hour", "A"), 60, "severity")
	for _, minute := range []int{31, 32, 60} {
		want(t, fmt.Sprintf("errors at minute %d", minute), at(errors, minute), map[string]float64{"correctable": 2, "uncorrectable": 0})
	}
	want(t, "replays", at(m.asked(t, exprOf(t, "kpulse-gpu", "PCIe replays per minute", "A"), 60, "gpu"), 60), map[string]float64{"0": 1})
	want(t, "lines", at(m.asked(t, exprOf(t, "kpulse-proxy", "Lines and values left out per hour", "A"), 60, ""), 60), map[string]float64{"": 7})
}

// TestGoneIsTheWorst: gone is the worst state, whether the proxy or the rules report it, in both
// forms of the series.
func TestGoneIsTheWorst(t *testing.T) {
	for name, c := range map[string]struct {
		series []string
		want   map[string]float64
	}{
		"ok":           {[]string{`kpulse_gpu_health{` + board0 + `,state="ok"} 1x40`, `kpulse_gpu_present{` + board0 + `} 1x40`}, map[string]float64{"0": 0}},
		"hot, in full": {[]string{`kpulse_gpu_health{` + board0 + `,state="hot"} 1x40`, `kpulse_gpu_health{` + board0 + `,state="crit"} 0x40`, `kpulse_gpu_present{` + board0 + `} 1x40`}, map[string]float64{"0": 1}},
		"crit":         {[]string{`kpulse_gpu_health{` + board0 + `,state="crit"} 1x40`}, map[string]float64{"0": 3}},
		"the proxy":    {[]string{`kpulse_gpu_present{` + board0 + `} 0x40`}, map[string]float64{"0": 4}},
		"the rules":    {[]string{`device:kpulse_gpu_gone:timestamp{` + board0 + `} 60x40`}, map[string]float64{"0": 4}},
		"another":      {[]string{`kpulse_gpu_present{cluster="c",hostname="n",gpu="1",uuid="GPU-1"} 0x40`}, map[string]float64{}},
	} {
		want(t, name, at(scraped(t, c.series...).asked(t, exprOf(t, "kpulse-gpu", "Health", "A"), 10, "gpu"), 10), c.want)
	}
}

// TestAllHoldersMakeTheWhole: a namespace holds 2 GPUs, a job 3, and a job that runs in pods 1.
func TestAllHoldersMakeTheWhole(t *testing.T) {
	held := `holder:kpulse_allocation_held_gpus:rate5m{cluster="c",%s} %gx60`
	m := recorded(t, fmt.Sprintf(held, `workload_namespace="ml",workload_kind="Deployment",workload_name="d"`, 2.),
		fmt.Sprintf(held, `hpc_job="17",hpc_user="ada",hpc_account="physics"`, 3.), fmt.Sprintf(held, `workload_namespace="slurm",workload_kind="Pod",workload_name="p",hpc_job="22"`, 1.))
	for name, c := range map[string]struct {
		chosen []string
		want   float64
	}{
		"all": {nil, 6}, "a namespace": {[]string{"$namespace", "ml"}, 2}, "a job": {[]string{"$hpc_job", "17"}, 3}, "two jobs": {[]string{"$hpc_job", "(17|22)"}, 4},
		"a user": {[]string{"$hpc_user", "ada"}, 3}, "an account": {[]string{"$hpc_account", "physics"}, 3}, "a job in pods": {[]string{"$namespace", "slurm", "$hpc_job", "22"}, 1},
	} {
		want(t, name, at(m.asked(t, exprOf(t, "kpulse-namespace", "GPUs held now", "A"), 60, "", c.chosen...), 60), map[string]float64{"": c.want})
	}
}

// TestWhoIsDownIsNamed: the table says since when: proxy a last answered in minute 4, counted from 0, the
// source of b was last read at 60 s. c is not one of our targets.
func TestWhoIsDownIsNamed(t *testing.T) {
	m := scraped(t,
		`up{cluster="c",job="kpulse-proxy",instance="a"} 1x19 0x40`, `kpulse_build_info{cluster="c",job="kpulse-proxy",instance="a",version="1"} 1x19 stale`,
		`up{cluster="c",job="kpulse-proxy",instance="b"} 1x60`, `kpulse_build_info{cluster="c",job="kpulse-proxy",instance="b",version="1"} 1x60`,
		`kpulse_source_up{cluster="c",job="kpulse-proxy",instance="b",source="s",backend="exporter"} 0x60`,
		`kpulse_source_last_read_timestamp_seconds{cluster="c",job="kpulse-proxy",instance="b",source="s",backend="exporter"} 60x60`,
		`kpulse_source_up{cluster="c",job="kpulse-proxy",instance="b",source="s2",backend="exporter"} 1x60`,
		`kpulse_source_last_read_timestamp_seconds{cluster="c",job="kpulse-proxy",instance="b",source="s2",backend="exporter"} 590x60`,
		`up{cluster="c",job="node",instance="c"} 0x60`)
	want(t, "silent for", at(m.asked(t, exprOf(t, "kpulse-proxy", "Proxies and sources that are down", "A"), 10, "instance"), 10), map[string]float64{"a": 600 - 4*60, "b": 600 - 60})
}

// TestAProxyCountsOnce: two jobs scrape a, b and c, of which c is down; a proxy of cluster d is also called a, and one of its
// two sources is down.
func TestAProxyCountsOnce(t *testing.T) {
	var series []string
	for _, job := range []string{"kpulse-proxy", "dcgm"} {
		for _, target := range []string{`cluster="c",instance="a"`, `cluster="c",instance="b"`, `cluster="d",instance="a"`} {
			series = append(series, `kpulse_build_info{`+target+`,version="1",job="`+job+`"} 1x40`, `kpulse_source_up{`+target+`,source="s",job="`+job+`"} 1x40`,
				`kpulse_source_devices{`+target+`,source="s",job="`+job+`"} 8x40`, `up{`+target+`,job="`+job+`"} 1x40`)
		}
		series = append(series, `kpulse_source_up{cluster="d",instance="a",source="s2",job="`+job+`"} 0x40`,
			`kpulse_build_info{cluster="c",instance="c",version="1",job="`+job+`"} 1x9 stale`, `up{cluster="c",instance="c",job="`+job+`"} 1x9 0x30`)
	}
	m := scraped(t, series...)
	for title, n := range map[string]float64{"Proxies up": 3, "Proxies down": 1, "Sources down": 1, "Devices read": 24, "Proxy versions": 1} {
		want(t, title, at(m.asked(t, exprOf(t, "kpulse-proxy", title, "A"), 10, ""), 10), map[string]float64{"": n})
	}
}

// TestEventsAreMarkedOnce: each event is marked once, at its time, minute 5.
func TestEventsAreMarkedOnce(t *testing.T) {
	present := `kpulse_gpu_present{` + board0 + `} 1x31 stale _x3 1x20` // not scraped in minute 8
	info := `kpulse_gpu_info{` + board0 + `,model="m",mig_instance="1",mig_profile="%s"} %s`
	cut := scraped(t, present, fmt.Sprintf(info, "3g.40gb", "1x19 stale"), fmt.Sprintf(info, "1g.10gb", "_x20 1x11 stale _x3 1x20"))
	for name, c := range map[string]struct {
		page string
		m    memory
		want []int
	}{
		"XIDs":           {"kpulse-gpu", scraped(t, `kpulse_gpu_xid_errors_total{`+board0+`,xid="79"} 0x19 1x40`), []int{5}},
		"GPU resets":     {"kpulse-gpu", scraped(t, `kpulse_gpu_energy_joules_total{`+board0+`} 100+10x19 0+10x40`), []int{5}},
		"MIG re-cuts":    {"kpulse-gpu", cut, []int{5}},
		"Proxy restarts": {"kpulse-gpu", scraped(t, `kpulse_gpu_observed_seconds_total{`+board0+`} 900+15x19 0+15x40`), []int{5}},
		"Alerts":         {"kpulse-gpu", recorded(t, `ALERTS{alertname="KpulseGPUHot",alertstate="firing",severity="warning",`+board0+`} _ _ _ _ _ 1 1 stale`), []int{5, 6}},
	} {
		marked := []int{}
		for _, line := range c.m.asked(t, annotationOf(t, c.page, name), 12, "uuid") {
			for minute, v := range line {
				if v > 0 {
					marked = append(marked, minute)
				}
			}
		}
		if !slices.Equal(marked, c.want) {
			t.Errorf("%s are marked in the minutes %v, want %v", name, marked, c.want)
		}
	}
	fired := recorded(t, `ALERTS{alertname="KpulseGPUHot",alertstate="firing",severity="warning",cluster="c",hostname="n",gpu="1"} 1x12`,
		`ALERTS{alertname="KpulseGPUReplace",alertstate="firing",severity="critical",cluster="c",hostname="n2",gpu="1"} 1x12`,
		`ALERTS{alertname="KpulseProxyInstanceDown",alertstate="firing",severity="warning",cluster="c",instance="n:9401"} 1x12`,
		`ALERTS{alertname="KpulseUpstreamSlow",alertstate="firing",severity="warning",cluster="c",instance="n2:9401"} 1x12`)
	for host, names := range map[string]string{"n": "KpulseGPUHot KpulseProxyInstanceDown", ".*": "KpulseGPUHot KpulseGPUReplace KpulseProxyInstanceDown KpulseUpstreamSlow"} {
		got := slices.Sorted(maps.Keys(fired.asked(t, annotationOf(t, "kpulse-node", "Alerts"), 12, "alertname", "$hostname", host)))
		if strings.Join(got, " ") != names {
			t.Errorf("for host %s %q are marked, want %s", host, got, names)
		}
	}
	restarts := scraped(t, `process_start_time_seconds{cluster="c",job="kpulse-proxy-telemetry",instance="a"} 1000x19 1300x40`).
		asked(t, annotationOf(t, "kpulse-proxy", "Proxy restarts"), 12, "instance")
	want(t, "restarts", at(restarts, 5), map[string]float64{"a": 1})
	want(t, "restarts before", at(restarts, 4), map[string]float64{})
}
