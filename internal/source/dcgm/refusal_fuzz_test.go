package dcgm

import (
	"strings"
	"testing"
	"unicode"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// FuzzRefused: whatever dcgmi prints, and however it ends, the error has a cause of one printable
// line and a remedy, and codes and versions are none but those that it printed.
func FuzzRefused(f *testing.F) {
	f.Add(221, noGPUs)
	f.Add(253, noDriver)
	f.Add(1, "PARSE ERROR: Argument: -z\n")
	f.Add(200, "Got invalid field ID. '1016'\nReturn -35: x Result: -33: y Got error -18 z\n")
	f.Add(0, "dcgmi  version: 4.4.1\n")
	f.Add(-1, "Error\x1b[31m STREAM \xff\u202e\r")
	f.Fuzz(func(t *testing.T, status int, text string) {
		e := refused("dcgmi dmon", "device", status, 0, text)
		if e.Failure == "" || e.Remedy == "" || !strings.HasPrefix(e.Cause, "dcgmi dmon") || strings.ContainsFunc(e.Cause+e.Remedy, unicode.IsControl) {
			t.Errorf("%d, %q is refused with %+v", status, text, e)
		}
		if e := noisyError("dcgmi dmon", "device", text, errNoise); e.Failure != source.Broken && knownEnding(noStatus, text) == nil || strings.ContainsFunc(e.Cause, unicode.IsControl) {
			t.Errorf("the noise %q is %+v", text, e)
		}
		for _, code := range codesIn(text) {
			if code >= 0 {
				t.Errorf("%q has the code %d", text, code)
			}
		}
		if v := parseVersion([]byte(text)); len(v) > longestVersion || !strings.Contains(text, v) || strings.Trim(v, "0123456789.") != "" {
			t.Errorf("%q is of version %q", text, v)
		}
		words := strings.Split(text, "\x00")
		if engine := engineIn(words); engine != "" && !strings.Contains(text, engine) {
			t.Errorf("%q names the host engine %q", text, engine)
		}
	})
}
