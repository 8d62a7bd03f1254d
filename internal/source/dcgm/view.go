package dcgm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

const (
	// identityGrace is how long the first start waits for the identity of the
	// node's devices: without it they have no UUID, and become other devices
	// once they have.
	identityGrace = 12 * time.Second
	identityPause = time.Second
)

// errNoIdentity is the cause of a missing answer after identityGrace.
var errNoIdentity = fmt.Errorf("no answer within %s of the start", identityGrace)

// view is what is known about the node's devices, and which of them are watched. It is replaced,
// never modified.
type view struct {
	inventory Inventory
	mig       []MIGPlace
	entities  string // dmon's -i
	wanted    []bool // whether each device of the inventory is watched, nil for all
	extras    []int  // the multiplexed fields that all boards support
	// epoch changes when entities change, or may identify other devices. The output of children
	// of earlier epochs is void.
	epoch uint64
}

// settle returns the view for a child that starts now. It asks dcgmi again if a
// stream has failed since: after a restart, the host engine may number the boards
// differently.
//
// If dcgmi does not answer within identityGrace, the stream starts without
// identity, or later with what was known before. Errors are those that dmon would
// have too, and those of a selection that does not fit the node.
func (s *Source) settle(ctx context.Context, path string) (*view, error) {
	s.surveying.Lock()
	defer s.surveying.Unlock()
	if v := s.view.Load(); v != nil && !s.stale.Load() {
		return v, nil
	}
	s.stale.Store(false)
	err := s.survey(ctx, path)
	if err != nil && s.view.Load() == nil {
		err = s.retrySurvey(ctx, path, err)
	}
	// If dcgmi prints something else, dmon is not tried.
	strange := s.view.Load() == nil && errors.Is(err, errStrange)
	if err != nil && ctx.Err() == nil && !isFinal(err) && !strange {
		err = s.goOn(err)
	}
	if err != nil {
		s.stale.Store(true)
		return nil, err
	}
	return s.view.Load(), nil
}

// retrySurvey surveys again, for at most identityGrace.
func (s *Source) retrySurvey(ctx context.Context, path string, err error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, identityGrace-askTimeout, errNoIdentity)
	defer cancel()
	for err != nil && !isFinal(err) && !errors.Is(err, errStrange) {
		pause := time.NewTimer(identityPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return err
		}
		err = s.survey(ctx, path)
	}
	return err
}

// goOn continues with what is known after a survey failed with err. It returns
// err if that does not suffice.
func (s *Source) goOn(err error) error {
	if s.view.Load() == nil {
		var nothing Inventory
		entities, _, unfit := s.choose(&nothing)
		if unfit != nil {
			return err
		}
		s.adopt(nothing, entities)
	}
	s.opts.Logger.Warn("the GPUs cannot be listed; readings continue with the known ones", "reads", s.Name(), "cause", err)
	s.requestSurvey()
	return nil
}

// isFinal reports whether dmon would fail with err too, or err means that there is
// nothing to watch.
func isFinal(err error) bool {
	switch source.AsError(err).Failure {
	case source.HostEngineUnavailable, source.PermissionDenied, source.Unsupported:
		return true
	}
	return errors.As(err, new(selectionError))
}

// survey asks for the devices of the node and makes them the view. The caller has locked surveying.
func (s *Source) survey(ctx context.Context, path string) error {
	n, err := s.discover(ctx, path)
	if err != nil {
		if ctx.Err() == nil || errors.Is(context.Cause(ctx), errNoIdentity) {
			s.surveyError.Store(source.AsError(err))
		}
		return err
	}
	s.surveyError.Store(nil)
	entities, models, err := s.choose(&n)
	if err != nil {
		return err
	}
	s.askExtras(ctx, path, models)
	s.adopt(n, entities)
	return nil
}

// adopt makes n the inventory and entities the watched ones. If that begins a new
// epoch, all streams restart.
func (s *Source) adopt(n Inventory, entities string) {
	s.mu.Lock()
	old := s.view.Load()
	v := &view{inventory: n, mig: n.MIGPlaces(), entities: entities, extras: s.extras, epoch: 1}
	if len(s.wanted) == len(n.Devices) {
		v.wanted = s.wanted
	}
	if old != nil {
		v.epoch = old.epoch
		if entities != old.entities || !slices.Equal(v.extras, old.extras) || Moved(&old.inventory, &n) || Returned(&old.inventory, &n) {
			v.epoch++
		}
	}
	if old == nil || v.epoch != old.epoch || !Equal(&old.inventory, &n) {
		s.view.Store(v)
	}
	s.mu.Unlock()
	if old != nil && v.epoch != old.epoch {
		s.restartStreams("the node's GPUs or MIG instances, or their profiling fields, have changed")
	}
}

// MIGPlaces returns the known places of the node's compute instances. The slice
// stays the same while nothing changes. Any goroutine may call it.
func (s *Source) MIGPlaces() []MIGPlace {
	if v := s.view.Load(); v != nil {
		return v.mig
	}
	return nil
}

// Restart restarts all streams at once: dmon's list of entities is fixed when
// it starts. The node's devices are listed again first. reason goes to the log.
func (s *Source) Restart(reason string) {
	s.mu.Lock()
	var v view
	if old := s.view.Load(); old != nil {
		v = *old
	}
	v.epoch++
	s.view.Store(&v)
	s.mu.Unlock()
	s.stale.Store(true)
	s.restartStreams(reason)
}

// restartStreams makes all streams check whether their epoch is over.
func (s *Source) restartStreams(reason string) {
	s.opts.Logger.Info("dcgmi is restarted", "reads", s.Name(), "reason", reason)
	for _, st := range s.streams {
		select {
		case st.restart <- struct{}{}:
		default:
		}
	}
}

// epoch returns the current epoch, 0 before the first.
func (s *Source) epoch() uint64 {
	if v := s.view.Load(); v != nil {
		return v.epoch
	}
	return 0
}
