package view

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// machine is the devices of one machine, State.GPUs[first:end].
type machine struct{ first, end int }

// machinesOf appends the machines of s in the order of their devices; none if there is only one,
// or if the order of the devices splits a machine.
func machinesOf(dst []machine, s *State) []machine {
	if !s.Nodes.Several() {
		return dst
	}
	for i, g := range s.GPUs {
		if i > 0 && sameMachine(g, s.GPUs[i-1]) {
			dst[len(dst)-1].end++
			continue
		}
		if slices.ContainsFunc(dst, func(o machine) bool { return sameMachine(g, s.GPUs[o.first]) }) {
			return dst[:0]
		}
		dst = append(dst, machine{i, i + 1})
	}
	return dst
}

func sameMachine(a, b *client.GPU) bool { return a.Key.Node == b.Key.Node && a.Hostname == b.Hostname }

// slot is a line in tables side by side: a device, or with gpu -1 the heading of a machine.
type slot struct{ part, y, gpu, machine int }

// placeLines places a line for each device in tables of at most rows rows, all about equally
// high, and returns their number. A board stays with its instances. A machine that continues in
// the next table has its heading there too.
func (f *fleetView) placeLines(s *State, rows int, headings bool) (parts int) {
	n := len(s.GPUs)
	if headings {
		n += len(f.machines)
	}
	parts = f.fillTables(rows, headings)
	for high := (n + parts - 1) / parts; high < rows; high++ {
		if f.fillTables(high, headings) <= parts {
			return parts
		}
	}
	return f.fillTables(rows, headings)
}

// fillTables fills f.slots, one table after the other, and returns the number of tables.
func (f *fleetView) fillTables(rows int, headings bool) (parts int) {
	f.slots = f.slots[:0]
	part, y, gpu, in, headed := 0, 0, 0, -1, false
	for i := range f.units {
		size := 1 + len(f.units[i].Instances)
		if f.units[i].Board == nil {
			size--
		}
		begins := headings && in+1 < len(f.machines) && gpu == f.machines[in+1].first
		if begins {
			in, headed = in+1, false
		}
		need := size
		if headings && !headed {
			need++
		}
		if y > 0 && y+min(need, rows) > rows {
			part, y, headed = part+1, 0, false
		}
		for end := gpu + size; gpu < end; gpu++ {
			if y == rows { // of a unit that is higher than a table
				part, y, headed = part+1, 0, false
			}
			if headings && !headed && rows > 1 {
				f.slots = append(f.slots, slot{part, y, -1, in})
				y, headed = y+1, true
			}
			f.slots = append(f.slots, slot{part, y, gpu, in})
			y++
		}
	}
	return part + 1
}

// drawHeading writes the name of the machine of gpus, its state, and their health and use.
func drawHeading(r screen.Rect, s *State, gpus []*client.GPU) {
	from, to := drawLine(r, append([]item{left(0, piece{gpus[0].Hostname, styleStrong})}, machineItems(s, gpus, r.W >= headingWordsFrom)...))
	r.Sub(from-1, 0, to-from+1, 1).Fill('─', styleTrack)
}

// headingWordsFrom is the least width of a heading with words for problems.
const headingWordsFrom = 40

// machineItems show the health, real utilization and power of the devices of one machine; for a
// silent machine, the age of the last reading.
func machineItems(s *State, gpus []*client.GPU, words bool) []item {
	n := s.Nodes.Of(gpus[0])
	if n != nil {
		switch freshness, since := n.Freshness(s.Now); {
		case n.Stopped() && words:
			return []item{left(1, piece{"✖ stopped answering " + AgeText(since) + " ago", styleCrit})}
		case n.Stopped():
			return []item{left(1, piece{"✖ " + AgeText(since), styleCrit})}
		case freshness != client.Fresh && !n.FetchedAt.IsZero():
			return []item{left(1, piece{"▲ " + AgeText(since), styleWarn})}
		}
	}
	t := client.TotalsOf(s.Nodes, gpus, s.Now)
	items := []item{left(1, healthPieces(&t, n != nil && !s.silent(n), words)...), left(2, realPieces(t.Real)...)}
	if canonical.Given(t.Power) {
		items = append(items, right(3, piece{orMissing("%.2f", t.Power/1e3, 5), stylePlain}, piece{" kW", styleLabel}))
	}
	return items
}
