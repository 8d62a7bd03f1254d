package diag

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"idle", "groups", "gpu_health"}
	for _, test := range []struct{ given, want string }{
		{"groups", "groups"}, {"group", "groups"}, {"gruops", "groups"}, {"idel", "idle"},
		{"gpu_heatlh", "gpu_health"}, {"xyz", ""}, {"", ""}, {strings.Repeat("idle", 1000), ""},
	} {
		if got := Nearest(test.given, known); got != test.want {
			t.Errorf("nearest to %.20q is %q, want %q", test.given, got, test.want)
		}
	}
	if got := Nearest("idle", nil); got != "" {
		t.Errorf("without words, %q is nearest", got)
	}
}

func TestWithin(t *testing.T) {
	known := []string{"abcd", "abc"}
	for _, test := range []struct {
		given   string
		letters int
		want    string
	}{
		{"abc", 0, "abc"}, {"abx", 0, ""}, {"abx", 1, "abc"}, {"abxd", 1, "abcd"}, {"xyz", 2, ""}, {"xyz", 3, "abc"}, {"", 2, ""},
	} {
		if got := Within(test.given, known, test.letters); got != test.want {
			t.Errorf("within %d letters of %q is %q, want %q", test.letters, test.given, got, test.want)
		}
	}
}
