package e2etest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// refusal is a test that records why it fails, and fails only in name.
type refusal struct {
	testing.TB
	says string
}

func (r *refusal) Fatalf(format string, args ...any) { r.says = fmt.Sprintf(format, args...) }

func TestSeeded(t *testing.T) {
	const variable = "KPULSE_SOAK"
	t.Setenv(variable, "")
	if amount, one := Seeded(t, variable, 7, strconv.Atoi, "20"); amount != 7 {
		t.Errorf("an amount of %d without the variable, want 7", amount)
	} else if _, other := Seeded(t, variable, 7, strconv.Atoi, "20"); one == other {
		t.Errorf("twice the seed %d", one)
	}
	t.Setenv(variable, "20m:18446744073709551615")
	if amount, seed := Seeded(t, variable, 0, time.ParseDuration, "20m"); amount != 20*time.Minute || seed != 1<<64-1 {
		t.Errorf("%v and the seed %d", amount, seed)
	}
	t.Setenv(variable, "20m")
	if amount, _ := Seeded(t, variable, 0, time.ParseDuration, "20m"); amount != 20*time.Minute {
		t.Errorf("%v", amount)
	}
	for _, text := range []string{"x", "20", ":1", "20m:", "20m:x", "20m:-1", "20m:18446744073709551616", "20m:1:2", "20m: 1"} {
		t.Setenv(variable, text)
		r := &refusal{TB: t}
		if Seeded(r, variable, 0, time.ParseDuration, "20m"); !strings.HasPrefix(r.says, "KPULSE_SOAK="+text+": ") || !strings.HasSuffix(r.says, "; give an amount such as 20m, or 20m:SEED") {
			t.Errorf("%q is refused with %q", text, r.says)
		}
	}
}
