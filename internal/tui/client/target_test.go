package client

import (
	"strconv"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestSelection checks that a board is hidden if neither it nor an instance of it is selected, and
// that a job's list that names an unknown GPU hides none, and the node says so.
func TestSelection(t *testing.T) {
	n := nodeOf(4)
	n.keep(Selection{Shown: []int{1, len(n.GPUs) - 1}, By: "--gpus"})
	if len(n.GPUs) != 2 || n.GPUs[0].GPU != "1" || n.GPUs[1].Instance != "2" || n.Hidden != 2 || n.HiddenBy != "--gpus" {
		t.Errorf("%d devices, %d hidden by %q", len(n.GPUs), n.Hidden, n.HiddenBy)
	}
	if !n.Hides(Key{"u", "GPU-0", ""}) || n.Hides(Key{"u", "GPU-1", ""}) || n.Hides(Key{"u", "GPU-3", "1"}) || n.Hides(Key{"u", "GPU-gone", ""}) {
		t.Errorf("hides %v", n.HiddenBoards)
	}
	for _, test := range []struct{ trouble, doubt, want string }{
		{"", "", ""}, {"", "there is no GPU 3", "there is no GPU 3"}, {"no GPU is left", "there is no GPU 3", "no GPU is left"},
	} {
		n := nodeOf(2)
		if n.keep(Selection{Shown: []int{0, 1}, Trouble: test.trouble, Doubt: test.doubt}); n.Trouble != test.want {
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
