package dcgm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// stream is one dcgmi that is kept running.
type stream struct {
	index   int // in Source.streams
	name    string
	fields  []int         // the requested fields, without those unknown to dcgmi
	off     bool          // none of its fields is requested
	restart chan struct{} // has a token if the epoch may be over

	// Of the goroutine that supervises it.
	counted     bool // it is open in Source.stats
	slowLogged  bool
	plainLogged bool
	plain       bool // extras were refused and are not requested
	extended    bool // extras are requested of its latest child
	gave        bool // that child delivered ticks
	reduced     int  // which fields are left out, such as notRecent

	// Guarded by Source.mu.
	up      bool          // it delivers ticks
	over    bool          // it is not restarted
	failure *source.Error // why it is not up; nil while it is up or starts
}

// newStream returns a stream that requests its chosen fields, all if chosen is nil, and
// others.
func newStream(index int, name string, of Stream, chosen []int, others []Field) *stream {
	st := &stream{index: index, name: name, restart: make(chan struct{}, 1)}
	for i := range Fields {
		if f := &Fields[i]; f.Stream == of && f.InDmon() && (chosen == nil || slices.Contains(chosen, f.ID)) {
			st.fields = append(st.fields, f.ID)
		}
	}
	for i := range others {
		if others[i].Stream == of {
			st.fields = append(st.fields, others[i].ID)
		}
	}
	st.off = st.fields == nil
	return st
}

// command describes the command of st for people.
func (st *stream) command() string { return "dcgmi dmon (" + st.name + " fields)" }

// errRestart ends a child on request, to restart it.
var errRestart = errors.New("asked to start again")

// supervise keeps st running until ctx ends: it restarts st after a pause that
// grows with every failure, or at once on request or with fields left out.
func (s *Source) supervise(ctx context.Context, st *stream) {
	for failures := 0; ctx.Err() == nil; {
		begun := time.Now()
		c, err := s.run(ctx, st)
		asked := ctx.Err() != nil || errors.Is(err, errRestart)
		without := !asked && (s.without(st, err) || s.withoutExtras(st, err) || s.withoutRecent(st, err) || s.withoutLost(ctx, st, err))
		if !without { // otherwise it is still the same start
			s.close(st)
		}
		e := source.AsError(err)
		if !asked && !without {
			s.failed(st, e) // before stop, which is slow if the child hangs
		}
		c.stop()
		switch {
		case asked:
			failures, st.plain, st.reduced = 0, false, allOfIt
			continue
		case without:
			continue
		case e.Failure == source.Unsupported:
			return
		}
		if time.Since(begun) >= source.LongestPause {
			failures = 0
		}
		failures++
		timer := time.NewTimer(s.backoff(failures))
		select {
		case <-timer.C:
		case <-st.restart:
			failures = 0
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// run runs one child until it ends or should end, and returns why. The caller
// must stop the child, which is nil if none was started.
func (s *Source) run(ctx context.Context, st *stream) (*child, error) {
	st.extended, st.gave = false, false
	path, err := s.preflight(ctx)
	if err != nil {
		return nil, err
	}
	v, err := s.settle(ctx, path)
	if err != nil {
		return nil, err
	}
	args, err := s.args(st, v)
	if err != nil {
		return nil, err
	}
	c, err := startChild(path, args)
	if err != nil {
		return nil, unstartable(path, err)
	}
	if err := s.open(st); err != nil {
		return c, err
	}
	return c, s.receive(ctx, st, v, c)
}

// receive reads the output of c, a child of view v, and returns why it has ended.
func (s *Source) receive(ctx context.Context, st *stream, v *view, c *child) error {
	end := make(chan struct{})
	interrupted := make(chan bool, 1)
	go func() {
		interrupted <- s.interrupted(ctx, st, v.epoch, end)
		c.stdout.Close()
	}()
	r := &receiver{
		stream: st.index, epoch: v.epoch, child: s.children.Add(1), period: s.opts.Period, ring: s.ring, page: s.opts.Page, isRates: st.index == profiling,
		flows:  func() { s.flows(st) },
		slow:   func(interval time.Duration) { s.slow(st, interval) },
		noisy:  func(text string) { s.failed(st, noisyError(st.command(), st.name, text, nil)) },
		beside: c.stderr.String,
	}
	err := r.run(c.stdout)
	close(end)
	if <-interrupted {
		return errRestart
	}
	if errors.Is(err, io.EOF) {
		c.ended(stopGrace) // its exit status says more than our signal
		c.stop()
	}
	return explain(st, err, r, c)
}

// open registers st in the stats, as a restart if it was closed.
func (s *Source) open(st *stream) error {
	if st.counted {
		return nil
	}
	err := s.stats.Open(st.name, &s.ring.counts[st.index])
	st.counted = err == nil
	return err
}

// close ends the registration of open, if any.
func (s *Source) close(st *stream) {
	if st.counted {
		s.stats.Close(st.name)
		st.counted = false
	}
}

// slow logs, once per stream, that dcgmi does not keep up with the period.
func (s *Source) slow(st *stream, interval time.Duration) {
	if st.slowLogged {
		return
	}
	st.slowLogged = true
	const step = 100 * time.Millisecond
	s.opts.Logger.Warn(fmt.Sprintf("dcgmi needs %s for a sample; raise --poll to at least %s",
		interval.Round(step/10), (interval+step-1).Truncate(step)), "reads", s.Name(), "stream", st.name)
}

// interrupted waits for the end of the child, and reports whether ctx or the child's
// epoch ended first.
func (s *Source) interrupted(ctx context.Context, st *stream, epoch uint64, end <-chan struct{}) bool {
	for s.epoch() == epoch {
		select {
		case <-ctx.Done():
			return true
		case <-st.restart:
		case <-end:
			return false
		}
	}
	return true
}

// args returns dcgmi's arguments. Multiplexed fields are requested only if the GPUs
// support them: dmon ends if a single one is refused.
func (s *Source) args(st *stream, v *view) ([]string, error) {
	var list []string
	for _, id := range st.fields {
		if st.leavesOut(id) {
			continue
		}
		if IsMultiplexed(id) {
			if st.plain || !slices.Contains(v.extras, id) {
				continue
			}
			st.extended = true
		}
		list = append(list, strconv.Itoa(id))
	}
	if len(list) == 0 {
		return nil, &source.Error{
			Failure: source.Unsupported,
			Cause:   "dcgmi knows none of the " + st.name + " fields",
			Remedy:  "see which it knows: dcgmi dmon -l; and its version: dcgmi --version",
		}
	}
	args := []string{
		"dmon", "-c", "0",
		"-d", strconv.FormatInt(max(s.opts.Period.Milliseconds(), 1), 10),
		"-e", strings.Join(list, ","),
	}
	if v.entities != "" {
		args = append(args, "-i", v.entities)
	}
	return append(args, s.hostOption()...), nil
}

// hostOption returns dcgmi's option for the host engine, nil for the local one.
func (s *Source) hostOption() []string {
	if s.opts.Host == "" {
		return nil
	}
	return []string{"--host", s.opts.Host}
}

// without permanently removes the field that err calls unknown to dcgmi, and reports
// whether there is one.
func (s *Source) without(st *stream, err error) bool {
	unknown, ok := errors.AsType[unknownField](err)
	i := slices.Index(st.fields, int(unknown))
	if !ok || i < 0 {
		return false
	}
	st.fields = slices.Delete(st.fields, i, i+1)
	s.opts.Logger.Info("dcgmi does not know a field, which is left out", "reads", s.Name(), "stream", st.name, "field", int(unknown))
	return true
}

// withoutExtras reports whether to restart st without the multiplexed fields, because
// err may be about them: the host engine may refuse fields that it lists. The start
// after that includes them again.
func (s *Source) withoutExtras(st *stream, err error) bool {
	st.plain = st.extended && !st.gave && errors.Is(err, errFields)
	return st.plain
}

// withoutLost reports whether to restart st without a lost board, which prevents dmon
// from starting according to err: discovery shows which, a little later than the host
// engine detects it.
func (s *Source) withoutLost(ctx context.Context, st *stream, err error) bool {
	if st.gave || !errors.Is(err, errLost) {
		return false
	}
	before := s.epoch()
	s.resurvey(ctx)
	return s.epoch() != before
}

// flows records that st delivers ticks.
func (s *Source) flows(st *stream) {
	st.gave = true
	s.noteMissing(st)
	if st.plain && !st.plainLogged {
		st.plainLogged = true
		s.opts.Logger.Info("dcgmi refuses some profiling fields that its host engine lists; they are left out", "reads", s.Name(), "stream", st.name)
	}
	s.mu.Lock()
	before := st.failure
	st.up, st.failure = true, nil
	s.unreported = false
	s.mu.Unlock()
	if before != nil {
		s.opts.Logger.Info("stream flows again", "reads", s.Name(), "stream", st.name)
	}
}

// failed records that st has failed. If Read will not return the failure, it
// logs it, once for each kind of failure in a row.
func (s *Source) failed(st *stream, e *source.Error) {
	s.mu.Lock()
	before, others := st.failure, false
	for _, other := range s.streams {
		others = others || other != st && other.up
	}
	st.up, st.failure = false, e
	st.over = e.Failure == source.Unsupported
	s.unreported = true
	if e.Failure == source.Broken || e.Failure == source.HostEngineUnavailable {
		s.stale.Store(true)
	}
	reported := !others && s.reports(st, e)
	s.mu.Unlock()
	s.ring.wake()
	if !reported && (before == nil || before.Failure != e.Failure) {
		s.opts.Logger.Warn("stream failed; readings continue without it", "reads", s.Name(), "stream", st.name, "cause", e.Cause, "remedy", e.Remedy)
	}
}

// leader returns the stream whose failure is reported for all: the device stream, unless it is off.
func (s *Source) leader() *stream {
	if s.streams[device].off {
		return s.streams[profiling]
	}
	return s.streams[device]
}

// reports returns whether Read's error covers e while no stream is up: e is the leader's
// failure, or one that the leader has or will have too. The caller has locked mu.
func (s *Source) reports(st *stream, e *source.Error) bool {
	d := s.leader()
	return st == d || d.failure != nil && d.failure.Failure == e.Failure ||
		e.Failure == source.HostEngineUnavailable || e.Failure == source.ExporterCollision
}

// failure returns the error of Read if no stream is up, once for each failure: that of the
// leader.
func (s *Source) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.streams {
		if st.up {
			return nil
		}
	}
	d := s.leader()
	if d.failure == nil || !s.unreported && !d.over {
		return nil
	}
	s.unreported = false
	return d.failure
}

// expects reports whether st delivers ticks, or starts and has not failed yet.
func (s *Source) expects(st *stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return st.failure == nil && !st.off
}
