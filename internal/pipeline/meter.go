package pipeline

import "time"

// maxScrapedGap is the longest time that one reading of a scraped source stands
// for, and maxStreamedGap the same of a stream, in periods. What is beyond was not
// observed.
const (
	maxScrapedGap  = scrapedStaleAfter
	maxStreamedGap = 3
)

// meter measures the time that each reading stands for: that since the one
// before, in whole microseconds that add up to the time since the first, but
// never more than longest. The first reading, and one that is not later than the
// one before, stand for none.
type meter struct {
	longest time.Duration
	begun   time.Time     // of the first reading
	read    time.Duration // from then to the latest reading
}

func (m *meter) lap(at time.Time) time.Duration {
	if m.begun.IsZero() {
		m.begun = at
	}
	before := m.read
	m.read = at.Sub(m.begun).Truncate(time.Microsecond)
	return min(max(m.read-before, 0), m.longest)
}
