// Package fleet plays a fleet of GPU hosts to proxies of this repository on a simulated
// clock, evaluates the rules and alerts of the mixin over what they serve, and writes the
// result as a block that Prometheus opens: hours of a fleet in seconds. The proxies run their
// real code on the text of dcgm-exporters, and the rules run on Prometheus' engine.
package fleet

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"time"
)

const (
	gpusPerHost = 8
	linksPerGPU = 18 // NVLinks
	driver      = "580.105.08"
	firstJob    = 88049300
	hostsPerJob = 2
)

// Clusters are the clusters of the fleet; their hosts have the same names.
var Clusters = [...]string{"east", "west"}

// gpuModel is a model of NVIDIA's boards.
type gpuModel struct {
	name        string
	idle, limit float64 // W
	clock       float64 // MHz, at full boost
	memoryClock float64 // MHz
	framebuffer float64 // MiB
	generation  int     // of PCIe
	instances   []instance
}

// instance is a MIG instance of a board.
type instance struct {
	profile, id string
	slices      float64 // of the seven that make a board
}

var models = [...]gpuModel{
	{"NVIDIA H100 80GB HBM3", 70, 700, 1980, 2619, 81559, 5, []instance{{"3g.40gb", "1", 3}, {"2g.20gb", "3", 2}, {"1g.10gb", "9", 1}}},
	{"NVIDIA H200", 75, 700, 1980, 3201, 143771, 5, []instance{{"3g.71gb", "1", 3}, {"2g.35gb", "3", 2}, {"1g.18gb", "9", 1}}},
	{"NVIDIA A100-SXM4-80GB", 60, 400, 1410, 1593, 81920, 4, []instance{{"3g.40gb", "1", 3}, {"2g.20gb", "3", 2}, {"1g.10gb", "9", 1}}},
}

// work is the readings of a device under a workload.
type work struct {
	sm, occupancy, tensor, dram, engine, fp64, fp32, fp16 float64 // ratios
	util, copying                                         float64 // percent
	transmit, receive, link                               float64 // PCIe, PCIe, NVLink both ways: B/s
	power                                                 float64 // fraction of the range from idle to the limit
	filled                                                float64 // share of the framebuffer
}

// Workloads of several classes: some use the GPU well, some wait, some waste it.
var (
	free      = work{engine: .002, dram: .001, transmit: 4e4, receive: 2e4, filled: .001}
	parked    = work{sm: .002, occupancy: .001, dram: .001, engine: .004, transmit: 9e4, receive: 6e4, power: .05, filled: .74}
	pretrain  = work{.86, .38, .64, .45, .98, .01, .12, .09, 100, 38, 6e8, 7e8, 3.2e11, .92, .91}
	finetune  = work{.34, .18, .10, .25, .55, 0, .09, .04, 68, 20, 4e8, 5e8, 1.6e10, .47, .67}
	solver    = work{.78, .42, .04, .30, .97, .46, .08, 0, 99, 28, 3e8, 2e8, 4e10, .80, .55}
	loading   = work{.14, .06, .03, .12, .30, 0, .05, .01, 35, 52, 9e8, 9e9, 1e9, .22, .60}
	launching = work{.12, .04, .02, .10, .72, 0, .04, .01, 88, 8, 1e8, 1e8, 0, .25, .28}
	decode    = work{.36, .20, .09, .72, .88, 0, .06, .05, 93, 64, 2e8, 2e8, 2e10, .60, .93}
	prefill   = work{.58, .31, .30, .32, .90, 0, .10, .08, 96, 30, 2e8, 3e8, 4e10, .66, .88}
	// hung is a job whose processes spin for one that is gone: busy by NVML, without work.
	hung = work{.10, .03, 0, .01, .99, 0, .01, 0, 100, 2, 2e4, 2e4, 0, .18, .91}
)

// host is a machine with an exporter and a proxy.
type host struct {
	cluster, name string
	number        int // among those of its cluster
	model         *gpuModel
	boards        [gpusPerHost]board
	down          time.Duration // time from which its proxy cannot be scraped; 0 for never
	unlisted      bool          // and is no target any more
	busy          float64       // the load of its CPUs
	switchFails   time.Duration // time from which one of its NVSwitches has an error a minute; 0 for never
	allCounters   bool          // its exporter serves more than the default counters
	lacks         string        // a family that its exporter lacks
	streams       bool          // the proxy reads the host engine itself
	evicts        time.Duration // time from which that stream loses ticks; 0 for never
	last          time.Duration // time of the previous page
}

// board is a GPU of a host.
type board struct {
	index   int
	uuid    string
	seed    uint64
	work    work
	parts   []part
	holder  string // labels of its holder, as the exporter writes them
	trouble []trouble
	text    string // its own labels, cached

	// Counters: joules, nanoseconds of throttling, and events.
	energy, throttledPower, throttledHeat float64
	replays, correctable, linkErrors      float64
}

// part is a MIG instance of a board, with its work and its holder.
type part struct {
	instance
	work   work
	holder string
}

// trouble is a change of a board's state for some time.
type trouble struct {
	from, to time.Duration // to is 0 for the rest of the time
	change   func(*state)
}

// state is the state of a board at a reading.
type state struct {
	work                              work
	parts                             []part
	gone, hot                         bool
	xid, links, uncorrectable, remaps float64
	replays, correctable, linkErrors  float64 // per second
	width                             float64 // of PCIe
	fabric, recovery                  float64 // health of the fabric; what the driver asks for
}

// newFleet returns a number of hosts, half of them in each cluster, alternately of Slurm and
// Kubernetes.
func newFleet(hosts int) []*host {
	var all []*host
	for i := range hosts {
		number := i / len(Clusters)
		h := &host{cluster: Clusters[i%len(Clusters)], name: fmt.Sprintf("gpu-%03d", number), number: number, model: &models[number%len(models)], allCounters: true, busy: .25}
		for g := range h.boards {
			sum := fnv.New64a()
			fmt.Fprint(sum, h.cluster, h.name, g)
			s := sum.Sum64()
			h.boards[g] = board{index: g, seed: s, work: free,
				uuid: fmt.Sprintf("GPU-%08x-%04x-4%03x-8%03x-%012x", uint32(s>>32), uint16(s>>16), s&0xfff, (s>>12)&0xfff, s*0x9e3779b97f4a7c15>>16)}
		}
		if number%2 == 0 {
			h.runJob()
		} else {
			h.runPods()
		}
		all = append(all, h)
	}
	return all
}

// job returns the id of the Slurm job on a host.
func (h *host) job() string {
	of := 0
	if h.cluster != Clusters[0] {
		of = 1000
	}
	return strconv.Itoa(firstJob + of + h.number/2/hostsPerJob)
}

// runJob lets a Slurm job hold all GPUs of a host; it spans hostsPerJob Slurm hosts of the
// cluster.
func (h *host) runJob() {
	works := [...]work{pretrain, solver, finetune, loading}
	for g := range h.boards {
		h.boards[g].work = works[h.number/2/hostsPerJob%len(works)]
		h.boards[g].holder = fmt.Sprintf(`,hpc_job=%q`, h.job())
	}
}

// ownerOf returns the user and account of a job.
func ownerOf(job string) (user, account string) {
	n, _ := strconv.Atoi(job)
	return [...]string{"ada", "bob", "chen", "dina", "emil"}[n%5], [...]string{"physics", "biology"}[n%2]
}

// runPods lets pods hold the GPUs of a host: training jobs, servers, some on a board with MIG,
// or abandoned notebooks.
func (h *host) runPods() {
	pod := func(namespace, name, more string) string {
		return fmt.Sprintf(`,container="main",namespace=%q,pod=%q%s`, namespace, name, more)
	}
	trained := func(job string) string {
		return fmt.Sprintf(`,training_kubeflow_org_operator_name="pytorchjob-controller",training_kubeflow_org_job_name=%q`, job)
	}
	for g := range h.boards {
		b := &h.boards[g]
		switch h.number / 2 % 4 {
		case 0:
			job := fmt.Sprintf("vision-%d", h.number)
			b.work, b.holder = pretrain, pod("team-vision", fmt.Sprintf("%s-worker-%d", job, g), trained(job))
		case 1:
			job := fmt.Sprintf("nlp-%d", h.number)
			h.busy = .97 // for the loaders
			b.work, b.holder = [...]work{launching, loading}[g/4], pod("team-nlp", fmt.Sprintf("%s-worker-%d", job, g), trained(job))
		case 2:
			hash := fmt.Sprintf(`,pod_template_hash="%dd7f6c9b4"`, h.number)
			b.work, b.holder = [...]work{decode, prefill}[g%2], pod("serving", fmt.Sprintf("chat-%dd7f6c9b4-x%dlqz", h.number, g), hash)
			if g == gpusPerHost-1 {
				b.holder = ""
				for i, cut := range h.model.instances {
					b.parts = append(b.parts, part{cut, [...]work{decode, prefill, free}[i], pod("serving", fmt.Sprintf("small-%dd7f6c9b4-y%dlqz", h.number, i), hash)})
				}
			}
		case 3:
			if g < 4 {
				b.work, b.holder = parked, pod("notebooks", fmt.Sprintf("lab-%d-%d", h.number, g), fmt.Sprintf(`,apps_kubernetes_io_pod_index="%d"`, g))
			}
		}
	}
}

// noise returns a pseudo-random number in [-1, 1) for a board, time and kind.
func noise(seed uint64, at time.Duration, kind uint64) float64 {
	x := seed ^ uint64(at/time.Second)*0x9e3779b97f4a7c15 ^ kind*0xbf58476d1ce4e5b9
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	x ^= x >> 31
	return float64(x>>11)/(1<<52) - 1
}
