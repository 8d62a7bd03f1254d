package computetest

import (
	"math"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Codes is what the XIDs of a history amount to.
type Codes struct {
	Told   bool  // of XIDs in the last reading, or of there being none
	Fatal  []int // what holds, in ascending order
	Warned bool  // within the last ten minutes
}

var (
	fatal = []int{46, 48, 62, 64, 79, 95, 109, 110, 119, 120, 136, 140, 143, 151, 155, 156, 158}
	// uncoupled are those of them that the driver's recovery action does not follow.
	uncoupled = []int{46, 119, 140, 151}
	// harmless are all codes of the table that neither kill nor warn.
	harmless = []int{
		8, 11, 13, 25, 31, 32, 37, 38, 39, 40, 41, 43, 44, 45, 60, 63, 66, 67, 68, 69, 70, 71, 72, 75, 76, 77, 80, 82, 83, 84, 85, 86, 88, 89, 92, 93, 94,
		96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 121, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135, 137, 139, 141, 142, 147, 148, 152, 153, 157, 159, 160, 161, 162, 163, 164, 165,
	}
)

// XIDs goes through a history of a board of an unknown model, of which only the last code
// is told.
func XIDs(history []Reading) Codes {
	held := map[int]time.Time{}
	var warned, asked time.Time
	calm, code := 0, 0
	for i, h := range history {
		if i > 0 && fell(history[:i+1]) {
			clear(held)
		}
		if now := h.Row[canonical.XIDLast]; !math.IsNaN(now) {
			if int(now) != 0 && int(now) != code {
				switch first := i == 0; {
				case slices.Contains(fatal, int(now)):
					held[int(now)], calm = h.At, 0
				case !first && int(now) < 65536 && !slices.Contains(harmless, int(now)):
					warned = h.At
				}
			}
			code = int(now)
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
	codes := Codes{Told: !math.IsNaN(end.Row[canonical.XIDLast])}
	for c := range held {
		codes.Fatal = append(codes.Fatal, c)
	}
	slices.Sort(codes.Fatal)
	codes.Warned = !warned.IsZero() && end.At.Sub(warned) <= 10*time.Minute
	return codes
}

// fell reports whether a counter fell with the last reading that does only when the board
// starts anew.
func fell(history []Reading) bool {
	for _, f := range []canonical.Field{canonical.Energy, canonical.ECCSingleBitVolatile, canonical.ECCDoubleBitVolatile} {
		now := history[len(history)-1].Row[f]
		before := math.NaN()
		for _, h := range history[:len(history)-1] {
			if v := h.Row[f]; !math.IsNaN(v) {
				before = v
			}
		}
		if before-now > 1 || now == 0 && before > 0 {
			return true
		}
	}
	return false
}
