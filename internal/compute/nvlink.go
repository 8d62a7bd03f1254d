package compute

import "github.com/kpulse/kpulse-proxy/internal/canonical"

// links is how many NVLinks of a board are up, from reading to reading.
type links struct {
	up       float64 // in the latest readings
	readings int     // with that number, in a row
	most     float64 // that were up in enough readings in a row; 0 if none ever were
}

// observe accepts a number of active links as the board's own once it is unchanged for some readings:
// links come up one after the other, and a board without a bridge never has one.
func (l *links) observe(up float64, readings int) {
	switch {
	case !canonical.Given(up):
		l.readings = 0
		return
	case up != l.up:
		l.up, l.readings = up, 0
	}
	l.readings++
	if l.readings >= readings {
		l.most = max(l.most, up)
	}
}

// findLinks compares the links that are up with the most that this board had. Fewer links are no
// finding while a restarted board trains them, nor while it is cut into instances, which have no
// links.
func findLinks(e *evidence, c *Criterion) canonical.Finding {
	up, d, t := e.row[canonical.NVLinksActive], e.device, e.thresholds
	training := e.at.Sub(d.restarts.at) < t.LinkTraining
	fewer := up < d.links.most && !training && !d.cut
	return max(findRecent(e, c), e.steady(finding(up, fewer), t.SteadyReadings, 0))
}
