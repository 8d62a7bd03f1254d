package dcgm

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgmi/dmon"
)

// node returns board 0 whole and board 1 in two instances, one of a profile that
// is not known.
func node() Node {
	return Node{Boards: []Board{
		{Entity: 0, UUID: uuid0, Model: "NVIDIA H100 80GB HBM3", PCIBusID: "00000000:10:00.0", Driver: "580.105.08"},
		{Entity: 1, UUID: uuid1, Model: "NVIDIA H100 80GB HBM3", PCIBusID: "00000000:20:00.0", Driver: "580.105.08", Instances: []Instance{
			{Entity: 7, ID: 2, Profile: "3g.40gb"}, {Entity: 8, ID: 9},
		}},
	}}
}

// read returns the one tick of a text of dmon.
func read(t testing.TB, dict *raw.Dict, text string) *raw.Batch {
	t.Helper()
	var p dmon.Parser
	b := &raw.Batch{Dict: dict}
	for line := range strings.Lines(text) {
		if !p.Line(b, []byte(line)) {
			t.Fatal("two ticks")
		}
	}
	return b
}

const whole = "" +
	"#Entity         POWER             GPUTL             TOTEC                   SMACT        XIDER        NBWLT                       \n" +
	"ID               W                                   mJ                                               MB/s                        \n" +
	"GPU 0           412.337           97                123456789012            0.987        N/A          202000                      \n" +
	"GPU 1           88.100            N/A               5                       N/A          31           0                           \n" +
	"GPU-I 7         88.100            N/A               5                       0.125        31           N/A                         \n" +
	"GPU-I 8         88.100            N/A               5                       1.000        31           N/A                         \n"

// What dcgm-exporter writes, but for the HELP texts.
func TestAppend(t *testing.T) {
	const (
		labels0 = `{gpu="0",UUID="` + uuid0 + `",pci_bus_id="00000000:10:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",` +
			`hostname="gpu07",DCGM_FI_DRIVER_VERSION="580.105.08"`
		board1  = `{gpu="1",UUID="` + uuid1 + `",pci_bus_id="00000000:20:00.0",device="nvidia1",modelName="NVIDIA H100 80GB HBM3",`
		rest1   = `hostname="gpu07",DCGM_FI_DRIVER_VERSION="580.105.08"`
		labels1 = board1 + rest1
		labels7 = board1 + `GPU_I_PROFILE="3g.40gb",GPU_I_ID="2",` + rest1
		labels8 = board1 + `GPU_I_ID="9",` + rest1
	)
	want := `# HELP DCGM_FI_DEV_POWER_USAGE Power the board draws, in watts.
# TYPE DCGM_FI_DEV_POWER_USAGE gauge
DCGM_FI_DEV_POWER_USAGE` + labels0 + `,hpc_job="4711"} 412.337000
DCGM_FI_DEV_POWER_USAGE` + labels0 + `,hpc_job="4712"} 412.337000
DCGM_FI_DEV_POWER_USAGE` + labels1 + `} 88.100000
DCGM_FI_DEV_POWER_USAGE` + labels7 + `,hpc_job="9\"\\"} 88.100000
DCGM_FI_DEV_POWER_USAGE` + labels8 + `} 88.100000
# HELP DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION Energy the board used since the driver was loaded, in millijoules.
# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION` + labels0 + `,hpc_job="4711"} 123456789012
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION` + labels0 + `,hpc_job="4712"} 123456789012
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION` + labels1 + `} 5
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION` + labels7 + `,hpc_job="9\"\\"} 5
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION` + labels8 + `} 5
# HELP DCGM_FI_DEV_GPU_UTIL Percentage of time some kernel ran, however small.
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL` + labels0 + `,hpc_job="4711"} 97
DCGM_FI_DEV_GPU_UTIL` + labels0 + `,hpc_job="4712"} 97
# HELP DCGM_FI_DEV_XID_ERRORS Code of the latest XID error; a code, not a count.
# TYPE DCGM_FI_DEV_XID_ERRORS gauge
DCGM_FI_DEV_XID_ERRORS` + labels1 + `} 31
DCGM_FI_DEV_XID_ERRORS` + labels7 + `,hpc_job="9\"\\"} 31
DCGM_FI_DEV_XID_ERRORS` + labels8 + `} 31
# HELP DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL Data sent and received over all NVLinks, in MB/s of 1000 KiB: a rate that falls as well.
# TYPE DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL counter
DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL` + labels0 + `,hpc_job="4711"} 202000
DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL` + labels0 + `,hpc_job="4712"} 202000
DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL` + labels1 + `} 0
# HELP DCGM_FI_PROF_SM_ACTIVE Share of time, 0 to 1, a streaming multiprocessor had work, averaged over all of them.
# TYPE DCGM_FI_PROF_SM_ACTIVE gauge
DCGM_FI_PROF_SM_ACTIVE` + labels0 + `,hpc_job="4711"} 0.987000
DCGM_FI_PROF_SM_ACTIVE` + labels0 + `,hpc_job="4712"} 0.987000
DCGM_FI_PROF_SM_ACTIVE` + labels7 + `,hpc_job="9\"\\"} 0.125000
DCGM_FI_PROF_SM_ACTIVE` + labels8 + `} 1.000000
`
	p := New("gpu07")
	p.SetNode(node())
	p.SetJobs(Jobs{{GPU: 0, Instance: Unknown}: {"4711", "4712"}, {GPU: 1, Instance: 2}: {`9"\`}})
	got := string(p.Append([]byte("before\n"), read(t, raw.NewDict(), whole)))
	if got != "before\n"+want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if p.Strangers() {
		t.Error("the node has them all")
	}
}

func TestStrangers(t *testing.T) {
	const text = "#Entity         POWER             \nGPU 0           1.000             \nGPU 1           2.000             \n" +
		"GPU-I 7         3.000             \nGPU-I 14        4.000             \n"
	line := func(labels, value string) string {
		return "DCGM_FI_DEV_POWER_USAGE{gpu=" + labels + "} " + value + "\n"
	}
	without := node()
	without.Boards[1].Instances = nil
	alone := node()
	alone.Boards = alone.Boards[1:]
	nameless := node()
	nameless.Boards[1].UUID = ""
	driver := `,DCGM_FI_DRIVER_VERSION="580.105.08"`
	known0 := line(`"0",UUID="`+uuid0+`",pci_bus_id="00000000:10:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3"`+driver, "1.000000")
	labels1 := `"1",UUID="` + uuid1 + `",pci_bus_id="00000000:20:00.0",device="nvidia1",modelName="NVIDIA H100 80GB HBM3"`
	known1 := line(labels1+driver, "2.000000")
	known7 := line(labels1+`,GPU_I_PROFILE="3g.40gb",GPU_I_ID="2"`+driver, "3.000000")
	tests := []struct {
		name string
		node Node
		want string
	}{
		{"nothing is known", Node{}, ""},
		{"the instances are not", without, known0 + known1},
		{"one is, the other came since", node(), known0 + known1 + known7},
		{"board 0 is not", alone, known1 + known7},
		{"the UUID of board 1 is not", nameless, known0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := New("")
			p.SetNode(tt.node)
			got := string(p.Append(nil, read(t, raw.NewDict(), text)))
			_, got, _ = strings.Cut(got, "gauge\n")
			if sorted(got) != sorted(tt.want) {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			if !p.Strangers() {
				t.Error("nobody is called a stranger")
			}
			p.Append(nil, &raw.Batch{Dict: p.dict})
			if p.Strangers() {
				t.Error("nobody is there")
			}
		})
	}
}

// A page follows changes of the node, of the jobs, of the Dict and of what is in
// it.
func TestAppendFollowsChanges(t *testing.T) {
	p, dict := New(""), raw.NewDict()
	has := func(tick *raw.Batch, want ...string) {
		t.Helper()
		got := string(p.Append(nil, tick))
		for _, s := range want {
			if !strings.Contains(got, s) {
				t.Errorf("no %s in\n%s", s, got)
			}
		}
	}
	tick := read(t, dict, whole)
	if got := p.Append(nil, tick); len(got) > 0 {
		t.Errorf("of no known board\n%s", got)
	}
	p.SetNode(node())
	has(tick, uuid0, `GPU_I_ID="9"`)
	p.SetJobs(Jobs{{GPU: 1, Instance: Unknown}: {"5"}})
	has(tick, `GPU_I_ID="9",DCGM_FI_DRIVER_VERSION="580.105.08",hpc_job="5"} 1.000000`)
	has(read(t, dict, "#Entity         TMPTR        POWER             \nGPU 0           50           1.000             \n"), `DCGM_FI_DEV_GPU_TEMP{gpu="0"`)
	other := raw.NewDict()
	other.BlockID([]byte("{}"))
	other.FamilyID([]byte("else"))
	has(read(t, other, whole), `DCGM_FI_DEV_GPU_UTIL{gpu="0"`, `} 97`)
	dict.Compact(func(id uint32) bool { return id > 0 }, func(id uint32) bool { return id > 0 })
	has(read(t, dict, whole), `DCGM_FI_DEV_GPU_UTIL{gpu="0"`, `} 97`)
}

// Without a row of its board before it, an instance has another label block, and
// is the same instance.
func TestAnInstanceUnderTwoBlocks(t *testing.T) {
	p, d := New(""), raw.NewDict()
	p.SetNode(node())
	p.Append(nil, read(t, d, whole))
	got := string(p.Append(nil, read(t, d, "#Entity         SMACT        \nGPU-I 7         0.250        \n")))
	if strings.Count(got, "\n") != 3 || !strings.Contains(got, `GPU_I_ID="2"`) || !strings.HasSuffix(got, "} 0.250000\n") || len(p.rows) != 4 {
		t.Errorf("%d rows:\n%s", len(p.rows), got)
	}
}

func TestAppendLeavesOut(t *testing.T) {
	d := raw.NewDict()
	power, other := d.FamilyID([]byte("POWER")), d.FamilyID([]byte("UNKNOWN"))
	gpu := d.BlockID([]byte(`{gpu="0",entity="GPU 0"}`))
	b := &raw.Batch{Dict: d, Samples: []raw.Sample{
		{Family: other, Labels: gpu, Value: 1},
		{Family: power, Labels: d.BlockID(nil), Value: 2},
		{Family: power, Labels: d.BlockID([]byte(`{entity="GPU-I 7",gpu_instance_entity="7"}`)), Value: 3},
		{Family: power, Labels: gpu, Value: math.Inf(1)},
		{Family: power, Labels: gpu, Value: 4},
	}}
	p := New("")
	p.SetNode(Node{Boards: node().Boards[:1]})
	if got := p.Append(nil, b); len(got) != 0 {
		t.Errorf("%s", got)
	}
}

func sorted(s string) string { return strings.Join(sortedLines(s), "") }

func TestEveryFieldHasItsFamily(t *testing.T) {
	d := raw.NewDict()
	b := &raw.Batch{Dict: d}
	for i, f := range Fields {
		b.Samples = append(b.Samples, raw.Sample{Family: d.FamilyID([]byte(f.Column)), Labels: d.BlockID([]byte(`{gpu="0",entity="GPU 0"}`)), Value: float64(i)})
	}
	p := New("")
	p.SetNode(node())
	out := &raw.Batch{Body: p.Append(nil, b)}
	var s raw.Scanner
	s.Scan(out)
	if len(out.Samples) != len(Fields) || out.Skipped > 0 {
		t.Fatalf("%d samples, %d skipped", len(out.Samples), out.Skipped)
	}
	for i, sample := range out.Samples {
		if name := out.Dict.Family(sample.Family).Name; name != Fields[i].Family || sample.Value != float64(i) {
			t.Errorf("%s %v at %d", name, sample.Value, i)
		}
		if out.Dict.Family(sample.Family).Help != Fields[i].Help {
			t.Errorf("HELP of %s", Fields[i].Family)
		}
	}
}

// What the node tells of the NVLinks of a board stands on its rows, and on those of
// its instances, as long as these have readings.
func TestLinksOfTheNode(t *testing.T) {
	n := node()
	for i := range n.Boards {
		n.Boards[i].NVLinkLimit = 956.232e9
	}
	p := New("")
	p.SetNode(n)
	d := raw.NewDict()
	power, gpu, cut := d.FamilyID([]byte("POWER")), d.BlockID([]byte(`{gpu="0",entity="GPU 0"}`)),
		d.BlockID(fmt.Appendf(nil, `{gpu="1",entity="GPU-I 7",gpu_instance_entity="7"}`))
	limits := func(samples ...raw.Sample) string {
		out := &raw.Batch{Body: p.Append(nil, &raw.Batch{Dict: d, Samples: samples})}
		var s raw.Scanner
		s.Scan(out)
		told := ""
		for _, v := range out.Samples {
			if out.Dict.Family(v.Family).Name == NVLinkLimit {
				told += fmt.Sprintf("%s=%.0f ", out.Dict.Block(v.Labels)[:8], v.Value)
			}
		}
		return told
	}
	on := func(block uint32, v float64) raw.Sample { return raw.Sample{Family: power, Labels: block, Value: v} }
	for _, tt := range []struct {
		want    string
		samples []raw.Sample
	}{
		{`{gpu="0"=956232000000 {gpu="1"=956232000000 `, []raw.Sample{on(gpu, 1), on(cut, 2)}},
		{`{gpu="1"=956232000000 `, []raw.Sample{on(gpu, math.NaN()), on(cut, 2)}},
		{``, nil},
		{`{gpu="0"=7 `, []raw.Sample{{Family: d.FamilyID([]byte(NVLinkLimit)), Labels: gpu, Value: 7}}},
	} {
		if got := limits(tt.samples...); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
}
