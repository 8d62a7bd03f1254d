package app

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/pipeline"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

const (
	// firstPatience is how many --source.timeout the first reading of --once and --export
	// may need: a host engine sets up its watches before it answers, and a driver in
	// trouble has dcgmi wait for that.
	firstPatience = 3
	// stoppedFor is how late a timer is if the process itself was stopped, as by Ctrl-Z, or
	// had no processor: that is no fault of the source.
	stoppedFor = 2 * time.Second
)

// patience is how long --export waits for a reading. begin and end belong to who runs
// the pipeline, rest and renew to its observer.
type patience struct {
	first, later time.Duration // 0 is forever
	read         atomic.Bool   // there was a reading
	due          atomic.Int64  // when it is over, in Unix time and ns
	timer        *time.Timer
}

// newPatience returns the patience with a source; a file that is played ends by itself.
func newPatience(opts *options, caps source.Caps) *patience {
	if opts.exportTimeout == 0 || caps.Backend == "replay" {
		return &patience{}
	}
	return &patience{first: firstPatience * time.Duration(opts.timeout), later: time.Duration(opts.exportTimeout) + opts.sources[0].poll}
}

// begin has lost called when there was no reading for too long, until end.
func (p *patience) begin(lost func()) {
	if p.first == 0 {
		return
	}
	p.timer = time.AfterFunc(time.Hour, func() {
		if late := time.Now().UnixNano() - p.due.Load(); late > int64(stoppedFor) {
			p.start()
			return
		}
		lost()
	})
	p.start()
}

// start starts the time again.
func (p *patience) start() {
	p.due.Store(time.Now().Add(p.limit()).UnixNano())
	p.timer.Reset(p.limit())
}

// limit is how long the present wait may last.
func (p *patience) limit() time.Duration {
	if p.read.Load() {
		return p.later
	}
	return p.first
}

// rest halts the time while a reading is written: a reader who does not read is no fault
// of the source.
func (p *patience) rest() {
	if p.timer != nil {
		p.timer.Stop()
	}
}

// renew starts the time again after a reading.
func (p *patience) renew() {
	if p.timer != nil {
		p.read.Store(true)
		p.start()
	}
}

// end ends the waiting.
func (p *patience) end() { p.rest() }

// lost returns the error of a source that gave no reading in time.
func (p *patience) lost(of *pipeline.Pipeline) error {
	state, err := of.Status()
	if state.Failure != nil {
		err = state.Failure
	}
	if err == nil {
		return fmt.Errorf("no reading of %s within %s; see whether the machine is overloaded", of.Name(), p.limit())
	}
	return fmt.Errorf("no reading within %s: %w", p.limit(), err)
}
