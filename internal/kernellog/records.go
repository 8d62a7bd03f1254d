package kernellog

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// record is the head of a record of the kernel's log.
type record struct {
	// priority is syslog's priority: the facility times 8, plus the level.
	priority uint32
	// since is the time from the start of the machine to the record.
	since time.Duration
}

// parseRecord reads a line such as `4,2412,8250712,-;text`. Further fields may precede the
// semicolon.
func parseRecord(line []byte) (r record, ok bool) {
	head, _, ok := bytes.Cut(line, []byte{';'})
	var sequence, micros uint64
	if n, _ := fmt.Sscanf(string(head), "%d,%d,%d", &r.priority, &sequence, &micros); n < 3 || !ok || micros >= 1<<53 { // 285 years
		return record{}, false
	}
	r.since = time.Duration(micros) * time.Microsecond
	return r, true
}

// fromKernel reports whether the kernel wrote r itself, with facility 0. What a program
// writes to /dev/kmsg has another facility.
func (r *record) fromKernel() bool { return r.priority>>3 == 0 }

// maxText is how many bytes of a text are kept. Those of the driver have about 150.
const maxText = 400

// printable returns text on one line, safe to show, at most maxText bytes of it.
func printable(text string) string { return diag.Line(text, maxText) }

// The beginnings of the driver's lines, and a word of those of NVSwitches.
const (
	driverPrefix = "NVRM: "
	xidPrefix    = "NVRM: Xid "
	loadPrefix   = "NVRM: loading NVIDIA UNIX "
	switchPrefix = "nvidia-nvswitch"
	sxidWord     = ": SXid "
)

var (
	// xidForm has address, MIG instance, code, pid, name and text. All but address and code may be missing.
	//
	//	NVRM: Xid (PCI:0000:b5:00): 13, pid=2412, name=python, Graphics SM Warp Exception on …
	xidForm = diag.Pattern(`^NVRM: Xid \((?:PCI:)?([^ )]+)(?: ([^)]*))?\): (\d+)(?:, *(?:pid=([^,]*)(?:, *|$))?(?:name=([^,]*)(?:, *|$))?(.*))?$`)
	// sxidForm has address, code, severity and text. Lines without a severity have details of the error
	// in the line before.
	//
	//	nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)
	sxidForm = diag.Pattern(`^nvidia-nvswitch\d*: SXid \((?:PCI:)?([^ )]+)\): (\d+), *((?i:fatal|non-?fatal)?)(.*)$`)
)

// xid is an XID as in the driver's line.
type xid struct {
	address string // in the form of canonical.PCIAddress
	code    uint32
	meaning
	text    string
	pid     int
	process string
}

// meaning is the severity and action that a record itself gives, if it is decoded.
type meaning struct {
	decoded  bool
	severity canonical.Severity
	action   canonical.Action
}

// parseXID reads a line in xidForm.
func parseXID(line string) (x xid, ok bool) {
	m := xidForm().FindStringSubmatch(line)
	if m == nil {
		return x, false
	}
	code, _ := strconv.ParseUint(m[3], 10, 32)
	x.address, x.code = canonical.PCIAddress(m[1]), uint32(code)
	if x.address == "" || code == 0 || code > canonical.HighestXID {
		return x, false
	}
	pid, _ := strconv.Atoi(strings.Trim(m[4], `'"`)) // '<unknown>' is 0
	x.pid = max(0, pid)
	if name := strings.Trim(m[5], `'"`); name != "<unknown>" {
		x.process = printable(name)
	}
	if x.code == 154 {
		x.meaning = decodeRecovery(m[6])
	} else {
		x.meaning = decodeLink(x.code, m[6])
	}
	x.text = printable(m[2] + " " + m[6])
	return x, true
}

// recoveries are the meanings of the driver's recovery actions, by their number in its
// nvmlDeviceGpuRecoveryAction_t.
var recoveries = [...]meaning{
	0: {true, canonical.SeverityNone, canonical.ActionNone},
	1: {true, canonical.SeverityFatal, canonical.ActionResetGPU},
	2: {true, canonical.SeverityFatal, canonical.ActionRebootNode},
	3: {true, canonical.SeverityWarning, canonical.ActionRestartApplication}, // drain peer-to-peer traffic
	4: {true, canonical.SeverityFatal, canonical.ActionResetGPU},             // … and reset
	5: {true, canonical.SeverityWarning, canonical.ActionCheckHardware},      // recover the IMEX domain
}

// decodeRecovery reads `GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)`.
func decodeRecovery(text string) (m meaning) {
	_, to, _ := strings.Cut(text, " to 0x")
	digits, _, _ := strings.Cut(to, " ")
	n, err := strconv.ParseUint(strings.TrimRight(digits, ".,;"), 16, 32)
	if err != nil || n >= uint64(len(recoveries)) {
		return m
	}
	return recoveries[n]
}

// sxid is an error of an NVSwitch.
type sxid struct {
	address string // in the form of canonical.PCIAddress
	code    uint32
	fatal   bool
	text    string
}

// maxSXID is above all SXIDs, which have five digits.
const maxSXID = 99_999

// parseSXID reads a line in sxidForm. For one with details, more is set and ok is not.
func parseSXID(line string) (s sxid, more, ok bool) {
	m := sxidForm().FindStringSubmatch(line)
	if m == nil {
		return s, false, false
	}
	code, _ := strconv.ParseUint(m[2], 10, 32)
	s = sxid{canonical.PCIAddress(m[1]), uint32(code), strings.EqualFold(m[3], "fatal"), printable(m[3] + m[4])}
	if s.address == "" || code == 0 || code > maxSXID {
		return s, false, false
	}
	return s, m[3] == "", m[3] != ""
}
