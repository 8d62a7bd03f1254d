package expose

import (
	"net/http"
	"strconv"
	"time"
)

const (
	// timeoutHeader is what Prometheus sends with each scrape, in seconds.
	timeoutHeader = "X-Prometheus-Scrape-Timeout-Seconds"
	// maxMargin and marginShare bound what we leave of the scraper's timeout for
	// our own work and the way back.
	maxMargin   = 500 * time.Millisecond
	marginShare = 4 // one quarter
	// maxTimeout is beyond any scrape timeout in use.
	maxTimeout = time.Hour
)

// readTimeout returns how long reading the sources may take: the scraper's own
// timeout less min(0.5 s, a quarter of it), or fallback where the scraper names
// none that makes sense.
func readTimeout(r *http.Request, fallback time.Duration) time.Duration {
	seconds, err := strconv.ParseFloat(r.Header.Get(timeoutHeader), 64)
	if err != nil || !(seconds > 0) {
		return fallback
	}
	timeout := time.Duration(min(seconds, maxTimeout.Seconds()) * float64(time.Second))
	if timeout <= 0 { // less than a nanosecond
		return fallback
	}
	return timeout - min(maxMargin, timeout/marginShare)
}
