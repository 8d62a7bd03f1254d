package dcgm

import (
	"context"
	"slices"
	"time"
)

const (
	// surveyEvery is the longest time between two surveys of the node.
	surveyEvery = 5 * time.Minute
	// surveyLost is the same while a board is lost: dmon does not watch the board, so
	// no row shows that it is back.
	surveyLost = 30 * time.Second
	// lookEvery is how often the driver's list of instances is read, which
	// costs almost nothing.
	lookEvery = time.Second
	// recutLooks is how many surveys follow a change of that list: instances are
	// made one by one, and the host engine detects them a little later.
	recutLooks = 3
)

// watch keeps the view current: it surveys the node on request, when the driver's
// instances change, and at regular intervals. Pauses grow after surveys that
// change nothing, to limit the cost of an entity that cannot be identified.
func (s *Source) watch(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	instances := s.opts.probes.Instances()
	last, pause, idle, due := time.Now(), time.Duration(0), 0, 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.surveys:
			due = max(due, 1)
		case <-ticker.C:
		}
		if now := s.opts.probes.Instances(); s.local && !slices.Equal(now, instances) {
			instances, pause, idle, due = now, 0, 0, recutLooks
		}
		since, v := time.Since(last), s.view.Load()
		if v == nil || since < v.surveyEvery() && (due == 0 || since < pause) {
			continue
		}
		due = max(due-1, 0)
		if idle++; s.resurvey(ctx) {
			idle = 1
		}
		last, pause = time.Now(), s.backoff(idle)
	}
}

// surveyEvery returns the longest time between two surveys.
func (v *view) surveyEvery() time.Duration {
	if slices.ContainsFunc(v.inventory.Devices, func(d Device) bool { return d.Lost }) {
		return surveyLost
	}
	return surveyEvery
}

// resurvey surveys the node while the streams run, and reports whether the view
// changed. If it fails, the view stays.
func (s *Source) resurvey(ctx context.Context) bool {
	s.surveying.Lock()
	defer s.surveying.Unlock()
	before := s.view.Load()
	path, err := s.command()
	if err == nil {
		err = s.survey(ctx, path)
	}
	failure := ""
	if err != nil && ctx.Err() == nil {
		failure = err.Error()
		if failure != s.surveyLogged {
			s.opts.Logger.Warn("the GPUs cannot be listed; readings continue with the known ones", "reads", s.Name(), "cause", failure)
		}
	}
	s.surveyLogged = failure
	return s.view.Load() != before
}

// requestSurvey requests a survey of the node.
func (s *Source) requestSurvey() {
	select {
	case s.surveys <- struct{}{}:
	default:
	}
}

// settleTime is how long the entities of the readings must differ from the known
// ones before a survey: it gives starting streams time to deliver all.
const settleTime = time.Second

// entityWatch compares the entities of the readings with the known ones.
type entityWatch struct {
	n     int       // how many have a value
	since time.Time // of the difference, zero while there is none
}

// differ reports whether a reading is the first whose entities have differed for
// settleTime: there are more or fewer than before, or some are not in the inventory.
// Their number is then the known one.
func (w *entityWatch) differ(at time.Time, entities int, unknown bool) bool {
	switch {
	case entities == w.n && !unknown:
		w.since = time.Time{}
	case w.since.IsZero():
		w.since = at
	case at.Sub(w.since) >= settleTime:
		w.since, w.n = time.Time{}, entities
		return true
	}
	return false
}
