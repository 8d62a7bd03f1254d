package app

import (
	"context"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/host"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// procfs is where the kernel describes this machine and its processes.
const procfs = "/proc"

// processLister adds details from /proc to the processes that a source lists.
type processLister struct {
	source source.ProcessLister
	proc   *host.Processes
}

// processLister returns the lister of --collector.processes, on the first source that lists
// processes, or nil. A terminal that reads by itself shows its user what they can read anyway.
func (p *service) processLister() expose.ProcessLister {
	for _, r := range p.readers.all() {
		if lister, able := source.As[source.ProcessLister](r.source); able && (p.opts.Processes || p.opts.TUI) {
			return &processLister{lister, host.NewProcesses(procfs, p.opts.CommandLines || p.opts.TUI)}
		}
	}
	return nil
}

// Processes implements expose.ProcessLister. A process that has ended, that is hidden from us, or
// that cannot be described in time has only its pid.
func (l *processLister) Processes(ctx context.Context) ([]canonical.Process, error) {
	list, err := l.source.Processes(ctx)
	if list != nil {
		l.proc.Describe(ctx, list)
	}
	if err != nil {
		return list, source.FailureOf(err)
	}
	return list, nil
}
