//go:build cgo && linux

package nvml

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// boardState is what the reading goroutine knows about a board.
type boardState struct {
	*gpu
	busy   bool
	asked  time.Time
	result *outcome // the answer that is not served yet, nil for none
	is     condition
	call   string // the call that hangs
	gpm    support
}

// condition is why a board has no readings.
type condition uint8

const (
	fine    condition = iota
	hanging           // a call has not returned for a period
	lost              // as the driver says
)

// The remedies for boards without readings.
const (
	hangRemedy = "see dmesg for XIDs and whether nvidia-smi hangs too; a GPU reset or a reboot ends it"
	leftRemedy = "see what nvidia-smi reports for it, and start kpulse-proxy again once it is back"
	lostRemedy = "see dmesg for XID 79; reset it with nvidia-smi --gpu-reset, or reboot"
)

// ask handles late answers, asks all boards that are not busy, and returns how
// many.
func (n *openNode) ask(begun time.Time) (pending int) {
	for len(n.answers) > 0 {
		n.handle(<-n.answers)
	}
	for i := range n.states {
		if st := &n.states[i]; !st.busy {
			st.busy, st.asked = true, begun
			st.asks <- begun
			pending++
		}
	}
	return pending
}

// handle records an answer.
func (n *openNode) handle(a workerAnswer) {
	for i := range n.states {
		if st := &n.states[i]; st.gpu == a.gpu {
			st.busy, st.result = false, a.result
		}
	}
}

// hasReading reports whether there is something to serve.
func (n *openNode) hasReading() bool {
	for i := range n.states {
		if result := n.states[i].result; result != nil && !result.lost {
			return true
		}
	}
	return false
}

// serve marks all results as served.
func (n *openNode) serve() {
	for i := range n.states {
		n.states[i].result = nil
	}
}

// watch detects boards that hang or are lost, or are back, and logs it.
func (s *Source) watch(n *openNode, now time.Time) {
	changed := false
	for i := range n.states {
		st := &n.states[i]
		if st.result != nil && !st.result.lost && st.gpm != st.result.gpm {
			changed, st.gpm = true, st.result.gpm
		}
		is, call := st.judge(now, s.opts.Period)
		if is == st.is && call == st.call {
			continue
		}
		switch {
		case is == hanging:
			s.opts.Logger.Warn("a call into the driver hangs; its GPU is left out of the readings", "gpu", st.board, "call", call, "remedy", hangRemedy)
		case is == lost:
			s.opts.Logger.Warn("the driver has lost a GPU; it has no readings from now on", "gpu", st.board, "remedy", lostRemedy)
		case st.is == lost:
			s.opts.Logger.Info("a lost GPU is back", "gpu", st.board)
		}
		changed, st.is, st.call = true, is, call
	}
	if changed {
		s.publish(n)
	}
}

// judge returns the condition of a board, and the call that hangs.
func (st *boardState) judge(now time.Time, period time.Duration) (is condition, call string) {
	switch {
	case st.busy && now.Sub(st.asked) >= period:
		if current := st.reading.get(); current != "" {
			return hanging, current
		}
	case st.result != nil && st.result.lost:
		return lost, ""
	case st.result != nil:
		return fine, ""
	}
	return st.is, st.call
}

// has reports whether GPM is in a state on some board.
func (n *openNode) has(gpm support) bool {
	return slices.ContainsFunc(n.states, func(st boardState) bool { return st.gpm == gpm })
}

// unprofiled returns why there are no profiling fields, nil if some board has them
// or that is unknown.
func (n *openNode) unprofiled() *source.Error {
	if n.has(given) || !n.has(refused) {
		return nil
	}
	return failure(source.ProfilingUnavailable, "NVML counts no profiling fields on these GPUs: its GPM is for Hopper and later",
		"read them with --backend=dcgm, or from an exporter with --backend=prometheus")
}

// failing returns the error for boards that hang, are lost or were left out, nil if there are none.
func (n *openNode) failing() *source.Error {
	var causes []string
	e := &source.Error{Failure: source.Broken, Remedy: leftRemedy}
	for i := range n.states {
		switch st := &n.states[i]; st.is {
		case hanging:
			causes = append(causes, fmt.Sprintf("GPU %d: %s hangs", st.board, st.call))
			e.Failure, e.Remedy = source.Timeout, hangRemedy
		case lost:
			causes = append(causes, fmt.Sprintf("GPU %d is lost", st.board))
			if e.Failure != source.Timeout {
				e.Remedy = lostRemedy
			}
		}
	}
	causes = append(causes, n.left...)
	if len(causes) == 0 {
		return nil
	}
	e.Cause = strings.Join(causes, ", ")
	return e
}

// failure returns why there is no reading.
func (n *openNode) failure() *source.Error {
	if e := n.failing(); e != nil {
		return e
	}
	for i := range n.states {
		if st := &n.states[i]; st.busy {
			return failure(source.Timeout, fmt.Sprintf("no GPU answers: GPU %d is in %s", st.board, st.reading.get()), hangRemedy)
		}
	}
	return failure(source.Broken, "NVML gives no reading of any GPU",
		"see what nvidia-smi shows, or read an exporter with --backend=prometheus")
}
