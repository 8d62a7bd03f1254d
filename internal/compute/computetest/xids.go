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
	Given  bool  // the last reading reports XIDs, or that there are none
	Fatal  []int // those that hold, in ascending order
	Warned []int // within the last ten minutes, in ascending order
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
		if i > 0 && (fell(history[:i+1]) || h.Away && !wentOn(history[:i+1])) {
			clear(held)
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
			if h.At.Sub(since) > 24*time.Hour || calm >= 3 && h.At.Sub(since) >= time.Minute && follows {
				delete(held, c)
			}
		}
	}
	end := history[len(history)-1]
	codes := Codes{Given: !math.IsNaN(end.Row[canonical.XIDLast]) || len(end.XIDs) > 0}
	maps.DeleteFunc(warned, func(_ int, at time.Time) bool { return end.At.Sub(at) > 10*time.Minute })
	codes.Fatal, codes.Warned = slices.Sorted(maps.Keys(held)), slices.Sorted(maps.Keys(warned))
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

// fell reports whether the last reading lowers a counter that falls only when the board restarts.
func fell(history []Reading) bool {
	for _, f := range []canonical.Field{canonical.Energy, canonical.ECCSingleBitVolatile, canonical.ECCDoubleBitVolatile} {
		if before, now := lastTwo(history, f); before-now > 1 || now == 0 && before > 0 {
			return true
		}
	}
	return false
}

// wentOn reports whether the board's energy in the last reading shows that it did not restart.
func wentOn(history []Reading) bool {
	before, now := lastTwo(history, canonical.Energy)
	return now >= before
}

// lastTwo returns the last reading of a field, and the one given last before it; NaN for none.
func lastTwo(history []Reading, f canonical.Field) (before, now float64) {
	before, now = math.NaN(), history[len(history)-1].Row[f]
	for _, h := range history[:len(history)-1] {
		if v := h.Row[f]; !math.IsNaN(v) {
			before = v
		}
	}
	return before, now
}
