package kernellog

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestNVLinkRecordsAreDecoded has a line in both encodings for each row of NVIDIA's table
// of NVLink 5 errors, with its verdict: testdata/nvlink5.tsv was made from that table by a
// program that shares nothing with this package.
func TestNVLinkRecordsAreDecoded(t *testing.T) {
	text, err := os.ReadFile("testdata/nvlink5.tsv")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		c := strings.Split(strings.TrimSpace(line), "\t")
		rows[c[0]+" in encoding "+c[1]] = true
		x, ok := parseXID(c[2])
		if got := fmt.Sprint(x.decoded, " ", x.severity, " ", x.action); !ok || got != "true "+c[3]+" "+c[4] {
			t.Errorf("row %s: %s\nis %s, want %s %s", c[0], c[2], got, c[3], c[4])
		}
	}
	if len(rows) != 2*95 {
		t.Errorf("%d rows and encodings, want the table's 95 in both", len(rows))
	}
}

func TestNVLinkRecordsOfOtherForms(t *testing.T) {
	undecided := meaning{}
	for _, test := range []struct {
		name string
		code uint32
		text string
		want meaning
	}{
		{"two bits, one of them fatal",
			144, "SAW_MVB Fatal XC0 i0 Link 00 (0x00000021 0x00000003 0x0)", meaning{true, canonical.SeverityFatal, canonical.ActionResetGPU}},
		{"two bits, none of them fatal",
			144, "SAW_MVB Nonfatal XC0 i0 Link 00 (0x00000021 0x00000005 0x0)", meaning{true, canonical.SeverityNone, canonical.ActionNone}},
		{"two bits, the later of them not fatal",
			144, "SAW_MVB Fatal XC0 i0 Link 00 (0x00000021 0x00000006 0x0)", meaning{true, canonical.SeverityFatal, canonical.ActionResetGPU}},
		{"an unknown bit beside a fatal one", 144, "SAW_MVB (0x00000001 0x00000102 0x0)", meaning{true, canonical.SeverityFatal, canonical.ActionResetGPU}},
		{"an unknown bit", 144, "SAW_MVB (0x00000021 0x00000100 0x0)", undecided},
		{"an unknown sub-code", 144, "NEW (0x000003ff 0x00000002 0x0)", undecided},
		{"a value, not bits", 149, "NETIR_MFDE_EVENT (0x00000246 0x00000002 0x0)", undecided},
		{"the code of another table", 145, "SAW_MVB (0x00000021 0x00000002 0x0)", undecided},
		{"the words of other codes", 146, "TREX (0x00000184 0x80000007 0x0)", undecided},
		{"the words of another code, all 0 but one", 150, "SAW_MVB (0x00000021 0x00000000 0x0)", undecided},
		{"the words of another code since R575", 150, "SAW_MVB (0x00000001 0x00000000 0x0)", undecided},
		{"another value where two are known", 150, "MSE_WATCHDOG (0x00000000 0x00000001 0x0)", undecided},
		{"an unknown bit where one is known", 147, "TREX (0x00000184 0x00000100 0x0)", undecided},
		{"an unknown bit where only the highest is known", 148, "NVLPW (0x00000005 0x00000100 0x0)", undecided},
		{"no words", 149, "NETIR_LINK_EVT Fatal XC0 i0 Link 09", undecided},
		{"one word", 149, "NETIR_LINK_EVT (0x025525c6", undecided},
		{"words that are none", 149, "NETIR_LINK_EVT (0x025525c6 zero)", undecided},
		{"too long a word", 149, "NETIR_LINK_EVT (0x1025525c6 0x00000000)", undecided},
	} {
		if got := decodeLink(test.code, test.text); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

// TestEncodingsCannotBeConfused: no word matches one row in the encoding before R575 and another
// in the later one, so the version of the driver is not needed.
func TestEncodingsCannotBeConfused(t *testing.T) {
	for i, a := range linkErrors() {
		for j, b := range linkErrors() {
			before, since := a.intrinfo[0], b.intrinfo[1]
			both := before.mask & since.mask
			if a.code == b.code && a.meaning != b.meaning && before.bits&both == since.bits&both {
				t.Errorf("rows %d and %d share words", i+1, j+1)
			}
		}
	}
}
