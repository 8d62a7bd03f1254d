package settings

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSlot: what settings of dcgm-exporter mean. The DaemonSet is the gpu-operator's.
func TestSlot(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "dcgmi"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	daemonSet := map[string]string{"DCGM_EXPORTER_LISTEN": ":9400", "DCGM_EXPORTER_KUBERNETES": "true",
		"DCGM_EXPORTER_COLLECTORS": "/etc/dcgm-exporter/dcp-metrics-included.csv", "NODE_NAME": "node1"}
	with := func(more ...string) map[string]string {
		env := maps.Clone(daemonSet)
		for i := 0; i < len(more); i += 2 {
			env[more[i]] = more[i+1]
		}
		return env
	}
	type outcome struct {
		backend, engine, listen, counters, pods, gpus string
		poll                                          time.Duration
		ignored                                       string
	}
	operator := outcome{backend: "nvml", listen: ":9400", counters: "/etc/dcgm-exporter/dcp-metrics-included.csv", pods: DefaultPodResources, poll: time.Second}
	engine := operator
	engine.backend, engine.engine = "dcgm", "nvidia-dcgm:5555"
	changed := func(o outcome, change func(*outcome)) outcome { change(&o); return o }
	for name, test := range map[string]struct {
		env  map[string]string
		args string
		path string // of dcgmi
		want outcome
	}{
		"the operator's DaemonSet": {env: daemonSet, path: bin, want: operator},
		"its engine":               {env: with("DCGM_REMOTE_HOSTENGINE_INFO", "nvidia-dcgm:5555"), path: bin, want: engine},
		"an image without dcgmi": {env: with("DCGM_REMOTE_HOSTENGINE_INFO", "nvidia-dcgm:5555"), want: changed(operator, func(o *outcome) {
			o.ignored = "DCGM_REMOTE_HOSTENGINE_INFO=nvidia-dcgm:5555 (only --backend=dcgm asks it, with dcgmi)"
		})},
		"ours first": {env: with("KPULSE_BACKEND", "nvml", "KPULSE_WEB_LISTEN_ADDRESS", ":9500", "DCGM_REMOTE_HOSTENGINE_INFO", "h:1"), path: bin, want: changed(operator, func(o *outcome) {
			o.listen, o.ignored = ":9500", "DCGM_REMOTE_HOSTENGINE_INFO=h:1 (only --backend=dcgm asks it, with dcgmi)"
		})},
		"another socket":                    {env: with("DCGM_POD_RESOURCES_KUBELET_SOCKET", "/k.sock"), want: changed(operator, func(o *outcome) { o.pods = "/k.sock" })},
		"a socket without --kubernetes":     {env: with("DCGM_POD_RESOURCES_KUBELET_SOCKET", "/k.sock", "DCGM_EXPORTER_KUBERNETES", "False"), want: changed(operator, func(o *outcome) { o.pods = "" })},
		"links of Services are no settings": {env: with("DCGM_EXPORTER_SERVICE_HOST", "10.0.0.1", "DCGM_EXPORTER_PORT", "tcp://10.0.0.1:9400"), want: operator},
		"settings of ClusterPolicy": {env: with("DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS", "true", "DCGM_EXPORTER_MAX_CONCURRENT_SCRAPES", "3", "DCGM_EXPORTER_DEBUG", "0"), want: changed(operator, func(o *outcome) {
			o.ignored = "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS=true DCGM_EXPORTER_MAX_CONCURRENT_SCRAPES"
		})},
		"short flags": {args: "-f /c.csv -a :9410 -c 5000 -r e:5555 -k -d g:0,2-3 -m none", path: bin, want: outcome{"dcgm", "e:5555", ":9410", "/c.csv", DefaultPodResources, "0,2-3", 5 * time.Second, ""}},
		"long flags":  {args: "--collectors=/c.csv -address=:9410 --kubernetes=false --devices=i:0 --kubernetes-virtual-gpus -n", want: outcome{"nvml", "", ":9410", "/c.csv", "", "", time.Second, "DCGM_EXPORTER_DEVICES_STR=i:0 DCGM_EXPORTER_NO_HOSTNAME=true KUBERNETES_VIRTUAL_GPUS=true"}},
		"no value, and no bool": {env: with("DCGM_EXPORTER_KUBERNETES", "yes"), args: "-f", want: changed(operator, func(o *outcome) {
			o.counters, o.pods, o.ignored = "", "", "DCGM_EXPORTER_COLLECTORS= DCGM_EXPORTER_KUBERNETES=yes"
		})},
		"flags win over the environment":      {env: daemonSet, args: "-a :9410", want: changed(operator, func(o *outcome) { o.listen = ":9410" })},
		"nothing but the name of the node":    {env: map[string]string{"NODE_NAME": "node1"}, want: outcome{backend: "prometheus", listen: ":9401", poll: 15 * time.Second}},
		"another source: the exporter beside": {env: with("KPULSE_SOURCE", "http://h:9400/metrics"), want: outcome{backend: "prometheus", listen: ":9401", poll: 15 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", test.path)
			for name, value := range test.env {
				t.Setenv(name, value)
			}
			o, err := Read(strings.Fields(test.args), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			one := o.Upstreams[0]
			got := outcome{one.Backend.Name, one.DCGMHost, strings.Join(o.Listen, " "), one.Counters, o.Kube.PodResources, o.GPUs, one.Period, ""}
			if slot := o.Slot(); slot != nil {
				got.ignored = strings.Join(slices.Sorted(slices.Values(slot.NotHonoured)), " ")
			}
			if got != test.want {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

// TestSlotNames: an error names the variable that was given, and a flag of the exporter alone is none of ours.
func TestSlotNames(t *testing.T) {
	t.Setenv("DCGM_EXPORTER_INTERVAL", "soon")
	if _, err := Read(nil, io.Discard); err == nil || !strings.HasPrefix(err.Error(), "$DCGM_EXPORTER_INTERVAL: ") {
		t.Errorf("%v", err)
	}
	t.Setenv("DCGM_EXPORTER_INTERVAL", "")
	if _, err := Read([]string{"--debug"}, io.Discard); err == nil {
		t.Error("--debug alone is taken for the exporter's")
	}
	for _, args := range []string{"--source=http://h:9400/metrics -a :9410", "--backend=replay -f /c.csv"} { // nobody would listen at :9410
		if _, err := Read(strings.Fields(args), io.Discard); err == nil || !strings.Contains(err.Error(), "flags of dcgm-exporter") {
			t.Errorf("%s: %v", args, err)
		}
	}
}
