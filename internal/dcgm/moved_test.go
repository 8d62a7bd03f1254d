package dcgm

import "testing"

func TestMovedAndEqual(t *testing.T) {
	base := func() Node {
		whole, cut := newBoard(0), newBoard(1)
		whole.UUID, cut.UUID = uuid0, uuid1
		cut.Instances = []Instance{{Entity: 7, ID: 1, Profile: "3g.40gb"}, {Entity: 8, ID: 2}}
		return Node{Boards: []Board{whole, cut}}
	}
	tests := []struct {
		name         string
		change       func(n *Node)
		moved, equal bool
	}{
		{"nothing", func(*Node) {}, false, true},
		{"a driver", func(n *Node) { n.Boards[0].Driver = "580" }, false, false},
		{"a UUID that is not told", func(n *Node) { n.Boards[0].UUID = "" }, false, false},
		{"a board that is gone", func(n *Node) { n.Boards = n.Boards[1:] }, false, false},
		{"another board", func(n *Node) { n.Boards[0].UUID = "GPU-x" }, true, false},
		{"an instance that is gone", func(n *Node) { n.Boards[1].Instances = n.Boards[1].Instances[:1] }, false, false},
		{"another instance", func(n *Node) { n.Boards[1].Instances[1].ID = 9 }, true, false},
		{"another size", func(n *Node) { n.Boards[1].Instances[0].Profile = "4g.40gb" }, true, false},
		{"a size that is told at last", func(n *Node) { n.Boards[1].Instances[1].Profile = "4g.40gb" }, false, false},
		{"an instance of another board", func(n *Node) {
			n.Boards[0].Instances, n.Boards[1].Instances = n.Boards[1].Instances, nil
		}, true, false},
	}
	for _, tt := range tests {
		a, b := base(), base()
		tt.change(&b)
		if got := Moved(&a, &b); got != tt.moved {
			t.Errorf("%s: moved is %v", tt.name, got)
		}
		if got := Equal(&a, &b); got != tt.equal {
			t.Errorf("%s: equal is %v", tt.name, got)
		}
	}
}
