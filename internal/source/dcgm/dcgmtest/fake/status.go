package fake

import "fmt"

// status is a return code of DCGM. A process exits with its low byte.
type status int

// The codes that the fake itself returns.
const (
	ok           status = 0
	badParam     status = -1
	noData       status = -14
	gpuLost      status = -18
	disconnected status = -21
	noNVML       status = -56
)

// exit returns the exit status for s.
func (s status) exit() int { return int(s) & 0xff }

// texts are DCGM's texts for its codes. TestReturns of dcgmi covers those of all codes.
var texts = map[status]string{
	badParam:     "Bad parameter passed to function",
	noData:       "No data is available",
	gpuLost:      "GPU is lost",
	disconnected: "Host engine connection invalid/disconnected",
	-33:          "This request is serviced by a module of DCGM that is not currently loaded",
	-37:          "The third-party Profiling module returned an unrecoverable error",
	-38:          "The requested profiling metrics cannot be collected in a single pass",
}

// String returns DCGM's text for s.
func (s status) String() string {
	if text, known := texts[s]; known {
		return text
	}
	return fmt.Sprintf("error %d, for which the fake has no text", int(s))
}
