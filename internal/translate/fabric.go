package translate

import (
	"math"
	"slices"
	"strconv"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

const (
	// cliqueFamily is the family that gives the clique of a board as its value, where the
	// counters of the exporter do not make a label of it. The UUID of the cluster is a label
	// alone: as a value it is not a number, and its line no exposition (seen on 4.8.2). All
	// versions have the same name for it, so that there is nothing to render in others.
	cliqueFamily = "DCGM_FI_DEV_FABRIC_CLIQUE_ID"
	// cliqueColumn is how dmon heads it.
	cliqueColumn = "FMCID"
)

// isCliqueFamily reports whether a family gives cliques, under any of its names.
func isCliqueFamily(name string) bool { return name == cliqueFamily || name == cliqueColumn }

// cliques are the samples of cliqueFamily that the topology was made of.
type cliques struct {
	values []float64 // of each device that has one, else NaN
	// count is how many samples the devices have, seen how many this reading has so far.
	count, seen int
}

// isClique reports whether a value of cliqueFamily is the id of one.
func isClique(v float64) bool {
	return v >= 0 && v == math.Trunc(v) && !(int32Blanks | int64Blanks).in(v)
}

// agree reports whether a sample is what the topology was made of.
func (c *cliques) agree(device int, v float64) bool {
	if !isClique(v) {
		return true
	}
	c.seen++
	return c.values[device] == v
}

// whole reports whether the reading has as many samples as the topology was made of.
func (c *cliques) whole() bool { return c.seen == c.count }

// readCliques gives each board, in the order of a Topology, the clique that the first
// sample of it or of an instance of it gives, unless a label does.
func (t *Translator) readCliques(devices []canonical.Device, b *raw.Batch) {
	c := &t.cliques
	c.count, c.values = 0, slices.Repeat([]float64{math.NaN()}, len(devices))
	for i := range b.Samples {
		s := &b.Samples[i]
		row := t.deviceAt(s.Labels)
		if row < 0 || !t.families[s.Family].clique || !isClique(s.Value) {
			continue
		}
		c.count++
		c.values[row] = s.Value
		if board := &devices[devices[row].Board]; board.Clique == "" {
			board.Clique = strconv.FormatFloat(s.Value, 'f', -1, 64)
		}
	}
}
