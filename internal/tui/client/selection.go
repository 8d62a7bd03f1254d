package client

import "slices"

// Selection is which devices of a node are shown.
type Selection struct {
	// Shown are indices of the devices that there are, in rising order.
	Shown []int
	// By is what leaves the others out, such as --gpus or a variable of the
	// environment.
	By string
	// Trouble says in one line what was asked for and is not there, with what to
	// do; "" is nothing.
	Trouble string
}

// chooser leaves out of what a node says the devices that are not wanted. It is for
// one goroutine.
type chooser struct {
	choose func(n *Node) Selection // nil chooses all
	keys   []Key                   // those of the devices that chosen is of
	chosen Selection
}

// apply leaves out what is not wanted of n, which nobody has seen yet. It chooses
// anew only when there are other devices than before.
func (c *chooser) apply(n *Node) {
	if c.choose == nil {
		return
	}
	same := func(k Key, g *GPU) bool { return k == g.Key }
	if c.keys == nil || !slices.EqualFunc(c.keys, n.GPUs, same) {
		c.keys = []Key{}
		for _, g := range n.GPUs {
			c.keys = append(c.keys, g.Key)
		}
		c.chosen = c.choose(n)
	}
	all := n.GPUs
	n.Hidden, n.HiddenBy, n.Trouble = boards(all), c.chosen.By, c.chosen.Trouble
	n.GPUs = make([]*GPU, 0, len(c.chosen.Shown))
	for _, i := range c.chosen.Shown {
		n.GPUs = append(n.GPUs, all[i])
	}
	n.Hidden -= boards(n.GPUs)
}

// boards counts the boards of which at least a part is among gpus.
func boards(gpus []*GPU) (n int) {
	for range Units(gpus) {
		n++
	}
	return n
}
