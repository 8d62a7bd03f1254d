package computetest

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Codes is the result of a history's XIDs.
type Codes struct {
	Given bool  // the last reading reports XIDs, or that there are none
	Fatal []int // those that hold, in ascending order
	// Unresolved are those that nothing resolved for 24 hours, in ascending order.
	Unresolved []int
	Warned     []int // within the last ten minutes, in ascending order
}

// of returns the row of a code. A test of canonical checks the table.
func of(code int) canonical.XIDRow {
	row, _ := canonical.XIDOf(uint32(code))
	return row
}

// XIDs evaluates a history of a board of an unknown model. All witnesses of its XIDs are within
// some minutes of each other.
func XIDs(history []Reading) Codes {
	held, warned := map[int]time.Time{}, map[int]time.Time{}
	var asked time.Time
	calm := 0
	for i, h := range history {
		if until, is := reset(history[:i+1]); is {
			maps.DeleteFunc(held, func(_ int, at time.Time) bool { return !at.After(until) })
		}
		for _, code := range Came(history[:i+1]) {
			switch {
			case of(code).Severity == canonical.SeverityFatal:
				held[code], calm = h.At, 0
			case i > 0 && of(code).Severity == canonical.SeverityWarning:
				warned[code] = h.At
			}
		}
		switch action := h.Row[canonical.RecoveryAction]; {
		case action > 0:
			calm, asked = 0, h.At
		case action == 0:
			calm++
		}
		for c, since := range held {
			follows := of(c).Recovery > 0 || !asked.IsZero() && since.Sub(asked) < 5*time.Minute
			if calm >= 3 && h.At.Sub(since) >= time.Minute && follows {
				delete(held, c)
			}
		}
	}
	end := history[len(history)-1]
	codes := Codes{Given: !math.IsNaN(end.Row[canonical.XIDLast]) || len(end.XIDs) > 0}
	maps.DeleteFunc(warned, func(_ int, at time.Time) bool { return end.At.Sub(at) > 10*time.Minute })
	for _, code := range slices.Sorted(maps.Keys(held)) {
		if end.At.Sub(held[code]) > 24*time.Hour {
			codes.Unresolved = append(codes.Unresolved, code)
		} else {
			codes.Fatal = append(codes.Fatal, code)
		}
	}
	codes.Warned = slices.Sorted(maps.Keys(warned))
	return codes
}

// Came returns the codes that occurred with the last reading: some witness has a higher count
// than any had before. In the first reading these are all codes.
func Came(history []Reading) (codes []int) {
	now, before := Totals(history), map[int]int{}
	if len(history) > 1 {
		before = Totals(history[:len(history)-1])
	} else {
		for _, x := range history[0].XIDs {
			if x.Count > 0 {
				now[int(x.Code)]++
			}
		}
		if last := history[0].Row[canonical.XIDLast]; last > 0 {
			now[int(last)]++
		}
	}
	for code, n := range now {
		if n > before[code] && code < 65536 {
			codes = append(codes, code)
		}
	}
	return codes
}

// Totals returns how often each code occurred since the first reading, by the witness with the
// highest count.
func Totals(history []Reading) map[int]int {
	most := map[int]int{}
	for w := range canonical.NumWitnesses {
		sums, counts, counted := map[int]int{}, map[int]int{}, w > canonical.WitnessTotal
		for i, h := range history {
			mine := map[int]int{}
			reports := false
			for _, x := range h.XIDs {
				if x.Witness == w {
					reports = true
					mine[int(x.Code)] = int(x.Count)
				}
			}
			if !reports {
				counted = counted || i == 0
				continue
			}
			for code, n := range mine {
				switch {
				case i == 0 && !counted:
				case n >= counts[code]:
					sums[code] += n - counts[code]
				case w != canonical.WitnessWindow:
					sums[code] += n
				}
			}
			counts = mine
		}
		for code, n := range sums {
			most[code] = max(most[code], n)
		}
	}
	changes, code := map[int]int{}, 0
	for i, h := range history {
		now := h.Row[canonical.XIDLast]
		if math.IsNaN(now) {
			continue
		}
		if i > 0 && now != 0 && int(now) != code {
			changes[int(now)]++
		}
		code = int(now)
	}
	for code, n := range changes {
		most[code] = max(most[code], n)
	}
	delete(most, 0)
	return most
}

// reset reports whether the last reading of a history shows that the board was reset, and after when:
// its energy fell in an earlier reading, and is still below the value before that fall. An energy of 0
// shows nothing. The reset came after the last reading before the fall, or, if
// that had no energy, after the one before.
func reset(history []Reading) (until time.Time, is bool) {
	fell, confirmed := -1, false // the reading with the latest fall, and whether it was a reset
	was, before := math.NaN(), math.NaN()
	for i, h := range history {
		now := h.Row[canonical.Energy]
		if is = false; math.IsNaN(now) {
			continue
		}
		falls := was-now > 1 || now == 0 && was > 0
		switch {
		case falls && (fell < 0 || confirmed):
			fell, before, confirmed = i, was, false
		case fell >= 0 && now >= before:
			fell = -1
		case fell >= 0 && !confirmed && now > 0:
			confirmed, is = true, true
		}
		was = now
	}
	if !is {
		return until, false
	}
	for i := fell - 1; i >= 0; i-- {
		if until = history[i].At; !math.IsNaN(history[i].Row[canonical.Energy]) || i < fell-1 {
			break
		}
	}
	return until, true
}
