package expose

import (
	"github.com/prometheus/common/version"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
)

// buildInfo returns the family build_info.
func buildInfo() string {
	h := newHeader(families[buildFamily])
	b := append([]byte(h.lines), h.name...)
	for i, l := range []struct{ name, value string }{
		{"version", version.Version},
		{"revision", version.GetRevision()},
		{"branch", version.Branch},
		{"goversion", version.GoVersion},
		{"goos", version.GoOS},
		{"goarch", version.GoArch},
		{"tags", version.GetTags()},
	} {
		separator := byte(',')
		if i == 0 {
			separator = '{'
		}
		b = exposition.AppendLabel(append(b, separator), l.name, l.value)
	}
	return string(append(b, "} 1\n"...))
}
