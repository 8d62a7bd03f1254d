package expose

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// scraped tells s of scrapes by a client, at a time since another.
func scraped(s *Scrapers, since time.Time, client, agent, query string, times ...time.Duration) {
	for _, at := range times {
		r := httptest.NewRequest(http.MethodGet, "/metrics"+query, nil)
		r.RemoteAddr, r.Header = client, http.Header{"User-Agent": {agent}, timeoutHeader: {"10"}}
		if agent == "curl" {
			r.Header.Del(timeoutHeader)
		}
		s.note(r, since.Add(at))
	}
}

// TestScrapers: the interval is the longest of all who scrape, each by itself: a lost scrape counts for
// two more, an outage not at all, and nor do curl and the terminal. One who stays away is forgotten.
func TestScrapers(t *testing.T) {
	const m, s = time.Minute, time.Second
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		for _, test := range []struct {
			what string
			note func(*Scrapers)
			want time.Duration
		}{
			{"nobody", func(*Scrapers) {}, 0},
			{"once", func(l *Scrapers) { scraped(l, begin, "10.0.0.1:1", "Prometheus", "", 0) }, 0},
			{"a pair, by turns, and from new ports", func(l *Scrapers) {
				for i := range 6 {
					scraped(l, begin, fmt.Sprintf("10.0.0.%d:%d", 1+i%2, i), "Prometheus", "", time.Duration(i)*30*s)
				}
			}, m},
			{"two at different intervals", func(l *Scrapers) {
				scraped(l, begin, "10.0.0.1:1", "Prometheus", "", 0, 15*s, 30*s)
				scraped(l, begin, "10.0.0.1:1", "vmagent", "", 0, 2*m, 4*m)
			}, 2 * m},
			{"each source by itself", func(l *Scrapers) {
				for i := range 4 {
					scraped(l, begin, "10.0.0.1:1", "Prometheus", fmt.Sprintf("?source=%d", i%2), time.Duration(i)*20*s)
				}
			}, 40 * s},
			{"a lost scrape", func(l *Scrapers) { scraped(l, begin, "10.0.0.1:1", "Prometheus", "", 0, 30*s, 90*s, 2*m) }, m},
			{"which is past", func(l *Scrapers) { scraped(l, begin, "10.0.0.1:1", "Prometheus", "", 0, 30*s, 90*s, 2*m, 150*s) }, 30 * s},
			{"an outage", func(l *Scrapers) { scraped(l, begin, "10.0.0.1:1", "Prometheus", "", 0, 30*s, m, 11*m) }, 30 * s},
			{"a person, and the terminal", func(l *Scrapers) {
				scraped(l, begin, "10.0.0.1:1", "curl", "", 0, 4*m)
				scraped(l, begin, "10.0.0.1:1", terminalAgent, "?series=full", 0, 5*m)
			}, 0},
		} {
			var l Scrapers
			test.note(&l)
			if got := l.Interval(); got != test.want {
				t.Errorf("%s: %v, want %v", test.what, got, test.want)
			}
		}
		var l Scrapers
		scraped(&l, begin, "10.0.0.1:1", "Prometheus", "", 0, m)
		for i := range 2 * maxScrapers {
			scraped(&l, begin, fmt.Sprintf("10.0.1.%d:1", i), "Prometheus", "", 0, s)
		}
		if len(l.known) != maxScrapers || l.Interval() != m {
			t.Errorf("%d scrapers, %v", len(l.known), l.Interval())
		}
		if time.Sleep(20 * m); l.Interval() != 0 || len(l.known) != 0 {
			t.Errorf("%d scrapers are remembered", len(l.known))
		}
	})
}
