package mixin_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/kpulse/kpulse-proxy/mixin"
	"github.com/kpulse/kpulse-proxy/mixin/fleet"
)

// symptom is what an alert is about. Its series have two values each: while all is well, and while it lasts. + is an
// increase per minute, - is no series, ? is a counter that is absent until its first increase, and ~ is 1 at every second minute. In labels P stands for those of a target, S for
// those of a source, H for those of a host, B for those of a board, and {h} for the host. Where the series are those of the
// recording rules of jobs and holders, those rules have tests of their own.
type symptom struct {
	alert, severity string
	series          string
	// flaps reports whether the alert fires if the symptom lasts two minutes of five.
	flaps bool
	// storm is the number of messages if it befalls twenty hosts at once.
	storm int
	// whole symptoms befall all hosts of a cluster.
	whole bool
	// also are alerts that fire with it, and that Alertmanager inhibits.
	also []string
}

const (
	present  = "\nkpulse_gpu_present{B} 1 1"
	alive    = present + "\nkpulse_gpu_health{B,state=\"ok\"} 1 1"
	down     = "up{P} 1 0\nkpulse_build_info{P,version=\"1\"} 1 -"
	action   = "kpulse_gpu_recommended_action{B,action=%q} - 1\nkpulse_gpu_health_condition{B,condition=%q,state=%q} - 1" + alive
	stream   = "kpulse_source_ticks_total{P,source=\"s\",stream=\"device\"} +60 +30\nkpulse_source_ticks_%s_total{P,source=\"s\",stream=\"device\"} +0 +30"
	switched = "kpulse_nvswitch_sxid_errors_total{H,pci_bus_id=\"0000:05:00.0\",sxid=\"20034\",severity=%q} ? +1"
	stalled  = "gang:kpulse_allocation_stalled_power:ratio5m{hpc_job=\"{h}\"} - 0.3"
	used     = "allocation:kpulse_allocation_known_gpus:rate5m{B%[1]d,hpc_job=\"{h}\"} 1 1\nallocation:kpulse_allocation_utilized_gpus:rate5m{B%[1]d,hpc_job=\"{h}\"} 0.5 %[2]g\n"
)

// members are n boards of a job.
func members(n int) (text string) {
	for i := range n {
		text += fmt.Sprintf("\ngang:kpulse_allocation_member:info{B%d,hpc_job=\"{h}\"} 1 1", i)
	}
	return text
}

func acts(name, condition, state string) string { return fmt.Sprintf(action, name, condition, state) }

// symptoms are those of every alert, and of both severities where there are two.
var symptoms = []symptom{
	{"KpulseProxyDown", "critical", down, false, 1, true, []string{"KpulseProxyInstanceDown"}},
	{"KpulseProxyInstanceDown", "warning", down, true, 1, false, nil},
	{"KpulseUpstreamDown", "warning", "kpulse_source_up{S} 1 0", true, 1, false, nil},
	{"KpulseUpstreamStale", "warning", "kpulse_source_unchanged_seconds{S} 0 2000\nkpulse_source_devices{S} 2 2", false, 1, false, nil},
	{"KpulseUpstreamWithoutGPUs", "critical", "kpulse_source_devices{S} 2 0\nkpulse_source_up{S} 1 1", false, 20, false, nil},
	{"KpulseUpstreamSlow", "warning", "kpulse_source_read_duration_seconds{S} 0.2 10", false, 1, false, nil},
	{"KpulseSourceMissingTicks", "warning", fmt.Sprintf(stream, "missed"), true, 1, false, nil},
	{"KpulseSourceEvicting", "warning", fmt.Sprintf(stream, "evicted"), true, 1, false, nil},
	{"KpulseParseErrors", "warning", "kpulse_source_skipped_lines_total{S} +0 +4", true, 1, false, nil},
	{"KpulseRequiredFieldMissing", "info", "kpulse_source_field_missing{S,field=\"gpu_sm_active_ratio\"} 0 1\nkpulse_source_devices{S} 2 2", false, 1, false, nil},
	{"KpulseGPUMissing", "critical", "kpulse_gpu_present{B} 1 0\nkpulse_gpu_health{B,state=\"crit\"} - 1", true, 20, false, nil},
	{"KpulseGPUUncorrectableECC", "critical", "kpulse_gpu_health_condition{B,condition=\"ecc_double_bit\",state=\"crit\"} - 1" + alive, true, 20, false, nil},
	{"KpulseGPUCorrectableECCRate", "info", "kpulse_gpu_ecc_errors_total{B,severity=\"correctable\",scope=\"volatile\"} +0 +10", true, 1, false, nil},
	{"KpulseGPUPCIeReplayRate", "warning", "kpulse_gpu_pcie_replays_total{B} +0 +3", true, 1, false, nil},
	{"KpulseGPUNVLinkErrors", "warning", "kpulse_gpu_nvlink_errors_total{B,kind=\"replay\"} +0 +3", true, 1, false, nil},
	{"KpulseNVSwitchErrors", "critical", fmt.Sprintf(switched, "fatal"), true, 20, false, nil},
	{"KpulseNVSwitchErrors", "info", fmt.Sprintf(switched, "non-fatal"), true, 1, false, nil},
	{"KpulseGPUThermalThrottling", "warning", "kpulse_gpu_throttled_seconds_total{B,reason=\"thermal\"} +0 +30", true, 1, false, nil},
	{"KpulseGPUPowerBrake", "warning", "kpulse_gpu_clock_event_active{B,reason=\"hw_power_brake\"} 0 1" + present, true, 1, false, nil},
	{"KpulseGPUHot", "warning", "kpulse_gpu_health_condition{B,condition=\"gpu_temperature\",state=\"hot\"} - 1" + alive, false, 1, false, nil},
	{"KpulseGPUProfilingStalled", "warning", "kpulse_gpu_health_condition{B,condition=\"profiling_stalled\",state=\"warn\"} - 1" + alive, false, 1, false, nil},
	{"KpulseGPURestartApplication", "info", acts("restart_application", "xid_recent", "warn"), true, 1, false, nil},
	{"KpulseGPUCheckHardware", "warning", acts("check_hardware", "pcie_degraded", "warn"), false, 1, false, nil},
	{"KpulseGPUResetNeeded", "critical", acts("reset_gpu", "xid_fatal", "crit"), false, 20, false, nil},
	{"KpulseGPUResetNeeded", "warning", acts("reset_gpu", "row_remap_pending", "warn"), false, 1, false, nil},
	{"KpulseGPURestartVM", "critical", acts("restart_vm", "xid_fatal", "crit"), false, 20, false, nil},
	{"KpulseGPURestartVM", "warning", acts("restart_vm", "recovery_action", "warn"), false, 1, false, nil},
	{"KpulseGPURebootNeeded", "critical", acts("reboot_node", "xid_fatal", "crit"), false, 20, false, nil},
	{"KpulseGPURebootNeeded", "warning", acts("reboot_node", "recovery_action", "warn"), false, 1, false, nil},
	{"KpulseGPUReplace", "critical", acts("replace", "row_remap_failure", "crit"), false, 20, false, nil},
	{"KpulseGPUReplace", "warning", acts("replace", "memory_worn", "warn"), false, 1, false, nil},
	{"KpulseJobStalled", "critical", stalled + members(8), false, 1, false, nil},
	{"KpulseJobStalled", "warning", stalled + members(7), false, 1, false, nil},
	{"KpulseGPUIdleAllocated", "info", "kpulse_allocation_seconds_total{B,hpc_job=\"{h}\"} +60 +60\nkpulse_allocation_real_utilization_known_seconds_total{B,hpc_job=\"{h}\"} +60 +60\nkpulse_allocation_real_utilization_seconds_total{B,hpc_job=\"{h}\"} +40 +0", false, 1, false, nil},
	{"KpulseNamespaceWaste", "info", "namespace:kpulse_allocation_idle_gpus:rate5m{workload_namespace=\"{h}\"} - 300", true, 20, false, nil},
	{"KpulseAccountWaste", "info", "account:kpulse_allocation_idle_gpus:rate5m{hpc_account=\"{h}\"} - 300", true, 20, false, nil},
	{"KpulseGPUStragglerInJob", "info", fmt.Sprintf(used, 0, 0.1) + fmt.Sprintf(used, 1, 0.5) + fmt.Sprintf(used, 2, 0.5) + fmt.Sprintf(used, 3, 0.5), false, 1, false, nil},
	{"KpulseIdleMemoryHeld", "info", "kpulse_gpu_framebuffer_used_bytes{B} 2e10 2e10\nkpulse_gpu_workload_class_seconds_total{B,class=\"idle\"} +0 +60", false, 1, false, nil},
	{"KpulseGPUFlapping", "info", "kpulse_gpu_health{B,state=\"ok\"} 1 1\nkpulse_gpu_health{B,state=\"warn\"} - ~", true, 1, false, nil},
	{"KpulseGPUPowerLimited", "info", "kpulse_gpu_power_limit_watts{B} 700 500\nkpulse_gpu_power_limit_default_watts{B} 700 700", false, 1, false, nil},
}

// weather is the state of a host at a minute.
type weather int

const (
	well weather = iota
	ill
	off // it reboots
)

// The symptoms begin after an hour, and last for two and a half.
const (
	illFrom = 60
	illTo   = 210
	minutes = 300 // of the whole
)

// steady symptoms last all of the time.
func steady(minute int) weather {
	if minute >= illFrom && minute < illTo {
		return ill
	}
	return well
}

// flapping symptoms last two minutes of five.
func flapping(minute int) weather {
	if minute%5 < 2 {
		return steady(minute)
	}
	return well
}

// rebooting hosts are off for twelve minutes, and never ill.
func rebooting(minute int) weather {
	if minute >= illFrom && minute < illFrom+12 {
		return off
	}
	return well
}

// script returns the series of a number of hosts of a cluster that have a symptom, and of more that have not, a value each
// few minutes.
func (s symptom) script(t *testing.T, cluster string, hosts, more, every, minutes int, at func(minute int) weather) (all []fleet.Scripted) {
	t.Helper()
	if s.whole {
		more = 0
	}
	for n := range hosts + more {
		is := at
		if n >= hosts {
			is = func(int) weather { return well }
		}
		host := fmt.Sprintf("n%02d", n)
		fill := strings.NewReplacer("{P", `{job="p",instance="{h}:9401"`, "{S", `{job="p",instance="{h}:9401",source="s",backend="prometheus"`, "{H", `{hostname="{h}"`, "{B}", `{hostname="{h}",gpu="0",uuid="GPU-{h}"}`, "{B,", `{hostname="{h}",gpu="0",uuid="GPU-{h}",`)
		text := fill.Replace(s.series)
		for i := range 8 {
			text = strings.ReplaceAll(text, fmt.Sprintf("{B%d", i), fmt.Sprintf(`{hostname="{h}",gpu="%d",uuid="GPU-{h}-%d"`, i, i))
		}
		for line := range strings.SplitSeq(strings.TrimSpace(strings.ReplaceAll(text, "{h}", host)), "\n") {
			parts := strings.Fields(line)
			metric, err := parser.NewParser(parser.Options{}).ParseMetric(parts[0])
			if err != nil {
				t.Fatal(line, err)
			}
			values := make([]float64, 0, minutes/every)
			count := 0.
			for minute := 0; minute < minutes; minute += every {
				var v float64
				switch w := is(minute); {
				case w == off && metric.Get("__name__") == "up":
					v = 0
				case w == off:
					v, count = math.NaN(), 0
				case w == ill:
					v = valueAt(t, parts[2], minute, every, &count)
				default:
					v = valueAt(t, parts[1], minute, every, &count)
				}
				values = append(values, v)
			}
			all = append(all, fleet.Scripted{Labels: labels.NewBuilder(metric).Set("cluster", cluster).Labels(), Values: values})
		}
	}
	return all
}

// valueAt returns a value of a symptom at a minute; count is its sum so far.
func valueAt(t *testing.T, text string, minute, every int, count *float64) float64 {
	t.Helper()
	switch text {
	case "-":
		return math.NaN()
	case "?":
		if *count == 0 {
			return math.NaN()
		}
		return *count
	case "~":
		return float64(minute / every % 2)
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(text, "+") {
		*count += v * float64(every)
		return *count
	}
	return v
}

// ruled are the rules that alerts about boards and proxies build on, and all alerts.
func ruled(t *testing.T) (all []rulefmt.RuleGroup) {
	t.Helper()
	for _, g := range groups(t, "prometheus_rules.yaml") {
		if g.Name == "kpulse-fleet-hosts" || g.Name == "kpulse-boards" {
			all = append(all, g)
		}
	}
	return append(all, groups(t, "tests/all_alerts.yaml")...)
}

// spells are how often each alert began to fire in each cluster, and the alerts that fire at each step.
type spells struct {
	began   map[string]map[string]int // by cluster, and the name of the alert with its severity
	at      [][]map[string]string
	lasting map[string]bool // clusters with an alert at the last step
}

// play plays series, and follows which alerts fire.
func play(t *testing.T, every time.Duration, series []fleet.Scripted) spells {
	t.Helper()
	s := spells{began: map[string]map[string]int{}}
	before := map[string]bool{}
	script := fleet.Script{Groups: ruled(t), Every: every, Series: series}
	err := script.Play(t.Context(), func(_ int, firing []map[string]string) {
		s.at = append(s.at, firing)
		now := map[string]bool{}
		s.lasting = map[string]bool{}
		for _, alert := range firing {
			key := fmt.Sprint(alert)
			cluster := alert["cluster"]
			if now[key] = true; !before[key] {
				if s.began[cluster] == nil {
					s.began[cluster] = map[string]int{}
				}
				s.began[cluster][alert["alertname"]+" "+alert["severity"]]++
			}
			s.lasting[cluster] = true
		}
		before = now
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// want compares how often each alert began to fire in a cluster.
func (s spells) want(t *testing.T, cluster string, want map[string]int) {
	t.Helper()
	if !maps.Equal(s.began[cluster], want) {
		t.Errorf("%s: %v fired, want %v", cluster, s.began[cluster], want)
	}
}

// name is that of the alert of a symptom, with its severity.
func (s symptom) name() string { return s.alert + " " + s.severity }

// told returns how often each alert fires if that of the symptom does so on some hosts.
func (s symptom) told(hosts int) map[string]int {
	want := map[string]int{s.name(): hosts}
	for _, also := range s.also {
		want[also+" warning"] = hosts
	}
	if s.whole {
		want[s.name()] = 1
	}
	return want
}

// clusterOf is the cluster in which a symptom is played.
func clusterOf(pattern string, i int) string {
	return fmt.Sprintf("%s-%d-%s", pattern, i, symptoms[i].alert)
}

// TestEveryIncident: every alert fires once for a symptom that lasts, is silent before and on a host that is well, fires
// once or never for one that comes and goes, on each of twenty hosts at once, and never for a reboot. Alertmanager sends
// the number of messages that the symptom has.
func TestEveryIncident(t *testing.T) {
	t.Parallel()
	for _, name := range alertNames(t) {
		if !slices.ContainsFunc(symptoms, func(s symptom) bool { return s.alert == name }) {
			t.Errorf("%s has no symptom", name)
		}
	}
	var one, storm spells
	t.Run("play", func(t *testing.T) {
		t.Run("one", func(t *testing.T) { t.Parallel(); one = playOne(t) })
		t.Run("storm", func(t *testing.T) { t.Parallel(); storm = playStorm(t) })
	})
	messages := map[string]int{} // by cluster
	for i, s := range symptoms {
		one.want(t, clusterOf("steady", i), s.told(1))
		one.want(t, clusterOf("reboot", i), nil)
		storm.want(t, clusterOf("storm", i), s.told(20))
		messages[clusterOf("steady", i)], messages[clusterOf("storm", i)] = 1, s.storm
		switch flap := one.began[clusterOf("flap", i)]; {
		case s.flaps:
			one.want(t, clusterOf("flap", i), map[string]int{s.name(): 1})
			messages[clusterOf("flap", i)] = 1
		case s.whole: // the alerts of its hosts tell it
			one.want(t, clusterOf("flap", i), map[string]int{s.also[0] + " warning": 1})
			messages[clusterOf("flap", i)] = 1
		case flap != nil:
			t.Errorf("%s fires where it comes and goes: %v", s.name(), flap)
		}
	}
	t.Run("messages", func(t *testing.T) {
		sent := sentFor(t, func(minute int) []map[string]string {
			return slices.Concat(one.at[minute], storm.at[min(minute/2, len(storm.at)-1)])
		})
		if !maps.Equal(sent, messages) {
			for _, cluster := range sorted(sent) {
				if sent[cluster] != messages[cluster] {
					t.Errorf("%s: %d messages, want %d", cluster, sent[cluster], messages[cluster])
				}
			}
			for _, cluster := range sorted(messages) {
				if sent[cluster] == 0 {
					t.Errorf("%s: no message, want %d", cluster, messages[cluster])
				}
			}
		}
	})
}

// playOne plays each symptom on one host, in every pattern.
func playOne(t *testing.T) spells {
	t.Helper()
	var series []fleet.Scripted
	for i, s := range symptoms {
		for pattern, at := range map[string]func(int) weather{"steady": steady, "flap": flapping, "reboot": rebooting} {
			series = append(series, s.script(t, clusterOf(pattern, i), 1, 1, 1, minutes, at)...)
		}
	}
	return play(t, time.Minute, series)
}

// playStorm plays each symptom on twenty hosts at once.
func playStorm(t *testing.T) spells {
	t.Helper()
	var series []fleet.Scripted
	for i, s := range symptoms {
		series = append(series, s.script(t, clusterOf("storm", i), 20, 1, 2, illTo, steady)...)
	}
	return play(t, 2*time.Minute, series)
}

// TestEveryFaultOfDays: each alert fires without a break for as long as its symptom lasts, three days.
func TestEveryFaultOfDays(t *testing.T) {
	t.Parallel()
	var series []fleet.Scripted
	for i, s := range symptoms {
		more := 0
		if s.alert == "KpulseProxyInstanceDown" { // or else its cluster is down
			more = 1
		}
		series = append(series, s.script(t, clusterOf("days", i), 1, more, 4, illFrom+72*60, func(minute int) weather {
			if minute >= illFrom {
				return ill
			}
			return well
		})...)
	}
	days := play(t, 4*time.Minute, series)
	for i, s := range symptoms {
		days.want(t, clusterOf("days", i), s.told(1))
		if !days.lasting[clusterOf("days", i)] {
			t.Errorf("%s does not last", s.name())
		}
	}
}

// TestExemptions: of three jobs that hang or hold a GPU idle, only that of no exempt account or partition is told.
func TestExemptions(t *testing.T) {
	t.Parallel()
	text, err := mixin.Evaluate(".", `(mixin { _config+:: { excludeAccounts: 'ops', excludePartitions: 'debug|test' } }).prometheusAlerts`)
	if err != nil {
		t.Fatal(err)
	}
	rules, errs := rulefmt.Parse([]byte(text), false, model.UTF8Validation, parser.NewParser(parser.Options{}), nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var series []fleet.Scripted
	for cluster, info := range map[string]string{"told": `hpc_account="physics",hpc_partition="gpu"`, "account": `hpc_account="ops",hpc_partition="gpu"`, "partition": `hpc_account="physics",hpc_partition="test"`} {
		for _, s := range symptoms {
			if s.alert == "KpulseJobStalled" || s.alert == "KpulseGPUIdleAllocated" {
				s.series += "\nkpulse_allocation_info{B,hpc_job=\"{h}\"," + info + "} 1 1"
				series = append(series, s.script(t, cluster+s.name(), 1, 0, 2, illTo, steady)...)
			}
		}
	}
	got := map[string]int{}
	script := fleet.Script{Groups: rules.Groups, Every: 2 * time.Minute, Series: series}
	if err := script.Play(t.Context(), func(_ int, firing []map[string]string) {
		clear(got)
		for _, alert := range firing {
			got[alert["cluster"]]++
		}
	}); err != nil {
		t.Fatal(err)
	}
	if want := map[string]int{"toldKpulseJobStalled critical": 1, "toldKpulseJobStalled warning": 1, "toldKpulseGPUIdleAllocated info": 1}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
