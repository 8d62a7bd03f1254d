package dcgmi

import (
	"context"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/dcgm"
)

const (
	// surveyEvery is how long the node goes without a look at what it has.
	surveyEvery = 5 * time.Minute
	// surveyLost is the same while a board is lost: dmon is not asked for it, so that
	// no row shows that it is back.
	surveyLost = 30 * time.Second
	// lookEvery is how often the driver's list of instances is looked at, which
	// costs next to nothing.
	lookEvery = time.Second
	// recutLooks is how many surveys follow a change of that list: instances are
	// made one by one, and the host engine detects them a little later.
	recutLooks = 3
)

// watch keeps the view true: it surveys the node when it is asked to, when the
// driver's instances change, and every now and then. Surveys that change nothing
// are followed by ever longer pauses, so that an entity that cannot be identified
// does not cost more than it is worth.
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

// surveyEvery returns how long the node goes without a survey.
func (v *view) surveyEvery() time.Duration {
	if slices.ContainsFunc(v.inventory.Devices, func(d dcgm.Device) bool { return d.Lost }) {
		return surveyLost
	}
	return surveyEvery
}

// resurvey surveys the node while the streams go on, and reports whether the view
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
			s.opts.Logger.Warn("the GPUs cannot be listed; readings go on with those that are known", "reads", s.Name(), "cause", failure)
		}
	}
	s.surveyLogged = failure
	return s.view.Load() != before
}

// requestSurvey has the node surveyed soon.
func (s *Source) requestSurvey() {
	select {
	case s.surveys <- struct{}{}:
	default:
	}
}

// settleTime is how long the entities of the readings must differ from what is known
// before the node is surveyed: as long as streams that start need to be all there.
const settleTime = time.Second

// entityWatch compares the entities of the readings with what is known.
type entityWatch struct {
	n     int       // how many have a value
	since time.Time // of the difference, zero while there is none
}

// differ reports whether a reading is the first whose entities have differed for
// settleTime: there are more or fewer than before, or some are not in the inventory.
// After that their number is the known one.
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
