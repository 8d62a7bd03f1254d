package kernellog

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// record is the head of a record of the kernel's log.
type record struct {
	// priority is syslog's priority: the facility times 8, plus the level.
	priority uint64
	// since is the time from the start of the machine to the record.
	since time.Duration
}

// parseRecord reads a line such as `4,2412,8250712,-;text`. Further fields may precede the
// semicolon.
func parseRecord(line []byte) (r record, ok bool) {
	head, _, ok := bytes.Cut(line, []byte{';'})
	if !ok {
		return r, false
	}
	fields := strings.SplitN(string(head), ",", 4)
	if len(fields) < 3 {
		return r, false
	}
	priority, err := strconv.ParseUint(fields[0], 10, 32)
	if err != nil {
		return r, false
	}
	micros, err := strconv.ParseUint(fields[2], 10, 53) // 285 years, about the most that a Duration holds
	if err != nil {
		return r, false
	}
	return record{priority, time.Duration(micros) * time.Microsecond}, true
}

// fromKernel reports whether the kernel wrote r itself, with facility 0. What a program
// writes to /dev/kmsg has another facility.
func (r *record) fromKernel() bool { return r.priority>>3 == 0 }

// maxText is how many bytes of a text are kept. Those of the driver have about 150.
const maxText = 400

// printable returns text on one line, safe to show, at most maxText bytes of it.
func printable(text string) string { return diag.Line(text, maxText) }
