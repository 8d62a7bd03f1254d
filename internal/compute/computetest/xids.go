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
	Told   bool  // the last reading reports XIDs, or that there are none
	Fatal  []int // those that hold, in ascending order
	Warned []int // within the last ten minutes, in ascending order
}

var (
	fatal = []int{46, 48, 62, 64, 79, 95, 109, 110, 119, 120, 136, 140, 143, 151, 155, 156, 158}
	// uncoupled are the codes that the driver's recovery action does not follow.
	uncoupled = []int{46, 119, 140, 151}
	// harmless are all codes of the table that are neither fatal nor warnings.
	harmless = []int{
		8, 11, 13, 25, 31, 32, 37, 38, 39, 40, 41, 43, 44, 45, 60, 63, 66, 67, 68, 69, 70, 71, 72, 75, 76, 77, 80, 82, 83, 84, 85, 86, 88, 89, 92, 93, 94,
		96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 121, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135, 137, 139, 141, 142, 147, 148, 152, 153, 157, 159, 160, 161, 162, 163, 164, 165,
	}
)

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
			case slices.Contains(fatal, code):
				held[code], calm = h.At, 0
			case i > 0 && !slices.Contains(harmless, code):
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
			follows := !slices.Contains(uncoupled, c) || !asked.IsZero() && since.Sub(asked) < 5*time.Minute
			if h.At.Sub(since) > 24*time.Hour || calm >= 3 && h.At.Sub(since) >= time.Minute && follows {
				delete(held, c)
			}
		}
	}
	end := history[len(history)-1]
	codes := Codes{Told: !math.IsNaN(end.Row[canonical.XIDLast]) || len(end.XIDs) > 0}
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
		sums, counts, told := map[int]int{}, map[int]int{}, w > canonical.WitnessTotal
		for i, h := range history {
			mine := map[int]int{}
			tells := false
			for _, x := range h.XIDs {
				if x.Witness == w {
					tells = true
					mine[int(x.Code)] = int(x.Count)
				}
			}
			if !tells {
				told = told || i == 0
				continue
			}
			for code, n := range mine {
				switch {
				case i == 0 && !told:
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
