package dcgm

import (
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Profiled reads `dcgmi profile -l`, the profiling fields of a GPU, and returns the ids of the Multiplexed fields that it
// counts.
//
//	+----------------+----------+------------------------------------------------------+
//	| Group.Subgroup | Field ID | Field Tag                                            |
//	+----------------+----------+------------------------------------------------------+
//	| A.0            | 1001     | gr_engine_active                                     |
func Profiled(listing []byte) (ids []int) {
	for line := range lines(listing) {
		_, rest := row(line)
		column, _, _ := strings.Cut(rest, "|")
		if n := id(strings.TrimSpace(column)); IsMultiplexed(n) {
			ids = append(ids, n)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// fieldByID returns a field that DCGM has, nil if there is none with that id.
func fieldByID(id int) *Field {
	for i := range Fields {
		if f := &Fields[i]; f.ID == id && !f.Foreign() {
			return f
		}
	}
	return nil
}

// IsMultiplexed reports whether the field with that id is Multiplexed.
func IsMultiplexed(id int) bool {
	f := fieldByID(id)
	return f != nil && f.Multiplexed
}

// OneOfEach returns the entity id of one board of each model, among the boards that are
// selected at least in part.
func (n *Inventory) OneOfEach(s *canonical.Selection) []int {
	var models []string
	var entities []int
	for i := range n.Devices {
		board := &n.Devices[n.Devices[i].Board]
		if s.Chosen[i] && !board.Inactive && !slices.Contains(models, board.Model) {
			models, entities = append(models, board.Model), append(entities, board.Entity)
		}
	}
	return entities
}
