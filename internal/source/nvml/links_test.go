//go:build cgo && linux

package nvml

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// A link whose state cannot be read leaves the number of active links unknown: fewer would mean that
// some are down.
func TestLinkThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, l := newMachine(1).boards[0], newLinks()
		answer := nvml.SUCCESS
		b.GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
			if link == 5 && answer != nvml.SUCCESS {
				return 0, answer
			}
			return b.linkState(link)
		}
		for i, step := range []struct {
			answer nvml.Return
			active float64
		}{{nvml.SUCCESS, 11}, {nvml.ERROR_UNKNOWN, math.NaN()}, {nvml.SUCCESS, 11}} {
			answer = step.answer
			row := newRow()
			got, _ := l.ask(b, time.Now(), func(string) {}, row)
			if active := row[columns(dcgm.NVLinksActive)[0]]; got != step.answer || !alike(active, step.active) {
				t.Errorf("step %d: %v active: %v", i, active, got)
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
		if n := m.boards[0].asked(linkCall); n != 12+1 { // the one after the last is refused
			t.Errorf("%d calls", n)
		}
		m.boards[0].GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
			if link >= 18 {
				return 0, nvml.ERROR_INVALID_ARGUMENT
			}
			return nvml.FEATURE_ENABLED, nvml.SUCCESS
		}
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
		{"no common speed", func(_ *machine, b *board) { b.say("field 90", nvml.ERROR_NOT_SUPPORTED) }, "", "11", 3 * 13},
		{"an old library", func(m *machine, _ *board) { m.lacks[linkCall] = true }, "", "", 0},
		{"none active", func(_ *machine, b *board) {
			b.GetNvLinkStateFunc = func(int) (nvml.EnableState, nvml.Return) {
				return nvml.FEATURE_DISABLED, b.meets(linkCall)
			}
		}, "", "0", 3 * nvml.NVLINK_MAX_LINKS},
		{"six links, the rest is not supported", func(_ *machine, b *board) {
			b.GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
				if b.meets(linkCall); link >= 6 {
					return 0, nvml.ERROR_NOT_SUPPORTED
				}
				return nvml.FEATURE_ENABLED, nvml.SUCCESS
			}
		}, "13080000000", "6", 3 * nvml.NVLINK_MAX_LINKS},
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

// link5 are the families of NVLink 5's counters, by the number of NVML's field (nvml.h).
var link5 = map[uint32]string{
	206: "RX_MALFORMED_PACKET_ERRORS", 207: "RX_BUFFER_OVERRUN_ERRORS", 208: "RX_ERRORS", 209: "RX_REMOTE_ERRORS",
	210: "RX_GENERAL_ERRORS", 211: "LOCAL_LINK_INTEGRITY_ERRORS", 212: "TX_DISCARDS", 213: "LINK_RECOVERY_SUCCESSFUL_EVENTS",
	214: "LINK_RECOVERY_FAILED_EVENTS", 215: "LINK_RECOVERY_EVENTS", 219: "EFFECTIVE_ERRORS", 221: "RX_SYMBOL_ERRORS",
}

// linked answers for one of 12 links: a count is the field's number plus the link's, the ratios are
// 3e-12 but for one of link 4. It answers code for a field, or a link of it.
func linked(lacks uint32, link int, code nvml.Return) func(field, scope uint32) (uint64, nvml.Return) {
	return func(field, scope uint32) (uint64, nvml.Return) {
		switch {
		case scope >= 12:
			return 0, nvml.ERROR_INVALID_ARGUMENT
		case field == lacks && (link < 0 || scope == uint32(link)):
			return 0, code
		case field == nvml.FI_DEV_NVLINK_COUNT_SYMBOL_BER && scope == 4:
			return 5<<8 | 7, nvml.SUCCESS
		case field == nvml.FI_DEV_NVLINK_COUNT_SYMBOL_BER, field == nvml.FI_DEV_NVLINK_COUNT_EFFECTIVE_BER:
			return 3<<8 | 12, nvml.SUCCESS
		}
		return uint64(field + scope), nvml.SUCCESS
	}
}

// linkRows returns the rows of GPU 0 with the totals of what linked answers, but for one field.
func linkRows(lacks uint32) map[string]string {
	const prefix = "0 DCGM_FI_DEV_NVLINK_COUNT_"
	rows := map[string]string{prefix + "SYMBOL_BER_FLOAT": "0.0000005", prefix + "EFFECTIVE_BER_FLOAT": "3e-12"}
	for field, family := range link5 {
		if field != lacks {
			rows[prefix+family] = fmt.Sprint(12*field + 66)
		}
	}
	return rows
}

func TestLinkTotals(t *testing.T) {
	const every = -1
	for _, test := range []struct {
		name   string
		link5  func(field, scope uint32) (uint64, nvml.Return)
		want   map[string]string
		asked  int // number of requests for field 206: at 0, 10 and 20 s, of each link
		denied int // number of log lines
	}{
		{"all", linked(0, 0, 0), linkRows(0), 3 * 12, 0},
		{"a board without them", nil, nil, 12, 0},
		{"without the first", linked(206, every, nvml.ERROR_NOT_SUPPORTED), linkRows(206), 12, 0},
		{"no permission", linked(206, every, nvml.ERROR_NO_PERMISSION), linkRows(206), 12, 1},
		{"an error that passes", linked(206, every, nvml.ERROR_UNKNOWN), linkRows(206), 3 * 12, 0},
		{"an error of one link", linked(206, 7, nvml.ERROR_UNKNOWN), linkRows(206), 3 * 12, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(1)
				m.boards[0].link5 = test.link5
				r := newReader(t, m, nil)
				defer r.Close()
				for begun := time.Now(); time.Since(begun) < 20*time.Second; {
					all := r.read()
					maps.DeleteFunc(all, func(key, _ string) bool { return !strings.HasPrefix(key, "0 DCGM_FI_DEV_NVLINK_COUNT_") })
					if !maps.Equal(all, test.want) {
						t.Fatalf("%v, want %v", all, test.want)
					}
				}
				if n := m.boards[0].asked("field 206"); n != test.asked {
					t.Errorf("asked %d times, want %d", n, test.asked)
				}
				if n := r.log.count("the driver denies a reading", "call="+fieldCall); n != test.denied {
					t.Errorf("logged %d times, want %d: %s", n, test.denied, r.log.text.String())
				}
			})
		})
	}
}

// A total is absent while the value of a link is missing: a lower one would look like a reset.
func TestHiddenLinkTotals(t *testing.T) {
	type answers = func(field, scope uint32) (uint64, nvml.Return)
	none, sum, all := math.NaN(), float64(12*206+66), linked(0, 0, 0)
	for name, steps := range map[string][]struct {
		link5 answers
		want  float64
	}{
		"one link fails":   {{all, sum}, {linked(206, 7, nvml.ERROR_UNKNOWN), none}, {all, sum}},
		"one link refuses": {{all, sum}, {linked(206, 7, nvml.ERROR_INVALID_ARGUMENT), none}, {all, sum}},
		"one link denies":  {{all, sum}, {linked(206, 7, nvml.ERROR_NO_PERMISSION), none}, {all, sum}},
		"one link is late": {{linked(206, 0, nvml.ERROR_UNKNOWN), none}, {all, sum}},
		"11 links":         {{linked(206, 11, nvml.ERROR_NOT_SUPPORTED), sum - 206 - 11}, {all, sum - 206 - 11}},
	} {
		synctest.Test(t, func(t *testing.T) {
			b, l := newMachine(1).boards[0], newLinks()
			for i, step := range steps {
				b.link5 = step.link5
				row := newRow()
				l.ask(b, time.Now(), func(string) {}, row)
				if got := row[columns("NLMALP")[0]]; !alike(got, step.want) {
					t.Errorf("%s: answer %d: %v malformed packets, want %v", name, i, got, step.want)
				}
				time.Sleep(10 * time.Second)
			}
		})
	}
}

// If links come up later, after the start of the fabric manager, their counts are asked for again.
func TestCountersOfLinksThatComeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(1)
		b := m.boards[0]
		up := false
		b.GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
			if _, answer := b.linkState(link); up || answer != nvml.SUCCESS {
				return nvml.FEATURE_ENABLED, answer
			}
			return nvml.FEATURE_DISABLED, nvml.SUCCESS
		}
		b.link5 = func(field, scope uint32) (uint64, nvml.Return) {
			if up {
				return linked(0, 0, 0)(field, scope)
			}
			return 0, nvml.ERROR_NOT_SUPPORTED
		}
		r := newReader(t, m, nil)
		defer r.Close()
		for begun := time.Now(); time.Since(begun) < 30*time.Second; { // 2538 = 12 × 206 + 66
			up = time.Since(begun) > 12*time.Second
			count, given := r.read()["0 DCGM_FI_DEV_NVLINK_COUNT_"+link5[206]]
			if since := time.Since(begun); given && count != "2538" || since < 12*time.Second && given || since > 23*time.Second && !given {
				t.Errorf("%q malformed packets after %s", count, since)
			}
		}
	})
}

// A board that is lost while it is asked about its links is lost, even if a field is denied before.
func TestLostAtItsLinks(t *testing.T) {
	for name, spoil := range map[string]func(*board){
		"states": func(b *board) { b.say(linkCall, nvml.ERROR_GPU_IS_LOST) },
		"counters": func(b *board) {
			b.link5 = func(field, _ uint32) (uint64, nvml.Return) {
				if field == 206 {
					return 0, nvml.ERROR_NO_PERMISSION
				}
				return 0, nvml.ERROR_GPU_IS_LOST
			}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(2)
			spoil(m.boards[1])
			r := newReader(t, m, nil)
			defer r.Close()
			all := r.read()
			denied := r.log.count("the driver denies a reading")
			if has(all, "1") || !has(all, "0") || r.log.count("lost a GPU") != 1 || (denied == 1) != (name == "counters") {
				t.Errorf("%s: %d denials, %v", name, denied, all)
			}
		})
	}
}

// TestLinkRate: counters of KiB become thousands of KiB per second.
func TestLinkRate(t *testing.T) {
	const none = -1
	type step struct {
		at             int64 // µs
		sent, received int64 // KiB, none for a counter that is missing
		want           float64
	}
	for name, steps := range map[string][]step{
		"a steady rate":                  {{1, 1000, 0, none}, {500_001, 4000, 2000, 10}, {1_000_001, 10_000, 5000, 18}},
		"no traffic":                     {{10, 1000, 7, none}, {500_010, 1000, 7, 0}},
		"a clock that has just begun":    {{500_000, 1000, 0, none}},
		"a driver that was loaded again": {{10, 9000, 0, none}, {500_010, 1000, 0, none}, {1_000_010, 2000, 0, 2}},
		"the longest window":             {{10, 0, 0, none}, {2_000_010, 9000, 0, none}, {4_000_009, 11_000, 0, 1}},
		"a clock that is set back":       {{1_000_000, 0, 0, none}, {500_000, 9000, 0, none}},
		"none sent for a while":          {{10, 1000, 0, none}, {500_010, none, 0, none}, {1_000_010, 3000, 0, none}, {1_500_010, 5000, 0, 4}},
		"none received for a while":      {{10, 0, 1000, none}, {500_010, 0, none, none}, {1_000_010, 0, 3000, none}, {1_500_010, 0, 5000, 4}},
		"the same answer again":          {{10, 1000, 0, none}, {500_010, 2000, 0, 2}, {500_010, 2000, 0, none}, {1_000_010, 3000, 0, 2}},
	} {
		l := linkRate{column: columns("NBWLT")[0], longest: 2}
		for i, step := range steps {
			field := func(kibibytes int64) *nvml.FieldValue {
				if kibibytes == none {
					return nil
				}
				v := value(nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, uint64(kibibytes))
				v.Timestamp = step.at
				return &v
			}
			row := make([]float64, len(dcgm.Fields))
			row[l.column] = none
			l.add(field(step.sent), field(step.received), row)
			if row[l.column] != step.want {
				t.Errorf("%s: reading %d is %v, want %v", name, i+1, row[l.column], step.want)
			}
		}
	}
}
