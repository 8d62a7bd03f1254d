package compute

import (
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestRises plays readings of one counter of a board.
func TestRises(t *testing.T) {
	const minute = time.Minute
	gone := -1.0 // the board is not in the reading at all
	type step struct {
		at    time.Duration
		count float64
		want  canonical.Finding
	}
	const no, calm, raised = canonical.NotRead, canonical.Clear, canonical.Raised
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"first sight is not a rise", []step{{0, 1000, calm}, {minute, 1000, calm}}},
		{"ten minutes", []step{
			{0, 5, calm}, {minute, 6, raised}, {2 * minute, 6, raised},
			{11 * minute, 6, raised}, {11*minute + 1, 6, calm},
		}},
		{"a second rise restarts the time", []step{
			{0, 5, calm}, {minute, 6, raised}, {10 * minute, 7, raised}, {20 * minute, 7, raised}, {21 * minute, 7, calm},
		}},
		{"a decrease is a reset", []step{{0, 5, calm}, {minute, 2, calm}, {2 * minute, 2, calm}, {3 * minute, 3, raised}}},
		{"odd pages are none", []step{{0, 3, calm}, {minute, 0, calm}, {2 * minute, 0, calm}, {3 * minute, 3, calm}, {4 * minute, 4, raised}}},
		{"each rise counts once", []step{{0, 3, calm}, {minute, 0, calm}, {minute + 1, 4, raised}, {minute + 2, 4, raised}, {11*minute + 2, 4, calm}}},
		{"a rise beyond what odd pages hid", []step{{0, 3, calm}, {minute, 0, calm}, {2 * minute, 4, raised}}},
		{"back where it was, but too late", []step{{0, 3, calm}, {minute, 0, calm}, {3*minute + 1, 3, raised}}},
		{"a reset does not undo a rise", []step{{0, 5, calm}, {minute, 6, raised}, {2 * minute, 0, raised}, {12 * minute, 0, calm}}},
		{"not read", []step{{0, absent, no}, {minute, 4, calm}, {2 * minute, absent, no}, {3 * minute, 4, calm}, {4 * minute, 5, raised}}},
		{"raised while not read", []step{{0, 4, calm}, {minute, 5, raised}, {2 * minute, absent, raised}, {12 * minute, absent, no}}},
		{"a gap hides no rise", []step{{0, 4, calm}, {50 * minute, 5, raised}}},
		{"remembered for an hour", []step{{0, 4, calm}, {minute, gone, no}, {61 * minute, 5, raised}}},
		{"forgotten after an hour", []step{{0, 4, calm}, {minute, gone, no}, {61*minute + 1, 5, calm}, {62 * minute, 6, raised}}},
		{"forgotten though others came and went", []step{{0, 4, calm}, {minute, gone, no}, {90 * minute, gone, no}, {91 * minute, 5, calm}}},
		{"nor does a gap of hours, in which no board left", []step{{0, 4, calm}, {300 * minute, 5, raised}, {310 * minute, 5, raised}, {311 * minute, 5, calm}}},
		{"a clock set back", []step{{100 * minute, 4, calm}, {101 * minute, 5, raised}, {minute, 5, raised}, {11 * minute, 5, raised}, {12 * minute, 5, calm}}},
	} {
		j := newJudge(t, nil)
		board := canonical.Device{GPU: "0", Hostname: "n1", UUID: "GPU-1"}
		other := canonical.Device{GPU: "1", Hostname: "n1", UUID: "GPU-2"}
		both, alone := topology(other, board), topology(other)
		var verdicts []canonical.Verdict
		for _, s := range c.steps {
			if s.count == gone {
				verdicts = j.Judge(frame(alone, start.Add(s.at), reading{canonical.ECCDoubleBitVolatile: 9}), verdicts)
				continue
			}
			verdicts = j.Judge(frame(both, start.Add(s.at), reading{canonical.ECCDoubleBitVolatile: 9}, reading{canonical.ECCDoubleBitVolatile: s.count}), verdicts)
			if got := verdicts[1].Findings.Of(canonical.CondECCDoubleBit); got != s.want {
				t.Errorf("%s: at %v: %v, want %v", c.name, s.at, got, s.want)
			}
			if want := canonical.HealthCrit; s.want == raised && verdicts[1].Health != want {
				t.Errorf("%s: at %v: health %v, want %v", c.name, s.at, verdicts[1].Health, want)
			}
			if got := verdicts[0].Findings.Of(canonical.CondECCDoubleBit); got != calm {
				t.Errorf("%s: at %v: the other board: %v", c.name, s.at, got)
			}
		}
	}
}

func TestRiseHoldIsThreshold(t *testing.T) {
	j := newJudge(t, func(o *Options) { o.Thresholds.RiseHold = time.Second })
	top := topology(canonical.Device{GPU: "0"})
	var v []canonical.Verdict
	for i, want := range []canonical.Finding{canonical.Clear, canonical.Raised, canonical.Raised, canonical.Clear} {
		count := float64(min(i, 1))
		v = j.Judge(frame(top, start.Add(time.Duration(i)*time.Second), reading{canonical.ECCDoubleBitVolatile: count}), v)
		if v[0].Findings.Of(canonical.CondECCDoubleBit) != want {
			t.Errorf("reading %d: %v, want %v", i, v[0].Findings.Of(canonical.CondECCDoubleBit), want)
		}
	}
}

// TestBoardIdentity moves and swaps boards between two readings.
func TestBoardIdentity(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after canonical.Device
		want          canonical.Finding
	}{
		{"same uuid elsewhere", canonical.Device{Hostname: "a", GPU: "0", UUID: "GPU-1"}, canonical.Device{Hostname: "b", GPU: "3", UUID: "GPU-1"}, canonical.Raised},
		{"another uuid in its place", canonical.Device{Hostname: "a", GPU: "0", UUID: "GPU-1"}, canonical.Device{Hostname: "a", GPU: "0", UUID: "GPU-2"}, canonical.Clear},
		{"no uuid, same place", canonical.Device{Hostname: "a", GPU: "0"}, canonical.Device{Hostname: "a", GPU: "0"}, canonical.Raised},
		{"no uuid, another host", canonical.Device{Hostname: "a", GPU: "0"}, canonical.Device{Hostname: "b", GPU: "0"}, canonical.Clear},
		{"no uuid, another gpu", canonical.Device{Hostname: "a", GPU: "0"}, canonical.Device{Hostname: "a", GPU: "1"}, canonical.Clear},
	} {
		j := newJudge(t, nil)
		j.Judge(frame(topology(c.before), start, reading{canonical.ECCDoubleBitVolatile: 1}), nil)
		v := j.Judge(frame(topology(canonical.Device{UUID: "new"}, c.after), start.Add(time.Minute), nil, reading{canonical.ECCDoubleBitVolatile: 2}), nil)
		if got := v[1].Findings.Of(canonical.CondECCDoubleBit); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
