package translate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// excess is what a label longer than Options.MaxLabelValue costs, in ascending order. A GPU is
// lost only if it cannot be told from others without the label.
type excess uint8

const (
	excessNone   excess = iota
	excessValue         // its value
	excessHolder        // the name of the holder, but not that there is one
	excessDevice        // the sample, whose device is not known
)

// excessWords end the note about each excess.
var excessWords = [...]string{
	excessValue:  "it is left out",
	excessHolder: "the holder of this GPU is not named",
	excessDevice: "its GPU is left out",
}

// excessOf is the excess of each role. It is none if only the presence of the label matters.
var excessOf = func() (costs [numRoles]excess) {
	for r := range numRoles {
		costs[r] = excessValue
	}
	for _, r := range []role{roleGPU, roleUUID, roleInstance, roleEntity} {
		costs[r] = excessDevice
	}
	for _, r := range []role{roleNamespace, rolePod, roleContainer, roleOldNamespace, roleOldPod, roleOldContainer, roleHPCJob, roleClaimedProfile, roleClaimedUUID} {
		costs[r] = excessHolder
	}
	for _, r := range []role{roleTargetJob, roleTargetInstance} {
		costs[r] = excessNone
	}
	return costs
}()

// loss is the highest cost of labels, and a note about the first label with that cost; nil if
// they cost nothing.
type loss struct {
	cost excess
	note *canonical.Note
}

// shorten removes values that are longer than allowed from a row. The name of a holder is
// replaced by a digest, so that two holders stay distinct.
func (t *Translator) shorten(row *values, labels []raw.Label) (most loss) {
	if t.maxLabelValue == 0 {
		return loss{}
	}
	for r, value := range row {
		cost := excessOf[r]
		if len(value) <= t.maxLabelValue || cost == excessNone {
			continue
		}
		if row[r] = ""; cost == excessHolder {
			sum := sha256.Sum256([]byte(value))
			row[r] = hex.EncodeToString(sum[:])
		}
		if cost > most.cost {
			most = loss{cost, &canonical.Note{
				Cause:  fmt.Sprintf("the label %s has %d bytes, more than --source.max-label-value=%d: %s", labelOf(role(r), value, labels), len(value), t.maxLabelValue, excessWords[cost]),
				Remedy: "have the exporter shorten it, or raise --source.max-label-value",
			}}
		}
	}
	return most
}

// labelOf returns the name of the label with that role and value.
func labelOf(wanted role, value string, labels []raw.Label) string {
	for _, l := range labels {
		if r, _, known := placeOf(l.Name); known && r == wanted && l.Value == value {
			return l.Name
		}
	}
	return ""
}

// skip counts a sample of a block that belongs to no device.
func (t *Translator) skip(block int32, s *raw.Sample, rep *Report) {
	if block == longLabel {
		t.countLong(s, rep)
	}
}

// countLong counts a sample with a label that is longer than allowed.
func (t *Translator) countLong(s *raw.Sample, rep *Report) {
	if t.families[s.Family].rule == nil {
		return
	}
	rep.Dropped[canonical.DropLabelTooLong]++
	if long := t.long[s.Labels]; long.cost > rep.longCost {
		rep.longCost, rep.LongLabel = long.cost, long.note
	}
}
