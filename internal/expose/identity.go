package expose

import "github.com/kpulse/kpulse-proxy/internal/canonical"

// identity tells devices apart.
type identity struct{ uuid, instance, profile, hostname, gpu string }

// identityOf returns the identity of d: uuid and instance, whatever a source
// calls its host, or its place where no uuid is known. The profile is part of an
// instance: ids are given anew when a board is cut another way.
func identityOf(d *canonical.Device) identity {
	if d.UUID != "" {
		return identity{uuid: d.UUID, instance: d.Instance, profile: d.Profile}
	}
	return identity{hostname: d.Hostname, gpu: d.GPU, instance: d.Instance, profile: d.Profile}
}

// claims are the devices that have series already: a series may be there once
// only, whichever sources have its device.
type claims struct {
	devices map[identity]bool
	// places are those of boards, which nobody misses there then.
	places map[identity]bool
}

func newClaims() *claims {
	return &claims{devices: map[identity]bool{}, places: map[identity]bool{}}
}

// claim tells whether d, which is known as far as reach, gets its series here.
func (c *claims) claim(d *canonical.Device, r reach) bool {
	id, place := identityOf(d), identity{hostname: d.Hostname, gpu: d.GPU}
	if c.devices[id] || r == missed && c.places[place] {
		return false
	}
	c.devices[id] = true
	if !d.IsInstance() {
		c.places[place] = true
	}
	return true
}
