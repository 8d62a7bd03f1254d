package app

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/pipeline"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

const (
	// firstPatience is how many times --source.timeout the first reading of --once and --export
	// may take: a host engine sets up its watches before it answers, and dcgmi waits if the
	// driver is in trouble.
	firstPatience = 3
	// stoppedFor is the delay of a timer that shows that the process itself was stopped, as by
	// Ctrl-Z, or had no CPU. This is not the source's fault.
	stoppedFor = 2 * time.Second
)

// patience is how long --export waits for a reading. The caller that runs the pipeline calls begin
// and end; the pipeline's observer calls rest and renew.
type patience struct {
	first, later time.Duration // 0 means forever
	read         atomic.Bool   // there was a reading
	due          atomic.Int64  // when it ends, in ns of Unix time
	timer        *time.Timer
}

// newPatience returns the patience with a source. It is endless for a replay, which ends by itself.
func newPatience(opts *options, caps source.Caps) *patience {
	if opts.ExportTimeout == 0 || caps.Backend == "replay" {
		return &patience{}
	}
	return &patience{first: firstPatience * time.Duration(opts.Timeout), later: time.Duration(opts.ExportTimeout) + opts.Upstreams[0].Period}
}

// begin starts the time. Until end is called, it calls lost if there is no reading for too long.
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

// start restarts the time.
func (p *patience) start() {
	p.due.Store(time.Now().Add(p.limit()).UnixNano())
	p.timer.Reset(p.limit())
}

// limit returns how long the current wait may last.
func (p *patience) limit() time.Duration {
	if p.read.Load() {
		return p.later
	}
	return p.first
}

// rest stops the time while a reading is written: a stuck reader of the output is not the
// source's fault.
func (p *patience) rest() {
	if p.timer != nil {
		p.timer.Stop()
	}
}

// renew restarts the time after a reading.
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
		return fmt.Errorf("no reading of %s within %s; check whether the machine is overloaded", of.Name(), p.limit())
	}
	return fmt.Errorf("no reading within %s: %w", p.limit(), err)
}
