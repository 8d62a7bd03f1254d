package kernellog

import (
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
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

const (
	xidPrefix = "NVRM: Xid "
	// maxCode is above all SXIDs, which have five digits.
	maxCode = 99_999
)

// parseXID reads a line of the driver, which begins with xidPrefix:
//
//	NVRM: Xid (PCI:0000:b5:00): 13, pid=2412, name=python, Graphics SM Warp Exception on …
//
// PCI:, pid, name and text may be missing. The address may be followed by its function and by
// the MIG instance.
func parseXID(line string) (x xid, ok bool) {
	where, rest := parseWhere(strings.TrimPrefix(line, xidPrefix))
	address, instance, _ := strings.Cut(where, " ")
	if x.address = canonical.PCIAddress(address); x.address == "" {
		return x, false
	}
	if x.code, rest, ok = parseCode(rest); !ok || x.code > canonical.HighestXID {
		return x, false
	}
	if pid, behind, has := cutField(rest, "pid="); has {
		x.pid, _ = strconv.Atoi(pid) // '<unknown>' is 0
		rest = behind
	}
	if name, behind, has := cutField(rest, "name="); has {
		if name != "<unknown>" {
			x.process = printable(name)
		}
		rest = behind
	}
	x.pid = max(0, x.pid)
	if decode := decoders[x.code]; decode != nil {
		x.meaning = decode(x.code, rest)
	}
	x.text = printable(strings.TrimSpace(instance + " " + rest))
	return x, true
}

// parseWhere reads the part in parentheses, as in `(PCI:0000:b5:00): 13, …`. Without one, where is
// no address, or rest is empty.
func parseWhere(text string) (where, rest string) {
	text, ok := strings.CutPrefix(text, "(")
	if !ok {
		return "", ""
	}
	where, rest, _ = strings.Cut(text, "): ")
	return strings.TrimPrefix(where, "PCI:"), rest
}

// parseCode reads a code, and the text after a comma.
func parseCode(text string) (code uint32, rest string, ok bool) {
	digits, rest, _ := strings.Cut(text, ",")
	n, _ := strconv.ParseUint(strings.TrimSpace(digits), 10, 32) // 0 or the largest number beside an error
	return uint32(n), strings.TrimSpace(rest), n > 0 && n <= maxCode
}

// cutField cuts a field off the beginning of text, and the quotes off its value.
func cutField(text, name string) (value, rest string, ok bool) {
	text, ok = strings.CutPrefix(text, name)
	if !ok {
		return "", "", false
	}
	value, rest, _ = strings.Cut(text, ",")
	return strings.Trim(strings.TrimSpace(value), `'"`), strings.TrimSpace(rest), true
}

// decoders return the meanings of records that say more than their codes.
var decoders = map[uint32]func(code uint32, text string) meaning{
	144: decodeLink, 145: decodeLink, 146: decodeLink, 147: decodeLink, 148: decodeLink, 149: decodeLink, 150: decodeLink,
	154: decodeRecovery,
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
func decodeRecovery(_ uint32, text string) (m meaning) {
	_, to, _ := strings.Cut(text, " to 0x")
	digits, _, _ := strings.Cut(to, " ")
	n, err := strconv.ParseUint(strings.TrimRight(digits, ".,;"), 16, 32)
	if err != nil || n >= uint64(len(recoveries)) {
		return m
	}
	return recoveries[n]
}
