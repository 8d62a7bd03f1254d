//go:build cgo && linux

package nvml

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// notices logs what is denied and why NVML reports no XIDs, each once. Any goroutine may use it.
type notices struct {
	logger *slog.Logger

	mu     sync.Mutex
	denied map[string]bool // calls
	noXIDs []string        // causes
}

func newNotices(logger *slog.Logger) *notices {
	return &notices{logger: logger, denied: map[string]bool{}}
}

// check logs a denied call. It returns false if the answer means that the board is lost.
func (n *notices) check(board int, call string, answer nvml.Return) bool {
	if answer != nvml.ERROR_NO_PERMISSION {
		return answer != nvml.ERROR_GPU_IS_LOST
	}
	n.mu.Lock()
	known := n.denied[call]
	n.denied[call] = true
	n.mu.Unlock()
	if !known {
		n.logger.Warn("the driver denies a reading", "gpu", board, "call", call,
			"remedy", "run as root or with CAP_SYS_ADMIN if you need it; see RmProfilingAdminOnly for profiling")
	}
	return true
}

// noXIDsRemedy is the remedy if NVML does not report XIDs.
const noXIDsRemedy = "see dmesg for them, or read them with --backend=dcgm"

// withoutXIDs records that a call for a board, or for the library, fails, so that there are no
// events.
func (n *notices) withoutXIDs(board int, call string, answer nvml.Return) {
	whose := "NVML does not report XIDs"
	if board != ofLibrary {
		whose = fmt.Sprintf("NVML does not report XIDs of GPU %d", board)
	}
	cause := fmt.Sprintf("%s: %s: %s", whose, call, answer)
	n.mu.Lock()
	known := slices.Contains(n.noXIDs, cause) // from an earlier start
	if !known {
		n.noXIDs = append(n.noXIDs, cause)
	}
	n.mu.Unlock()
	if !known {
		n.logger.Warn(whose, "call", call, "answer", answer.String(), "remedy", noXIDsRemedy)
	}
}

// with adds why there are no XIDs to the failure e of a stream, nil for none.
func (n *notices) with(e *source.Error) *source.Error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.noXIDs) == 0 {
		return e
	}
	causes := strings.Join(n.noXIDs, ", ")
	if e == nil {
		return &source.Error{Failure: source.Unsupported, Cause: causes, Remedy: noXIDsRemedy}
	}
	both := *e
	both.Cause += ", " + causes
	return &both
}
