//go:build cgo && linux

package nvml

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// notices logs what is denied and why NVML reports no XIDs, each once. Any goroutine may use it.
type notices struct {
	logger *slog.Logger
	denied sync.Map                     // by call
	noXIDs atomic.Pointer[source.Error] // the first reason, nil for none
}

// check logs a denied call. It returns false if the answer means that the board is lost.
func (n *notices) check(board int, call string, answer nvml.Return) bool {
	if answer == nvml.ERROR_NO_PERMISSION {
		if _, known := n.denied.LoadOrStore(call, true); !known {
			n.logger.Warn("the driver denies a reading", "gpu", board, "call", call,
				"remedy", "run as root or with CAP_SYS_ADMIN if you need it; see RmProfilingAdminOnly for profiling")
		}
	}
	return answer != nvml.ERROR_GPU_IS_LOST
}

// withoutXIDs records that a call for the library (of is "") or for a board (" of GPU 3") fails, so that there are no events.
func (n *notices) withoutXIDs(of, call string, answer nvml.Return) {
	e := failure(source.Unsupported, "NVML does not report XIDs"+of+": "+call+": "+answer.String(), "see dmesg for them, or read them with --backend=dcgm")
	if n.noXIDs.CompareAndSwap(nil, e) {
		n.logger.Warn(e.Cause, "remedy", e.Remedy)
	}
}

// with adds why there are no XIDs to the failure e of a stream, nil for none.
func (n *notices) with(e *source.Error) *source.Error {
	switch no := n.noXIDs.Load(); {
	case e == nil:
		return no
	case no == nil:
		return e
	default:
		both := *e
		both.Cause += ", " + no.Cause
		return &both
	}
}
