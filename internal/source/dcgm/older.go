package dcgm

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// Which fields a stream requests. dmon requests all fields of a stream at once, and ends
// without naming the field if the host engine does not know one. (It does name a field
// that dcgmi itself does not know: see without.)
const (
	allOfIt   = iota
	notRecent // without the fields that DCGM 4.0 lacks
	noOthers  // and without those that only the counters file requests
	fewest    = noOthers
)

// leavesOut reports whether st does not request a field because the host engine may not know it.
func (st *stream) leavesOut(id int) bool {
	return st.reduced >= notRecent && IsRecent(id) || st.reduced >= noOthers && !IsKnown(id)
}

// withoutRecent reports whether to restart st without the fields that an older host
// engine does not know, because err may be about them. After that start has delivered
// ticks, or failed too, the next one requests all again: another host engine may run
// then.
func (s *Source) withoutRecent(st *stream, err error) bool {
	before := st.missing()
	for !st.gave && errors.Is(err, errFields) && st.reduced < fewest {
		if st.reduced++; len(st.missing()) > len(before) {
			return true
		}
	}
	st.reduced = allOfIt
	return false
}

// missing returns the ids of the fields that st leaves out, in ascending order.
func (st *stream) missing() (ids []int) {
	for _, id := range st.fields {
		if st.leavesOut(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// noteMissing notes and logs the fields that st, which delivers ticks, leaves out.
func (s *Source) noteMissing(st *stream) {
	if st.index != device {
		return
	}
	var notes []source.Note
	if missing := st.missing(); missing != nil {
		var ids []string
		for _, id := range missing {
			ids = append(ids, strconv.Itoa(id))
		}
		notes = []source.Note{{
			Cause:  "the host engine does not know some of the " + st.name + " fields, and is asked without " + strings.Join(ids, ","),
			Remedy: "install a release of DCGM there that is no older than dcgmi: nv-hostengine --version; dcgmi --version",
		}}
	}
	if s.setNotes(ofFields, notes) && notes != nil {
		s.opts.Logger.Warn(notes[0].Cause, "reads", s.Name(), "remedy", notes[0].Remedy)
	}
}
