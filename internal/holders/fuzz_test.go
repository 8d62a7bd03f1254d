package holders

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzDeviceID: an id names a device by its UUID or by the number of its file, never by both or by none.
func FuzzDeviceID(f *testing.F) {
	for _, id := range []string{"GPU-5d0e0001-3c41", "MIG-4a", "MIG-GPU-5d0e/3/0", "nvidia0", "nvidia0/gi1/vgpu2", "GPU-1::3", "0000:4a:00.0"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		r, ok := parseDeviceID(id)
		if ok && (r.uuid == "") == (r.minor == "") {
			t.Errorf("%q is %+v", id, r)
		}
	})
}

// FuzzParseJob: whatever a prolog wrote, what is served of it is short text, and a mistake has a place and a remedy.
func FuzzParseJob(f *testing.F) {
	f.Add([]byte("user=ada\naccount=physics\n# a comment\npartition = gpu\n"))
	f.Add([]byte("user=\x00\nuser\naccount=a\naccount=b\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		job := parseJob("4711", text)
		for _, value := range []string{job.info.user, job.info.account, job.info.partition} {
			if len(value) > maxJobText || !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl) {
				t.Errorf("%q of %q", value, text)
			}
		}
		if job.mistake != nil && (!strings.HasPrefix(job.mistake.Cause, "4711:") || job.mistake.Remedy == "") {
			t.Errorf("%+v of %q", job.mistake, text)
		}
	})
}
