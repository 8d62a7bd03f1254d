package fake

import "fmt"

// status is a return code of DCGM. A process exits with its low byte.
type status int

// The codes that the fake returns by itself.
const (
	ok            status = 0
	badParam      status = -1
	lineMalformed status = -2 // the command line
	generic       status = -3
	notConfigured status = -5
	notSupported  status = -6
	noData        status = -14
	gpuLost       status = -18
	disconnected  status = -21
	groupIsEmpty  status = -35
	noNVML        status = -56
)

// exit returns s as a shell sees it.
func (s status) exit() int { return int(s) & 0xff }

// texts are DCGM's words for its codes.
var texts = map[status]string{
	badParam:      "Bad parameter passed to function",
	generic:       "Generic unspecified error",
	notConfigured: "Setting not configured",
	notSupported:  "Feature not supported",
	noData:        "No data is available",
	gpuLost:       "GPU is lost",
	disconnected:  "Host engine connection invalid/disconnected",
	-23:           "The GPUs of this group are incompatible with each other for the requested operation",
	-24:           "Max limit reached for the object",
	-29:           "Host engine is running as non-root",
	-33:           "This request is serviced by a module of DCGM that is not currently loaded",
	-34:           "The requested operation could not be completed because the affected resource is in use",
	groupIsEmpty:  "The specified group is empty, and this operation is incompatible with an empty group",
	-36:           "Profiling is not supported for this group of GPUs or GPU",
	-37:           "The third-party Profiling module returned an unrecoverable error",
	-38:           "The requested profiling metrics cannot be collected in a single pass",
	-44:           "The installed driver version is insufficient for this API",
	-54:           "The hostengine and all modules are paused",
	noNVML:        "Cannot perform the requested operation because NVML doesn't exist on this system.",
	-57: "Cannot perform the requested operation because an NVML driver timeout error was detected. " +
		"Verify NVML is responsive before restarting the hostengine.",
	-67: "Cannot perform the requested operation because the GPUs are detached",
}

// watchTexts stand in for texts when a watch is refused.
var watchTexts = map[status]string{
	-29: "Unable to watch one or more of the requested fields because doing so requires the host engine to be running as root.",
	-44: "Unable to watch one or more of the requested fields because doing so requires a newer driver version than what is currently installed.",
}

// String returns DCGM's words for s.
func (s status) String() string {
	if text, known := texts[s]; known {
		return text
	}
	return fmt.Sprintf("error %d that the fake has no words for", int(s))
}

// refusal returns what dmon prints when a watch is refused with s.
func (s status) refusal() string {
	if text, special := watchTexts[s]; special {
		return text
	}
	return s.String()
}
