package kernellog

import (
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// sxid is an error of an NVSwitch.
type sxid struct {
	address string // in the form of canonical.PCIAddress
	code    uint32
	fatal   bool
	text    string
}

const (
	switchPrefix = "nvidia-nvswitch"
	sxidWord     = ": SXid "
)

// parseSXID reads a line such as
//
//	nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)
//
// Further lines with details of the same error, which have neither Fatal nor Non-fatal, are
// no SXIDs: for them more is set and ok is not.
func parseSXID(line string) (s sxid, more, ok bool) {
	_, text, _ := strings.Cut(line, sxidWord)
	where, rest := parseWhere(text)
	if s.address = canonical.PCIAddress(where); s.address == "" {
		return s, false, false
	}
	if s.code, rest, ok = parseCode(rest); !ok {
		return s, false, false
	}
	word, _, _ := strings.Cut(rest, ",")
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "fatal":
		s.fatal = true
	case "non-fatal", "nonfatal":
	default:
		return s, true, false
	}
	s.text = printable(rest)
	return s, false, true
}
