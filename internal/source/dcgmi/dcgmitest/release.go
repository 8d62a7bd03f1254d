package dcgmitest

import (
	"fmt"
	"strings"
)

// Release is a release of DCGM: major, minor and patch.
type Release [3]int

// Release returns s.Version as numbers. What is missing or is no number is 0.
func (s Scenario) Release() Release {
	version := s.Version
	if version == "" {
		version = "4.6.0"
	}
	return release(version)
}

// Since says whether r is the release v, such as "4.4.2", or a later one.
func (r Release) Since(v string) bool {
	w := release(v)
	for i := range r {
		if r[i] != w[i] {
			return r[i] > w[i]
		}
	}
	return true
}

// String returns r as in 4.6.0.
func (r Release) String() string { return fmt.Sprintf("%d.%d.%d", r[0], r[1], r[2]) }

func release(version string) (r Release) {
	_, _ = fmt.Sscanf(strings.ReplaceAll(version, ".", " "), "%d %d %d", &r[0], &r[1], &r[2])
	return r
}
