package expose

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// shared is a snapshot of a board that two pods and a job share, one without holders, and an
// instance that a pod holds.
func shared() *canonical.Snapshot {
	shared := board()
	shared.given = given{
		canonical.SMActive: 0.5, canonical.NVMLUtilization: 0.97, canonical.FramebufferUsed: 3 << 29, canonical.FramebufferTotal: 80 << 30,
		canonical.Power: 312.5, canonical.SMClock: 1.98e9, canonical.ThrottledThermal: 1.25, canonical.XIDLast: 0, canonical.ClockEvents: 36,
	}
	s := snapshotOf("s", append([]device{shared, unread()}, split()...)...)
	devices := s.Frame.Topology.Devices
	devices[1].Board, devices[2].Board, devices[3].Board, devices[4].Board = 1, 2, 2, 2
	s.Frame.AllocationSet = &canonical.AllocationSet{Allocations: []canonical.Allocation{
		{Device: 0, Workload: canonical.Workload{Namespace: "ml", Pod: "train-0", Container: "main"}, Kind: "Job", Name: "train"},
		{Device: 0, Workload: canonical.Workload{Namespace: "ml", Pod: "probe", Container: "c"}},
		{Device: 0, Workload: canonical.Workload{Job: "4711"}},
		{Device: 4, Workload: canonical.Workload{Namespace: "ml", Pod: "small", Container: "c"}},
	}, Holders: []int{3, 0, 0, 0, 1}}
	s.Frame.Uses = []canonical.Use{canonical.NoUse, {NVMLUtilization: 0.25, Framebuffer: 1 << 29}, canonical.NoUse, canonical.NoUse}
	return s
}

// TestContainers: an object for each container and device, in the terms of the API that this
// replaces, without values that were not read. A partitioned board has no object; that of a
// device without holders has no container.
func TestContainers(t *testing.T) {
	server := serve(t, Options{Sources: NewSet(brokenSource("gone", refused), sourceOf(shared()))})
	res, body := ask(t, "GET", server.URL+"/container/metrics")
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%d %s: %s", res.StatusCode, res.Header.Get("Content-Type"), body)
	}
	const ofShared = `"node_name":"node-a","model_name":"NVIDIA H100","device":"nvidia0","device_id":"0","device_uuid":"GPU-a0",
		"sm_active":0.5,"framebuffer_total":81920,"power_usage":312.5,"sm_clock":1980,
		"thermal_violation":1250000000,"xid_errors":0,"clocks_event_reasons":36,"timestamp":"2026-11-21T12:00:00.25Z",
		"real_utilization":0.66,"workload_class":"tensor_heavy_compute","health":"hot","recommended_action":"none"`
	const ofSplit = `"node_name":"node-b","model_name":"NVIDIA A100","device":"","device_id":"0","device_uuid":"GPU-b0","mig_profile":"3g.20gb",
		"temperature":41,"timestamp":"2026-11-21T12:00:00.25Z","health":"ok","recommended_action":"none"`
	const want = `[
		{` + ofShared + `,"gpu_utilization":97,"framebuffer_used":1536,"namespace":"ml","pod":"train-0","container":"main","workload_kind":"Job","workload_name":"train"},
		{` + ofShared + `,"gpu_utilization":25,"framebuffer_used":512,"namespace":"ml","pod":"probe","container":"c"},
		{"node_name":"node-a","model_name":"","device":"","device_id":"1","device_uuid":"GPU-a1","namespace":"","pod":"","container":"",
		 "gpu_utilization":0,"timestamp":"2026-11-21T12:00:00.25Z","workload_class":"unknown","health":"unknown","recommended_action":"none"},
		{` + ofSplit + `,"mig_instance_id":"7","namespace":"","pod":"","container":"","dram_active":0,"real_utilization":0,"workload_class":"idle"},
		{` + ofSplit + `,"mig_instance_id":"8","namespace":"ml","pod":"small","container":"c","dram_active":0.5,"real_utilization":0.25,"workload_class":"memory_bound"}]`
	var got, expected any
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &expected); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, expected) {
		t.Errorf("got  %s\nwant %s", body, want)
	}
}

// TestContainersOfSharedDevices: if two sources read a device, the first decides who holds it,
// even if it has no holder.
func TestContainersOfSharedDevices(t *testing.T) {
	other := shared()
	other.Source.Name = "other"
	free := snapshotOf("first", board())
	for _, c := range []struct {
		name    string
		sources []Source
		pods    string
	}{
		{"the same twice", []Source{sourceOf(shared()), sourceOf(other)}, "0:train-0 0:probe 1: 0.7: 0.8:small"},
		{"the first has no allocations", []Source{sourceOf(free), sourceOf(other)}, "0: 1: 0.7: 0.8:small"},
		{"the first is down", []Source{brokenSource("gone", refused), sourceOf(other)}, "0:train-0 0:probe 1: 0.7: 0.8:small"},
	} {
		if got := listed(t, serve(t, Options{Sources: NewSet(c.sources...)}).URL, ""); got != c.pods {
			t.Errorf("%s: the list is %s, want %s", c.name, got, c.pods)
		}
	}
}

// listed asks for the list with a query, and returns device and pod of its objects.
func listed(t *testing.T, url, query string) string {
	t.Helper()
	res, body := ask(t, "GET", url+"/container/metrics"+query)
	var list []struct {
		Device   string `json:"device_id"`
		Instance string `json:"mig_instance_id"`
		Pod      string
	}
	if err := json.Unmarshal(body, &list); err != nil || res.StatusCode != 200 {
		t.Fatalf("%s: %d, %v: %s", query, res.StatusCode, err, body)
	}
	var got []string
	for _, o := range list {
		if o.Instance != "" {
			o.Device += "." + o.Instance
		}
		got = append(got, o.Device+":"+o.Pod)
	}
	return strings.Join(got, " ")
}

// TestContainerFilters: all filters of a query must match. Only the first value of each counts;
// empty values and unknown names filter nothing.
func TestContainerFilters(t *testing.T) {
	url := serve(t, Options{Sources: NewSet(sourceOf(shared()))}).URL
	const all = "0:train-0 0:probe 1: 0.7: 0.8:small"
	for query, want := range map[string]string{
		"?pod=probe":                            "0:probe",
		"?namespace=ml":                         "0:train-0 0:probe 0.8:small",
		"?container=c":                          "0:probe 0.8:small",
		"?node=node-b":                          "0.7: 0.8:small",
		"?node=node-a&container=c&namespace=ml": "0:probe",
		"?node=node-b&pod=probe":                "",
		"?pod=Probe":                            "",
		"?pod=probe&pod=small":                  "0:probe",
		"?pod=&node=node-a":                     "0:train-0 0:probe 1:",
		"?":                                     all,
		"?pods=probe&device_id=0":               all,
	} {
		if got := listed(t, url, query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

// TestContainersOfTheHost: a container without a pod is listed; a device with too many holders
// to list is not free.
func TestContainersOfTheHost(t *testing.T) {
	s := snapshotOf("s", board(), unread())
	s.Frame.Topology.Devices[1].Board = 1
	s.Frame.AllocationSet = &canonical.AllocationSet{Allocations: []canonical.Allocation{
		{Device: 0, Workload: canonical.Workload{Container: "registry/train"}},
	}, Holders: []int{1, 70}}
	_, body := ask(t, "GET", serve(t, Options{Sources: NewSet(sourceOf(s))}).URL+"/container/metrics")
	if text := string(body); strings.Count(text, "device_id") != 1 || !strings.Contains(text, `"container": "registry/train"`) {
		t.Error(text)
	}
}

// TestContainersOfNobody: without a match the list is empty; if no source can be read, it is an
// error.
func TestContainersOfNobody(t *testing.T) {
	slow := &canonical.Failure{Kind: "timeout", Timeout: true, Cause: "slow did not answer"}
	for _, c := range []struct {
		name   string
		source Source
		status int
		body   string
	}{
		{"nobody", sourceOf(snapshotOf("s", board())), 200, "[]\n"},
		{"refused", brokenSource("gone", refused), 502, "connection refused"},
		{"too slow", brokenSource("slow", slow), 504, "slow did not answer"},
	} {
		server := serve(t, Options{Sources: NewSet(c.source), Timeout: time.Second, MaxRequests: 1})
		if res, body := ask(t, "GET", server.URL+"/container/metrics?pod=none"); res.StatusCode != c.status || !strings.Contains(string(body), c.body) {
			t.Errorf("%s: %d %s", c.name, res.StatusCode, body)
		}
		if res, _ := ask(t, "POST", server.URL+"/container/metrics"); res.StatusCode != 405 {
			t.Errorf("%s: POST gives %d", c.name, res.StatusCode)
		}
	}
}

// TestContainerReadingsAreTheirs: each reading of the API is there once.
func TestContainerReadingsAreTheirs(t *testing.T) {
	names := strings.Fields(`sm_active sm_occupancy tensor_active dram_active pcie_tx_bytes pcie_rx_bytes nvlink_tx_bytes
		nvlink_rx_bytes graphics_engine_active framebuffer_total framebuffer_used framebuffer_free pcie_link_gen pcie_link_width
		temperature memory_temperature power_usage gpu_utilization int_pipe_active fp16_pipe_active fp32_pipe_active
		fp64_pipe_active clocks_event_reasons xid_errors power_violation thermal_violation sm_clock mem_clock`)
	var ours []string
	for _, r := range containerReadings {
		ours = append(ours, r.name)
	}
	if !reflect.DeepEqual(ours, names) {
		t.Errorf("got %v\nwant %v", ours, names)
	}
}
