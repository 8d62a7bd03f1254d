package pipeline

import "time"

// maxScrapedGap is the longest time that one reading of a scraped source covers, and
// maxStreamedGap that of a stream, in periods. Time beyond them is not observed.
const (
	maxScrapedGap  = scrapedStaleAfter
	maxStreamedGap = 3
)

// meter measures the time that each reading covers: that since the previous one, in whole
// microseconds that add up to the time since the first, but never more than longest.
type meter struct {
	longest time.Duration // 0 leaves it to period
	period  time.Duration // that was requested of a stream; a steadily slower one has a longer one

	begun   time.Time        // of the first reading
	read    time.Duration    // from then to the latest reading
	recent  [8]time.Duration // between the latest readings
	counted int              // how many of them there were
}

func (m *meter) lap(at time.Time) time.Duration {
	if m.begun.IsZero() {
		m.begun = at
		return 0
	}
	before := m.read
	m.read = at.Sub(m.begun).Truncate(time.Microsecond)
	since := max(m.read-before, 0)
	m.recent[m.counted%len(m.recent)] = since
	m.counted++
	longest := m.longest
	if longest == 0 {
		longest = maxStreamedGap * m.usual()
	}
	return min(since, longest)
}

// usual returns the actual period of a stream: the requested one or, if all of the latest
// readings took longer, the shortest time between two of them. So a single gap does not count.
func (m *meter) usual() time.Duration {
	if m.counted < len(m.recent) {
		return m.period
	}
	shortest := m.recent[0]
	for _, d := range m.recent[1:] {
		shortest = min(shortest, d)
	}
	return max(m.period, shortest)
}
