package app

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/selection"
	"github.com/kpulse/kpulse-proxy/internal/settings"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// shownHere returns a node with boards 0 to 3, the last of which has the instances 1 and 2.
func shownHere(sources ...client.Source) *client.Node {
	n := &client.Node{Sources: sources}
	for _, index := range []string{"0", "1", "2", "3"} {
		n.GPUs = append(n.GPUs, &client.GPU{Device: canonical.Device{Hostname: "n", GPU: index, UUID: "GPU-" + index + "aaaa", PCIBusID: "00000000:" + index + "1:00.0"}})
	}
	for _, instance := range []string{"1", "2"} {
		n.GPUs = append(n.GPUs, &client.GPU{Device: canonical.Device{Hostname: "n", GPU: "3", UUID: "GPU-3aaaa", Instance: instance, Profile: "3g.40gb"}})
	}
	return n
}

func TestDashboardSelection(t *testing.T) {
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	const here = "http://localhost:9401/metrics"
	exporter := client.Source{Backend: "prometheus", Name: "http://localhost:9400/metrics"}
	lent := []selection.Visible{{UUID: "GPU-1aaaa", PCIBusID: "0000:11:00.0"}, {PCIBusID: "0000:21:00.0"}}
	for _, test := range []struct {
		name, address, gpus, variable string
		showAll                       bool
		source                        client.Source
		backend, engine               string
		visible                       []selection.Visible
		want                          string // indices, and names of instances
		by, trouble, doubt            string
	}{
		{name: "nothing asked for", address: here, source: exporter, want: "0 1 2 3 3.1 3.2"},
		{name: "a job's GPUs", address: here, variable: "SLURM_JOB_GPUS=1,2", source: exporter, want: "1 2", by: "SLURM_JOB_GPUS"},
		{name: "a job's GPU that is lost", address: here, variable: "SLURM_JOB_GPUS=1,9", source: exporter, want: "0 1 2 3 3.1 3.2", doubt: "there is no GPU 9"},
		{name: "this machine by its name", address: "http://" + hostname + ":9401/metrics", variable: "SLURM_JOB_GPUS=1", source: exporter, want: "1", by: "SLURM_JOB_GPUS"},
		{name: "a job's GPUs on another machine", address: "http://elsewhere:9401/metrics", variable: "SLURM_JOB_GPUS=1", source: exporter, want: "0 1 2 3 3.1 3.2"},
		{name: "a proxy here that reads elsewhere", address: here, variable: "SLURM_JOB_GPUS=1", source: client.Source{Backend: "prometheus", Name: "http://elsewhere:9400/metrics"}, want: "0 1 2 3 3.1 3.2"},
		{name: "a host engine elsewhere", address: here, variable: "SLURM_JOB_GPUS=1", source: client.Source{Backend: "dcgm", Name: "dcgmi@elsewhere"}, want: "0 1 2 3 3.1 3.2"},
		{name: "a host engine here", address: here, variable: "SLURM_JOB_GPUS=1", source: client.Source{Backend: "dcgm", Name: "dcgmi"}, want: "1", by: "SLURM_JOB_GPUS"},
		{name: "a capture", address: here, variable: "SLURM_JOB_GPUS=1", source: client.Source{Backend: "replay", Name: "demo"}, want: "0 1 2 3 3.1 3.2"},
		{name: "--show-all", address: here, showAll: true, variable: "SLURM_JOB_GPUS=1", source: exporter, want: "0 1 2 3 3.1 3.2"},
		{name: "--gpus of any node", address: "http://elsewhere:9401/metrics", gpus: "0,2-3", variable: "SLURM_JOB_GPUS=1", source: exporter, want: "0 2 3 3.1 3.2", by: "--gpus"},
		{name: "by UUID", address: here, gpus: "GPU-1aaaa", source: exporter, want: "1", by: "--gpus"},
		{name: "an instance", address: here, variable: "CUDA_VISIBLE_DEVICES=MIG-GPU-3aaaa/2/0", source: exporter, want: "3.2", by: "CUDA_VISIBLE_DEVICES"},
		{name: "hidden all", address: here, variable: "CUDA_VISIBLE_DEVICES=", source: exporter, trouble: "hides every GPU; show them with --show-all"},
		{name: "none of these", address: here, gpus: "9", source: exporter, trouble: "--gpus=9"},
		{name: "not all of these", address: here, gpus: "1,9", source: exporter, want: "1", by: "--gpus", trouble: "9"},
		{name: "one board may be opened, by PCI address", address: here, variable: "CUDA_VISIBLE_DEVICES=1", source: exporter, visible: lent, want: "2", by: "CUDA_VISIBLE_DEVICES"},
		{name: "this machine by an address that nobody knows", address: "http://192.0.2.7:9401/metrics", variable: "CUDA_VISIBLE_DEVICES=0", source: exporter, visible: lent, want: "1", by: "CUDA_VISIBLE_DEVICES"},
		{name: "a source of this machine by such an address", address: here, variable: "CUDA_VISIBLE_DEVICES=0", source: client.Source{Backend: "prometheus", Name: "http://192.0.2.7:9400/metrics"}, visible: lent, want: "1", by: "CUDA_VISIBLE_DEVICES"},
		{name: "all there, --show-all", address: "http://192.0.2.7:9401/metrics", showAll: true, source: exporter, visible: lent, want: "1 2", by: canonical.ByAccess},
		{name: "all there, --gpus", address: "http://192.0.2.7:9401/metrics", gpus: "0,2", source: exporter, visible: lent, want: "2", by: "--gpus"},
		{name: "another machine, whose boards have the same addresses", address: "http://192.0.2.7:9401/metrics", variable: "CUDA_VISIBLE_DEVICES=0", source: exporter, visible: lent[1:], want: "0 1 2 3 3.1 3.2"},
		{name: "a capture of this machine", address: here, gpus: "0", source: client.Source{Backend: "replay", Name: "demo"}, visible: lent, want: "0", by: "--gpus"},
		{name: "a host engine elsewhere that chose", address: client.InProcess, backend: "dcgm", engine: "elsewhere", variable: "CUDA_VISIBLE_DEVICES=0", source: client.Source{Backend: "dcgm", Name: "dcgmi@elsewhere"}, want: "0 1 2 3 3.1 3.2"},
		{name: "a source that chose", address: client.InProcess, backend: "dcgm", variable: "SLURM_JOB_GPUS=0,1,2,3", source: client.Source{Backend: "dcgm", Name: "dcgmi"}, want: "0 1 2 3 3.1 3.2", by: "SLURM_JOB_GPUS"},
		{name: "a source that chose, without one that is lost", address: client.InProcess, backend: "dcgm", variable: "SLURM_JOB_GPUS=1,9", source: client.Source{Backend: "dcgm", Name: "dcgmi"}, want: "0 1 2 3 3.1 3.2", doubt: "there is no GPU 9"},
		{name: "a source that chose, where the driver numbers a job's GPUs", address: client.InProcess, backend: "nvml", variable: "SLURM_JOB_GPUS=4,5,6,7", source: client.Source{Backend: "nvml", Name: "nvml"}, want: "0 1 2 3 3.1 3.2", by: "SLURM_JOB_GPUS"},
		{name: "a source that chose, of all", address: client.InProcess, backend: "nvml", variable: "NVIDIA_VISIBLE_DEVICES=all", source: client.Source{Backend: "nvml", Name: "nvml"}, want: "0 1 2 3 3.1 3.2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, name := range []string{"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "SLURM_STEP_GPUS", "SLURM_JOB_GPUS"} {
				t.Setenv(name, "")
				if err := os.Unsetenv(name); err != nil {
					t.Fatal(err)
				}
			}
			if name, value, ok := strings.Cut(test.variable, "="); ok {
				t.Setenv(name, value)
			}
			backend := test.backend
			if backend == "" {
				backend = "prometheus"
			}
			b := &settings.Backends[slices.IndexFunc(settings.Backends, func(b settings.Backend) bool { return b.Name == backend })]
			n := shownHere(test.source)
			o := &options{Options: &settings.Options{Upstreams: []settings.Upstream{{Backend: b, Source: settings.Source{DCGMHost: test.engine}}}, Reading: settings.Reading{GPUs: test.gpus, ShowAll: test.showAll}, Showing: settings.Showing{TUI: true}}}
			o.visible = func() []selection.Visible { return test.visible }
			s := o.chooser(test.address)(n)
			var got []string
			for _, i := range s.Shown {
				name := n.GPUs[i].GPU
				if n.GPUs[i].IsInstance() {
					name += "." + n.GPUs[i].Instance
				}
				got = append(got, name)
			}
			if strings.Join(got, " ") != test.want || s.By != test.by {
				t.Errorf("shows %v by %q, want %s by %q", got, s.By, test.want, test.by)
			}
			if (s.Trouble != "") != (test.trouble != "") || !strings.Contains(s.Trouble, test.trouble) {
				t.Errorf("trouble %q, want %q", s.Trouble, test.trouble)
			}
			if (s.Doubt != "") != (test.doubt != "") || !strings.Contains(s.Doubt, test.doubt) {
				t.Errorf("doubt %q, want %q", s.Doubt, test.doubt)
			}
		})
	}
}

// TestSelectorElsewhere: a UUID shows that a source is this machine even if its address does not;
// a file belongs to no machine.
func TestSelectorElsewhere(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "0")
	lent := []selection.Visible{{UUID: "GPU-1"}}
	for _, c := range []struct {
		host, gpus string
		visible    []selection.Visible
		want       string
	}{
		{"localhost", "", lent, "[1]"},
		{"192.0.2.7", "", lent, "[1]"},
		{"192.0.2.7", "0-1", lent, "[1]"},
		{"192.0.2.7", "", []selection.Visible{{UUID: "GPU-x"}}, "[0 1]"},
		{"192.0.2.7", "", nil, "[0 1]"},
		{"", "", lent, "[0 1]"},
		{"", "0", lent, "[0]"},
	} {
		o := &options{Options: &settings.Options{Upstreams: []settings.Upstream{{Backend: &settings.Backends[0]}}, Reading: settings.Reading{GPUs: c.gpus}, Showing: settings.Showing{Once: true}}, visible: func() []selection.Visible { return c.visible }}
		s := newSelector(o, source.Caps{Host: c.host}, slog.New(slog.DiscardHandler))
		got, err := s.choose(&canonical.Topology{Devices: []canonical.Device{{GPU: "0", UUID: "GPU-0"}, {GPU: "1", UUID: "GPU-1", Board: 1}}})
		if fmt.Sprint(got) != c.want || err != nil {
			t.Errorf("%q --gpus=%s: %v, want %s: %v", c.host, c.gpus, got, c.want, err)
		}
	}
}

// TestNamed: boards get the UUIDs that nvidia-smi reports for their addresses.
func TestNamed(t *testing.T) {
	got := named([]selection.Visible{{PCIBusID: "0000:11:00.0"}, {UUID: "GPU-2", PCIBusID: "0000:21:00.0"}, {PCIBusID: "0000:31:00.0"}},
		[]selection.Visible{{UUID: "GPU-1", PCIBusID: "00000000:11:00.0"}})
	if got[0].UUID != "GPU-1" || got[1].UUID != "GPU-2" || got[2].UUID != "" {
		t.Error(got)
	}
}

// TestIsHere: this machine is known by its loopback and own addresses, and by its name with or without a domain.
func TestIsHere(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	short, domain, _ := strings.Cut(name, ".")
	want := map[string]bool{
		"localhost": true, "127.0.0.1:9400": true, "[::1]:9400": true, strings.ToUpper(name) + ":9400": true, short: true,
		short + "." + cmp.Or(domain, "example.org"): true, short + "x": false, "x" + short: false, "": false, "192.0.2.1:9400": false,
	}
	if domain != "" {
		want[short+".elsewhere.example"] = false
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		want[net.JoinHostPort(a.(*net.IPNet).IP.String(), "9400")] = true
	}
	for address, is := range want {
		if isHere(address) != is {
			t.Errorf("%q is here: %t, want %t", address, !is, is)
		}
	}
}
