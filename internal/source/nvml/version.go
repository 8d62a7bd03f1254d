//go:build cgo && linux

package nvml

import "strings"

// Version names the driver and NVML, and GPM where it counts the profiling fields of
// some board: "driver 580.105.08, NVML 13.580.105.08, GPM". It is "" before the first
// reading.
func (s *Source) Version() string {
	if v := s.version.Load(); v != nil {
		return *v
	}
	return ""
}

// describe makes what Version returns, if that has changed.
func (s *Source) describe() {
	var parts []string
	if s.lib.driver != "" {
		parts = append(parts, "driver "+s.lib.driver)
	}
	if s.lib.version != "" {
		parts = append(parts, "NVML "+s.lib.version)
	}
	for i := range s.states {
		if s.states[i].counting {
			parts = append(parts, "GPM")
			break
		}
	}
	if text := strings.Join(parts, ", "); text != s.Version() {
		s.version.Store(&text)
	}
}
