package kernellog

import (
	"strings"
	"testing"
	"time"
)

func TestParseRecord(t *testing.T) {
	for _, test := range []struct {
		line  string
		ok    bool
		since time.Duration
		ours  bool // the kernel's
	}{
		{"4,2412,8250712,-;NVRM: Xid", true, 8250712 * time.Microsecond, true},
		{"6,339,5140900,-,caller=T1;text; with more", true, 5140900 * time.Microsecond, true},
		{"12,340,5140900,-;a program's", true, 5140900 * time.Microsecond, false},
		{"10,341,3,-;a program's", true, 3 * time.Microsecond, false},
		{"7,1,2;no flag", true, 2 * time.Microsecond, true},
		{"4,1,0,c;", true, 0, true},
		{"4,1,2", false, 0, false},
		{"4,1;text", false, 0, false},
		{"x,1,2,-;text", false, 0, false},
		{"a,1,2,-;text", false, 0, false}, // the first digit that decimals lack
		{"-1,1,2,-;text", false, 0, false},
		{"4294967296,1,2,-;text", false, 0, false},       // 2^32
		{"4,1,9007199254740992,-;text", false, 0, false}, // 2^53
		{"4,1,99999999999999999999,-;text", false, 0, false},
		{"", false, 0, false},
	} {
		r, ok := parseRecord([]byte(test.line))
		if ok != test.ok || r.since != test.since || ok && r.fromKernel() != test.ours {
			t.Errorf("%q: %+v, %v", test.line, r, ok)
		}
	}
}

func TestPrintable(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{" Link 09\t(0x1) ", "Link 09 (0x1)"},
		{"a\x1b[2Jb\u009bc\xffd", "a [2Jb\uFFFDc\uFFFDd"},
		{strings.Repeat("x", maxText+9), strings.Repeat("x", maxText-len("…")) + "…"},
		{strings.Repeat("é", maxText), strings.Repeat("é", maxText/2-2) + "…"},
	} {
		if got := printable(test.text); got != test.want {
			t.Errorf("%q is %q, want %q", test.text, got, test.want)
		}
	}
}
