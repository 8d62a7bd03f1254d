package compute

import (
	"slices"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

func TestXIDAccount(t *testing.T) {
	xid := func(code float64) reading { return reading{canonical.XIDLast: code} }
	type step struct {
		r       reading // nil: the board is not there
		changes uint64
		changed int // the number of the step with the last change, -1 for none
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"never", []step{{reading{}, 0, -1}, {reading{}, 0, -1}, {xid(0), 0, -1}}},
		{"old when it was first read", []step{{xid(79), 0, -1}, {xid(79), 0, -1}}},
		{"from absent", []step{{reading{}, 0, -1}, {xid(79), 1, 1}, {xid(79), 1, 1}}},
		{"from absent to the least", []step{{reading{}, 0, -1}, {xid(1), 1, 1}}},
		{"from 0", []step{{xid(0), 0, -1}, {xid(13), 1, 1}}},
		{"from one to the next", []step{{xid(31), 0, -1}, {xid(13), 1, 1}, {xid(79), 2, 2}}},
		{"back to none and again", []step{{xid(31), 0, -1}, {xid(0), 0, -1}, {xid(31), 1, 2}, {reading{}, 1, 2}, {xid(31), 1, 2}}},
		{"unreadable in between", []step{{xid(31), 0, -1}, {reading{}, 0, -1}, {reading{}, 0, -1}, {xid(31), 0, -1}}},
		{"another one after that", []step{{xid(31), 0, -1}, {reading{}, 0, -1}, {xid(79), 1, 2}}},
		{"long absent, then one", []step{{reading{}, 0, -1}, {reading{}, 0, -1}, {xid(31), 1, 2}, {reading{}, 1, 2}, {xid(31), 1, 2}}},
		{"none, unreadable, one", []step{{xid(0), 0, -1}, {reading{}, 0, -1}, {xid(31), 1, 2}}},
		{"unreadable, then it was away", []step{{xid(31), 0, -1}, {reading{}, 0, -1}, {nil, 0, -1}, {xid(31), 0, -1}}},
		{"while it was away", []step{{xid(0), 0, -1}, {nil, 0, -1}, {xid(79), 1, 2}}},
		{"not while it was away", []step{{xid(79), 0, -1}, {nil, 0, -1}, {xid(79), 0, -1}}},
	} {
		b := newAccounts(t, nil)
		for i, s := range c.steps {
			if s.r == nil {
				b.devices(gpu2)
				b.read(sec, sec, reading{canonical.XIDLast: float64(i)})
			} else {
				b.devices(gpu2, gpu1)
				b.read(sec, sec, reading{canonical.XIDLast: float64(i)}, s.r)
			}
			var when time.Time
			if s.changed >= 0 {
				when = start.Add(time.Duration(s.changed+1) * sec)
			}
			if a := b.of("GPU-1", ""); a.XIDChanges != s.changes || !a.XIDChanged.Equal(when) {
				t.Errorf("%s: reading %d: %d changes, last at %v, want %d at %v", c.name, i, a.XIDChanges, a.XIDChanged, s.changes, when)
			}
		}
	}
}

// TestLooserRules: a code that neither the configuration nor its record calls fatal after a reload
// is resolved.
func TestLooserRules(t *testing.T) {
	last := func(code float64) func(*canonical.Frame) {
		return func(f *canonical.Frame) { f.Row(0)[canonical.XIDLast] = code }
	}
	record := func(e canonical.XIDEvent) func(*canonical.Frame) {
		return func(f *canonical.Frame) { f.XIDEvents = []canonical.XIDEvent{e} }
	}
	as := func(code uint32, s canonical.Severity) map[uint32]XIDOverride {
		return map[uint32]XIDOverride{code: OverrideXID(code, s)}
	}
	fatal13, none74 := as(13, canonical.SeverityFatal), as(74, canonical.SeverityNone)
	fatal74 := canonical.XIDEvent{Code: 74, Decoded: true, Severity: canonical.SeverityFatal, Action: canonical.ActionResetGPU}
	for name, c := range map[string]struct {
		reloads  []map[uint32]XIDOverride // the overrides before the code came, and those of each reload after it
		readings []func(*canonical.Frame)
		resolved bool
	}{
		"the same rules":            {[]map[uint32]XIDOverride{fatal13, fatal13}, []func(*canonical.Frame){last(0), last(13)}, false},
		"a last code":               {[]map[uint32]XIDOverride{fatal13, nil}, []func(*canonical.Frame){last(0), last(13)}, true},
		"there at first":            {[]map[uint32]XIDOverride{fatal13, nil}, []func(*canonical.Frame){last(13)}, true},
		"a record":                  {[]map[uint32]XIDOverride{fatal13, nil}, []func(*canonical.Frame){record(canonical.XIDEvent{Code: 13})}, true},
		"a record that decides":     {[]map[uint32]XIDOverride{nil, nil}, []func(*canonical.Frame){record(fatal74)}, false},
		"a record that is not used": {[]map[uint32]XIDOverride{fatal13, nil}, []func(*canonical.Frame){record(canonical.XIDEvent{Code: 13, Decoded: true})}, true},
		"the user overrides both":   {[]map[uint32]XIDOverride{nil, none74}, []func(*canonical.Frame){record(fatal74)}, true},
	} {
		j, top, at := newJudge(t, func(o *Options) { o.XIDs = c.reloads[0] }), topology(gpu1), start
		judge := func(set func(*canonical.Frame)) canonical.Finding {
			at = at.Add(sec)
			f := frame(top, at, reading{})
			set(f)
			return j.Judge(f, nil)[0].Findings.Of(canonical.CondXIDFatal)
		}
		for _, set := range c.readings {
			judge(set)
		}
		for _, overrides := range c.reloads[1:] {
			next := newJudge(t, func(o *Options) { o.XIDs = overrides })
			next.Resume(j)
			j = next
		}
		raised := judge(func(*canonical.Frame) {}) == canonical.Raised
		reported := slices.ContainsFunc(j.Events(nil), func(e canonical.Event) bool { return e.Text == resolvedByRules })
		if raised == c.resolved || reported != c.resolved {
			t.Errorf("%s: raised %t, in the events %t", name, raised, reported)
		}
	}
}

// TestModelBecomesKnown: a code on a board whose model was not known is judged again by its model.
func TestModelBecomesKnown(t *testing.T) {
	j := newJudge(t, nil)
	for i, c := range []struct {
		model string
		code  float64
		want  canonical.Finding
	}{{"", 0, canonical.Clear}, {"", 136, canonical.Raised}, {"NVIDIA GB200", 136, canonical.Clear}} {
		top := topology(canonical.Device{UUID: "GPU-1", Model: c.model})
		v := j.Judge(frame(top, start.Add(time.Duration(i)*sec), reading{canonical.XIDLast: c.code}), nil)
		if got := v[0].Findings.Of(canonical.CondXIDFatal); got != c.want {
			t.Errorf("reading %d: %v, want %v", i, got, c.want)
		}
	}
}

// TestRepeatsOfAnApplication: a code repeats only while it is an application's.
func TestRepeatsOfAnApplication(t *testing.T) {
	j, top := newJudge(t, nil), topology(gpu1)
	judge := func(n int) canonical.Finding {
		f := frame(top, start.Add(time.Duration(n)*time.Hour), reading{})
		f.XIDs = []canonical.XIDCount{counted(canonical.WitnessDriver, 31, uint64(n))}
		return j.Judge(f, nil)[0].Findings.Of(canonical.CondXIDRepeated)
	}
	for n := range 6 {
		if got := judge(n); (got == canonical.Raised) != (n == 5) {
			t.Errorf("%d times: %v", n, got)
		}
	}
	for _, c := range []struct {
		overrides map[uint32]XIDOverride
		want      canonical.Finding
	}{{map[uint32]XIDOverride{31: OverrideXID(31, canonical.SeverityNone)}, canonical.Clear}, {nil, canonical.Raised}} {
		next := newJudge(t, func(o *Options) { o.XIDs = c.overrides })
		next.Resume(j)
		j = next
		if got := judge(5); got != c.want {
			t.Errorf("after a reload of %v: %v", c.overrides, got)
		}
	}
}
