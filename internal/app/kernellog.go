package app

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/host"
	"github.com/kpulse/kpulse-proxy/internal/kernellog"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// startKernelLog opens the file of --kernel-log, if set. If it cannot be read, the program logs
// that once and continues.
func (p *service) startKernelLog() error {
	path := p.opts.KernelLog
	if path == "" {
		return nil
	}
	hostname, err := p.machine()
	if err != nil {
		return err
	}
	p.kernelLog, err = kernellog.Open(kernellog.Options{Path: path, Proc: procfs, MaxAge: p.opts.Judge.XIDHold, Hostname: hostname, Logger: p.logger})
	if err != nil {
		p.kernelLog = nil
		p.noteKernelLog(err)
		return nil
	}
	p.logger.Info("reading XIDs from the kernel's log, also those from before the start", "path", path)
	return nil
}

// machine returns the hostname of this machine's series.
func (p *service) machine() (string, error) {
	if len(p.opts.Upstreams) == 1 && p.opts.Upstreams[0].NodeName != "" {
		return p.opts.Upstreams[0].NodeName, nil
	}
	return thisMachine()
}

// noteKernelLog reports, in the log and on the landing page, why XIDs are not read.
func (p *service) noteKernelLog(err error) {
	f := &canonical.Failure{Cause: err.Error()}
	errors.As(err, &f)
	p.notes.Store(&[]canonical.Note{{Cause: "no XIDs from the kernel's log: " + f.Cause, Remedy: f.Remedy}})
	p.logger.Warn("cannot read XIDs from the kernel's log", "cause", f.Cause, "remedy", f.Remedy)
}

// serveKernelLog serves the records of the kernel's log that belong to no source.
func (p *service) serveKernelLog(served *expose.Options) {
	served.Notes = func() []canonical.Note {
		if notes := p.notes.Load(); notes != nil {
			return *notes
		}
		return nil
	}
	if l := p.kernelLog; l != nil {
		served.Events, served.Switches = l.Events, l.Switches
		served.Collectors = append(served.Collectors, kernelLogCollectors(l)...)
	}
}

// runKernelLog reads until ctx ends.
func (p *service) runKernelLog(ctx context.Context) {
	if p.kernelLog == nil {
		return
	}
	if err := p.kernelLog.Run(ctx); err != nil {
		p.noteKernelLog(err)
	}
}

// xidEvents returns the function that adds the kernel's XIDs to the frames of a source, or nil if
// there are none.
func (p *service) xidEvents(src source.Source, backend string) func(*canonical.Frame) {
	if p.kernelLog == nil || backend == "replay" {
		return nil
	}
	return p.kernelLog.Feed(p.isMine(src.Caps())).Take
}

// isMine returns a function that reports whether a board of a source with these caps is in this
// machine, and not in another node at the same PCI address. The driver here knows the UUIDs of
// its boards. If it cannot be asked, a board is in this machine if the source reads this machine
// or has a loopback address, or if the board has this machine's hostname.
func (p *service) isMine(caps source.Caps) func(*canonical.Device) bool {
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
