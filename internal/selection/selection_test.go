package selection

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// lookup is os.LookupEnv of an environment.
func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

// board returns a board whose Board is at.
func board(at, gpu int) canonical.Device {
	return canonical.Device{GPU: fmt.Sprint(gpu), UUID: fmt.Sprintf("GPU-%da000000-1111-2222-3333-444455556666", gpu), Board: at}
}

func instance(at, gpu int, id string, mig ...canonical.MIGDevice) canonical.Device {
	d := board(at, gpu)
	d.Instance, d.CUDA = id, &canonical.CUDANames{MIG: mig}
	return d
}

// boards returns boards 0 to n-1 without MIG, whose UUIDs begin with GPU-<i>a.
func boards(n int) []canonical.Device {
	var all []canonical.Device
	for i := range n {
		all = append(all, board(i, i))
	}
	return all
}

func eight() []canonical.Device { return boards(8) }

// gap is eight without 2 and 3.
func gap() []canonical.Device {
	all := eight()[:2]
	for i := 4; i < 8; i++ {
		all = append(all, board(len(all), i))
	}
	return all
}

// visible is eight, seen from a cgroup with boards 4 and 6.
func visible() []canonical.Device {
	all := eight()
	all[4].CUDA, all[6].CUDA = &canonical.CUDANames{Index: "0"}, &canonical.CUDANames{Index: "1"}
	return all
}

// cut has a board in two instances, another in one, and a third whose MIG device
// is of an unknown instance.
func cut() []canonical.Device {
	all := []canonical.Device{
		board(0, 0),
		board(1, 1), instance(1, 1, "1", canonical.MIGDevice{Index: 0, UUID: "MIG-1a"}), instance(1, 1, "2", canonical.MIGDevice{Index: 1, UUID: "MIG-1b"}),
		board(4, 2), instance(4, 2, "1", canonical.MIGDevice{Index: 0, UUID: "MIG-2a"}),
		board(6, 3), instance(6, 3, "3"),
	}
	all[6].CUDA = &canonical.CUDANames{MIG: []canonical.MIGDevice{{Index: 0, UUID: "MIG-3a"}}}
	return all
}

// exported is a board in three instances, as an exporter gives them: without the names of MIG devices.
func exported() []canonical.Device {
	all := []canonical.Device{board(0, 0)}
	for _, id := range []string{"1", "11", "12"} {
		d := instance(0, 0, id)
		d.CUDA = nil
		all = append(all, d)
	}
	return all
}

// shared is an instance in two compute instances.
func shared() []canonical.Device {
	return []canonical.Device{board(0, 0), instance(0, 0, "1", canonical.MIGDevice{Index: 0, UUID: "MIG-4a"}, canonical.MIGDevice{Index: 1, UUID: "MIG-4b"})}
}

// oldMIG returns the name of a MIG device of board gpu before driver R470, from its instance on.
func oldMIG(gpu int, place string) string { return "MIG-" + board(gpu, gpu).UUID + "/" + place }

// TestDoubt: a list of Slurm with a device that is not there is reported, whatever chooses. In a
// container, and where MIG devices are counted, other numbers than ours say nothing.
func TestDoubt(t *testing.T) {
	type env = map[string]string
	for _, tt := range []struct {
		all         []canonical.Device
		env         env
		want, doubt string
	}{
		{boards(1), env{"SLURM_JOB_GPUS": "3"}, "0", "SLURM_JOB_GPUS=3 names a GPU that the proxy does not know: there is no GPU 3; this node has 0"},
		{boards(1), env{"SLURM_JOB_GPUS": "0,3"}, "0", "there is no GPU 3; this node has 0"},
		{boards(2), env{"SLURM_JOB_GPUS": "0,3"}, "0 1", "there is no GPU 3; this node has 0,1"},
		{boards(2), env{"SLURM_JOB_GPUS": "0-3"}, "0 1", "there is no GPU 2"},
		{boards(2), env{"SLURM_JOB_GPUS": "GPU-7a"}, "0 1", "there is no GPU-7a"},
		{boards(2), env{"SLURM_STEP_GPUS": "3", "SLURM_JOB_GPUS": "0"}, "0", "SLURM_STEP_GPUS=3 "},
		{boards(2), env{"SLURM_STEP_GPUS": "3", "SLURM_JOB_GPUS": "4"}, "0 1", "SLURM_STEP_GPUS=3 "},
		{boards(2), env{"CUDA_VISIBLE_DEVICES": "0", "SLURM_JOB_GPUS": "3"}, "0 1", "SLURM_JOB_GPUS=3 "},
		{boards(2), env{"SLURM_JOB_GPUS": "0-1"}, "0 1", ""},
		{boards(2), env{"SLURM_STEP_GPUS": "0", "SLURM_JOB_GPUS": "0,3"}, "0", ""}, // the step has no GPU 3
		{boards(2), env{"NVIDIA_VISIBLE_DEVICES": "6"}, "0 1", ""},
		{boards(2), env{"CUDA_VISIBLE_DEVICES": "MIG-4a", "SLURM_JOB_GPUS": "7"}, "0 1", "CUDA_VISIBLE_DEVICES=MIG-4a names MIG devices, whose UUIDs the source does not tell"},
	} {
		s, err := Request{LookupEnv: lookup(tt.env)}.Select(tt.all)
		doubt := fmt.Sprint(s.Doubt)
		if s.Doubt == nil {
			doubt = ""
		}
		if err != nil || names(tt.all, s) != tt.want || !strings.Contains(doubt, tt.doubt) || (doubt == "") != (tt.doubt == "") {
			t.Errorf("%v: %q, doubt %q, want %q, %q; %v", tt.env, names(tt.all, s), doubt, tt.want, tt.doubt, err)
		}
	}
}

// names writes a selection: 4 for a board, 1.2 for an instance whose board is not chosen.
func names(all []canonical.Device, s canonical.Selection) string {
	var list []string
	for i, chosen := range s.Chosen {
		switch d := all[i]; {
		case !chosen || d.IsInstance() && s.Chosen[d.Board]:
		case d.IsInstance():
			list = append(list, d.GPU+"."+d.Instance)
		default:
			list = append(list, d.GPU)
		}
	}
	return strings.Join(list, " ")
}

const everything = "0 1 2 3 4 5 6 7"

func TestSelect(t *testing.T) {
	type env = map[string]string
	tests := []struct {
		name string
		all  []canonical.Device
		flag string
		show bool
		env  env
		want string
		from string
	}{
		{"nothing says anything", eight(), "", false, nil, everything, ""},
		{"indices and ranges", eight(), "0,2-3", false, nil, "0 2 3", "--gpus"},
		{"in order, once, blanks", eight(), " 5, 2 - 3 ,2,5, GPU-6a", false, nil, "2 3 5 6", "--gpus"},
		{"all", eight(), "all", false, nil, everything, "--gpus"},
		{"all of nothing", nil, "all", false, nil, "", "--gpus"},
		{"a UUID, whole and begun, in another case", eight(), "GPU-3a000000-1111-2222-3333-444455556666,gpu-5A", false, nil, "3 5", "--gpus"},
		{"the flag is of the label gpu, not of what nvidia-smi sees", visible(), "1", false, nil, "1", "--gpus"},
		{"the flags go before the environment", eight(), "1", false, env{"CUDA_VISIBLE_DEVICES": "2"}, "1", "--gpus"},
		{"--show-all too", eight(), "", true, env{"CUDA_VISIBLE_DEVICES": "2"}, everything, "--show-all"},
		{"MIG devices", cut(), "MIG-1b,MIG-2", false, nil, "1.2 2.1", "--gpus"},
		{"a board swallows its instances", cut(), "MIG-1b,1,MIG-1a", false, nil, "1", "--gpus"},
		{"a MIG device of an unknown instance is its board", cut(), "MIG-3a", false, nil, "3", "--gpus"},
		{"the beginning of a board's UUID", cut(), "GPU-1a", false, nil, "1", "--gpus"},
		{"the beginning of two UUIDs of an instance", shared(), "MIG-4", false, nil, "0.1", "--gpus"},
		{"an instance of a board, not one whose number begins so", exported(), oldMIG(0, "1"), false, nil, "0.1", "--gpus"},
		{"an instance, as all views name it", cut(), "1:2,2.1", false, nil, "1.2 2.1", "--gpus"},
		{"a MIG device by nvidia-smi's index, if no instance has that number", cut(), "1:0", false, nil, "1.1", "--gpus"},
		{"an instance whose MIG device has another name", cut(), oldMIG(1, "2"), false, nil, "1.2", "--gpus"},
		{"a MIG device, as named before R470", exported(), oldMIG(0, "11/0"), false, nil, "0.11", "--gpus"},
		{"another compute instance of it", exported(), oldMIG(0, "11/7"), false, nil, "0.11", "--gpus"},

		{"CUDA: indices in any order", eight(), "", false, env{"CUDA_VISIBLE_DEVICES": "2, 1"}, "1 2", "CUDA_VISIBLE_DEVICES"},
		{"CUDA: -1 ends the list", eight(), "", false, env{"CUDA_VISIBLE_DEVICES": "0,2,-1,1"}, "0 2", "CUDA_VISIBLE_DEVICES"},
		{"CUDA: so does an index that is not there", eight(), "", false, env{"CUDA_VISIBLE_DEVICES": "3,9,1"}, "3", "CUDA_VISIBLE_DEVICES"},
		{"CUDA: UUIDs", eight(), "", false, env{"CUDA_VISIBLE_DEVICES": "GPU-7a,GPU-2a000000-1111-2222-3333-444455556666"}, "2 7", "CUDA_VISIBLE_DEVICES"},
		{"CUDA: MIG, old and new",
			cut(), "", false, env{"CUDA_VISIBLE_DEVICES": "MIG-2a,MIG-GPU-1a000000-1111-2222-3333-444455556666/2/0"}, "1.2 2.1", "CUDA_VISIBLE_DEVICES"},
		{"CUDA: an old name, where MIG devices have no other",
			exported(), "", false, env{"CUDA_VISIBLE_DEVICES": oldMIG(0, "12/0")}, "0.12", "CUDA_VISIBLE_DEVICES"},
		{"CUDA: an index, where only MIG devices have names", cut(), "", false, env{"CUDA_VISIBLE_DEVICES": "1"}, "1", "CUDA_VISIBLE_DEVICES"},
		{"CUDA: renumbered in a cgroup", visible(), "", false, env{"CUDA_VISIBLE_DEVICES": "0,1", "SLURM_JOB_GPUS": "4,6"}, "4 6", "CUDA_VISIBLE_DEVICES"},
		{"CUDA: renumbered, and nvidia-smi did not say how",
			eight(), "", false, env{"CUDA_VISIBLE_DEVICES": "0,1", "SLURM_JOB_GPUS": "4,6"}, "4 6", "SLURM_JOB_GPUS"},
		{"CUDA: the same in a step", eight(), "", false, env{"CUDA_VISIBLE_DEVICES": "0", "SLURM_STEP_GPUS": "6"}, "6", "SLURM_STEP_GPUS"},
		{"CUDA: Slurm lists nothing", eight(), "", false, env{"CUDA_VISIBLE_DEVICES": "1", "SLURM_JOB_GPUS": ""}, "1", "CUDA_VISIBLE_DEVICES"},
		{"CUDA: UUIDs are never renumbered", eight(), "", false, env{"CUDA_VISIBLE_DEVICES": "GPU-4a", "SLURM_JOB_GPUS": "5"}, "4", "CUDA_VISIBLE_DEVICES"},

		{"container: all", eight(), "", false, env{"NVIDIA_VISIBLE_DEVICES": "all", "SLURM_JOB_GPUS": "1"}, everything, "NVIDIA_VISIBLE_DEVICES"},
		{"container: void says nothing", eight(), "", false, env{"NVIDIA_VISIBLE_DEVICES": "void", "SLURM_JOB_GPUS": "1"}, "1", "SLURM_JOB_GPUS"},
		{"container: nor does a path", eight(), "", false, env{"NVIDIA_VISIBLE_DEVICES": "/var/run/nvidia-container-devices"}, everything, ""},
		{"container: nor an empty value", eight(), "", false, env{"NVIDIA_VISIBLE_DEVICES": ""}, everything, ""},
		{"container: the node's indices, UUIDs", visible(), "", false, env{"NVIDIA_VISIBLE_DEVICES": "1, GPU-6a"}, "1 6", "NVIDIA_VISIBLE_DEVICES"},
		{"container: a MIG device by its board's index", cut(), "", false, env{"NVIDIA_VISIBLE_DEVICES": "1:1,2:0"}, "1.2 2.1", "NVIDIA_VISIBLE_DEVICES"},
		{"container: one of an unknown instance", cut(), "", false, env{"NVIDIA_VISIBLE_DEVICES": "3:0"}, "3", "NVIDIA_VISIBLE_DEVICES"},
		{"container: UUIDs of other boards, as many as ours", boards(2), "", false, env{"NVIDIA_VISIBLE_DEVICES": "GPU-6a,GPU-7a"}, "0 1", ""},
		{"container: a host engine that sees what we see", boards(2), "", false, env{"NVIDIA_VISIBLE_DEVICES": "6,1"}, "0 1", "NVIDIA_VISIBLE_DEVICES"},
		{"container: other numbers than ours", boards(3), "", false, env{"NVIDIA_VISIBLE_DEVICES": "6,1"}, "0 1 2", ""},

		{"Slurm: the step goes before the job", eight(), "", false, env{"SLURM_STEP_GPUS": "6", "SLURM_JOB_GPUS": "5,6"}, "6", "SLURM_STEP_GPUS"},
		{"Slurm: a range", eight(), "", false, env{"SLURM_JOB_GPUS": "5-7"}, "5 6 7", "SLURM_JOB_GPUS"},
		{"Slurm: ids and UUIDs", eight(), "", false, env{"SLURM_JOB_GPUS": "1, 3,GPU-5a"}, "1 3 5", "SLURM_JOB_GPUS"},
		{"Slurm: a notation that it does not use for GPUs", eight(), "", false, env{"SLURM_JOB_GPUS": "gpu[1,3]"}, everything, ""},
		{"Slurm: UUIDs of MIG devices", cut(), "", false, env{"SLURM_JOB_GPUS": "MIG-1b,MIG-2a"}, "1.2 2.1", "SLURM_JOB_GPUS"},
		{"Slurm: a node that is not ours", eight(), "", false, env{"SLURM_JOB_GPUS": "12"}, everything, ""},
		{"Slurm: it counts MIG devices, not boards",
			eight(), "", false, env{"CUDA_VISIBLE_DEVICES": "MIG-4a", "SLURM_STEP_GPUS": "3", "SLURM_JOB_GPUS": "3,4"}, everything, ""},
		{"Slurm: an id twice is not two boards", boards(2), "", false, env{"SLURM_JOB_GPUS": "5,5"}, "0 1", ""},
		{"no board is known", nil, "", false, env{"SLURM_JOB_GPUS": "1"}, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Request{GPUs: tt.flag, ShowAll: tt.show, LookupEnv: lookup(tt.env)}.Select(tt.all)
			if err != nil {
				t.Fatal(err)
			}
			if got := names(tt.all, s); got != tt.want || s.By != tt.from || s.Missing != nil {
				t.Errorf("%q by %q, want %q by %q, missing %v", got, s.By, tt.want, tt.from, s.Missing)
			}
			boards := 0
			for range devices(tt.all).boards() {
				boards++
			}
			if whole := len(strings.Fields(tt.want)) == boards && !strings.Contains(tt.want, "."); s.All != whole {
				t.Errorf("All is %v", s.All)
			}
		})
	}
}

func TestSelectErrors(t *testing.T) {
	const oldHint = "; this node has 0, and a MIG instance is MIG-, the whole UUID of its board, / and its number"
	const noGPU = " is not a GPU; write indices, ranges or UUIDs, such as 0,2-3 or GPU-8932f937"
	nines := strings.Repeat("9", 61) + "…"
	twins := eight()
	twins[1].UUID = "GPU-0a777777-1111-2222-3333-444455556666"
	tests := []struct {
		all       []canonical.Device
		flag, env string
		want      string
	}{
		{eight(), "99", "", "--gpus=99: there is no GPU 99; this node has 0,1,2,3,4,5,6,7"},
		{eight(), "6-9", "", "--gpus=6-9: there is no GPU 8; this node has 0,1,2,3,4,5,6,7"},
		{gap(), "0-4", "", "--gpus=0-4: there is no GPU 2; this node has 0,1,4,5,6,7"},
		{eight(), "0-4294967295", "", `--gpus=0-4294967295: "0-4294967295"` + noGPU},
		{eight(), "0-2147483647", "", "--gpus=0-2147483647: there is no GPU 8; this node has 0,1,2,3,4,5,6,7"},
		{eight(), "3-1", "", "--gpus=3-1: the range 3-1 runs backwards; write 1-3"},
		{eight(), "1,,2", "", `--gpus=1,,2: ""` + noGPU},
		{eight(), "-1", "", `--gpus=-1: "-1"` + noGPU},
		{eight(), "01", "", `--gpus=01: "01"` + noGPU},
		{eight(), "GPU-9", "", "--gpus=GPU-9: there is no GPU-9; this node has 0,1,2,3,4,5,6,7, and nvidia-smi -L lists the UUIDs"},
		{eight(), "GPU-", "", "--gpus=GPU-: GPU- matches devices of GPU 0 and GPU 1; write more of the UUID"},
		{cut(), "9", "", "--gpus=9: there is no GPU 9; this node has 0,1,2,3"},
		{exported()[:2], oldMIG(0, ""), "", "--gpus=" + oldMIG(0, "") + ": there is no " + oldMIG(0, "") + oldHint},
		{exported()[:2], oldMIG(0, "110"), "", "--gpus=" + oldMIG(0, "110") + ": there is no " + oldMIG(0, "110") + oldHint},
		{exported()[:2], oldMIG(0, "1/a"), "", "--gpus=" + oldMIG(0, "1/a") + ": there is no " + oldMIG(0, "1/a") + oldHint},
		{twins, "GPU-0a", "", "--gpus=GPU-0a: GPU-0a matches devices of GPU 0 and GPU 1; write more of the UUID"},
		{nil, "0", "", "--gpus=0: there is no GPU 0; no GPU was found on this node: try dcgmi discovery -l"},
		{eight(), "", "CUDA_VISIBLE_DEVICES=-1", "CUDA_VISIBLE_DEVICES=-1 hides every GPU; show them with --show-all or --gpus=0"},
		{visible(), "", "CUDA_VISIBLE_DEVICES=-1", "CUDA_VISIBLE_DEVICES=-1 hides every GPU; show them with --show-all or --gpus=0"},
		{boards(1), "", "CUDA_VISIBLE_DEVICES=", "CUDA_VISIBLE_DEVICES= hides every GPU; show them with --show-all or --gpus=0"},
		{eight(), "", "CUDA_VISIBLE_DEVICES=", "CUDA_VISIBLE_DEVICES= hides every GPU; show them with --show-all or --gpus=0"},
		{eight(), "", "CUDA_VISIBLE_DEVICES=NoDevFiles", "CUDA_VISIBLE_DEVICES=NoDevFiles hides every GPU; show them with --show-all or --gpus=0"},
		{eight(), "", "NVIDIA_VISIBLE_DEVICES=none", "NVIDIA_VISIBLE_DEVICES=none hides every GPU; show them with --show-all or --gpus=0"},
		{eight(), strings.Repeat("9", 300), "", "--gpus=" + nines + ": \"" + nines + "\"" + noGPU},
	}
	for _, tt := range tests {
		name, value, _ := strings.Cut(tt.env, "=")
		got, err := Request{GPUs: tt.flag, LookupEnv: lookup(map[string]string{name: value})}.Select(tt.all)
		if err == nil {
			err = got.Missing
		}
		if err == nil || err.Error() != tt.want {
			t.Errorf("--gpus=%s %s:\n got %v\nwant %s", clip(tt.flag), tt.env, err, tt.want)
		}
	}
}

// If some of the selected boards of a node are lost, the rest is selected and the missing ones
// are reported. If all are lost, or the flag is invalid, nothing is selected.
func TestSelectMissing(t *testing.T) {
	tests := []struct{ flag, want, missing, err string }{
		{flag: "0,4-5", want: "0 4 5"},
		{flag: "all", want: "0 1 4 5 6 7"},
		{flag: "all,9", want: "0 1 4 5 6 7", missing: "--gpus=all,9: there is no GPU 9; this node has 0,1,4,5,6,7"},
		{flag: "0-4", want: "0 1 4", missing: "--gpus=0-4: there is no GPU 2; this node has 0,1,4,5,6,7"},
		{flag: "3,5,2", want: "5", missing: "--gpus=3,5,2: there is no GPU 3; this node has 0,1,4,5,6,7"},
		{flag: "GPU-2a,GPU-7a", want: "7", missing: "--gpus=GPU-2a,GPU-7a: there is no GPU-2a; this node has 0,1,4,5,6,7, and nvidia-smi -L lists the UUIDs"},
		{flag: "2-3", err: "--gpus=2-3: there is no GPU 2; this node has 0,1,4,5,6,7"},
		{flag: "0,2,x", err: `--gpus=0,2,x: "x" is not a GPU; write indices, ranges or UUIDs, such as 0,2-3 or GPU-8932f937`},
	}
	text := func(err error) string {
		if err == nil {
			return ""
		}
		return err.Error()
	}
	for _, tt := range tests {
		s, err := Request{GPUs: tt.flag}.Select(gap())
		if names(gap(), s) != tt.want || text(s.Missing) != tt.missing || text(err) != tt.err {
			t.Errorf("--gpus=%s: %q, missing %v, %v", tt.flag, names(gap(), s), s.Missing, err)
		}
	}
}

// Boards of several hosts may have the same index, which then chooses all of them.
func TestSelectOfSeveralHosts(t *testing.T) {
	all := []canonical.Device{{Hostname: "a", GPU: "0"}, {Hostname: "b", GPU: "0", Board: 1}, {Hostname: "b", GPU: "1", Board: 2}}
	if s, err := (Request{GPUs: "0"}).Select(all); err != nil || !slices.Equal(s.Chosen, []bool{true, true, false}) || s.Missing != nil {
		t.Errorf("%+v, %v", s, err)
	}
}

// FuzzSelect: of a selection by --gpus, or without it by the environment, something is chosen, and
// with a board its instances.
func FuzzSelect(f *testing.F) {
	f.Add("0,2-3", "GPU-1a,0,-1", "1:0,MIG-3a", "5-6")
	f.Add("MIG-GPU-1a/2/0", "MIG-GPU-1a000000-1111-2222-3333-444455556666/2/0", ":", "0-2147483647")
	f.Add("all", "x", "void", "gpu:1(IDX:0-1)")
	f.Fuzz(func(t *testing.T, flag, cuda, container, slurm string) {
		env := map[string]string{"CUDA_VISIBLE_DEVICES": cuda, "NVIDIA_VISIBLE_DEVICES": container, "SLURM_JOB_GPUS": slurm}
		if cuda == "" {
			delete(env, "CUDA_VISIBLE_DEVICES")
		}
		for _, flag := range []string{flag, ""} {
			s, err := Request{GPUs: flag, LookupEnv: lookup(env)}.Select(cut())
			if err != nil {
				continue
			}
			if !slices.Contains(s.Chosen, true) {
				t.Fatalf("by %q nothing is chosen, without an error", s.By)
			}
			for i, d := range cut() {
				if s.Chosen[d.Board] && !s.Chosen[i] {
					t.Errorf("by %q, instance %d is not chosen with its board", s.By, i)
				}
			}
		}
	})
}

// TestMinors: Slurm numbers boards by their device files, where the machine's driver tells these.
func TestMinors(t *testing.T) {
	all := boards(4)
	minors := map[string]string{"0": all[3].UUID, "1": all[2].UUID, "2": all[0].UUID, "3": all[1].UUID}
	for _, tt := range []struct {
		minors     map[string]string
		name, list string
		want       []bool
	}{
		{minors, "SLURM_JOB_GPUS", "0", []bool{false, false, false, true}},
		{minors, "SLURM_STEP_GPUS", "1-2", []bool{true, false, true, false}},
		{minors, "SLURM_JOB_GPUS", "0, 3", []bool{false, true, false, true}},
		{minors, "NVIDIA_VISIBLE_DEVICES", "0", []bool{true, false, false, false}},
		{nil, "SLURM_JOB_GPUS", "0", []bool{true, false, false, false}},
		{map[string]string{"0": "GPU-elsewhere"}, "SLURM_JOB_GPUS", "0", []bool{true, false, false, false}},
	} {
		s, err := Request{Minors: tt.minors, LookupEnv: lookup(map[string]string{tt.name: tt.list})}.Select(all)
		if err != nil || !slices.Equal(s.Chosen, tt.want) {
			t.Errorf("%s=%s with %v: %v, %v", tt.name, tt.list, tt.minors, s.Chosen, err)
		}
	}
	s, err := Request{Minors: minors, LookupEnv: lookup(map[string]string{"SLURM_JOB_GPUS": "0"})}.Select(all[:3])
	if err != nil || s.Doubt == nil || !strings.Contains(s.Doubt.Error(), "there is no "+all[3].UUID[:12]) {
		t.Errorf("the board of minor 0 is lost: %v, %v", s.Doubt, err)
	}
}
