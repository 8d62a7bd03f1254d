package compute

import (
	"iter"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// A program's error is the board's fault if one board has it repeatedly and the
// others of its node do not. A job that fails on all of its boards fails on them at about
// the same time, and a job that is restarted repeatedly runs on changing boards.
const (
	repeats    = 5
	repeatSpan = 24 * time.Hour
	// incidentGap separates incidents: the codes that a dying program causes, line after line, are
	// one.
	incidentGap = 10 * time.Second
	// sharedWithin is the time within which the same code on several boards is one job's.
	sharedWithin = time.Minute
	// sharedIncidents on another board of the node within repeatSpan show that no board is at
	// fault.
	sharedIncidents = 3
	// remembered is how many incidents are kept: those that may yet turn out to be shared must not
	// displace the repeats before them.
	remembered = repeats + int(sharedWithin/incidentGap) + 1
)

// incidents are the times at which an application's code occurred on one board of a node alone.
type incidents struct {
	at   []time.Time // the latest ones, the earliest first; most codes have none
	seen time.Time   // when it last occurred, alone or not
}

// incident takes in an application's code.
func (j *Judge) incident(d *device, x *xid, at time.Time) {
	goesOn := at.Sub(x.own.seen) < incidentGap
	x.own.seen = later(x.own.seen, at)
	shared := false
	for y := range j.memory.elsewhere(d, x.code) {
		if y.own.seen.Sub(at).Abs() <= sharedWithin {
			shared = true
			y.own.drop(at)
		}
	}
	switch {
	case shared:
		x.own.drop(at) // the other board may have been away when they were added
	case !goesOn:
		x.own.add(at)
	}
}

// elsewhere yields what is known about a code on the other boards of d's node.
func (m *memory) elsewhere(d *device, code uint32) iter.Seq[*xid] {
	return func(yield func(*xid) bool) {
		for _, other := range m.present {
			if other == d || other.Hostname != d.Hostname {
				continue
			}
			if x := other.xids.of(code); x != nil && !yield(x) {
				return
			}
		}
	}
}

// of returns what is known about a code, nil for nothing.
func (x *xids) of(code uint32) *xid {
	for i := range x.codes {
		if x.codes[i].code == code {
			return &x.codes[i]
		}
	}
	return nil
}

func (s *incidents) add(at time.Time) {
	s.at = append(slices.Delete(s.at, 0, max(0, len(s.at)-remembered+1)), at)
}

// drop removes the incidents shared with another board at an instant.
func (s *incidents) drop(at time.Time) {
	s.at = slices.DeleteFunc(s.at, func(t time.Time) bool { return t.Sub(at).Abs() <= sharedWithin })
}

// recent returns how many there were within repeatSpan.
func (s *incidents) recent(at time.Time) (n int) {
	for _, t := range s.at {
		if at.Sub(t) <= repeatSpan {
			n++
		}
	}
	return n
}

func (s *incidents) rewind(at time.Time) {
	s.seen = earlier(s.seen, at)
	for i := range s.at {
		s.at[i] = earlier(s.at[i], at)
	}
}

// observeRepeats looks for boards on which codes repeat.
func (j *Judge) observeRepeats(at time.Time) {
	for _, d := range j.memory.present {
		d.xids.repeated = j.repeated(d, at)
	}
}

// repeated reports whether d is at fault for an application's code.
func (j *Judge) repeated(d *device, at time.Time) bool {
	for i := range d.xids.codes {
		x := &d.xids.codes[i]
		if x.own.recent(at) >= repeats && !j.sharedAtAll(d, x.code, at) && j.xids.of(x.code, &d.Device).severity == canonical.SeverityApplication {
			return true
		}
	}
	return false
}

// sharedAtAll reports whether another board of the node had the code sharedIncidents times or
// more.
func (j *Judge) sharedAtAll(d *device, code uint32, at time.Time) bool {
	for y := range j.memory.elsewhere(d, code) {
		if y.own.recent(at) >= sharedIncidents {
			return true
		}
	}
	return false
}
