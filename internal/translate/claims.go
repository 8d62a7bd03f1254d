package translate

import "strings"

// With --kubernetes-enable-dra, dcgm-exporter looks up a claimed MIG device by the UUID of
// its board. In a reading of boards and instances, the row of the board then names the pod,
// with the device's own profile and UUID, and the row of the instance names no pod. Such a
// pod holds an instance, never the board. Rows of instances have no UUID of their own, so
// the instance is known only if it is the board's only one with that profile.

// claimedMIG is the MIG device that a workload holds through a claim, as the row of its board
// names it. The zero value is none.
type claimedMIG struct{ profile, uuid string }

func (c claimedMIG) clone() claimedMIG {
	return claimedMIG{strings.Clone(c.profile), strings.Clone(c.uuid)}
}

// isClaimed reports whether v describes a board of which its workload holds an instance.
func (v *variant) isClaimed() bool { return !v.IsInstance() && v.claimed != claimedMIG{} }

// claimedKind identifies the MIG devices of one profile on a board.
type claimedKind struct {
	board   int32
	profile string
}

// claims are the claimed MIG devices of a reading.
type claims map[claimedKind]*claim

type claim struct {
	uuid      string
	several   bool  // other UUIDs are claimed too
	instances int   // how many the board has with the profile
	instance  int32 // the last of these
}

// claimedInstances finds the claimed MIG devices among the present variants.
func (t *Translator) claimedInstances(present []int32) claims {
	var all claims
	for _, id := range present {
		v, row := &t.variants[id], t.positions[id].row
		if !v.isClaimed() {
			continue
		}
		kind := claimedKind{row, normalProfile(v.claimed.profile)}
		if c, ok := all[kind]; ok {
			c.several = c.several || c.uuid != v.claimed.uuid
			continue
		}
		if all == nil {
			all = claims{}
		}
		c := &claim{uuid: v.claimed.uuid}
		for i := range t.topology.Devices {
			d := &t.topology.Devices[i]
			if d.IsInstance() && d.Board == int(row) && (kind.profile == "" || kind.profile == normalProfile(d.Profile)) {
				c.instance = int32(i)
				c.instances++
			}
		}
		all[kind] = c
	}
	return all
}

// instance returns the row of the instance that a claimed device of a board is, or notHere if
// that is unknown.
func (c claims) instance(board int32, claimed claimedMIG) int32 {
	it := c[claimedKind{board, normalProfile(claimed.profile)}]
	if it.several || it.instances != 1 {
		return notHere
	}
	return it.instance
}

// normalProfile returns a profile in lower case, such as 1g.10gb+me.
func normalProfile(profile string) string { return strings.ToLower(profile) }
