//go:build cgo && linux

package nvml

import (
	"fmt"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// condition is why a board has no readings.
type condition uint8

const (
	fine    condition = iota
	hanging           // a call has not returned for a period
	lost              // as the driver says
)

// watch detects boards that hang or are lost. It logs each hanging call once.
func (s *Source) watch(now time.Time) {
	changed := false
	for i := range s.states {
		st := &s.states[i]
		if st.result != nil && !st.result.lost && (!st.known || st.counting != st.result.counting) {
			changed, st.known, st.counting = true, true, st.result.counting
		}
		is, call := st.is, st.call
		switch {
		case st.busy && now.Sub(st.asked) >= s.opts.Period:
			if current := st.calling(); current != "" {
				is, call = hanging, current
			}
		case st.result != nil && st.result.lost:
			is, call = lost, ""
		case st.result != nil:
			is, call = fine, ""
		}
		if is == st.is && call == st.call {
			continue
		}
		changed = true
		s.logCondition(st, is, call)
		st.is, st.call = is, call
	}
	if changed {
		s.publish()
	}
}

// logCondition logs that a call hangs, or no longer does.
func (s *Source) logCondition(st *state, is condition, call string) {
	switch {
	case is == hanging && call != st.logged:
		st.logged = call
		s.opts.Logger.Warn("a call into the driver hangs; its GPU is left out of the readings", "gpu", st.board, "call", call, "remedy", hangRemedy)
	case is != hanging && st.is == hanging && !st.returned:
		st.returned = true
		s.opts.Logger.Info("a call into the driver that hung has returned", "gpu", st.board, "call", st.call)
	}
}

// The remedies for boards without readings.
const (
	hangRemedy = "see dmesg for XIDs and whether nvidia-smi hangs too; a GPU reset or a reboot ends it"
	leftRemedy = "see what nvidia-smi reports for it, and start kpulse-proxy again once it is back"
	lostRemedy = "see dmesg for XID 79; reset it with nvidia-smi --gpu-reset, or reboot"
)

// publish sets the failures that Streams returns, and the version.
func (s *Source) publish() {
	failing, unprofiled := s.failing(), s.unprofiled()
	s.mu.Lock()
	s.trouble[device], s.trouble[profiling] = failing, unprofiled
	s.mu.Unlock()
	s.describe()
}

// unprofiled returns why there are no profiling fields, nil if some board has them
// or that is unknown.
func (s *Source) unprofiled() *source.Error {
	known := false
	for i := range s.states {
		known = known || s.states[i].known
		if s.states[i].counting {
			return nil
		}
	}
	if !known {
		return nil
	}
	return &source.Error{
		Failure: source.ProfilingUnavailable,
		Cause:   "NVML counts no profiling fields on these GPUs: its GPM is for Hopper and later",
		Remedy:  "read them with --backend=dcgm, or from an exporter with --backend=prometheus",
	}
}

// failing returns the error for boards that hang, are lost or were left out, nil if there are none.
func (s *Source) failing() *source.Error {
	var causes []string
	e := &source.Error{Failure: source.Broken, Remedy: leftRemedy}
	for i := range s.states {
		switch st := &s.states[i]; st.is {
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
	causes = append(causes, s.left...)
	if len(causes) == 0 {
		return nil
	}
	e.Cause = strings.Join(causes, ", ")
	return e
}

// failure returns why there is no reading.
func (s *Source) failure() *source.Error {
	if e := s.failing(); e != nil {
		return e
	}
	for i := range s.states {
		if st := &s.states[i]; st.busy {
			return &source.Error{
				Failure: source.Timeout,
				Cause:   fmt.Sprintf("no GPU answers: GPU %d is in %s", st.board, st.calling()),
				Remedy:  hangRemedy,
			}
		}
	}
	return &source.Error{
		Failure: source.Broken,
		Cause:   "NVML gives no reading of any GPU",
		Remedy:  "see what nvidia-smi shows, or read an exporter with --backend=prometheus",
	}
}

// Streams appends the totals of the streams device, whose ticks are readings, and
// profiling, whose ticks are those with GPM's, to dst. A failure of device names the
// boards that are left out, the calls that hang, and why no XIDs are reported.
func (s *Source) Streams(dst []source.StreamTotals) []source.StreamTotals {
	from := len(dst)
	dst = s.stats.Totals(dst)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.trouble {
		dst[from+i].Failure = s.trouble[i]
	}
	dst[from+device].Failure = s.silence.with(s.trouble[device])
	return dst
}

// Version returns the versions of the driver and NVML, and GPM if some board has it:
// "driver 580.105.08, NVML 13.580.105.08, GPM". It is "" before the first reading.
func (s *Source) Version() string {
	if v := s.version.Load(); v != nil {
		return *v
	}
	return ""
}

// describe sets the result of Version, if it has changed.
func (s *Source) describe() {
	var parts []string
	if s.lib.driver != "" {
		parts = append(parts, "driver "+s.lib.driver)
	}
	if s.lib.version != "" {
		parts = append(parts, "NVML "+s.lib.version)
	}
	for i := range s.states {
		if s.states[i].counting {
			parts = append(parts, "GPM")
			break
		}
	}
	if text := strings.Join(parts, ", "); text != s.Version() {
		s.version.Store(&text)
	}
}
