package dcgm

import (
	"fmt"
	"strings"
	"testing"
)

// eight returns boards 0 to 7 without MIG, whose UUIDs begin with GPU-<i>a.
func eight() Node {
	var n Node
	for i := range 8 {
		b := newBoard(i)
		b.UUID = fmt.Sprintf("GPU-%da000000-1111-2222-3333-444455556666", i)
		n.Boards = append(n.Boards, b)
	}
	return n
}

// visible is eight, seen from a cgroup that holds boards 4 and 6.
func visible() Node {
	n := eight()
	n.Boards[4].Index, n.Boards[6].Index = 0, 1
	return n
}

// cut has a board in two instances, another in one, and a third whose MIG device
// is of an unknown instance.
func cut() Node {
	n := Node{Boards: eight().Boards[:4]}
	n.Boards[1].Instances = []Instance{
		{Entity: 7, ID: 1, Devices: []MIGDevice{{0, "MIG-1a", ""}}},
		{Entity: 8, ID: 2, Devices: []MIGDevice{{1, "MIG-1b", ""}}},
	}
	n.Boards[2].Instances = []Instance{{Entity: 14, ID: 1, Devices: []MIGDevice{{0, "MIG-2a", ""}}}}
	n.Boards[3].Instances = []Instance{{Entity: 21, ID: 3}}
	n.Boards[3].Loose = []MIGDevice{{0, "MIG-3a", ""}}
	return n
}

// names spells a selection: 4 for a board, 1.2 for an instance by NVML's id.
func names(n *Node, s Selection) string {
	var list []string
	for _, p := range s.Picks {
		name := fmt.Sprint(n.Boards[p.Board].Entity)
		if p.Instance != Whole {
			name += fmt.Sprint(".", n.Boards[p.Board].Instances[p.Instance].ID)
		}
		list = append(list, name)
	}
	return strings.Join(list, " ")
}

const everything = "0 1 2 3 4 5 6 7"

func TestSelect(t *testing.T) {
	type env = map[string]string
	tests := []struct {
		name string
		node Node
		flag string
		show bool
		env  env
		want string
		from string
	}{
		{"nothing says anything", eight(), "", false, nil, everything, ""},
		{"indices and ranges", eight(), "0,2-3", false, nil, "0 2 3", "--gpus"},
		{"in order, once, blanks", eight(), " 5, 2 - 3 ,2,5", false, nil, "2 3 5", "--gpus"},
		{"all", eight(), "all", false, nil, everything, "--gpus"},
		{"a UUID, whole and begun, in another case", eight(), "GPU-3a000000-1111-2222-3333-444455556666,gpu-5A", false, nil, "3 5", "--gpus"},
		{"the flag is of the label gpu, not of what nvidia-smi sees", visible(), "1", false, nil, "1", "--gpus"},
		{"the flags go before the environment", eight(), "1", false, env{"CUDA_VISIBLE_DEVICES": "2"}, "1", "--gpus"},
		{"--show-all too", eight(), "", true, env{"CUDA_VISIBLE_DEVICES": "2"}, everything, "--show-all"},
		{"MIG devices", cut(), "MIG-1b,MIG-2", false, nil, "1.2 2.1", "--gpus"},
		{"a board swallows its instances", cut(), "MIG-1b,1,MIG-1a", false, nil, "1", "--gpus"},
		{"a MIG device of an unknown instance is its board", cut(), "MIG-3a", false, nil, "3", "--gpus"},

		{"CUDA: indices in any order", eight(), "", false, env{"CUDA_VISIBLE_DEVICES": "2,1"}, "1 2", "CUDA_VISIBLE_DEVICES"},
		{"CUDA: -1 ends the list", eight(), "", false, env{"CUDA_VISIBLE_DEVICES": "0,2,-1,1"}, "0 2", "CUDA_VISIBLE_DEVICES"},
		{"CUDA: so does an index that is not there", eight(), "", false, env{"CUDA_VISIBLE_DEVICES": "3,9,1"}, "3", "CUDA_VISIBLE_DEVICES"},
		{"CUDA: UUIDs", eight(), "", false, env{"CUDA_VISIBLE_DEVICES": "GPU-7a,GPU-2a000000-1111-2222-3333-444455556666"}, "2 7", "CUDA_VISIBLE_DEVICES"},
		{"CUDA: MIG, old and new", cut(), "", false, env{"CUDA_VISIBLE_DEVICES": "MIG-2a,MIG-GPU-1a000000-1111-2222-3333-444455556666/2/0"}, "1.2 2.1", "CUDA_VISIBLE_DEVICES"},
		{"CUDA: renumbered in a cgroup", visible(), "", false, env{"CUDA_VISIBLE_DEVICES": "0,1", "SLURM_JOB_GPUS": "4,6"}, "4 6", "CUDA_VISIBLE_DEVICES"},
		{"CUDA: renumbered, and nvidia-smi did not say how", eight(), "", false, env{"CUDA_VISIBLE_DEVICES": "0,1", "SLURM_JOB_GPUS": "4,6"}, "4 6", "SLURM_JOB_GPUS"},
		{"CUDA: UUIDs are never renumbered", eight(), "", false, env{"CUDA_VISIBLE_DEVICES": "GPU-4a", "SLURM_JOB_GPUS": "5"}, "4", "CUDA_VISIBLE_DEVICES"},

		{"container: all", eight(), "", false, env{"NVIDIA_VISIBLE_DEVICES": "all", "SLURM_JOB_GPUS": "1"}, everything, "NVIDIA_VISIBLE_DEVICES"},
		{"container: void says nothing", eight(), "", false, env{"NVIDIA_VISIBLE_DEVICES": "void", "SLURM_JOB_GPUS": "1"}, "1", "SLURM_JOB_GPUS"},
		{"container: nor does a path", eight(), "", false, env{"NVIDIA_VISIBLE_DEVICES": "/var/run/nvidia-container-devices"}, everything, ""},
		{"container: nor an empty value", eight(), "", false, env{"NVIDIA_VISIBLE_DEVICES": ""}, everything, ""},
		{"container: the node's indices, UUIDs", visible(), "", false, env{"NVIDIA_VISIBLE_DEVICES": "1,GPU-6a"}, "1 6", "NVIDIA_VISIBLE_DEVICES"},
		{"container: a MIG device by its board's index", cut(), "", false, env{"NVIDIA_VISIBLE_DEVICES": "1:1,2:0"}, "1.2 2.1", "NVIDIA_VISIBLE_DEVICES"},
		{"container: a host engine that sees what we see", Node{Boards: eight().Boards[:2]}, "", false, env{"NVIDIA_VISIBLE_DEVICES": "6,1"}, "0 1", "NVIDIA_VISIBLE_DEVICES"},
		{"container: other numbers than ours", Node{Boards: eight().Boards[:3]}, "", false, env{"NVIDIA_VISIBLE_DEVICES": "6,1"}, "0 1 2", ""},

		{"Slurm: the step goes before the job", eight(), "", false, env{"SLURM_STEP_GPUS": "6", "SLURM_JOB_GPUS": "5,6"}, "6", "SLURM_STEP_GPUS"},
		{"Slurm: a range", eight(), "", false, env{"SLURM_JOB_GPUS": "5-7"}, "5 6 7", "SLURM_JOB_GPUS"},
		{"Slurm: a node that is not ours", eight(), "", false, env{"SLURM_JOB_GPUS": "12"}, everything, ""},
		{"Slurm: an id twice is not two boards", Node{Boards: eight().Boards[:2]}, "", false, env{"SLURM_JOB_GPUS": "5,5"}, "0 1", ""},
		{"no board is known", Node{}, "", false, env{"SLURM_JOB_GPUS": "1"}, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Select(&tt.node, Wish{tt.flag, tt.show, func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok }})
			if err != nil {
				t.Fatal(err)
			}
			if got := names(&tt.node, s); got != tt.want || s.From != tt.from {
				t.Errorf("%q from %q, want %q from %q", got, s.From, tt.want, tt.from)
			}
			if whole := len(s.Picks) == len(tt.node.Boards) && !strings.Contains(tt.want, "."); s.All != whole {
				t.Errorf("All is %v", s.All)
			}
		})
	}
}

func TestSelectErrors(t *testing.T) {
	gap := eight()
	gap.Boards = append(gap.Boards[:2], gap.Boards[4:]...)
	twins := eight()
	twins.Boards[1].UUID = "GPU-0a777777-1111-2222-3333-444455556666"
	tests := []struct {
		node      Node
		flag, env string
		want      string
	}{
		{eight(), "99", "", "--gpus=99: there is no GPU 99; this node has 0-7"},
		{eight(), "6-9", "", "--gpus=6-9: there is no GPU 8; this node has 0-7"},
		{gap, "0-4", "", "--gpus=0-4: there is no GPU 2; this node has 0-1,4-7"},
		{eight(), "0-4294967295", "", `--gpus=0-4294967295: "0-4294967295" is no GPU; write indices, ranges or UUIDs, such as 0,2-3 or GPU-8932f937`},
		{eight(), "0-2147483647", "", "--gpus=0-2147483647: there is no GPU 8; this node has 0-7"},
		{eight(), "3-1", "", "--gpus=3-1: the range 3-1 runs backwards; write 1-3"},
		{eight(), "1,,2", "", `--gpus=1,,2: "" is no GPU; write indices, ranges or UUIDs, such as 0,2-3 or GPU-8932f937`},
		{eight(), "-1", "", `--gpus=-1: "-1" is no GPU; write indices, ranges or UUIDs, such as 0,2-3 or GPU-8932f937`},
		{eight(), "01", "", `--gpus=01: "01" is no GPU; write indices, ranges or UUIDs, such as 0,2-3 or GPU-8932f937`},
		{eight(), "GPU-9", "", "--gpus=GPU-9: there is no GPU-9; this node has 0-7, and nvidia-smi -L lists the UUIDs"},
		{twins, "GPU-0a", "", "--gpus=GPU-0a: GPU-0a stands for a device of GPU 0 and one of GPU 1; write more of it"},
		{Node{}, "0", "", "--gpus=0: there is no GPU 0; no GPU was found on this node: try dcgmi discovery -l"},
		{eight(), "", "CUDA_VISIBLE_DEVICES=-1", "CUDA_VISIBLE_DEVICES=-1 hides every GPU; show them with --show-all or --gpus=0"},
		{eight(), "", "CUDA_VISIBLE_DEVICES=", "CUDA_VISIBLE_DEVICES= hides every GPU; show them with --show-all or --gpus=0"},
		{eight(), "", "CUDA_VISIBLE_DEVICES=NoDevFiles", "CUDA_VISIBLE_DEVICES=NoDevFiles hides every GPU; show them with --show-all or --gpus=0"},
		{eight(), "", "NVIDIA_VISIBLE_DEVICES=none", "NVIDIA_VISIBLE_DEVICES=none hides every GPU; show them with --show-all or --gpus=0"},
		{eight(), strings.Repeat("9", 300), "", "--gpus=" + strings.Repeat("9", 64) + "…: \"" + strings.Repeat("9", 64) + "…\" is no GPU; write indices, ranges or UUIDs, such as 0,2-3 or GPU-8932f937"},
	}
	for _, tt := range tests {
		name, value, _ := strings.Cut(tt.env, "=")
		_, err := Select(&tt.node, Wish{GPUs: tt.flag, LookupEnv: func(n string) (string, bool) { return value, n == name }})
		if err == nil || err.Error() != tt.want {
			t.Errorf("--gpus=%s %s:\n got %v\nwant %s", clip(tt.flag), tt.env, err, tt.want)
		}
	}
}

// Of a node that lost some of what was chosen, the rest is chosen, and what is
// missing is told; of one that lost it all, and of a wish that nobody understands,
// nothing is.
func TestSelectPresent(t *testing.T) {
	gap := eight()
	gap.Boards = append(gap.Boards[:2], gap.Boards[4:]...)
	tests := []struct{ flag, want, missing, err string }{
		{flag: "0,4-5", want: "0 4 5"},
		{flag: "all", want: "0 1 4 5 6 7"},
		{flag: "0-4", want: "0 1 4", missing: "--gpus=0-4: there is no GPU 2; this node has 0-1,4-7"},
		{flag: "3,5,2", want: "5", missing: "--gpus=3,5,2: there is no GPU 3; this node has 0-1,4-7"},
		{flag: "GPU-2a,GPU-7a", want: "7", missing: "--gpus=GPU-2a,GPU-7a: there is no GPU-2a; this node has 0-1,4-7, and nvidia-smi -L lists the UUIDs"},
		{flag: "2-3", err: "--gpus=2-3: there is no GPU 2; this node has 0-1,4-7"},
		{flag: "0,2,x", err: `--gpus=0,2,x: "x" is no GPU; write indices, ranges or UUIDs, such as 0,2-3 or GPU-8932f937`},
	}
	text := func(err error) string {
		if err == nil {
			return ""
		}
		return err.Error()
	}
	for _, tt := range tests {
		s, missing, err := SelectPresent(&gap, Wish{GPUs: tt.flag})
		if names(&gap, s) != tt.want || text(missing) != tt.missing || text(err) != tt.err {
			t.Errorf("--gpus=%s: %q, missing %v, %v", tt.flag, names(&gap, s), missing, err)
		}
		if _, err := Select(&gap, Wish{GPUs: tt.flag}); text(err) != tt.missing+tt.err {
			t.Errorf("--gpus=%s: Select says %v", tt.flag, err)
		}
	}
}

func TestEntities(t *testing.T) {
	lost := eight()
	lost.Boards[3].Inactive = true
	tests := []struct {
		name string
		node Node
		flag string
		want string
	}{
		{"dmon's own choice", eight(), "", ""},
		{"some boards", eight(), "0,2-3", "0,2,3"},
		{"dmon leaves instances out by itself", cut(), "", "0,i:7,i:8,i:14,i:21"},
		{"one instance", cut(), "MIG-1b", "i:8"},
		{"an inactive board", lost, "2-4", "2,4"},
		{"a cut board among others", cut(), "0,2", "0,i:14"},
	}
	for _, tt := range tests {
		s, err := Select(&tt.node, Wish{GPUs: tt.flag})
		if got := s.Entities(&tt.node); err != nil || got != tt.want {
			t.Errorf("%s: %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
}

func FuzzSelect(f *testing.F) {
	f.Add("0,2-3", "GPU-1a,0,-1", "1:0,MIG-3a", "5-6")
	f.Add("MIG-GPU-1a/2/0", "MIG-GPU-1a000000-1111-2222-3333-444455556666/2/0", ":", "0-2147483647")
	f.Fuzz(func(t *testing.T, flag, cuda, container, slurm string) {
		env := map[string]string{"CUDA_VISIBLE_DEVICES": cuda, "NVIDIA_VISIBLE_DEVICES": container, "SLURM_JOB_GPUS": slurm}
		if cuda == "" {
			delete(env, "CUDA_VISIBLE_DEVICES")
		}
		n := cut()
		s, err := Select(&n, Wish{GPUs: flag, LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
		if err != nil {
			return
		}
		if len(s.Picks) == 0 {
			t.Fatal("nothing chosen, and no error")
		}
		for i, p := range s.Picks {
			if p.Board < 0 || p.Board >= len(n.Boards) || p.Instance < Whole || p.Instance >= len(n.Boards[p.Board].Instances) {
				t.Fatalf("%+v is nothing", p)
			}
			if i > 0 && (s.Picks[i-1].Board > p.Board || s.Picks[i-1] == p || s.Picks[i-1] == Pick{p.Board, Whole}) {
				t.Fatalf("untidy: %+v", s.Picks)
			}
		}
	})
}
