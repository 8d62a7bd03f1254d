package spelling

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
		t.Errorf("of no words %q is nearest", got)
	}
}
