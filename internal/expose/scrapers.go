package expose

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// Scrapers knows at which interval each Prometheus scrapes /metrics: no scraper may miss the 0 with
// which a counter begins, nor the last value of an allocation that ended. A client that sends no
// scrape timeout, such as curl, is no scraper, nor are the terminal and the health check. Its methods may be called from any goroutine.
type Scrapers struct {
	mu    sync.Mutex
	known map[scraper]*cadence
}

// scraper identifies a scraper. One that follows /sd scrapes each source by itself.
type scraper struct{ host, agent, query string }

// cadence is when a scraper came.
type cadence struct {
	last time.Time
	gaps [2]time.Duration // the latest; a scrape that is lost makes the interval too long for a while, never too short
}

const (
	terminalAgent = "kpulse-proxy-tui" // of the requests of internal/tui/client
	// longestGap is the longest time between two scrapes that is taken for an interval: a Prometheus
	// looks back 5 minutes, so that series of a longer interval have gaps.
	longestGap = 6 * time.Minute
	// maxScrapers bounds the scrapers that are known.
	maxScrapers = 64
)

// note notes a scrape at an instant.
func (s *Scrapers) note(r *http.Request, now time.Time) {
	if s == nil || r.Header.Get(timeoutHeader) == "" || r.UserAgent() == terminalAgent {
		return
	}
	host := r.RemoteAddr
	if colon := strings.LastIndexByte(host, ':'); colon >= 0 {
		host = host[:colon] // the port differs from connection to connection
	}
	who := scraper{host, r.UserAgent(), r.URL.RawQuery}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.known[who]
	if c == nil {
		s.forget(now)
		if len(s.known) == maxScrapers {
			return
		}
		if s.known == nil {
			s.known = map[scraper]*cadence{}
		}
		s.known[who] = &cadence{last: now}
		return
	}
	gap := now.Sub(c.last)
	if c.last = now; gap > 0 && gap <= longestGap {
		c.gaps = [2]time.Duration{gap, c.gaps[0]}
	}
}

// forget drops the scrapers that no longer come. The caller holds mu.
func (s *Scrapers) forget(now time.Time) {
	for who, c := range s.known {
		if now.Sub(c.last) > 3*longestGap {
			delete(s.known, who)
		}
	}
}

// Interval returns the longest interval of all scrapers, 0 if none came twice.
func (s *Scrapers) Interval() (longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(time.Now())
	for _, c := range s.known {
		longest = max(longest, c.gaps[0], c.gaps[1])
	}
	return longest
}
