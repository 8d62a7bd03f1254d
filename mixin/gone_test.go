package mixin_test

import (
	"slices"
	"testing"
)

// goneBoards returns series, with a sample a minute, of hosts whose boards disappeared: on n GPU-0 and GPU-1, on n2 one that
// returned, on n3 one that was replaced, and on n4 an index that never had a board.
func goneBoards(t *testing.T) memory {
	t.Helper()
	return recorded(t,
		`kpulse_gpu_present{`+board0+`} 1x2 0x40`, `kpulse_gpu_present{cluster="c",hostname="n",gpu="1",uuid="GPU-1"} 1x3 0x40`, `kpulse_gpu_present{cluster="c",hostname="n",gpu="2",uuid="GPU-2"} 1x40`,
		`device:kpulse_gpu_gone:timestamp{`+board0+`} _x3 180x40`, `device:kpulse_gpu_gone:timestamp{cluster="c",hostname="n",gpu="1",uuid="GPU-1"} _x4 240x40`,
		`host:kpulse_gpus_present:count{cluster="c",hostname="n"} 3x2 2 1x40`, `host:kpulse_gpus_present:max1d{cluster="c",hostname="n"} 3x40`, `host:kpulse_gpus_expected:max1h{cluster="c",hostname="n"} 3x40`,
		`allocation:kpulse_allocation_gone:info{`+board0+`,hpc_job="17"} _x3 1x40`,
		`device:kpulse_gpu_xid_seen:timestamp{`+board0+`,xid="31"} 60x40`, `device:kpulse_gpu_xid_seen:timestamp{`+board0+`,xid="79"} _x3 180x40`,

		`kpulse_gpu_present{cluster="c",hostname="n2",gpu="0",uuid="GPU-3"} 1 0 1x40`, `device:kpulse_gpu_gone:timestamp{cluster="c",hostname="n2",gpu="0",uuid="GPU-3"} _ 60`,
		`host:kpulse_gpus_present:count{cluster="c",hostname="n2"} 1 0 1x40`, `host:kpulse_gpus_present:max1d{cluster="c",hostname="n2"} 1x40`,

		`kpulse_gpu_present{cluster="c",hostname="n3",gpu="0",uuid="GPU-4"} 1 0x2`, `device:kpulse_gpu_gone:timestamp{cluster="c",hostname="n3",gpu="0",uuid="GPU-4"} _ 60x2`,
		`kpulse_gpu_present{cluster="c",hostname="n3",gpu="0",uuid="GPU-5"} _x4 1x40`, `host:kpulse_gpus_present:count{cluster="c",hostname="n3"} 1 0x2 1x40`, `host:kpulse_gpus_present:max1d{cluster="c",hostname="n3"} 1x40`,

		`kpulse_gpu_present{cluster="c",hostname="n4",gpu="7"} 0x40`, `host:kpulse_gpus_present:count{cluster="c",hostname="n4"} 0x40`, `host:kpulse_gpus_present:max1d{cluster="c",hostname="n4"} 0x40`, `host:kpulse_gpus_expected:max1h{cluster="c",hostname="n4"} 1x40`,
		`host:kpulse_gpus_expected:max1h{cluster="c",hostname="n5"} 1x40`, `host:kpulse_gpus_present:max1d{cluster="c",hostname="n5"} 1x40`, // silent
	)
}

// TestMissingBoards: each missing board, since when, with its last XID and its holder; a board that was never seen is missing
// from now on.
func TestMissingBoards(t *testing.T) {
	m := goneBoards(t)
	for _, page := range []string{"kpulse-fleet", "kpulse-health", "kpulse-node"} {
		expr := exprOf(t, page, "Missing boards", "A")
		want(t, page+", boards", at(m.asked(t, expr, 12, "uuid"), 12), map[string]float64{"GPU-0": 180e3, "GPU-1": 240e3, "": 720e3})
		want(t, page+", XIDs", at(m.asked(t, expr, 12, "xid", "$hostname", "n"), 12), map[string]float64{"79": 180e3, "": 240e3})
		want(t, page+", holders", at(m.asked(t, expr, 12, "hpc_job", "$hostname", "n"), 12), map[string]float64{"17": 180e3, "": 240e3})
	}
	want(t, "how many", at(m.asked(t, exprOf(t, "kpulse-fleet", "Gone", "A"), 12, ""), 12), map[string]float64{"": 3})
	want(t, "GPUs here", at(m.asked(t, exprOf(t, "kpulse-fleet", "GPUs present / expected", "A"), 12, ""), 12), map[string]float64{})
	want(t, "GPUs here, some missing", at(m.asked(t, exprOf(t, "kpulse-fleet", "GPUs present / expected", "B"), 12, ""), 12), map[string]float64{"": 3})
	want(t, "GPUs expected", at(m.asked(t, exprOf(t, "kpulse-fleet", "GPUs present / expected", "C"), 12, ""), 12), map[string]float64{"": 7})
	want(t, "GPUs of a host that has all", at(m.asked(t, exprOf(t, "kpulse-fleet", "GPUs present / expected", "A"), 12, "", "$hostname", "n2"), 12), map[string]float64{"": 1})
}

// TestAMovedBoardIsNotMissing: GPU-8 moves from n8 to n9, so n8 has fewer boards than before, but none is missing.
func TestAMovedBoardIsNotMissing(t *testing.T) {
	m := recorded(t,
		`kpulse_gpu_present{cluster="c",hostname="n8",gpu="0",uuid="GPU-8"} 1 0x3 stale`, `device:kpulse_gpu_gone:timestamp{cluster="c",hostname="n8",gpu="0",uuid="GPU-8"} _ 60x3 stale`,
		`host:kpulse_gpus_present:count{cluster="c",hostname="n8"} 1 0x40`, `host:kpulse_gpus_present:max1d{cluster="c",hostname="n8"} 1x40`,
		`kpulse_gpu_present{cluster="c",hostname="n9",gpu="3",uuid="GPU-8"} _x5 1x40`)
	for host, missing := range map[string][2]map[string]float64{".*": {{"GPU-8": 60e3}, {}}, "n8": {{"GPU-8": 60e3}, {}}, "n9": {}} {
		lines := m.asked(t, exprOf(t, "kpulse-node", "Missing boards", "A"), 12, "uuid", "$hostname", host)
		want(t, host+" before", at(lines, 3), missing[0])
		want(t, host+" after", at(lines, 12), missing[1])
	}
}

// TestHostsWorstFirst: hosts with missing boards, then silent hosts, then the others by state.
func TestHostsWorstFirst(t *testing.T) {
	m := append(goneBoards(t), recorded(t, `device:kpulse_gpu_model:info{cluster="c",hostname="n2",gpu="0",uuid="GPU-3",model="H100"} 1x40`, `kpulse_gpu_health{cluster="c",hostname="n2",gpu="0",uuid="GPU-3",state="warn"} 1x40`)...)
	want(t, "hosts", at(m.asked(t, exprOf(t, "kpulse-fleet", "Hosts", "A"), 12, "hostname"), 12), map[string]float64{"n": 4, "n2": 2, "n4": 4, "n5": 3.5})
	want(t, "boards", at(m.asked(t, exprOf(t, "kpulse-fleet", "GPUs", "A"), 12, "uuid"), 12), map[string]float64{"GPU-0": 4, "GPU-1": 4, "": 4, "GPU-3": 2})
	want(t, "boards of a model", at(m.asked(t, exprOf(t, "kpulse-fleet", "GPUs", "A"), 12, "uuid", "$model", "A100"), 12), map[string]float64{"GPU-0": 4, "GPU-1": 4, "": 4})
}

// TestAlertsOfAHost: the alerts of a host are those that name it, and those of its proxy.
func TestAlertsOfAHost(t *testing.T) {
	firing, since := `ALERTS{alertstate="firing",cluster="c",alertname="Kpulse`, `ALERTS_FOR_STATE{cluster="c",alertname="Kpulse`
	var series []string
	for labels, seconds := range map[string]string{
		`GPUHot",severity="warning",hostname="n1",gpu="0",uuid="GPU-0"`: "60",
		`GPUMissing",severity="critical",hostname="n10"`:                "120",
		`ProxyInstanceDown",severity="warning",instance="n1:9401"`:      "180",
		`ProxyInstanceDown",severity="warning",instance="n10:9401"`:     "240",
		`UpstreamDown",severity="info",instance="n1.example.org:9401"`:  "300",
	} {
		series = append(series, firing+labels+"} 1x40", since+labels+"} "+seconds+"x40")
	}
	m := recorded(t, append(series, `ALERTS_FOR_STATE{cluster="c",alertname="KpulseGPUHot",severity="warning",hostname="n1",gpu="1"} 60x40`)...) // pending
	ranks, ages := exprOf(t, "kpulse-fleet", "Alerts", "A"), exprOf(t, "kpulse-fleet", "Alerts", "B")
	want(t, "ranks", at(m.asked(t, ranks, 10, "alertname", "$hostname", "n1"), 10), map[string]float64{"KpulseGPUHot": 2, "KpulseProxyInstanceDown": 2, "KpulseUpstreamDown": 0})
	want(t, "ages", at(m.asked(t, ages, 10, "alertname", "$hostname", "n1"), 10), map[string]float64{"KpulseGPUHot": 60e3, "KpulseProxyInstanceDown": 180e3, "KpulseUpstreamDown": 300e3})
	want(t, "another", at(m.asked(t, ages, 10, "hostname", "$hostname", "n10"), 10), map[string]float64{"n10": 120e3, "": 240e3})
}

// TestWhatIsNotSetUp: missing parts are named, none if all are present. Parts of one cluster do not count for
// another.
func TestWhatIsNotSetUp(t *testing.T) {
	expr := exprOf(t, "kpulse-fleet", "What is not set up yet", "A")
	of := func(cluster string) (proxy, more []string) {
		board := `{cluster="` + cluster + `",hostname="n",gpu="0",uuid="GPU-` + cluster + `"`
		return []string{`kpulse_gpu_present` + board + `} 1x40`, `kpulse_build_info{cluster="` + cluster + `",instance="n:9401",version="1"} 1x40`},
			[]string{`host:kpulse_gpus_present:max1d{cluster="` + cluster + `",hostname="n"} 1x40`, `kpulse_allocation_info` + board + `,hpc_job="17"} 1x40`,
				`holder:kpulse_allocation_held_gpus:rate5m{cluster="` + cluster + `",hpc_job="17"} 1x40`}
	}
	proxy, more := of("c")
	proxy2, more2 := of("c2")
	all := slices.Concat(proxy, more)
	lacks := func(field string) string {
		return `kpulse_source_field_missing{cluster="c",instance="n:9401",source="s",field="` + field + `"} 1x40`
	}
	for what, c := range map[string]struct {
		series []string
		want   map[string]float64
	}{
		"nothing but a proxy":             {proxy, map[string]float64{"Recording rules": 1, "Who holds the GPUs": 1}},
		"all":                             {all, map[string]float64{}},
		"all in one of two clusters":      {slices.Concat(all, proxy2), map[string]float64{"Recording rules": 1, "Who holds the GPUs": 1}},
		"all in two":                      {slices.Concat(all, proxy2, more2), map[string]float64{}},
		"no rules of users in one of two": {slices.Concat(all, proxy2, more2[:2]), map[string]float64{"User rules": 1}},
		"a field":                         {append(slices.Clone(all), lacks("gpu_sm_active_ratio")), map[string]float64{"Input gpu_sm_active_ratio": 1}},
		"a field that whole models lack":  {append(slices.Clone(all), lacks("gpu_memory_temperature_celsius")), map[string]float64{}},
		"an old proxy":                    {append(slices.Clone(all), `kpulse_build_info{cluster="c",instance="n2:9401",version="2"} 1x40`), map[string]float64{"A single proxy version": 2}},
		"a cluster without proxies":       {slices.Concat(all, more2[:1]), map[string]float64{}},
		"nobody holds any now":            {slices.Concat(proxy, more[:1], []string{`cluster:kpulse_allocation_held_gpus:rate5m{cluster="c"} 5 5 0x40`}), map[string]float64{}},
		"nobody held any":                 {slices.Concat(proxy, more[:1], []string{`cluster:kpulse_allocation_held_gpus:rate5m{cluster="c"} 0x40`}), map[string]float64{"Who holds the GPUs": 1}},
	} {
		want(t, what, at(recorded(t, c.series...).asked(t, expr, 10, "missing"), 10), c.want)
	}
	unused := append(slices.Clone(all), `kpulse_gpu_present{cluster="c",hostname="n2",gpu="0",uuid="GPU-2"} 1x40`)
	want(t, "a host that nobody uses", at(recorded(t, unused...).asked(t, expr, 10, "missing", "$hostname", "n2"), 10), map[string]float64{})
}
