package translate

import (
	"math"
	"slices"
	"strconv"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

const (
	// cliqueFamily is the family whose value is the clique of a board, unless the exporter's
	// counters file makes it a label. The UUID of the cluster is only ever a label: as a value
	// it is not a number, and its line is malformed (seen on 4.8.2). The family has the same
	// name in all versions, so there is nothing to render.
	cliqueFamily = "DCGM_FI_DEV_FABRIC_CLIQUE_ID"
	// cliqueColumn is its heading in dmon.
	cliqueColumn = "FMCID"
)

// isCliqueFamily reports whether a family gives cliques, under any of its names.
func isCliqueFamily(name string) bool { return name == cliqueFamily || name == cliqueColumn }

// cliques are the samples of cliqueFamily that the topology was made from.
type cliques struct {
	values []float64 // by device, NaN if it has none
	// count is how many samples the devices have, seen how many this reading has so far.
	count, seen int
}

// isClique reports whether a value of cliqueFamily is the id of a clique.
func isClique(v float64) bool {
	return v >= 0 && v == math.Trunc(v) && !(int32Blanks | int64Blanks).in(v)
}

// agree reports whether a sample matches those that the topology was made from.
func (c *cliques) agree(device int, v float64) bool {
	if !isClique(v) {
		return true
	}
	c.seen++
	return c.values[device] == v
}

// whole reports whether the reading has as many samples as the topology was made from.
func (c *cliques) whole() bool { return c.seen == c.count }

// readCliques sets the clique of each board that has none from a label: to that of the first
// sample of the board or of one of its instances. The devices are in the order of a Topology.
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
			board.Clique = strconv.FormatUint(uint64(s.Value), 10)
		}
	}
}
