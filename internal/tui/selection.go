package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

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
	n.Hidden, n.HiddenBy, n.Trouble = boardsOf(all), c.chosen.By, c.chosen.Trouble
	n.GPUs = make([]*GPU, 0, len(c.chosen.Shown))
	for _, i := range c.chosen.Shown {
		n.GPUs = append(n.GPUs, all[i])
	}
	n.Hidden -= boardsOf(n.GPUs)
}

// boardsOf counts the boards of which at least a part is among gpus.
func boardsOf(gpus []*GPU) int {
	n := 0
	for i, g := range gpus {
		if i == 0 || g.UUID != gpus[i-1].UUID || g.Node != gpus[i-1].Node || g.Index != gpus[i-1].Index {
			n++
		}
	}
	return n
}

// hiddenItems say for the header how many boards are not shown, and why.
func hiddenItems(s *State) []item {
	hidden, by := 0, ""
	for _, n := range s.Nodes {
		hidden += n.Hidden
		by = cmp.Or(by, n.HiddenBy)
	}
	switch {
	case hidden == 0 && by == "":
		return nil
	case hidden == 0: // the source tells of the chosen ones alone
		return []item{{7, false, []piece{{"those of ", styleLabel}, {by, styleAccent}, {showHint(by), styleLabel}}}}
	}
	items := []item{{3, false, []piece{{strconv.Itoa(hidden), styleAccent}, {" hidden", styleLabel}}}}
	if by != "" {
		items = append(items, item{7, false, []piece{{"by ", styleLabel}, {by, styleAccent}, {showHint(by), styleLabel}}})
	}
	return items
}

// showHint says how to see what is left out.
func showHint(by string) string {
	if by == "--gpus" {
		return ""
	}
	return ", --show-all shows all"
}

// drawHidden says that all GPUs of a node are left out, from the row y on, and
// returns the row below.
func drawHidden(r screen.Rect, y int, n *Node) int {
	r.Center(y, fmt.Sprintf("None of the GPUs of %s is shown; it has %d", n.Name, n.Hidden), styleStrong)
	return 1 + paragraph(r, y+1, cmp.Or(n.Trouble, "left out by "+n.HiddenBy+"; show them with --show-all or --gpus=0"), styleWarn)
}
