package compute

import (
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// xidsOf judges the first reading of a board, and returns the verdict and the XIDs among the
// events.
func xidsOf(t *testing.T, change func(*Options), set func(*canonical.Frame)) (v canonical.Verdict, xids []canonical.Event) {
	t.Helper()
	j := newJudge(t, change)
	f := frame(topology(gpu1), start, reading{})
	set(f)
	v = j.Judge(f, nil)[0]
	for _, e := range j.Events(nil) {
		if e.Kind == canonical.EventXID {
			xids = append(xids, e)
		}
	}
	return v, xids
}

// TestFirstWitnesses: from the first reading on, each witness says whether a fatal XID holds, and
// one that several of them report is one event.
func TestFirstWitnesses(t *testing.T) {
	one := func(w canonical.Witness, code uint32) []canonical.XIDCount {
		return []canonical.XIDCount{counted(w, code, 1)}
	}
	for _, c := range []struct {
		what string
		set  func(*canonical.Frame)
		want canonical.Finding
	}{
		{"none", func(*canonical.Frame) {}, canonical.NotRead},
		{"a count of no code", func(f *canonical.Frame) { f.XIDs = []canonical.XIDCount{counted(canonical.WitnessTotal, 0, 0)} }, canonical.Clear},
		{"a harmless record", func(f *canonical.Frame) { f.XIDEvents = []canonical.XIDEvent{{Code: 45}} }, canonical.Clear},
		{"no last code", func(f *canonical.Frame) { f.Row(0)[canonical.XIDLast] = 0 }, canonical.Clear},
		{"a record", func(f *canonical.Frame) { f.XIDEvents = []canonical.XIDEvent{{Code: 79}} }, canonical.Raised},
		{"a last code", func(f *canonical.Frame) { f.Row(0)[canonical.XIDLast] = 79 }, canonical.Raised},
		{"a window", func(f *canonical.Frame) { f.XIDs = one(canonical.WitnessWindow, 79) }, canonical.Raised},
		{"a total", func(f *canonical.Frame) { f.XIDs = one(canonical.WitnessTotal, 79) }, canonical.Raised},
		{"the driver", func(f *canonical.Frame) { f.XIDs = one(canonical.WitnessDriver, 79) }, canonical.Raised},
		{"all counts and the last code", func(f *canonical.Frame) {
			f.XIDs = append(one(canonical.WitnessWindow, 79), one(canonical.WitnessTotal, 79)...)
			f.Row(0)[canonical.XIDLast] = 79
		}, canonical.Raised},
	} {
		v, xids := xidsOf(t, nil, c.set)
		if got := v.Findings.Of(canonical.CondXIDFatal); got != c.want || got == canonical.Raised && len(xids) != 1 {
			t.Errorf("%s: %v with events %+v, want %v", c.what, got, xids, c.want)
		}
	}
}

// TestXIDsOfInstances: what is reported of an instance is of its board.
func TestXIDsOfInstances(t *testing.T) {
	part := gpu1
	part.Instance = "7"
	for what, set := range map[string]func(*canonical.Frame){
		"record": func(f *canonical.Frame) { f.XIDEvents = []canonical.XIDEvent{{Device: 1, Code: 79}} },
		"count": func(f *canonical.Frame) {
			f.XIDs = []canonical.XIDCount{{Device: 1, Witness: canonical.WitnessDriver, Code: 79, Count: 1}}
		},
	} {
		f := frame(topology(gpu1, part), start)
		set(f)
		if v := newJudge(t, nil).Judge(f, nil); v[0].Findings.Of(canonical.CondXIDFatal) != canonical.Raised {
			t.Errorf("a %s: %v", what, v[0].Findings)
		}
	}
}

// TestWhenXIDsOccurred: an XID occurred when its witness says so, but not after the reading.
func TestWhenXIDsOccurred(t *testing.T) {
	for told, want := range map[time.Time]time.Time{{}: start, start.Add(-time.Minute): start.Add(-time.Minute), start.Add(time.Hour): start} {
		for what, set := range map[string]func(*canonical.Frame){
			"record": func(f *canonical.Frame) { f.XIDEvents = []canonical.XIDEvent{{Code: 79, At: told}} },
			"count": func(f *canonical.Frame) {
				f.XIDs = []canonical.XIDCount{{Witness: canonical.WitnessDriver, Code: 79, Count: 1, Last: told}}
			},
		} {
			if _, xids := xidsOf(t, nil, set); len(xids) != 1 || !xids[0].At.Equal(want) {
				t.Errorf("a %s of %v, read at %v: %+v", what, told, start, xids)
			}
		}
	}
}

// TestRecordsDecide: a record that has a severity overrides the table, and the user overrides both.
func TestRecordsDecide(t *testing.T) {
	for _, c := range []struct {
		code     uint32
		record   canonical.Severity
		override canonical.Severity // NumSeverities for none
		want     canonical.Finding
	}{
		{13, canonical.SeverityFatal, canonical.NumSeverities, canonical.Raised},
		{13, canonical.SeverityFatal, canonical.SeverityNone, canonical.Clear},
		{79, canonical.SeverityNone, canonical.NumSeverities, canonical.Clear},
		{79, canonical.SeverityNone, canonical.SeverityFatal, canonical.Raised},
	} {
		v, _ := xidsOf(t, func(o *Options) {
			if c.override < canonical.NumSeverities {
				o.XIDs = map[uint32]XIDOverride{c.code: OverrideXID(c.code, c.override)}
			}
		}, func(f *canonical.Frame) {
			f.XIDEvents = []canonical.XIDEvent{{Code: c.code, Decoded: true, Severity: c.record}}
		})
		if got := v.Findings.Of(canonical.CondXIDFatal); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestLateWitnesses: an error that a witness reports long after another witness reported one is
// another error.
func TestLateWitnesses(t *testing.T) {
	for lag, want := range map[time.Duration]uint64{witnessLag: 0, witnessLag + 1: 1} {
		for what, set := range map[string]func(*canonical.Frame){
			"record":    func(f *canonical.Frame) { f.XIDEvents = []canonical.XIDEvent{{Code: 13}} },
			"last code": func(f *canonical.Frame) { f.Row(0)[canonical.XIDLast] = 13 },
			"count":     func(f *canonical.Frame) { f.XIDs = []canonical.XIDCount{counted(canonical.WitnessDriver, 13, 1)} },
		} {
			j, top := newJudge(t, nil), topology(gpu1)
			judge := func(at time.Time, counts ...canonical.XIDCount) *canonical.Frame {
				f := frame(top, at, reading{canonical.XIDLast: 45})
				f.XIDs = counts
				return f
			}
			j.Judge(judge(start, counted(canonical.WitnessTotal, 0, 0)), nil)
			j.Judge(judge(start.Add(sec), counted(canonical.WitnessTotal, 13, 1)), nil)
			f := judge(start.Add(sec + lag))
			set(f)
			j.Judge(f, nil)
			var n uint64
			for _, e := range j.Events(nil) {
				n += e.Count
			}
			if n != want {
				t.Errorf("a %s %v after a total: %d errors, want %d", what, lag, n, want)
			}
		}
	}
}
