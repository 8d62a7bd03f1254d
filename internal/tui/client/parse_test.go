package client

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// exposed returns a golden file of internal/expose.
func exposed(t testing.TB, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("..", "..", "expose", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// parse reads an exposition as a Fetcher does.
func (p *parser) parse(url string, body []byte) (*Node, error) {
	r := p.begin(url)
	err := r.readOurs(bytes.NewReader(body))
	if r.forget(); err != nil {
		return nil, err
	}
	return r.end()
}

// mustParse returns the node of a body that is parsed a second time, after the first is overwritten.
func mustParse(t testing.TB, body []byte) *Node {
	t.Helper()
	p, first := newParser(), bytes.Clone(body)
	if _, err := p.parse("http://n:9401/metrics", first); err != nil {
		t.Fatal(err)
	}
	for i := range first {
		first[i] = 'x'
	}
	n, err := p.parse("http://n:9401/metrics", body)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestParserForgets checks that the label blocks of devices that are gone are not kept.
func TestParserForgets(t *testing.T) {
	p := newParser()
	for i := range 100 {
		if _, err := p.parse("u", fmt.Appendf(nil, `kpulse_gpu_info{hostname="n",gpu="0",uuid="%d"} 1`+"\n", i)); err != nil {
			t.Fatal(err)
		}
		if len(p.blocks) > 2 {
			t.Fatalf("%d blocks kept of bodies with one", len(p.blocks))
		}
	}
}

func TestParseMIG(t *testing.T) {
	n := mustParse(t, exposed(t, "two.prom"))
	if len(n.GPUs) != 5 || n.Skipped != 0 || !n.Up {
		t.Fatalf("%d devices, %d skipped, up %v; the file has 2 boards, and 1 with 2 instances, of sources that are up", len(n.GPUs), n.Skipped, n.Up)
	}
	var order []string
	for _, g := range n.GPUs {
		order = append(order, g.Hostname+" "+g.UUID+" "+g.Instance)
	}
	if want := []string{"node-a GPU-a0 ", "node-a GPU-a1 ", "node-b GPU-b0 ", "node-b GPU-b0 7", "node-b GPU-b0 8"}; !slices.Equal(order, want) {
		t.Errorf("order %q, want %q", order, want)
	}
	board, idle, busy := n.GPUs[2], n.GPUs[3], n.GPUs[4]
	if board.Health != canonical.HealthOK || board.Class != canonical.ClassUnknown || board.Model != "NVIDIA A100" {
		t.Errorf("board: %v %v %q", board.Health, board.Class, board.Model)
	}
	if v := board.Values[canonical.Temperature]; v != 41 {
		t.Errorf("temperature %v, want 41", v)
	}
	if !math.IsNaN(board.RealUtilization) || !math.IsNaN(board.Values[canonical.DRAMActive]) {
		t.Error("the board shows utilization or activity, and has none of its own")
	}
	if idle.Class != canonical.Idle || idle.RealUtilization != 0 || idle.Profile != "3g.20gb" || idle.Health != canonical.HealthUnknown {
		t.Errorf("instance 7: %v %v %q %v", idle.Class, idle.RealUtilization, idle.Profile, idle.Health)
	}
	if busy.Class != canonical.MemoryBound || busy.RealUtilization != 0.25 || busy.Values[canonical.DRAMActive] != 0.5 {
		t.Errorf("instance 8: %v %v %v", busy.Class, busy.RealUtilization, busy.Values[canonical.DRAMActive])
	}
	if w := n.Weights; n.Preset != "ai" || w.SM != 0.35 || w.Tensor != 0.35 || w.DRAM != 0.2 || w.Engine != 0.1 {
		t.Errorf("weights %+v", w)
	}
}

// TestParseSeveralMachines: the name of a node with devices of several machines counts the
// others.
func TestParseSeveralMachines(t *testing.T) {
	body := ""
	for i, want := range []struct {
		name     string
		machines int
	}{{"a", 1}, {"a +1", 2}, {"a +2", 3}} {
		for gpu := range 2 {
			body += fmt.Sprintf("kpulse_gpu_present{hostname=\"%c\",gpu=\"%d\",uuid=\"GPU-%d-%d\"} 1\n", 'a'+i, gpu, i, gpu)
		}
		if n := mustParse(t, []byte(body)); n.Name != want.name || n.Machines != want.machines || len(n.GPUs) != 2*want.machines {
			t.Errorf("%q of %d machines with %d GPUs, want %q of %d", n.Name, n.Machines, len(n.GPUs), want.name, want.machines)
		}
	}
}

func TestParseSourceDown(t *testing.T) {
	n := mustParse(t, exposed(t, "one-down.prom"))
	if len(n.Sources) != 2 || n.Sources[0].Up || !n.Sources[1].Up || !n.Up {
		t.Fatalf("sources %+v, node up %v", n.Sources, n.Up)
	}
	if want := time.UnixMilli(1795262400250); !n.At.Equal(want) {
		t.Errorf("reading at %v, want %v", n.At, want)
	}
	if n.Period != time.Second {
		t.Errorf("period %v", n.Period)
	}
}

// TestParseStoresEveryField gives each field its own value, by the names of canonical.Fields: its number, or for ratios a hundredth of
// that.
func TestParseStoresEveryField(t *testing.T) {
	var body strings.Builder
	valueOf := func(f canonical.Field) float64 {
		if canonical.Fields[f].Unit == canonical.Ratio {
			return float64(f) / 100
		}
		return float64(f)
	}
	body.WriteString("DCGM_FI_DEV_GPU_TEMP{gpu=\"0\"} 1\nkpulse_gpu_info{gpu=\"0\",uuid=\"u\"} 1\n")
	for f := range canonical.NumFields {
		info := canonical.Fields[f]
		labels := `gpu="0",uuid="u"`
		if info.Labels != "" {
			labels = info.Labels + "," + labels // in an order that we do not write
		}
		if f != canonical.ClockEvents {
			body.WriteString("kpulse_" + info.Name + "{" + labels + "} " + strconv.FormatFloat(valueOf(f), 'g', -1, 64) + "\n")
		}
	}
	body.WriteString(`kpulse_gpu_clock_event_active{gpu="0",uuid="u",reason="sw_thermal"} 1` + "\n")
	body.WriteString(`kpulse_gpu_clock_event_active{gpu="0",uuid="u",reason="hw_thermal"} 0` + "\n")
	n := mustParse(t, []byte(body.String()))
	if n.Skipped != 0 || len(n.GPUs) != 1 {
		t.Fatalf("%d skipped, %d devices", n.Skipped, len(n.GPUs))
	}
	g := n.GPUs[0]
	for f := range canonical.NumFields {
		if v := g.Values[f]; f != canonical.ClockEvents && v != valueOf(f) {
			t.Errorf("%s %s: %v, want %v", canonical.Fields[f].Name, canonical.Fields[f].Labels, v, valueOf(f))
		}
	}
	if !slices.Equal(g.ClockEvents, []string{"sw_thermal"}) {
		t.Errorf("clock events %v", g.ClockEvents)
	}
}

const twoAllocations = `kpulse_gpu_info{hostname="n",gpu="10",uuid="u10"} 1
kpulse_gpu_info{hostname="n",gpu="9",uuid="u9"} 1
kpulse_gpu_health{hostname="n",gpu="9",uuid="u9",state="crit"} 1
kpulse_gpu_health_condition{hostname="n",gpu="9",uuid="u9",condition="gpu_temperature",state="hot"} 1
kpulse_gpu_health_condition{hostname="n",gpu="9",uuid="u9",condition="pcie_replay",state="warn"} 0
kpulse_gpu_health_condition{hostname="n",gpu="9",uuid="u9",condition="row_remap_failure",state="crit"} 1
kpulse_gpu_health_condition{hostname="n",gpu="9",uuid="u9",condition="of_the_future",state="crit"} 1
kpulse_gpu_xid_changes_total{hostname="n",gpu="9",uuid="u9"} 2
kpulse_gpu_xid_last_change_timestamp_seconds{hostname="n",gpu="9",uuid="u9"} 1795262400.5
kpulse_gpu_present{hostname="n",gpu="10",uuid="u10"} 0
kpulse_gpu_present{hostname="n",gpu="11",uuid=""} 0
kpulse_gpu_observed_seconds_total{hostname="n",gpu="8",uuid="u8",mig_instance="3",mig_profile="1g.5gb"} 7
kpulse_gpu_real_utilization_seconds_total{hostname="n",gpu="9",uuid="u9"} 30
kpulse_gpu_real_utilization_known_seconds_total{hostname="n",gpu="9",uuid="u9"} 120
kpulse_gpu_workload_class_seconds_total{hostname="n",gpu="9",uuid="u9",class="idle",bottleneck="idle"} 5
kpulse_gpu_allocations{hostname="n",gpu="9",uuid="u9"} 3
kpulse_allocation_info{hostname="n",gpu="9",uuid="u9",workload_namespace="a",workload_pod="p\"q\\r",workload_container="c",workload_kind="Job",workload_name="j",hpc_job=""} 1
kpulse_allocation_info{hostname="n",gpu="9",uuid="u9",workload_namespace="",workload_pod="",workload_container="",workload_kind="",workload_name="",hpc_job="4711",hpc_user="ada",hpc_account="physics",hpc_partition="gpu"} 1
kpulse_allocation_seconds_total{hostname="n",gpu="9",uuid="u9",workload_namespace="",workload_pod="",workload_container="",workload_kind="",workload_name="",hpc_job="4711"} 60
kpulse_allocation_seconds_total{hostname="n",gpu="9",uuid="u9",workload_namespace="",workload_pod="",workload_container="",workload_kind="",workload_name="",hpc_job="ended"} 99
kpulse_host_cpus{hostname="n"} 64
kpulse_build_info{version="1.2.3",revision="x"} 1
`

func TestParseDevice(t *testing.T) {
	n := mustParse(t, []byte(twoAllocations))
	if len(n.GPUs) != 3 {
		t.Fatalf("%d devices, want 3: the MIG instance with only a counter is long gone", len(n.GPUs))
	}
	g, gone, never := n.GPUs[0], n.GPUs[1], n.GPUs[2]
	if g.GPU != "9" || gone.GPU != "10" || !gone.Gone || g.Gone || never.GPU != "11" || !never.Gone {
		t.Errorf("devices %s %s %s, gone %v %v %v", g.GPU, gone.GPU, never.GPU, g.Gone, gone.Gone, never.Gone)
	}
	if never.Key.UUID != "index:n/11" {
		t.Errorf("key %+v", never.Key)
	}
	if want := []RaisedCondition{{canonical.CondRowRemapFailure, canonical.HealthCrit}, {canonical.CondGPUTemperature, canonical.HealthHot}}; !slices.Equal(g.Raised, want) {
		t.Errorf("raised %v, want %v", g.Raised, want)
	}
	if g.MeanUtilization() != 0.25 || !math.IsNaN(gone.MeanUtilization()) {
		t.Errorf("mean %v and %v", g.MeanUtilization(), gone.MeanUtilization())
	}
	if g.Holders != 3 || len(g.Allocations) != 2 || g.Allocations[0].Pod != `p"q\r` || g.Allocations[0].Kind != "Job" || !math.IsNaN(g.Allocations[0].Seconds) {
		t.Fatalf("allocations %+v", g.Allocations)
	}
	if a := g.Allocations[1]; a.Job != "4711" || a.Seconds != 60 || a.Owner() != "ada · physics" {
		t.Errorf("job %+v", a)
	}
	if g.Allocations = g.Allocations[1:]; g.Holder() != "job 4711  ada · physics" {
		t.Errorf("held by %q", g.Holder())
	}
	if n.Host.CPUs != 64 || !math.IsNaN(n.Host.MemoryTotal) || n.Version != "1.2.3" || n.Name != "n" {
		t.Errorf("host %+v, version %q, name %q", n.Host, n.Version, n.Name)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, test := range []struct{ body, want string }{
		{"", "no series of kpulse-proxy"},
		{"<html><body>login</body></html>", "no series of kpulse-proxy"},
		{"DCGM_FI_DEV_GPU_TEMP{gpu=\"0\"} 41\n", "no series of kpulse-proxy"},
		{"# HELP kpulse_gpu_info x\n", "no series of kpulse-proxy"},
		{"kpulse_gpu_info{gpu=\"0} 1\nkpulse_x\n", "all 2 lines"},
	} {
		if n, err := newParser().parse("u", []byte(test.body)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, %v; want an error with %q", test.body, n, err, test.want)
		}
	}
	n := mustParse(t, []byte("kpulse_host_cpus 4\nkpulse_gpu_info{gpu=\"0\" 1\nkpulse_host_cpus{} x\nkpulse_gpu_power_watts{gpu=\"0\"} 3"))
	if n.Skipped != 2 || n.Host.CPUs != 4 || len(n.GPUs) != 0 {
		t.Errorf("%d skipped, %v CPUs, %d devices", n.Skipped, n.Host.CPUs, len(n.GPUs))
	}
}

func TestAge(t *testing.T) {
	at := time.Unix(1e9, 0)
	for _, test := range []struct {
		period, since time.Duration
		want          Freshness
	}{
		{time.Second, 2900 * time.Millisecond, Fresh},
		{time.Second, 3 * time.Second, Stale},
		{time.Second, 10 * time.Second, Expired},
		{100 * time.Millisecond, 1900 * time.Millisecond, Fresh},
		{100 * time.Millisecond, 2 * time.Second, Stale},
		{100 * time.Millisecond, 6 * time.Second, Expired},
		{0, 44 * time.Second, Fresh},
		{time.Second, -time.Hour, Fresh},
	} {
		n := &Node{FetchedAt: at, Period: test.period}
		if got, _ := n.Freshness(at.Add(test.since)); got != test.want {
			t.Errorf("period %v after %v: %v, want %v", test.period, test.since, got, test.want)
		}
	}
	if got, _ := new(Node).Freshness(at); got != Expired {
		t.Errorf("never fetched: %v", got)
	}
}

func BenchmarkParse(b *testing.B) {
	body := exposed(b, "two.prom")
	p := newParser()
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := p.parse("u", body); err != nil {
			b.Fatal(err)
		}
	}
}

// TestCut checks that a board with instances is marked, even if a filter hides them.
func TestCut(t *testing.T) {
	n, err := newParser().parse("http://n", []byte(`kpulse_gpu_info{hostname="n",gpu="0",uuid="a"} 1
kpulse_gpu_info{hostname="n",gpu="1",uuid="b"} 1
kpulse_gpu_info{hostname="n",gpu="1",uuid="b",mig_instance="3",mig_profile="1g.10gb"} 1
kpulse_gpu_info{hostname="n",gpu="1",uuid="b",mig_instance="7",mig_profile="1g.10gb"} 1
kpulse_gpu_info{hostname="n",gpu="2",uuid="c"} 1
`))
	if err != nil || len(n.GPUs) != 5 {
		t.Fatal(n, err)
	}
	for i, want := range []bool{false, true, false, false, false} {
		if got := n.GPUs[i].Cut; got != want {
			t.Errorf("device %d is cut into instances: %v, want %v", i, got, want)
		}
	}
}

// TestParseRefusesRatios: what cannot be a ratio is no reading, and does not fill the screen.
func TestParseRefusesRatios(t *testing.T) {
	for text, given := range map[string]bool{"0": true, "0.5": true, "1.0001": true, "1e300": false, "-1": false, "+Inf": false, "NaN": false, "1000": false} {
		g := mustParse(t, []byte("kpulse_gpu_info{gpu=\"0\"} 1\nkpulse_gpu_real_utilization_ratio{gpu=\"0\"} "+text+"\nkpulse_gpu_sm_active_ratio{gpu=\"0\"} "+text+"\n")).GPUs[0]
		if canonical.Given(g.RealUtilization) != given || canonical.Given(g.Values[canonical.SMActive]) != given {
			t.Errorf("%s is %v and %v", text, g.RealUtilization, g.Values[canonical.SMActive])
		}
	}
}
