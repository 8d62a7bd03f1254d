package app

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/host"
	"github.com/kpulse/kpulse-proxy/internal/kernellog"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// startKernelLog opens the file of --kernel-log, if set. If it cannot be read, the log and the landing
// page say so once, and the program continues.
func (p *service) startKernelLog() (err error) {
	path := p.opts.KernelLog
	if path == "" {
		return nil
	}
	var hostname string // of this machine's series
	if up := p.opts.Upstreams; len(up) == 1 {
		hostname = up[0].NodeName
	}
	if hostname == "" {
		if hostname, err = thisMachine(); err != nil {
			return err
		}
	}
	var failure atomic.Pointer[[]canonical.Note]
	failure.Store(new([]canonical.Note))
	report := func(err error) {
		f := &canonical.Failure{Cause: err.Error()}
		errors.As(err, &f)
		failure.Store(&[]canonical.Note{{Cause: "no XIDs from the kernel's log: " + f.Cause, Remedy: f.Remedy}})
		p.logger.Warn("cannot read XIDs from the kernel's log", "cause", f.Cause, "remedy", f.Remedy)
	}
	p.notes = append(p.notes, func() []canonical.Note { return *failure.Load() })
	birth := p.opts.Judge.Birth
	opts := kernellog.Options{
		Path: path, Proc: procfs, MaxAge: p.opts.Judge.XIDHold, Hostname: hostname, Logger: p.logger,
		Youth: func() time.Duration { return compute.Youth(birth, p.scrapers.Interval()) },
	}
	if p.state != nil {
		p.keepSwitches(&opts)
	}
	l, err := kernellog.Open(opts)
	if err != nil {
		report(err)
		return nil
	}
	p.kernelLog = l
	p.also(func(ctx context.Context) {
		if err := l.Run(ctx); err != nil {
			report(err)
		}
	}, nil, kernelLogCollectors(l)...)
	p.logger.Info("reading XIDs from the kernel's log, also those from before the start", "path", path)
	return nil
}

// keepSwitches makes the state file remember the fatal SXIDs, and gives opts those of an earlier run.
func (p *service) keepSwitches(opts *kernellog.Options) {
	for _, f := range p.state.of(switches, true) {
		opts.Known = append(opts.Known, canonical.SwitchFault{Hostname: opts.Hostname, PCIBusID: f.PCIBusID, Code: f.Code, At: f.At, Resolved: f.Resolved})
	}
	opts.Keep = func(now []canonical.SwitchFault) {
		faults := make([]canonical.Fault, len(now))
		for i, f := range now {
			faults[i] = canonical.Fault{Hostname: f.Hostname, PCIBusID: f.PCIBusID, Code: f.Code, At: f.At, Resolved: f.Resolved}
		}
		p.state.keep(switches, faults) // if it fails, the next change tries again
	}
}

// isMine returns a function that reports whether a board of a source with these caps is in this
// machine, and not in another node at the same PCI address. The driver here knows the UUIDs of
// its boards. If it cannot be asked, a board is in this machine if the source reads this machine
// or has a loopback address, or if the board has this machine's hostname.
func isMine(caps source.Caps) func(*canonical.Device) bool {
	here := caps.Local || canonical.NamesLoopback(caps.Host)
	names := []string{}
	for _, name := range []func() (string, error){thisMachine, os.Hostname} {
		if text, err := name(); err == nil && !canonical.NamesLoopback(text) {
			names = append(names, text)
		}
	}
	uuids := map[string]string{} // by address
	for _, g := range host.Boards(procfs) {
		uuids[canonical.PCIAddress(g.PCIBusID)] = g.UUID
	}
	return func(d *canonical.Device) bool {
		if uuid := uuids[canonical.PCIAddress(d.PCIBusID)]; uuid != "" && d.UUID != "" {
			return strings.EqualFold(uuid, d.UUID)
		}
		mine := here
		for _, name := range names {
			mine = mine || strings.EqualFold(name, d.Hostname)
		}
		return mine
	}
}
