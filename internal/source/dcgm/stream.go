package dcgm

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// streams are the two children of a source, and what they have in common.
type streams struct {
	all      [2]*stream
	ring     *ring
	children atomic.Uint64
	backoff  func(n int) time.Duration // source.Backoff except in tests

	mu         sync.Mutex
	unreported bool // a stream has failed since Read last returned an error
}

// stream is one dcgmi that is kept running.
type stream struct {
	index  int // in streams.all
	name   string
	fields []*Field // the requested fields, without those unknown to dcgmi
	off    bool     // none of its fields is requested

	// Of the goroutine that supervises it.
	counted bool // it is open in streams.stats
	gave    bool // its latest child delivered ticks
	reduced bool // fields that not every host engine and GPU has were refused, and are not requested

	// Guarded by streams.mu.
	up      bool          // it delivers ticks
	over    bool          // it is not restarted
	failure *source.Error // why it is not up; nil while it is up or starts
}

// newStream returns a stream that requests those of its fields that opts choose.
func newStream(index int, name string, opts *Options) *stream {
	st := &stream{index: index, name: name}
	for i := range Fields {
		f := &Fields[i]
		if int(f.Stream) == index && f.InDmon() && (opts.Fields == nil || slices.Contains(opts.Fields, f.ID)) {
			st.fields = append(st.fields, f)
		}
	}
	st.off = st.fields == nil
	return st
}

// supervise keeps st running until ctx ends: it restarts st after a pause that grows with every failure, or at once when
// an epoch ends or with fields left out.
func (s *Source) supervise(ctx context.Context, st *stream) {
	for failures := 0; ctx.Err() == nil; {
		begun := time.Now()
		c, err := s.run(ctx, st)
		if ctx.Err() == nil && s.leavesOut(st, err) { // it is still the same start
			c.stop()
			continue
		}
		st.counted = false
		if errors.Is(err, context.Canceled) {
			c.stop()
			failures, st.reduced = 0, false
			continue
		}
		life := ctx
		if v := s.view.Load(); v != nil {
			life = v.life
		}
		e := s.collision(source.AsError(err))
		s.failed(st, e) // before stop, which is slow if the child hangs
		c.stop()
		if e.Failure == source.Unsupported {
			return
		}
		if time.Since(begun) >= source.LongestPause {
			failures = 0
		}
		failures++
		select {
		case <-time.After(s.backoff(failures)):
		case <-life.Done():
			failures = 0
		}
	}
}

// leavesOut reports whether to restart st without some of its fields, as err is about them: without one that dcgmi does
// not know, for good, or without all that not every host engine and GPU has. After that start has delivered ticks, or
// failed too, the next one requests these again: another host engine may run then.
func (s *Source) leavesOut(st *stream, err error) bool {
	if unknown, ok := errors.AsType[unknownField](err); ok {
		known := func(f *Field) bool { return f.ID == int(unknown) }
		if slices.ContainsFunc(st.fields, known) {
			st.fields = slices.DeleteFunc(st.fields, known)
			s.opts.Logger.Info("dcgmi does not know a field, which is left out", "reads", s.Name(), "stream", st.name, "field", int(unknown))
			return true
		}
	}
	st.reduced = !st.reduced && !st.gave && errors.Is(err, errFields)
	if st.reduced {
		s.opts.Logger.Warn("some fields are left out, as the host engine or a GPU does not know them", "reads", s.Name(), "stream", st.name, "cause", err)
	}
	return st.reduced
}

// run runs one child until it ends or should end, and returns why. The caller must stop the child, which is nil if
// none was started.
func (s *Source) run(ctx context.Context, st *stream) (*child, error) {
	st.gave = false
	path, err := s.command()
	if err != nil {
		return nil, err
	}
	v, err := s.settle(ctx, path)
	if err != nil {
		return nil, err
	}
	ids := st.ids(v)
	if len(ids) == 0 {
		return nil, &source.Error{
			Failure: source.Unsupported,
			Cause:   "dcgmi knows none of the " + st.name + " fields",
			Remedy:  "see which it knows: dcgmi dmon -l; and its version: dcgmi --version",
		}
	}
	period := strconv.FormatInt(max(s.opts.Period.Milliseconds(), 1), 10)
	c, err := startChild(path, s.toEngine("dmon", "-c", "0", "-d", period, "-e", strings.Join(ids, ","), "-i", v.entities))
	if err != nil {
		return nil, unstartable(path, err)
	}
	if !st.counted {
		s.ring.counts[st.index].Start()
		st.counted = true
	}
	return c, s.receive(st, v, c)
}

// ids returns the ids of the fields to request in a view.
func (st *stream) ids(v *view) (ids []string) {
	for _, f := range st.fields {
		if st.reduced && (f.Recent || f.Multiplexed) || f.Multiplexed && !slices.Contains(v.extras, f.ID) {
			continue
		}
		ids = append(ids, strconv.Itoa(f.ID))
	}
	return ids
}

// receive reads the output of c, a child of view v, and returns why it has ended.
func (s *Source) receive(st *stream, v *view, c *child) error {
	running := context.AfterFunc(v.life, func() { c.stdout.Close() })
	r := &receiver{
		origin: origin{stream: st.index, epoch: v.epoch, child: s.children.Add(1)},
		period: s.opts.Period, ring: s.ring,
		delivers: func() { s.delivers(st) },
	}
	err := r.run(c.stdout)
	if !running() {
		return v.life.Err()
	}
	if !errors.Is(err, errNoise) && !errors.As(err, new(errHangs)) {
		c.ended(stopGrace) // its exit status says more than our signal
		c.stop()
	}
	return explain(st, err, c, c.stderr.String()+r.output.text())
}

// explain returns why c, a child of st that is gone unless it hangs or prints no rows, has ended. err is the error at the
// end of its output, text what it printed other than rows.
func explain(st *stream, err error, c *child, text string) error {
	command := "dcgmi dmon (" + st.name + " fields)"
	switch {
	case errors.Is(err, errNoise) && endingOf(0, text) != nil:
		return refused(command, st.name, 0, 0, text)
	case errors.Is(err, errNoise):
		return &source.Error{
			Failure: source.Broken, Err: err, Cause: command + " prints nothing that can be read" + quoted(text),
			Remedy: "see what it prints: dcgmi dmon -e 100 -c 1; and whether it is NVIDIA's dcgmi, 2.3 or later: command -v dcgmi; dcgmi --version",
		}
	case errors.As(err, new(errHangs)):
		return &source.Error{
			Failure: source.Broken, Err: err, Cause: command + " hangs, " + err.Error() + ", and was ended" + quoted(text),
			Remedy: "check whether the host engine and the driver answer: dcgmi discovery -l; nvidia-smi; if they are only slow, raise --poll",
		}
	}
	if id, err := strconv.Atoi(between(text, "Got invalid field ID. '", "'")); err == nil {
		return unknownField(id)
	}
	code, sig := c.status()
	return refused(command, st.name, code, sig, text)
}

// delivers records that st delivers ticks.
func (s *Source) delivers(st *stream) {
	st.gave = true
	s.mu.Lock()
	before := st.failure
	st.up, st.failure = true, nil
	s.unreported = false
	s.mu.Unlock()
	if before != nil {
		s.opts.Logger.Info("stream delivers again", "reads", s.Name(), "stream", st.name)
	}
}

// failed records that st has failed. If Read will not return the failure, since the other stream is up or may come up, it
// logs it, once for each kind of failure in a row.
func (s *Source) failed(st *stream, e *source.Error) {
	s.mu.Lock()
	before, other := st.failure, s.all[other(st.index)]
	hidden := other.up || st.index == profiling && other.failure == nil && e.Failure != source.HostEngineUnavailable
	st.up, st.failure = false, e
	st.over = e.Failure == source.Unsupported
	s.unreported = true
	if e.Failure == source.Broken || e.Failure == source.HostEngineUnavailable {
		s.stale.Store(true)
	}
	s.mu.Unlock()
	s.ring.wake()
	if hidden && (before == nil || before.Failure != e.Failure) {
		s.opts.Logger.Warn("stream failed; readings continue without it", "reads", s.Name(), "stream", st.name, "cause", e.Cause, "remedy", e.Remedy)
	}
}

// failure returns the error of Read if no stream is up, once for each failure: that of the device stream, unless it is
// off.
func (s *streams) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	leader := s.all[device]
	if leader.off {
		leader = s.all[profiling]
	}
	if s.all[device].up || s.all[profiling].up || leader.failure == nil || !s.unreported && !leader.over {
		return nil
	}
	s.unreported = false
	return leader.failure
}

// expects reports whether st delivers ticks, or starts and has not failed yet.
func (s *streams) expects(st *stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return st.failure == nil && !st.off
}
