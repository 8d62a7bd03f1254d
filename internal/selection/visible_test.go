package selection

import (
	"fmt"
	"slices"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestSelectWhatIsVisible: on a node of eight boards, a process may open 4, which is known
// by its UUID, and 6, which is known by its PCI address.
func TestSelectWhatIsVisible(t *testing.T) {
	seen := eight()
	seen[6].PCIBusID = "00000000:C1:00.0"
	lent := []Visible{{UUID: "gpu-4A000000-1111-2222-3333-444455556666"}, {PCIBusID: "0000:c1:00.0"}}
	foreign := []Visible{{UUID: "GPU-elsewhere"}}
	type env = map[string]string
	for _, tt := range []struct {
		name       string
		all        []canonical.Device
		flag       string
		show       bool
		env        env
		visible    []Visible
		want, from string
		err        string
	}{
		{"nothing says anything", seen, "", false, nil, lent, "4 6", canonical.ByAccess, ""},
		{"--show-all", seen, "", true, nil, lent, "4 6", canonical.ByAccess, ""},
		{"--gpus", seen, "5-6", false, nil, lent, "6", "--gpus", ""},
		{"--gpus of another job", seen, "0,5", false, nil, lent, "", "",
			"--gpus=0,5: this process may not open that GPU, which belongs to another job or container; it may open 4,6"},
		{"CUDA counts what is visible", seen, "", false, env{"CUDA_VISIBLE_DEVICES": "1", "SLURM_JOB_GPUS": "4"}, lent, "6", "CUDA_VISIBLE_DEVICES", ""},
		{"an image that asks for all", seen, "", false, env{"NVIDIA_VISIBLE_DEVICES": "all"}, lent, "4 6", "NVIDIA_VISIBLE_DEVICES", ""},
		{"Slurm's ids", seen, "", false, env{"SLURM_JOB_GPUS": "6-7"}, lent, "6", "SLURM_JOB_GPUS", ""},
		{"Slurm's ids of another numbering", seen, "", false, env{"SLURM_JOB_GPUS": "0"}, lent, "4 6", canonical.ByAccess, ""},
		{"all that there is", eight()[4:5], "", false, nil, lent, "4", "", ""},
		{"another machine's", seen, "", false, env{"SLURM_JOB_GPUS": "0"}, foreign, everything, "--show-all", ""},
		{"another machine's only board", eight()[:1], "", false, env{"SLURM_JOB_GPUS": "0"}, foreign, "0", "--show-all", ""},
		{"another machine's, chosen", seen, "2", false, nil, foreign, "2", "--gpus", ""},
	} {
		s, err := Request{GPUs: tt.flag, ShowAll: tt.show, Visible: tt.visible, LookupEnv: lookup(tt.env)}.Select(tt.all)
		if tt.err != "" {
			if err == nil || err.Error() != tt.err {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := names(tt.all, s); got != tt.want || s.By != tt.from {
			t.Errorf("%s: %q by %q, want %q by %q", tt.name, got, s.By, tt.want, tt.from)
		}
	}
	if seen[4].CUDA != nil {
		t.Error("the caller's devices were written to")
	}
}

// TestNamesOfWhatIsVisible: CUDA counts the visible boards in their order, unless nvidia-smi says
// otherwise. MIG devices keep their names.
func TestNamesOfWhatIsVisible(t *testing.T) {
	swapped := eight()
	swapped[4].CUDA, swapped[6].CUDA = &canonical.CUDANames{Index: "1"}, &canonical.CUDANames{Index: "0"}
	for _, tt := range []struct {
		all     []canonical.Device
		visible []int
		cuda    string
		want    string
	}{
		{eight(), []int{4, 6}, "0", "4"},
		{swapped, []int{4, 6}, "0", "6"},
		{cut(), []int{0, 6}, "1", "3"}, // device 6 is board 3
		{cut(), []int{0, 6}, "MIG-3a", "3"},
	} {
		var lent []Visible
		for _, i := range tt.visible {
			lent = append(lent, Visible{UUID: tt.all[i].UUID})
		}
		s, err := Request{Visible: lent, LookupEnv: lookup(map[string]string{"CUDA_VISIBLE_DEVICES": tt.cuda})}.Select(tt.all)
		if got := names(tt.all, s); err != nil || got != tt.want || s.By != "CUDA_VISIBLE_DEVICES" {
			t.Errorf("%s of %v: %q by %q, want %q: %v", tt.cuda, tt.visible, got, s.By, tt.want, err)
		}
	}
}

// TestIdentity: a board is known by its UUID, or else by its address. Only a UUID shows that it
// is this machine's.
func TestIdentity(t *testing.T) {
	const uuid, address = "GPU-0a000000-1111-2222-3333-444455556666", "0000:c1:00.0"
	for _, tt := range []struct {
		name     string
		ours     Visible
		device   canonical.Device
		is, sees bool
	}{
		{"the same UUID", Visible{UUID: uuid}, canonical.Device{UUID: uuid}, true, true},
		{"another UUID at the same address", Visible{UUID: "GPU-1a", PCIBusID: address}, canonical.Device{UUID: uuid, PCIBusID: address}, false, false},
		{"a UUID that the reading lacks", Visible{UUID: uuid, PCIBusID: address}, canonical.Device{PCIBusID: address}, true, false},
		{"a UUID that the driver lacks", Visible{PCIBusID: address}, canonical.Device{UUID: uuid, PCIBusID: address}, true, false},
		{"no UUIDs", Visible{PCIBusID: address}, canonical.Device{PCIBusID: address}, true, false},
		{"nothing", Visible{}, canonical.Device{}, false, false},
	} {
		r := Request{Visible: []Visible{tt.ours}}
		if is, sees := tt.ours.is(&tt.device), r.Sees([]canonical.Device{tt.device}); is != tt.is || sees != tt.sees {
			t.Errorf("%s: is %v, sees %v", tt.name, is, sees)
		}
	}
}

// TestAddressesOfAnotherMachine: if the driver gives no UUIDs, what this process may open only
// counts for devices that are certainly this machine's. An exporter's may be those of a machine
// behind a tunnel that has boards at the same addresses.
func TestAddressesOfAnotherMachine(t *testing.T) {
	seen := eight()
	for i := range seen {
		seen[i].PCIBusID = fmt.Sprintf("00000000:%d1:00.0", i)
	}
	unnamed := []Visible{{PCIBusID: "0000:21:00.0"}, {PCIBusID: "0000:41:00.0"}}
	named := []Visible{{PCIBusID: "0000:21:00.0"}, {UUID: seen[4].UUID, PCIBusID: "0000:41:00.0"}}
	for _, tt := range []struct {
		name    string
		local   bool
		visible []Visible
		gpus    string
		want    string
	}{
		{"of this machine", true, unnamed, "", "2 4"},
		{"perhaps of another", false, unnamed, "", everything},
		{"perhaps of another, chosen", false, unnamed, "7", "7"},
		{"one is known by its UUID", false, named, "", "2 4"},
		{"other UUIDs at the same addresses", false, []Visible{{UUID: "GPU-elsewhere", PCIBusID: "0000:21:00.0"}}, "", everything},
	} {
		s, err := Request{GPUs: tt.gpus, Visible: tt.visible, Local: tt.local}.Select(seen)
		if got := names(seen, s); err != nil || got != tt.want {
			t.Errorf("%s: %q, want %q: %v", tt.name, got, tt.want, err)
		}
	}
}

// TestConfinedByHost: of the boards of several hosts, only those of ours are confined, and our
// environment does not apply to the others.
func TestConfinedByHost(t *testing.T) {
	all := append(boards(2), boards(2)...)
	for i := range all {
		all[i].Board = i
		all[i].Hostname = []string{"ours", "theirs"}[i/2]
		if i >= 2 {
			all[i].UUID = "GPU-theirs" + all[i].GPU
		}
	}
	all[2].UUID, all[2].PCIBusID = "", "0000:c1:00.0" // where we have one, too
	part := all[2]
	part.Instance = "1"
	all = append(all, part)
	request := Request{Visible: []Visible{{UUID: all[1].UUID, PCIBusID: all[2].PCIBusID, Instances: []string{}}}, Elsewhere: true,
		LookupEnv: lookup(map[string]string{"CUDA_VISIBLE_DEVICES": "0"})}
	if s, err := request.Select(all); err != nil || !slices.Equal(s.Chosen, []bool{false, true, true, true, true}) || s.By != canonical.ByAccess {
		t.Errorf("several hosts: %+v, %v", s, err)
	}
	if s, err := request.Select(all[:2]); err != nil || !slices.Equal(s.Chosen, []bool{false, true}) || s.By != "CUDA_VISIBLE_DEVICES" {
		t.Errorf("ours: %+v, %v", s, err)
	}
	if s, err := request.Select([]canonical.Device{{Hostname: "ours", GPU: "1", UUID: all[1].UUID}}); err != nil || s.By != "CUDA_VISIBLE_DEVICES" {
		t.Errorf("our only one: %+v, %v", s, err)
	}
	request.ShowAll = true
	if s, err := request.Select(all[:2]); err != nil || s.By != canonical.ByAccess {
		t.Errorf("ours, all of them: %+v, %v", s, err)
	}
	request.ShowAll, request.GPUs = false, "0"
	if s, err := request.Select(all); err != nil || !slices.Equal(s.Chosen, []bool{false, false, true, false, true}) {
		t.Errorf("--gpus: %+v, %v", s, err)
	}
	request.GPUs, request.Visible = "", nil
	if s, err := request.Select(all[:2]); err != nil || !s.All {
		t.Errorf("what we may open is not known: %+v, %v", s, err)
	}
}

// TestInstancesOfWhatIsVisible: an instance is as visible as its board.
func TestInstancesOfWhatIsVisible(t *testing.T) {
	s, err := Request{ShowAll: true, Visible: []Visible{{UUID: cut()[1].UUID}}}.Select(cut())
	if err != nil || names(cut(), s) != "1" || s.All {
		t.Errorf("%v, %v", s, err)
	}
}

// TestInstancesOfOthers: instances of a cut board that this process may not open are another
// job's. An exporter does not give CUDA's name of an instance.
func TestInstancesOfOthers(t *testing.T) {
	of := func(instance string) canonical.Device {
		d := board(0, 0)
		d.Instance = instance
		return d
	}
	all := []canonical.Device{board(0, 0), of("1"), of("2")}
	env := lookup(map[string]string{"CUDA_VISIBLE_DEVICES": "MIG-11111111-aaaa-bbbb-cccc-dddddddddddd"})
	for _, r := range []Request{
		{LookupEnv: env, Visible: []Visible{{UUID: all[0].UUID, Instances: []string{"2"}}}},
		{ShowAll: true, Visible: []Visible{{UUID: all[0].UUID, Instances: []string{"2"}}}},
		{GPUs: "0", Visible: []Visible{{UUID: all[0].UUID, Instances: []string{"2", "3"}}}},
	} {
		if s, err := r.Select(all); err != nil || !slices.Equal(s.Chosen, []bool{true, false, true}) {
			t.Errorf("%+v: %+v, %v", r, s, err)
		}
	}
	if s, err := (Request{LookupEnv: env, Visible: []Visible{{UUID: all[0].UUID}}}).Select(all); err != nil || slices.Contains(s.Chosen, false) {
		t.Errorf("which instances are ours is not known: %+v, %v", s, err)
	}
	if _, err := (Request{LookupEnv: env}).Select(cut()); err == nil {
		t.Error("where MIG devices are known by name, another name hides all")
	}
}
