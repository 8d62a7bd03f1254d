package client

import (
	"strconv"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestSelectorFollowsTheDevices: it chooses once for each set of devices, not for each reading.
func TestSelectorFollowsTheDevices(t *testing.T) {
	asked := 0
	c := selector{choose: func(n *Node) Selection {
		asked++
		return Selection{Shown: []int{1, len(n.GPUs) - 1}, By: "--gpus"}
	}}
	reading := func(boards int) *Node {
		n := nodeOf(boards)
		c.apply(n)
		return n
	}
	for i, test := range []struct {
		boards, asked, hidden int
		last                  string
	}{{4, 1, 2, "2"}, {4, 1, 2, "2"}, {3, 2, 2, "2"}, {4, 3, 2, "2"}} {
		n := reading(test.boards)
		if len(n.GPUs) != 2 || n.GPUs[0].GPU != "1" || n.GPUs[1].Instance != test.last {
			t.Errorf("reading %d: %d devices, want board 1 and instance %s", i, len(n.GPUs), test.last)
		}
		if !n.Hides(Key{"u", "GPU-0", ""}) || n.Hides(Key{"u", "GPU-1", ""}) || n.Hides(Key{"u", "GPU-3", "1"}) || n.Hides(Key{"u", "GPU-gone", ""}) {
			t.Errorf("reading %d: hides %v", i, n.HiddenBoards)
		}
		if asked != test.asked || n.Hidden != test.hidden || n.HiddenBy != "--gpus" {
			t.Errorf("reading %d: chosen %d times, %d hidden by %q; want %d, %d", i, asked, n.Hidden, n.HiddenBy, test.asked, test.hidden)
		}
	}
}

// TestDoubtIsTold: a job's list that names an unknown GPU hides none, and the node says so.
func TestDoubtIsTold(t *testing.T) {
	for _, test := range []struct{ trouble, doubt, want string }{
		{"", "", ""}, {"", "there is no GPU 3", "there is no GPU 3"}, {"no GPU is left", "there is no GPU 3", "no GPU is left"},
	} {
		s := selector{choose: func(*Node) Selection { return Selection{Shown: []int{0, 1}, Trouble: test.trouble, Doubt: test.doubt} }}
		n := nodeOf(2)
		if s.apply(n); n.Trouble != test.want {
			t.Errorf("%q and %q: %q, want %q", test.trouble, test.doubt, n.Trouble, test.want)
		}
	}
}

// nodeOf returns a node of boards, and the two instances of board 3.
func nodeOf(boards int) *Node {
	n := &Node{URL: "u"}
	for i := range boards {
		n.GPUs = append(n.GPUs, NewGPU("u", canonical.Device{GPU: strconv.Itoa(i), UUID: "GPU-" + strconv.Itoa(i)}))
	}
	for _, instance := range []string{"1", "2"} {
		n.GPUs = append(n.GPUs, NewGPU("u", canonical.Device{GPU: "3", UUID: "GPU-3", Instance: instance}))
	}
	return n
}
