package kernellog

import (
	_ "embed" // nvlink5.csv
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// nvlinkTable gives the meanings of XIDs 144 to 150, of NVLink 5, by the first two words of
// their records: the bits of IntrInfo of a sub-code, before driver R575 and since, and the
// bit or value of the error status of a row ("" is any). It is from NVIDIA's XID catalog of
// 2025-09-30. The action recovery_action leaves the decision to XID 154.
//
//go:embed nvlink5.csv
var nvlinkTable string

// linkError is a row of nvlinkTable.
type linkError struct {
	code uint32
	// intrinfo are the patterns of the two encodings. No word matches rows of different
	// meaning in the two, so the driver's version need not be known.
	intrinfo [2]pattern
	status   []uint32 // none is any
	bits     bool     // one bit of status is enough
	meaning  meaning
}

// pattern is the bits of a word that matter, and their values.
type pattern struct{ mask, bits uint32 }

func (p pattern) fits(word uint32) bool { return word&p.mask == p.bits }

// fits reports whether a record matches the row.
func (e *linkError) fits(code, intrinfo, status uint32) bool {
	if e.code != code || !e.intrinfo[0].fits(intrinfo) && !e.intrinfo[1].fits(intrinfo) {
		return false
	}
	if e.bits {
		return status&e.status[0] != 0
	}
	return len(e.status) == 0 || slices.Contains(e.status, status)
}

// decodeLink reads the text of a record such as
//
//	NETIR_LINK_EVT  Fatal   XC0 i0 Link 09 (0x025525c6 0x00000000 0x00000000 …)
//
// whose words are IntrInfo and error status. Of several bits the worst counts.
func decodeLink(code uint32, text string) (m meaning) {
	_, words, found := strings.Cut(text, "(0x")
	var first, second uint32
	if n, _ := fmt.Sscanf(words, "%x 0x%x", &first, &second); !found || n != 2 {
		return m
	}
	for i, table := 0, linkErrors(); i < len(table); i++ {
		if e := &table[i]; e.fits(code, first, second) && (!m.decoded || e.meaning.severity > m.severity) {
			m = e.meaning
		}
	}
	return m
}

// linkErrors returns the rows of nvlinkTable, of which tests read each.
var linkErrors = sync.OnceValue(func() (table []linkError) {
	records, err := csv.NewReader(strings.NewReader(nvlinkTable)).ReadAll()
	if err != nil {
		panic("nvlink5.csv: " + err.Error())
	}
	for _, c := range records[1:] {
		e := linkError{code: uint32(parseNumber(c[0])), intrinfo: [2]pattern{parsePattern(c[2]), parsePattern(c[3])}, meaning: linkMeaning(c[5], c[6])}
		words, bits := strings.CutPrefix(c[4], "bit ")
		e.bits = bits
		for word := range strings.FieldsSeq(words) {
			e.status = append(e.status, uint32(parseNumber(word)))
		}
		table = append(table, e)
	}
	return table
})

// linkMeaning returns the meaning of a row: an error that needs a reset is fatal. A link that
// went down on purpose, or an error whose action XID 154 will give, is a warning; the rest is
// information.
func linkMeaning(fatal, action string) meaning {
	switch {
	case action == "reset_gpu":
		return meaning{true, canonical.SeverityFatal, canonical.ActionResetGPU}
	case action == "recovery_action" || fatal == "yes":
		return meaning{true, canonical.SeverityWarning, canonical.ActionNone}
	}
	return meaning{true, canonical.SeverityNone, canonical.ActionNone}
}

// parsePattern reads 32 binary digits, the highest first, with - for those that do not
// matter.
func parsePattern(text string) (p pattern) {
	for i, c := range text {
		bit := uint32(1) << (31 - i)
		if c != '-' {
			p.mask |= bit
		}
		if c == '1' {
			p.bits |= bit
		}
	}
	return p
}

func parseNumber(text string) uint64 {
	n, err := strconv.ParseUint(text, 0, 32)
	if err != nil {
		panic("nvlink5.csv: " + err.Error())
	}
	return n
}
