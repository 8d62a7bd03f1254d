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

// stamps are the forms of the time that syslog, journalctl and dmesg write before a line of the kernel, and how to
// read them. Without a year it is the latest that is not in the future.
var stamps = diag.Pattern(`^(?:<\d+>|kern +:\w+ *: )?(?:(\d{4}-\d\d-\d\dT\S+)|([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?)|` +
	`\[[A-Z][a-z]{2} ([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})\]|\[ *(\d+\.\d+)\])(?: \S+ kernel:)?(?: \[ *[\d.]+\])?(?: \[ *[TC]\d+\])? `)

// parseText reads a line that syslog or dmesg wrote, such as
//
//	Jul 25 16:46:04 n1 kernel: [91134.101988] NVRM: Xid (PCI:0000:1a:00): 120, …
//	[Mon Jul 25 16:46:20 2022] NVRM: Xid …
//	[ 1843.308145] NVRM: Xid …
func parseText(line string, booted, now time.Time) (said string, at time.Time, ok bool) {
	m := stamps().FindStringSubmatch(line)
	if m == nil {
		return "", at, false
	}
	var err error
	switch {
	case m[1] != "":
		if at, err = time.Parse(time.RFC3339Nano, m[1]); err != nil {
			at, err = time.Parse("2006-01-02T15:04:05-0700", m[1]) // older journalctl
		}
	case m[2] != "":
		if at, err = time.ParseInLocation("2006 Jan _2 15:04:05", fmt.Sprint(now.Year())+" "+m[2], time.Local); at.After(now.Add(time.Hour)) {
			at = at.AddDate(-1, 0, 0)
		}
	case m[3] != "":
		at, err = time.ParseInLocation("Jan _2 15:04:05 2006", m[3], time.Local)
	default:
		var since float64
		since, err = strconv.ParseFloat(m[4], 64)
		at = booted.Add(time.Duration(since * float64(time.Second)))
	}
	return line[len(m[0]):], at, err == nil
}

// fromKernel reports whether the kernel wrote r itself, with facility 0. What a program
// writes to /dev/kmsg has another facility.
func (r *record) fromKernel() bool { return r.priority>>3 == 0 }

// maxText is how many bytes of a text are kept. Those of the driver have about 150.
const maxText = 400

// printable returns text on one line, safe to show, at most maxText bytes of it.
func printable(text string) string { return diag.Line(text, maxText) }

// lostForm are lines about a board that has fallen off the bus, which some drivers write without an XID:
//
//	NVRM: The NVIDIA GPU 0000:4a:00.0\x0aNVRM: (PCI ID: 10de:26b5) installed in this system has\x0aNVRM: fallen off the bus and is not responding to commands.
//	NVRM: GPU 0000:4b:00.0: GPU has fallen off the bus.
var lostForm = diag.Pattern(`^NVRM: (?:The NVIDIA )?GPU (?:at )?(?:PCI:)?([0-9a-fA-F]+:[0-9a-fA-F]+:[0-9a-fA-F]+).*fallen off the bus`)

// The first and the last line of the record above, which texts write on lines of their own.
const (
	probeLine = driverPrefix + "The NVIDIA GPU "
	lostLine  = driverPrefix + "fallen off the bus"
)

// resetForm are assertions of the driver that ask for a reset, with an address.
var resetForm = diag.Pattern(`^NVRM: GPU\S* nv\w+: .*\bNV_ERR_RESET_REQUIRED\b.*?\b([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2})\b`)

// lostXID is the code of a board that has fallen off the bus.
const lostXID = 79

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

// xid is an XID as in the driver's line. Without a code it stands for a load of the driver, which resets
// all boards.
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
