package dcgmi

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// Gives reports whether dmon can show the DCGM field with that id.
func Gives(id int) bool {
	return !slices.ContainsFunc(dcgm.Fields[:], func(f dcgm.Field) bool { return f.ID == id && f.Unprintable })
}
