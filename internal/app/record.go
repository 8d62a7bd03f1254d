package app

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/recording"
)

// catchFileSizeSignal keeps SIGXFSZ from ending the program when --record reaches the file size
// that ulimit allows; the write fails instead, as on a full disk.
func catchFileSizeSignal() { signal.Notify(make(chan os.Signal, 1), syscall.SIGXFSZ) }

// recorder returns the Recorder of --record, or nil.
func (p *service) recorder() *recording.Recorder {
	for _, r := range p.readers.all() {
		if recorder, is := source.As[*recording.Recorder](r.source); is {
			return recorder
		}
	}
	return nil
}

// serveRecording serves the state of the recording, if there is one.
func (p *service) serveRecording(o *expose.Options) {
	r := p.recorder()
	if r == nil {
		return
	}
	o.Recording = func() expose.Recording {
		state := r.State()
		return expose.Recording{File: state.File, Failure: state.Failure, Remedy: state.Remedy, Missed: state.Missed}
	}
	o.Collectors = append(o.Collectors, recordCollectors(r)...)
}
