package view

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// gpu returns a device without readings.
func gpu(index, instance string) *client.GPU {
	return client.NewGPU("", canonical.Device{Hostname: "dgx-1", GPU: index, UUID: "GPU-" + index, Instance: instance})
}

func allocated(w canonical.Workload) client.Allocation {
	return client.Allocation{Allocation: canonical.Allocation{Workload: w}}
}

func TestFilter(t *testing.T) {
	hot, idle, blank := gpu("0", ""), gpu("1", ""), gpu("12", "")
	hot.Values[canonical.Temperature], hot.RealUtilization, hot.Values[canonical.FramebufferUsed] = 86, .9, 40<<30
	hot.Health, hot.Raised, hot.Class, hot.Model = canonical.HealthHot, []client.RaisedCondition{{Condition: canonical.CondGPUTemperature, State: canonical.HealthHot}}, canonical.TensorCompute, "NVIDIA H100"
	hot.Values[canonical.PCIeReceive], hot.Values[canonical.PCIeTransmit] = 2e9, 1e9
	idle.Values[canonical.Temperature], idle.RealUtilization, idle.Class, idle.Health = 40, 0, canonical.Idle, canonical.HealthOK
	idle.Allocations = []client.Allocation{allocated(canonical.Workload{Pod: "Train-7", Namespace: "ml"}), allocated(canonical.Workload{Job: "4711"})}
	idle.Allocations[1].User, idle.Allocations[1].Account = "ada", "physics"
	hot.Values[canonical.XIDLast] = 79
	all := []*client.GPU{hot, idle, blank}
	for _, test := range []struct{ expr, want string }{
		{"", "0 1 12"},
		{"temp>85", "0"},
		{" TEMP >= 86°C ", "0"},
		{"temp<86", "1"},
		{"temp!=40", "0"}, // a missing reading matches nothing
		{"real<20", "1"},
		{"real<=90% & temp>50", "0"},
		{"real=0", "1"},
		{"memused>42.5", "0"},
		{"pcie>2.9", "0"},
		{"rx<2.1", "0"},
		{"gpu>=1", "1 12"},
		{"pod~train", "1"},
		{"pod=train", ""},
		{"job=4711", "1"},
		{"user=ada", "1"},
		{"xid=79", "0"},
		{"!train", "0 12"},
		{"not real=0", "0 12"},
		{"not (gpu=0 or train)", "12"},
		{"!gpu=0 & !!gpu=1", "1"},
		{"notebook", ""},
		{"user=ad", ""},
		{"account~phys", "1"},
		{"health=hot", "0"},
		{"health!=ok", "0 12"},
		{"pod!=train-8", "1"}, // a device without allocation does not match
		{"real=0%", "1"},
		{"memused>42GB & rx>1.5", "0"},
		{"health~temperature", "0"},
		{"class=compute", "0"},
		{"node~dgx & class~idle", "1"},
		{"h100", "0"},
		{"train", "1"},
		{"gpu 1", "1 12"},
		{"nothing of the kind", ""},
		{"&&", "0 1 12"},
		{"temp>85 or gpu=12", "0 12"},
		{"temp>85 | real=0 | ", "0 1"},
		{"temp>85 and real>50 or gpu=12", "0 12"},
		{"(temp>85 or gpu=12) and real>50", "0"},
		{"((gpu=1)) or (gpu=12 & health=ok)", "1"},
		{"()", "0 1 12"},
		{"h100 or train", "0 1"},
		{"memused>42GB", "0"},
		{"memused>43GB", ""},
		{"mem>42 GB", "0"},
	} {
		f, err := ParseFilter(test.expr)
		if err != nil {
			t.Errorf("%q: %v", test.expr, err)
			continue
		}
		var got []string
		for _, g := range all {
			if f.match(g) {
				got = append(got, g.GPU)
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%q chooses %q, want %q", test.expr, got, test.want)
		}
	}
	instance := gpu("0", "1")
	if f, err := ParseFilter("health!=ok"); err != nil || f.match(instance) {
		t.Errorf("an instance has a health of its own: %v", err)
	}
	for expr, want := range map[string]string{"real>40GiB": `"40gib" is not a number in %`, "temp>40GB": "is not a number in °C",
		"(temp>1": "is not closed", "temp>1)": "without being opened", "temp>1 (gpu=1)": "no & or | before", "((temp>1) gpu=1)": `before "(temp>1) gpu=1)" is not closed`,
		"tmep>80": `no reading is called "tmep"`, "pod~": "cannot be compared"} {
		if _, err := ParseFilter(expr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", expr, err, want)
		}
	}
	for _, expr := range []string{"temp>", "temp>hot", "temp=nan", "tmep>80", "pod>3", "temp~8", "!temp>", ">5"} {
		if _, err := ParseFilter(expr); err == nil || !strings.ContainsAny(err.Error(), ">") {
			t.Errorf("%q: %v; want an error with an example", expr, err)
		}
	}
}

func TestMetricNamesDiffer(t *testing.T) {
	seen := map[string]bool{}
	for m := client.MetricReal; m < client.NumMetrics; m++ {
		info := &client.Metrics[m]
		if info.Name == "" || info.Title == "" || info.Help == "" || info.Value == nil || info.Limit == nil || seen[info.Name] || texts[info.Name] != nil {
			t.Errorf("metric %d: %+v", m, info)
		}
		seen[info.Name] = true
	}
}

func TestArrange(t *testing.T) {
	ids := func(gpus []*client.GPU) string {
		var all []string
		for _, g := range gpus {
			all = append(all, strings.TrimSuffix(g.GPU+"."+g.Instance, "."))
		}
		return strings.Join(all, " ")
	}
	real := func(g *client.GPU, v float64) *client.GPU { g.RealUtilization = v; return g }
	board := gpu("3", "")
	board.Values[canonical.Temperature] = 90
	n := &client.Node{GPUs: []*client.GPU{
		real(gpu("0", ""), .5), real(gpu("1", ""), math.NaN()), real(gpu("2", ""), .5),
		board, real(gpu("3", "1"), .1), real(gpu("3", "2"), .9), real(gpu("4", ""), .7),
	}}
	for _, test := range []struct {
		expr string
		sort Sort
		want string
	}{
		{"", Sort{}, "0 1 2 3 3.1 3.2 4"},
		{"", Sort{By: client.MetricReal, Descending: true}, "3 3.1 3.2 4 0 2 1"},
		{"", Sort{By: client.MetricReal}, "3 3.1 3.2 0 2 4 1"},
		{"", Sort{By: client.MetricTemperature}, "3 3.1 3.2 0 1 2 4"},
		{"real>80", Sort{}, "3 3.2"},
		{"temp>80", Sort{}, "3"},
		{"gpu=3", Sort{By: client.MetricReal, Descending: true}, "3 3.1 3.2"},
	} {
		f, err := ParseFilter(test.expr)
		if err != nil {
			t.Fatal(err)
		}
		got, all := Arrange([]*client.Node{n}, f, test.sort)
		if ids(got) != test.want || all != 7 {
			t.Errorf("%q by %v: %q of %d, want %q of 7", test.expr, test.sort, ids(got), all, test.want)
		}
	}
	orphans := &client.Node{GPUs: []*client.GPU{gpu("7", "1"), gpu("7", "2"), gpu("8", "")}}
	if got, _ := Arrange([]*client.Node{orphans, n}, nil, Sort{}); !slices.Equal(got, append(slices.Clone(orphans.GPUs), n.GPUs...)) {
		t.Errorf("instances without a board: %q", ids(got))
	}
}

func FuzzFilter(f *testing.F) {
	for _, expr := range []string{"temp>85", "a&b", "pod~=x & real<5%", "!=", "~", "gpu = 1", "(a or b) & c", "((", "mem>60GB | ) "} {
		f.Add(expr)
	}
	g := gpu("0", "")
	f.Fuzz(func(_ *testing.T, expr string) {
		chosen, err := ParseFilter(expr)
		if err == nil {
			chosen.match(g)
		}
	})
}
