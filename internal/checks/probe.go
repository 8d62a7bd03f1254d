package checks

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// Probe is the result of reading a source once.
type Probe struct {
	Name     string
	Scraped  bool // from an exporter
	Devices  int
	Missing  []string           // inputs of our scores that no device has
	Unserved bool               // the source has no samples of some of them
	Failure  *canonical.Failure // why it could not be read; nil if it was
	Notes    []canonical.Note   // problems of a source that has a reading
}

// NoPod is the kind of failure if no exporter's pod runs.
const NoPod = "not_read"

// state returns the state of the check that read a source.
func (p *Probe) state() state {
	switch {
	case p.Failure == nil && p.Devices > 0:
		return stateWorks
	case p.Failure == nil:
		return stateRefused
	case p.Failure.Timeout:
		return stateSilent
	case slices.Contains([]string{string(source.Unreachable), string(source.HostEngineUnavailable), string(source.Unsupported), NoPod}, p.Failure.Kind):
		return stateMissing
	}
	return stateRefused
}

// explain returns why a source cannot be read or has no GPU, and what to do.
func (p *Probe) explain() (cause, remedy string) {
	switch {
	case p.Failure != nil:
		return p.Failure.Cause, p.Failure.Remedy
	case len(p.Notes) > 0:
		return p.Name + " is read and has no GPU: " + p.Notes[0].Cause, p.Notes[0].Remedy
	}
	return p.Name + " is read and has no GPU", "check whether this is an exporter of NVIDIA's GPUs, and whether it sees them"
}

// describe returns the devices and problems of a source, and what to do about missing readings.
func (p *Probe) describe() (text string, remedies []string) {
	text = fmt.Sprintf("%s: %s", p.Name, diag.Count(p.Devices, "device"))
	for _, n := range p.Notes {
		text += "; " + n.Cause
		remedies = appendNew(remedies, n.Remedy)
	}
	if p.Scraped && p.Unserved {
		remedies = appendNew(remedies, "scores lack these: start the exporter with -f deploy/dcgm-counters.csv, or add to its counters file what kpulse-proxy check counters FILE names")
	}
	return text, remedies
}

// mostLines bounds the lines of a diagnosis for readable sources, and those for unreadable ones;
// further sources are counted.
const mostLines = 8

// merged returns one diagnosis for all sources. flags are those that use the readable sources; nil
// means --source with the name of the first.
func merged(all []Probe, flags []string) diagnosis {
	var read, unread, without, remedies []string
	devices, found := 0, diagnosis{State: stateMissing}
	for i := range all {
		p := &all[i]
		if state := p.state(); i == 0 || state < found.State {
			found.State = state
		}
		if p.state() != stateWorks {
			cause, remedy := p.explain()
			if unread = append(unread, diag.Text(cause)); len(unread) <= mostLines {
				remedies = appendNew(remedies, diag.Text(remedy))
			}
			continue
		}
		text, more := p.describe()
		read, remedies, without = append(read, diag.Text(text)), appendNew(remedies, more...), appendNew(without, strings.Join(p.Missing, ", "))
		if devices += p.Devices; flags == nil {
			flags = []string{"--source=" + p.Name}
		}
	}
	if n := len(read); n > mostLines {
		read = []string{fmt.Sprintf("%s, with %s", diag.Count(n, "source"), diag.Count(devices, "device"))}
	}
	for _, missing := range without {
		read = append(read, "without "+missing)
	}
	if n := len(unread) - mostLines; n > 0 {
		unread = append(unread[:mostLines], fmt.Sprintf("%d more cannot be read", n))
	}
	if found.Found, found.Remedy = strings.Join(append(read, unread...), "\n"), strings.Join(remedies, "\n"); found.State == stateWorks {
		found.Flags = flags
	}
	return found
}

// appendNew appends the texts that are not in texts yet.
func appendNew(texts []string, more ...string) []string {
	for _, text := range more {
		if text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// refusedBy returns the diagnosis of an error.
func refusedBy(err error) diagnosis {
	f := FailureOf(err)
	return diagnosis{State: stateRefused, Found: f.Cause, Remedy: f.Remedy}
}

// FailureOf returns cause and remedy of an error.
func FailureOf(err error) *canonical.Failure {
	if f, is := errors.AsType[*canonical.Failure](err); is {
		return f
	}
	if e, is := errors.AsType[*source.Error](err); is {
		return &canonical.Failure{Kind: string(e.Failure), Timeout: e.Failure == source.Timeout, Cause: e.Cause, Remedy: e.Remedy}
	}
	return &canonical.Failure{Kind: string(source.Broken), Cause: err.Error()}
}
