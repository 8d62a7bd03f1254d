package translate

import (
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// unitWords describe each unit in HELP. A Number has none.
var unitWords = map[Unit]string{
	Ratio:           " (ratio, 0 to 1)",
	Percent:         " (in %)",
	Bytes:           " (in bytes)",
	MiB:             " (in MiB)",
	BytesPerSecond:  " (in bytes per second)",
	NVLinkMegabytes: " (in MB/s of 1000 KiB)",
	Watts:           " (in W)",
	Milliwatts:      " (in mW)",
	Joules:          " (in J)",
	Millijoules:     " (in mJ)",
	Celsius:         " (in C)",
	Hertz:           " (in Hz)",
	Megahertz:       " (in MHz)",
	Seconds:         " (in s)",
	Nanoseconds:     " (in ns)",
}

// renderedMark ends the HELP texts of rendered families, so that they are not mistaken for the
// exporter's, which are evidence of its version.
const renderedMark = "; rendered by kpulse-proxy."

// help returns the HELP text of a quantity in v.
func (q *quantity) help(v Version) string {
	return strings.TrimSuffix(canonical.Fields[q.field].Help, ".") + unitWords[q.worded[v].unit] + renderedMark
}
