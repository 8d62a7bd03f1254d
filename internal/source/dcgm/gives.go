package dcgm

import (
	"slices"
)

// Gives reports whether dmon can show the DCGM field with that id.
func Gives(id int) bool {
	return !slices.ContainsFunc(Fields[:], func(f Field) bool { return f.ID == id && f.Unprintable })
}
