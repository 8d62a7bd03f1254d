package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// limit is a case in which the rules differ from the program, since PromQL cannot know
// something.
type limit struct {
	name  string
	every time.Duration
	pages []string // "" is a failed scrape
	want  []string // differences, without the labels of the device
}

const limitLabels = `{gpu="0",UUID="GPU-a",Hostname="h"}`

// limitPage joins lines in which @ stands for the labels.
func limitPage(lines ...string) string {
	return strings.ReplaceAll(strings.Join(lines, "\n"), "@", limitLabels) + "\n"
}

func limits() []limit {
	page, labels := limitPage, limitLabels
	other := `DCGM_FI_DEV_FB_TOTAL{gpu="1",UUID="GPU-b",Hostname="h"} 1024` + "\n"
	activities := page("DCGM_FI_PROF_SM_ACTIVE@ 0.5", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE@ 0", "DCGM_FI_PROF_DRAM_ACTIVE@ 0.2")
	stalled := page("DCGM_FI_PROF_GR_ENGINE_ACTIVE@ 0", "DCGM_FI_DEV_GPU_UTIL@ 90", "DCGM_FI_DEV_GPU_TEMP@ 50")
	return []limit{
		{
			"only HELP has the unit", 15 * time.Second,
			[]string{activities + page("# HELP DCGM_FI_DEV_GPU_UTIL_RATIO Utilization (in %).", "DCGM_FI_DEV_GPU_UTIL_RATIO@ 1")},
			[]string{
				"kpulse_gpu_health_condition condition=profiling_stalled state=warn is absent, want 0",
				"kpulse_gpu_real_utilization_coverage_ratio is 0.8999999999999999, want 1",
				"kpulse_gpu_real_utilization_ratio is 0.23888888888888893, want 0.21600000000000003",
			},
		},
		{
			"two numbers for one reading", 15 * time.Second,
			[]string{page("DCGM_FI_DEV_GPU_TEMP"+strings.Replace(labels, "}", `,pod="a"}`, 1)+" 50", "DCGM_FI_DEV_GPU_TEMP"+strings.Replace(labels, "}", `,pod="b"}`, 1)+" 99")},
			[]string{
				"kpulse_gpu_health state=hot is 1, want 0",
				"kpulse_gpu_health state=ok is 0, want 1",
				"kpulse_gpu_health_condition condition=gpu_temperature state=hot is 1, want 0",
				"kpulse_gpu_recommended_action action=check_hardware is 1, want absent",
				"kpulse_gpu_recommended_action action=none is absent, want 1",
			},
		},
		{
			"a scrape failed while profiling was stalled", 10 * time.Second,
			[]string{stalled, stalled, "", stalled},
			[]string{
				"kpulse_gpu_health state=ok is 1, want 0",
				"kpulse_gpu_health state=warn is 0, want 1",
				"kpulse_gpu_health_condition condition=profiling_stalled state=warn is 0, want 1",
			},
		},
		{
			"not read for over an hour", 31 * time.Minute,
			[]string{
				page("DCGM_FI_DEV_GPU_TEMP@ 50", "DCGM_FI_DEV_XID_ERRORS@ 54", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL@ 1"), page("DCGM_FI_DEV_GPU_TEMP@ 50"),
				page("DCGM_FI_DEV_GPU_TEMP@ 50", "DCGM_FI_DEV_XID_ERRORS@ 54", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL@ 2"),
			},
			[]string{
				"kpulse_gpu_health state=crit is 0, want 1",
				"kpulse_gpu_health state=warn is 1, want 0",
				"kpulse_gpu_health_condition condition=ecc_double_bit state=crit is 0, want 1",
				"kpulse_gpu_health_condition condition=xid_recent state=warn is 1, want 0",
				"kpulse_gpu_recommended_action action=check_hardware is 1, want absent",
				"kpulse_gpu_recommended_action action=reset_gpu is absent, want 1",
			},
		},
		{
			"a board was away, and then all boards of its host", 15 * time.Second,
			[]string{
				page("DCGM_FI_DEV_XID_ERRORS@ 79") + other, other, "# none\n", page("DCGM_FI_DEV_XID_ERRORS@ 79") + other,
			},
			[]string{
				"kpulse_gpu_health state=crit is 1, want 0",
				"kpulse_gpu_health state=unknown is 0, want 1",
				"kpulse_gpu_health_condition condition=xid_fatal state=crit is 1, want 0",
				"kpulse_gpu_recommended_action action=reboot_node is 1, want absent",
			},
		},
		{
			"an older driver, whose recovery action follows no XID", time.Minute,
			[]string{
				page("DCGM_FI_DEV_XID_ERRORS"+strings.Replace(labels, "}", `,DCGM_FI_DRIVER_VERSION="550.1"}`, 1)+" 48", "DCGM_FI_DEV_GPU_RECOVERY_ACTION@ 0"),
				page("DCGM_FI_DEV_GPU_RECOVERY_ACTION@ 0"), page("DCGM_FI_DEV_GPU_RECOVERY_ACTION@ 0"),
			},
			[]string{
				"kpulse_gpu_health state=crit is 0, want 1",
				"kpulse_gpu_health state=unknown is 1, want 0",
				"kpulse_gpu_health_condition condition=xid_fatal state=crit is absent, want 1",
				"kpulse_gpu_recommended_action action=reset_gpu is absent, want 1",
			},
		},
		{
			"two families report one XID at different times", 2 * time.Minute,
			slices.Concat([]string{page("DCGM_FI_DEV_XID_ERRORS@ 0"), page("DCGM_FI_DEV_XID_ERRORS@ 54", "DCGM_EXP_XID_ERRORS_COUNT@ 0")},
				slices.Repeat([]string{page("DCGM_FI_DEV_XID_ERRORS@ 54", "DCGM_EXP_XID_ERRORS_COUNT"+strings.Replace(labels, "}", `,xid="54"}`, 1)+" 1")}, 6)),
			[]string{
				"kpulse_gpu_health state=unknown is 0, want 1",
				"kpulse_gpu_health state=warn is 1, want 0",
				"kpulse_gpu_health_condition condition=xid_recent state=warn is 1, want 0",
				"kpulse_gpu_recommended_action action=check_hardware is 1, want absent",
			},
		},
		{
			"a GPU got another index", 15 * time.Second,
			[]string{
				page("DCGM_FI_DEV_PCIE_REPLAY_COUNTER@ 1"),
				strings.Replace(page("DCGM_FI_DEV_PCIE_REPLAY_COUNTER@ 2"), `gpu="0"`, `gpu="1"`, 1),
			},
			[]string{
				"kpulse_gpu_health gpu=1 state=ok is 1, want 0",
				"kpulse_gpu_health gpu=1 state=warn is 0, want 1",
				"kpulse_gpu_health_condition condition=pcie_replay gpu=1 state=warn is 0, want 1",
				"kpulse_gpu_recommended_action action=check_hardware gpu=1 is absent, want 1",
				"kpulse_gpu_recommended_action action=none gpu=1 is 1, want absent",
			},
		},
		{"none", 15 * time.Second, []string{activities + stalled, activities, stalled, stalled, stalled}, nil},
	}
}

// TestLimits: in the limits that README.md names, the rules differ from the program as
// expected, and in nothing else.
func TestLimits(t *testing.T) {
	for _, c := range limits() {
		t.Run(c.name, func(t *testing.T) {
			p, s := newProxy(t, "h"), newServer(t, shipped(t))
			at := start
			for _, page := range c.pages {
				at = at.Add(c.every)
				s.scrape("h:9400", at, []byte(page))
				if page != "" {
					p.read(at, []byte(page))
				}
				s.evaluate(at)
			}
			want := map[string]float64{}
			p.conclude(want)
			list := differences(want, s.concluded(at))
			for i := range list {
				list[i] = strings.NewReplacer(" gpu=0", "", " hostname=h", "", " uuid=GPU-a", "").Replace(list[i])
			}
			slices.Sort(list)
			if !slices.Equal(list, c.want) {
				t.Errorf("differences\n%s\nwant\n%s", strings.Join(list, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// TestRejectedPage: a string as a value costs Prometheus the whole scrape, and the proxy only
// that line.
func TestRejectedPage(t *testing.T) {
	const good = `DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a",Hostname="h"} 50` + "\n"
	const bad = good + `DCGM_FI_DEV_NAME{gpu="0",UUID="GPU-a",Hostname="h"} Tesla T4` + "\n"
	p, s := newProxy(t, "h"), newServer(t, shipped(t))
	for i, page := range []string{good, bad, good} {
		at, want := start.Add(time.Duration(i)*time.Minute), map[string]float64{}
		p.read(at, []byte(page))
		p.conclude(want)
		s.scrape("h:9400", at, []byte(page))
		s.evaluate(at)
		if got := s.concluded(at); page == bad && len(got) > 0 || page == good && len(differences(want, got)) > 0 || len(want) == 0 {
			t.Errorf("reading %d: the rules have %d series, the proxy %d", i, len(got), len(want))
		}
	}
}

// TestYields scrapes a proxy beside the exporter: the rules record nothing about the devices
// that the proxy serves.
func TestYields(t *testing.T) {
	s := newServer(t, shipped(t))
	page := func(uuid string) []byte {
		return fmt.Appendf(nil, "DCGM_FI_PROF_SM_ACTIVE{gpu=\"0\",UUID=%q,Hostname=\"h\"} 0.5\nDCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=%q,Hostname=\"h\"} 99\n", uuid, uuid)
	}
	s.scrape("a:9400", start, page("GPU-a"))
	s.scrape("b:9400", start, page("GPU-b"))
	s.scrape("a:9401", start, append(page("GPU-a"), "kpulse_gpu_info{hostname=\"h\",gpu=\"0\",uuid=\"GPU-a\"} 1\nkpulse_gpu_health_condition{hostname=\"h\",gpu=\"0\",uuid=\"GPU-a\",condition=\"gpu_temperature\",state=\"hot\"} 1\n"...))
	s.evaluate(start)
	recorded := 0
	for _, list := range s.store.byName {
		for _, m := range list {
			if m.labels.Get("instance") != "" {
				continue
			}
			recorded++
			if m.labels.Get("uuid") != "GPU-b" {
				t.Errorf("recorded %s", m.labels)
			}
		}
	}
	if recorded < 25 {
		t.Errorf("%d series recorded for the device without a proxy", recorded)
	}
}
