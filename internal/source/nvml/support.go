//go:build cgo && linux

package nvml

import "github.com/NVIDIA/go-nvml/pkg/nvml"

// support says whether a board has a reading.
type support uint8

const (
	untried support = iota
	given           // it answered once: what it says later is of that moment
	refused         // it said at the first ask that it has none, and is not asked again
)

// refusals are the answers that say that it will be the same the next time.
var refusals = [...]nvml.Return{
	nvml.ERROR_NOT_SUPPORTED,
	nvml.ERROR_FUNCTION_NOT_FOUND,
	nvml.ERROR_INVALID_ARGUMENT,
	nvml.ERROR_ARGUMENT_VERSION_MISMATCH,
	nvml.ERROR_DEPRECATED,
	nvml.ERROR_NO_PERMISSION,
}

// hear takes over the answer to an ask and tells whether there is a value.
func (s *support) hear(answer nvml.Return) bool {
	if answer == nvml.SUCCESS {
		*s = given
		return true
	}
	if *s == untried {
		for _, r := range refusals {
			if answer == r {
				*s = refused
			}
		}
	}
	return false
}
