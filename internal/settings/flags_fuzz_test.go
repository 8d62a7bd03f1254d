package settings

import (
	"io"
	"reflect"
	"strings"
	"testing"
)

// FuzzFlags: a flag and its variable with the same value set the same, or are both refused, on one
// line. Settings of other modes are left out: there a flag is refused, and a variable ignored.
func FuzzFlags(f *testing.F) {
	var valued []*setting
	for i := range table {
		if s := &table[i]; s.Flag != "" && s.Modes&ModeServe != 0 && !(&givenFlag{Setting: s}).IsBoolFlag() {
			valued = append(valued, s)
			for _, text := range []string{s.standard, s.placeholder} {
				if text != "" {
					f.Add(uint8(len(valued)-1), text)
				}
			}
		}
	}
	for i, text := range []string{"0", "-1", "1e9", "NaN", "10s", "1.5GiB", "http://u:p@node:9400/metrics", "a=b,c", "yes\n", "\x1b[31m", "\xff", ":9401", "/dev/null", "@x", "--"} {
		for n := range valued {
			if n%8 == i%8 {
				f.Add(uint8(n), text)
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, text string) {
		if text == "" || strings.ContainsAny(text, "\x00\n") {
			t.Skip("a variable cannot have it, or a list has several")
		}
		s := valued[int(which)%len(valued)]
		typed, refused := Read([]string{"--" + s.Flag + "=" + text}, io.Discard)
		t.Setenv(s.Variable(), text)
		found, alsoRefused := Read(nil, io.Discard)
		if (refused == nil) != (alsoRefused == nil) {
			t.Fatalf("--%s=%q: %v; %s: %v", s.Flag, text, refused, s.Variable(), alsoRefused)
		}
		if refused != nil {
			if strings.Contains(refused.Error(), "\n") {
				t.Errorf("--%s=%q is refused with %q", s.Flag, text, refused)
			}
			return
		}
		if a, b := reflect.ValueOf(s.at(typed)).Elem().Interface(), reflect.ValueOf(s.at(found)).Elem().Interface(); !reflect.DeepEqual(a, b) {
			t.Errorf("--%s=%q sets %#v, and %s sets %#v", s.Flag, text, a, s.Variable(), b)
		}
	})
}
