package settings

import (
	"fmt"
	"testing"
	"time"
)

// FuzzValues: a value of a flag or a variable that is accepted is in its range, and its text means
// the same.
func FuzzValues(f *testing.F) {
	for _, text := range []string{"15s", "2", "0.5", "1e-400", "1h0m0s", "-1m", "NaN", "0x1p3", "64MiB", "1 GiB", "1099511627776", "8", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var d, d2 Duration
		check(t, text, &d, &d2)
		if s, err := time.ParseDuration(text); err == nil && d != Duration(s) {
			t.Errorf("%q is %s, want %s", text, d, s)
		}
		var z, z2 Size
		if check(t, text, &z, &z2) && (z < 1 || z > 1<<40) {
			t.Errorf("%q is %d bytes", text, z)
		}
		var c, c2 Count
		if check(t, text, &c, &c2) && c < 1 {
			t.Errorf("%q is %d", text, c)
		}
	})
}

// check sets a value, and another one to its text. It reports whether the text is accepted.
func check[T comparable, P interface {
	*T
	fmt.Stringer
	Set(string) error
}](t *testing.T, text string, into, again P) bool {
	t.Helper()
	if err := into.Set(text); err != nil {
		if err.Error() == "" {
			t.Errorf("%q is refused without a word", text)
		}
		return false
	}
	if err := again.Set(into.String()); err != nil || *again != *into {
		t.Errorf("%q is %v as a %T, and that %v: %v", text, into, *into, again, err)
	}
	return true
}
