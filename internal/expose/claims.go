package expose

import "github.com/kpulse/kpulse-proxy/internal/canonical"

// place is where a board is.
type place struct{ hostname, gpu string }

// claims are the devices that have series already: a series may be there once
// only, whichever sources have its device.
type claims struct {
	devices map[canonical.Identity]bool
	// places are those of boards, which nobody misses there then.
	places map[place]bool
}

func newClaims() *claims {
	return &claims{devices: map[canonical.Identity]bool{}, places: map[place]bool{}}
}

// claim tells whether d, which is known as far as reach, gets its series here.
func (c *claims) claim(d *canonical.Device, r reach) bool {
	id, at := d.Identity(), place{d.Hostname, d.GPU}
	if c.devices[id] || r == missed && c.places[at] {
		return false
	}
	c.devices[id] = true
	if !d.IsInstance() {
		c.places[at] = true
	}
	return true
}
