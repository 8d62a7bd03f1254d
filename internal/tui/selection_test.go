package tui

import (
	"strings"
	"testing"
)

// TestChooserChoosesAgainForOtherDevices: not for every reading, and for each set of
// devices.
func TestChooserChoosesAgainForOtherDevices(t *testing.T) {
	asked := 0
	c := chooser{choose: func(n *Node) Selection {
		asked++
		return Selection{Shown: []int{1, len(n.GPUs) - 1}, By: "--gpus"}
	}}
	reading := func(boards int) *Node {
		n := fleetNode(start)
		n.GPUs = append(n.GPUs[:boards:boards], n.GPUs[4:]...) // with the two instances of board 3
		c.apply(n)
		return n
	}
	for i, test := range []struct {
		boards, asked, hidden int
		last                  string
	}{{4, 1, 2, "2"}, {4, 1, 2, "2"}, {3, 2, 2, "2"}, {4, 3, 2, "2"}} {
		n := reading(test.boards)
		if len(n.GPUs) != 2 || n.GPUs[0].Index != "1" || n.GPUs[1].MIGInstance != test.last {
			t.Errorf("reading %d: %d devices, want board 1 and instance %s", i, len(n.GPUs), test.last)
		}
		if asked != test.asked || n.Hidden != test.hidden || n.HiddenBy != "--gpus" {
			t.Errorf("reading %d: chosen %d times, %d hidden by %q; want %d, %d", i, asked, n.Hidden, n.HiddenBy, test.asked, test.hidden)
		}
	}
}

// TestHiddenIsSaid: which GPUs are hidden, by what, and how to see them.
func TestHiddenIsSaid(t *testing.T) {
	for _, test := range []struct {
		name   string
		n      Node
		want   string
		absent string
	}{
		{"nothing", Node{}, "", "hidden"},
		{"a job's", Node{Hidden: 6, HiddenBy: "SLURM_JOB_GPUS"}, "6 hidden  by SLURM_JOB_GPUS, --show-all shows all", ""},
		{"a flag", Node{Hidden: 1, HiddenBy: "--gpus"}, "1 hidden  by --gpus", "--show-all"},
		{"the source's own choice", Node{HiddenBy: "CUDA_VISIBLE_DEVICES"}, "those of CUDA_VISIBLE_DEVICES, --show-all shows all", "hidden"},
	} {
		m := screenOf("four", viewFleet, "", 160, 45, func(s *State) {
			n := *s.Nodes[0]
			n.Hidden, n.HiddenBy = test.n.Hidden, test.n.HiddenBy
			s.Nodes = []*Node{&n}
		})
		line, _, _ := strings.Cut(m.grid.Glyphs(), "\n")
		if !strings.Contains(line, test.want) || test.absent != "" && strings.Contains(line, test.absent) {
			t.Errorf("%s: the header is %q, want %q", test.name, line, test.want)
		}
	}
}

// TestLostOfTheChosenIsSaid once, and not with every reading.
func TestLostOfTheChosenIsSaid(t *testing.T) {
	m, c := fleet(t)
	say := func(trouble string) string {
		n := fleetNode(c.at)
		n.Trouble = trouble
		m.Update(nodeMsg{0, n})
		return m.state.Message
	}
	if got := say("--gpus=9: not there"); !strings.Contains(got, "--gpus=9: not there") || !m.state.Alarm {
		t.Errorf("the footer says %q", got)
	}
	c.at = c.at.Add(messageLife)
	if got := say("--gpus=9: not there"); got != "" {
		t.Errorf("said again: %q", got)
	}
}
