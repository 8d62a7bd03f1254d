package translate

import (
	"math/bits"
	"slices"
	"strconv"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// linkFamilies are the names, up to 4.8 and from 4.9 on, of the family that gives 1 for a
// link that is up and 0 for one that is not. Each link has a row, with the label nvlink.
// Rows of links are not rendered in other versions. 4.8.2 omits the row of link 0: it writes
// 17 rows if all 18 links are up (seen on GB300).
var linkFamilies = []string{"DCGM_FI_DEV_NVLINK_GET_STATE", "DCGM_FI_DEV_NVLINK_LINK_STATUS"}

// linkRow is the board and link of a label block.
type linkRow struct {
	board  int32 // index in the topology, below 0 for none
	number uint8
}

// linkStates counts the links that are up.
type linkStates struct {
	families []uint32            // the ids of linkFamilies in the Dict
	topology *canonical.Topology // that blocks refers to
	blocks   []linkRow           // by label block

	given, up []uint64 // by device, a bit for each link: a board with NVLink 5 has 18
}

// learn notes the id of a family.
func (l *linkStates) learn(id uint32, name string) {
	if slices.Contains(linkFamilies, name) {
		l.families = append(l.families, id)
	}
}

// countLinks fills in the number of active links of each board, if the source reports links. Of
// several rows of one link, the first counts.
func (t *Translator) countLinks(dst *canonical.Frame, b *raw.Batch) {
	l := &t.links
	if len(l.families) == 0 {
		return
	}
	t.placeLinks(b.Dict)
	l.given = slices.Grow(l.given[:0], dst.Len())[:dst.Len()]
	l.up = slices.Grow(l.up[:0], dst.Len())[:dst.Len()]
	clear(l.given)
	clear(l.up)
	for i := range b.Samples {
		s := &b.Samples[i]
		at := l.blocks[s.Labels]
		if at.board < 0 || !slices.Contains(l.families, s.Family) || s.Value != 0 && s.Value != 1 {
			continue
		}
		bit := uint64(1) << at.number // none from 64 on
		if l.given[at.board]&bit == 0 && s.Value == 1 {
			l.up[at.board] |= bit
		}
		l.given[at.board] |= bit
	}
	for board, given := range l.given {
		if cell := &dst.Row(board)[canonical.NVLinksActive]; given != 0 && isUntouched(*cell) {
			*cell = float64(bits.OnesCount64(l.up[board]))
		}
	}
}

// placeLinks finds the board of each row of a link in the topology.
func (t *Translator) placeLinks(d *raw.Dict) {
	l := &t.links
	if l.topology != t.topology {
		l.topology, l.blocks = t.topology, l.blocks[:0]
	}
	if len(l.blocks) == d.Blocks() {
		return
	}
	index := indexOf(t.topology.Devices)
	for id := len(l.blocks); id < d.Blocks(); id++ {
		at := linkRow{board: noDevice}
		t.labels = d.Labels(uint32(id), t.labels[:0])
		row := valuesOf(t.labels)
		number, err := strconv.ParseUint(row[roleNVLink], 10, 8)
		board, known := index[key{uuid: row[roleUUID]}]
		if err == nil && row[roleNoDevice] == "" && known {
			at = linkRow{int32(board), uint8(number)}
		}
		l.blocks = append(l.blocks, at)
	}
}
