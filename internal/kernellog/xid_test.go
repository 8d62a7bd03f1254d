package kernellog

import (
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

func TestParseXID(t *testing.T) {
	const board = "0000:b5:00"
	fatal := func(action canonical.Action) meaning { return meaning{true, canonical.SeverityFatal, action} }
	warning := func(action canonical.Action) meaning { return meaning{true, canonical.SeverityWarning, action} }
	for _, test := range []struct {
		line string
		want xid
	}{
		{"NVRM: Xid (PCI:0000:b5:00): 13, pid='<unknown>', name=<unknown>, Graphics SM Warp Exception on (GPC 1, TPC 3, SM 0): Out Of Range Address",
			xid{board, 13, meaning{}, "Graphics SM Warp Exception on (GPC 1, TPC 3, SM 0): Out Of Range Address", 0, ""}},
		{"NVRM: Xid (PCI:0000:b5:00): 31, pid=2412, name=python3, Ch 00000001, intr 00000000. MMU Fault",
			xid{board, 31, meaning{}, "Ch 00000001, intr 00000000. MMU Fault", 2412, "python3"}},
		{"NVRM: Xid (PCI:0000:b5:00): 43, pid='77', name=\"a b\", Channel ID 0000000d", xid{board, 43, meaning{}, "Channel ID 0000000d", 77, "a b"}},
		{"NVRM: Xid (0000:B5:00): 79, GPU has fallen off the bus.", xid{board, 79, meaning{}, "GPU has fallen off the bus.", 0, ""}},
		{"NVRM: Xid (PCI:0000:b5:00.0): 48, pid=1, name=x", xid{board, 48, meaning{}, "", 1, "x"}},
		{"NVRM: Xid (PCI:00000000:B5:00.0): 48", xid{board, 48, meaning{}, "", 0, ""}},
		{"NVRM: Xid (PCI:0018:01:00): 79,", xid{"0018:01:00", 79, meaning{}, "", 0, ""}},
		{"NVRM: Xid (PCI:0000:b5:00 GPU-I:05): 43, pid=9, name=x, Ch 1", xid{board, 43, meaning{}, "GPU-I:05 Ch 1", 9, "x"}},
		{"NVRM: Xid (PCI:0000:b5:00): 43, pid=3, name=~sh~, Ch 1", xid{board, 43, meaning{}, "Ch 1", 3, "~sh~"}},
		{"NVRM: Xid (PCI:0000:b5:00): 45, name=x, Ch 1", xid{board, 45, meaning{}, "Ch 1", 0, "x"}},
		{"NVRM: Xid (PCI:0000:b5:00): 45, pid=-4, name=e\x1b[2J", xid{board, 45, meaning{}, "", 0, "e [2J"}},
		{"NVRM: Xid (PCI:0000:b5:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
			xid{board, 154, fatal(canonical.ActionResetGPU), "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", 0, ""}},
		{"NVRM: Xid (PCI:0000:b5:00): 154, pid=1, name=x, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x2 (Node Reboot Required)",
			xid{board, 154, fatal(canonical.ActionRebootNode), "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x2 (Node Reboot Required)", 1, "x"}},
		{"NVRM: Xid (PCI:0000:b5:00): 154, changed from 0x0 to 0x3",
			xid{board, 154, warning(canonical.ActionRestartApplication), "changed from 0x0 to 0x3", 0, ""}},
		{"NVRM: Xid (PCI:0000:b5:00): 154, changed from 0x0 (None) to 0x4 (Drain and Reset)",
			xid{board, 154, fatal(canonical.ActionResetGPU), "changed from 0x0 (None) to 0x4 (Drain and Reset)", 0, ""}},
		{"NVRM: Xid (PCI:0000:b5:00): 154, changed from 0x0 (None) to 0x5.",
			xid{board, 154, warning(canonical.ActionCheckHardware), "changed from 0x0 (None) to 0x5.", 0, ""}},
		{"NVRM: Xid (PCI:0000:b5:00): 154, changed from 0x1 (GPU Reset Required) to 0x0 (None)",
			xid{board, 154, meaning{decoded: true}, "changed from 0x1 (GPU Reset Required) to 0x0 (None)", 0, ""}},
		{"NVRM: Xid (PCI:0000:b5:00): 1023, text", xid{board, 1023, meaning{}, "text", 0, ""}},
		{"NVRM: Xid (PCI:0000:b5:00): 154, changed from 0x0 (None) to 0x1~", xid{board, 154, meaning{}, "changed from 0x0 (None) to 0x1~", 0, ""}},
		{"NVRM: Xid (PCI:0000:b5:00): 154, changed from 0x0 (None)", xid{board, 154, meaning{}, "changed from 0x0 (None)", 0, ""}},
		{"NVRM: Xid (PCI:0000:b5:00): 154, changed from 0x0 (None) to 0x6 (New)",
			xid{board, 154, meaning{}, "changed from 0x0 (None) to 0x6 (New)", 0, ""}},
		{"NVRM: Xid (PCI:0000:b5:00): 154, changed from 0x0 (None) to 0x (New)", xid{board, 154, meaning{}, "changed from 0x0 (None) to 0x (New)", 0, ""}},
		{"NVRM: Xid (PCI:0000:b5:00): 154, changed from 0x0 (None) to 0x9 (New)",
			xid{board, 154, meaning{}, "changed from 0x0 (None) to 0x9 (New)", 0, ""}},
	} {
		if got, ok := parseXID(test.line); !ok || got != test.want {
			t.Errorf("%s:\n%+v, %v, want\n%+v", test.line, got, ok, test.want)
		}
	}
}

func TestMalformedXIDsAreRefused(t *testing.T) {
	for _, line := range []string{
		"NVRM: Xid : 32, Channel ID 0000000d",
		"NVRM: Xid (PCI:0000:b5:00): none, text",
		"NVRM: Xid (PCI:0000:b5:00): -1, text",
		"NVRM: Xid (PCI:0000:b5:00): 0, text",
		"NVRM: Xid (PCI:0000:b5:00): 1024, text",
		"NVRM: Xid (PCI:0000:b5:00): 100000, text",
		"NVRM: Xid PCI:0000:b5:00): 79, text",
		"NVRM: Xid (PCI:0000:b5:00): 99999999999999999999, text",
		"NVRM: Xid (PCI:0000:b5:00)",
		"NVRM: Xid (PCI:0000:b5:00",
		"NVRM: Xid (PCI:): 79, text",
		"NVRM: Xid (PCI:b5:00): 79, text",
		"NVRM: Xid ",
		"",
	} {
		if x, ok := parseXID(line); ok {
			t.Errorf("%q is %+v", line, x)
		}
	}
}

func TestParseSXID(t *testing.T) {
	for _, test := range []struct {
		line     string
		want     sxid
		more, ok bool
	}{
		{"nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)",
			sxid{"0000:05:00", 12028, false, "Non-fatal, Link 32 egress non-posted PRIV error (First)"}, false, true},
		{"nvidia-nvswitch0: SXid (PCI:0000:C1:00.0): 24007, Fatal, Link 49 sourcetrack timeout error",
			sxid{"0000:c1:00", 24007, true, "Fatal, Link 49 sourcetrack timeout error"}, false, true},
		{"nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 99999, Nonfatal, text", sxid{"0000:c1:00", 99999, false, "Nonfatal, text"}, false, true},
		{"nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 100000, Fatal, text", sxid{}, false, false},
		{"nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 24007, Severity 1 Engine instance 49 Sub-engine instance 00", sxid{}, true, false},
		{"nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 24007, Data {0x00000001, 0x00000000}", sxid{}, true, false},
		{"nvidia-nvswitch0: SXid : 24007, Fatal", sxid{}, false, false},
		{"nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): many, Fatal", sxid{}, false, false},
		{"nvidia-nvswitch0: SXid PCI:0000:c1:00.0): 24007, Fatal", sxid{}, false, false},
		{"nvidia-nvswitch0: SXid (PCI:0000:c1:00.0", sxid{}, false, false},
		{"nvidia-nvswitch0: SXid (PCI:c1): 24007, Fatal", sxid{}, false, false},
		{"nvidia-nvswitch0: link 3 is up", sxid{}, false, false},
	} {
		got, more, ok := parseSXID(test.line)
		if more != test.more || ok != test.ok || ok && got != test.want {
			t.Errorf("%s:\n%+v, %v, %v", test.line, got, more, ok)
		}
	}
}

// FuzzLines: no line in the log makes a parser fail, or passes control characters through.
func FuzzLines(f *testing.F) {
	text, err := os.ReadFile("testdata/kmsg.txt")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f.Add(strings.TrimSuffix(line, "\n"))
	}
	f.Fuzz(func(t *testing.T, line string) {
		r, ok := parseRecord([]byte(line))
		if ok && r.since < 0 {
			t.Errorf("written %s before the start", r.since)
		}
		_, said, _ := strings.Cut(line, ";")
		if x, ok := parseXID(said); ok {
			checkParsed(t, x.address, x.code, x.text+x.process)
			if x.pid < 0 || x.severity >= canonical.NumSeverities || x.action >= canonical.NumActions {
				t.Errorf("%q is %+v", said, x)
			}
		}
		if s, _, ok := parseSXID(said); ok {
			checkParsed(t, s.address, s.code, s.text)
		}
	})
}

func checkParsed(t *testing.T, address string, code uint32, text string) {
	t.Helper()
	if address == "" || canonical.PCIAddress(address) != address || code == 0 || code > maxSXID {
		t.Errorf("code %d at %q", code, address)
	}
	if strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }) {
		t.Errorf("%q is not printable", text)
	}
}
