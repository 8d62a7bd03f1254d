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

// silenceRemedy is the remedy if NVML does not report XIDs.
const silenceRemedy = "see dmesg for them, or read them with --backend=dcgm"

// silence records why NVML does not report XIDs. Any goroutine may use it.
type silence struct {
	mu     sync.Mutex
	causes []string
}

// add records and logs that a call for a board, or for the library, fails, so that there are no
// events.
func (s *silence) add(logger *slog.Logger, board int, call string, answer nvml.Return) {
	whose := "NVML does not report XIDs"
	if board != ofLibrary {
		whose = fmt.Sprintf("NVML does not report XIDs of GPU %d", board)
	}
	cause := fmt.Sprintf("%s: %s: %s", whose, call, text(answer))
	s.mu.Lock()
	known := slices.Contains(s.causes, cause) // from an earlier start
	if !known {
		s.causes = append(s.causes, cause)
	}
	s.mu.Unlock()
	if known {
		return
	}
	logger.Warn(whose, "call", call, "answer", text(answer), "remedy", silenceRemedy)
}

// with adds the silence to the failure e of a stream, nil for none.
func (s *silence) with(e *source.Error) *source.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.causes) == 0 {
		return e
	}
	causes := strings.Join(s.causes, ", ")
	if e == nil {
		return &source.Error{Failure: source.Unsupported, Cause: causes, Remedy: silenceRemedy}
	}
	both := *e
	both.Cause += ", " + causes
	return &both
}
