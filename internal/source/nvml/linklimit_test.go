//go:build cgo && linux

package nvml

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// With whole seconds between the rounds, the links are queried at the tenth second.
func TestLinksPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(1)
		b, l, row := m.boards[0], newLinkLimit(), newRow()
		for second := range 21 {
			l.ask(b, func(string) {}, time.Now(), row)
			if n := b.asked(linkCall); n != (1+second/10)*nvml.NVLINK_MAX_LINKS {
				t.Fatalf("%d calls after %d seconds", n, second)
			}
			time.Sleep(time.Second)
		}
	})
}

// The name of a call is known before it is made: it may hang.
func TestCallsOfLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(1)
		b, row := m.boards[0], newRow()
		var calls []string
		made := func(call string) {
			calls = append(calls, fmt.Sprint(call, " ", b.asked(linkCall), " ", b.asked(fieldCall)))
		}
		failed, answer := newLinkLimit().ask(b, made, time.Now(), row)
		if want := []string{linkCall + " 0 0", fieldCall + " 18 0"}; !slices.Equal(calls, want) || failed != "" || answer != nvml.SUCCESS {
			t.Errorf("calls %q, failed %q: %v", calls, failed, answer)
		}
	})
}

// A link whose state cannot be read leaves the number of active links unknown: fewer would mean that
// some are down. A speed of 0 is unknown, too.
func TestLinkThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(1)
		b, l := m.boards[0], newLinkLimit()
		answer, speed := nvml.SUCCESS, uint64(1)
		b.GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
			if link == 5 && answer != nvml.SUCCESS {
				return 0, answer
			}
			return b.linkState(link)
		}
		b.GetFieldValuesFunc = func(values []nvml.FieldValue) nvml.Return {
			defer func() { binary.NativeEndian.PutUint64(values[0].Value[:], speed) }()
			return b.fieldValues(values)
		}
		for i, step := range []struct {
			answer        nvml.Return
			speed         uint64 // MB/s
			active, limit float64
			failed        string
		}{
			{nvml.SUCCESS, 1, 11, 22e6, ""},
			{nvml.ERROR_UNKNOWN, 1, math.NaN(), math.NaN(), linkCall},
			{nvml.SUCCESS, 2, 11, 44e6, ""},
			{nvml.SUCCESS, 0, 11, math.NaN(), fieldCall},
		} {
			answer, speed = step.answer, step.speed
			row := newRow()
			failed, _ := l.ask(b, func(string) {}, time.Now(), row)
			active, limit := row[l.number], row[l.column]
			if failed != step.failed || !alike(active, step.active) || !alike(limit, step.limit) {
				t.Errorf("step %d: %v active, %v bytes per second, failed %q", i, active, limit, failed)
			}
			time.Sleep(10 * time.Second)
		}
	})
}

// The links are queried every ten seconds, and the last answers are served in between.
func TestLinksAreAskedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(1)
		r := newReader(t, m, nil)
		defer r.Close()
		begun := time.Now()
		for time.Since(begun) < 8*time.Second {
			if all := r.read(); all["0 "+dcgm.NVLinkLimit] != "23980000000" || all["0 "+dcgm.NVLinksActive] != "11" {
				t.Fatalf("%q", all)
			}
		}
		if n := m.boards[0].asked(linkCall); n != nvml.NVLINK_MAX_LINKS {
			t.Errorf("%d calls", n)
		}
		m.boards[0].GetNvLinkStateFunc = func(int) (nvml.EnableState, nvml.Return) { return nvml.FEATURE_ENABLED, nvml.SUCCESS }
		for time.Since(begun) < 12*time.Second {
			r.read()
		}
		if all := r.read(); all["0 "+dcgm.NVLinkLimit] != "39240000000" || all["0 "+dcgm.NVLinksActive] != "18" {
			t.Errorf("%q after ten seconds", all)
		}
	})
}

func TestLinksThatDoNotTell(t *testing.T) {
	tests := []struct {
		name string
		set  func(m *machine, b *board)
		want string
		// active is the number of links; asked is how often, within 25 seconds.
		active string
		asked  int
	}{
		{"no NVLink", func(_ *machine, b *board) { b.say(linkCall, nvml.ERROR_NOT_SUPPORTED) }, "", "", 1},
		{"no permission", func(_ *machine, b *board) { b.say(linkCall, nvml.ERROR_NO_PERMISSION) }, "", "", 1},
		{"an error that may pass", func(_ *machine, b *board) { b.say(linkCall, nvml.ERROR_UNKNOWN) }, "", "", 3},
		{"no common speed", func(_ *machine, b *board) { b.say("field 90", nvml.ERROR_NOT_SUPPORTED) }, "", "11", 3 * 18},
		{"an old library", func(m *machine, _ *board) { m.lacks[linkCall] = true }, "", "", 0},
		{"none active", func(_ *machine, b *board) {
			b.GetNvLinkStateFunc = func(int) (nvml.EnableState, nvml.Return) {
				return nvml.FEATURE_DISABLED, b.meets(linkCall)
			}
		}, "", "0", 3 * 18},
		{"six links, the rest is not supported", func(_ *machine, b *board) {
			b.GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
				if b.meets(linkCall); link >= 6 {
					return 0, nvml.ERROR_NOT_SUPPORTED
				}
				return nvml.FEATURE_ENABLED, nvml.SUCCESS
			}
		}, "13080000000", "6", 3 * 18},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(1)
				tt.set(m, m.boards[0])
				r := newReader(t, m, nil)
				defer r.Close()
				for begun := time.Now(); time.Since(begun) < 25*time.Second; {
					all := r.read()
					if got := all["0 "+dcgm.NVLinkLimit]; got != tt.want || all["0 "+dcgm.NVLinksActive] != tt.active || all["0 DCGM_FI_DEV_GPU_TEMP"] != "61" {
						t.Fatalf("%q and %q active, want %q and %q", got, all["0 "+dcgm.NVLinksActive], tt.want, tt.active)
					}
				}
				if n := m.boards[0].asked(linkCall); n != tt.asked {
					t.Errorf("asked %d times, want %d", n, tt.asked)
				}
			})
		})
	}
}

// A board that is lost while it is asked about its links is lost.
func TestLostAtItsLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(2)
		m.boards[1].say(linkCall, nvml.ERROR_GPU_IS_LOST)
		r := newReader(t, m, nil)
		defer r.Close()
		if all := r.read(); has(all, "1") || !has(all, "0") || r.log.count("lost a GPU") != 1 {
			t.Errorf("%v", all)
		}
	})
}

// While fewer links are up than before, they are queried at each reading.
func TestLinksThatAreDownAreAskedOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(1)
		up := 11
		m.boards[0].GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
			if link >= up {
				return nvml.FEATURE_DISABLED, nvml.SUCCESS
			}
			return nvml.FEATURE_ENABLED, nvml.SUCCESS
		}
		r := newReader(t, m, nil)
		defer r.Close()
		// readFor reads for that time, and returns the last number of links.
		readFor := func(span time.Duration) (last string) {
			for begun := time.Now(); time.Since(begun) < span; {
				last = r.read()["0 "+dcgm.NVLinksActive]
			}
			return last
		}
		for _, step := range []struct {
			up   int
			span time.Duration
			want string
		}{{11, 4 * time.Second, "11"}, {10, 4 * time.Second, "11"}, {10, 4 * time.Second, "10"}, {11, 2 * time.Second, "11"}, {0, 12 * time.Second, "0"}, {12, 2 * time.Second, "12"}} {
			up = step.up
			if got := readFor(step.span); got != step.want {
				t.Errorf("%+v: %s", step, got)
			}
		}
	})
}
