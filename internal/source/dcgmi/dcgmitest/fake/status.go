package fake

import "fmt"

// status is a return code of DCGM. A process exits with its low byte.
type status int

// The codes that the fake returns by itself.
const (
	ok           status = 0
	badParam     status = -1
	noData       status = -14
	gpuLost      status = -18
	disconnected status = -21
	noNVML       status = -56
)

// exit returns s as a shell sees it.
func (s status) exit() int { return int(s) & 0xff }

// texts are DCGM's words for its codes. Those of all codes are read in TestReturns of dcgmi.
var texts = map[status]string{
	badParam:     "Bad parameter passed to function",
	noData:       "No data is available",
	gpuLost:      "GPU is lost",
	disconnected: "Host engine connection invalid/disconnected",
	-33:          "This request is serviced by a module of DCGM that is not currently loaded",
	-37:          "The third-party Profiling module returned an unrecoverable error",
	-38:          "The requested profiling metrics cannot be collected in a single pass",
}

// String returns DCGM's words for s.
func (s status) String() string {
	if text, known := texts[s]; known {
		return text
	}
	return fmt.Sprintf("error %d that the fake has no words for", int(s))
}
