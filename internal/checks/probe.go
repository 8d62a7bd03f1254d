package checks

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/settings"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

const (
	// probeWord, after doctor, makes a child process read the sources that its environment
	// names, or with podsWord after it the exporters that --kube.discover finds, and write the
	// results. A driver may hang in the child, but not in the doctor.
	ProbeWord = "probe"
	PodsWord  = "pods"
	// probeGrace is how long a probe may take to end: it ends its own child processes, such as
	// dcgmi.
	probeGrace = 3 * time.Second
)

// Probed is the result of reading a source.
type Probed struct {
	Name     string
	Scraped  bool // from an exporter
	Devices  int
	Missing  []string // inputs of our scores that no device has
	Unserved bool     // the source has no samples of some of them
	Kind     string   // of the failure; "" for none
	Cause    string
	Remedy   string
	// Amiss are problems of a source that has a reading.
	Amiss []canonical.Note
}

// NoPod is the kind of failure if no exporter's pod runs.
const NoPod = "not_read"

// GiveLonger is the remedy of giving a check more time.
const GiveLonger = "or give it longer: --timeout=1m"

// probe makes a child process read the sources that variables name, or with podsWord the exporters
// that are discovered with them, and returns the results. It terminates, and then kills, a child
// that does not end soon after its time, and abandons one that survives that in the kernel.
func (d *doctor) probe(ctx context.Context, variables []string, words ...string) []Probed {
	if deadline, is := ctx.Deadline(); is {
		variables = append(variables, settings.SettingOf("timeout").Variable()+"="+settings.Duration(max(time.Until(deadline), time.Millisecond)).String())
	}
	longer, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) { // it may have begun late
			time.Sleep(probeGrace)
		}
		end()
	})()
	out, err := runAgain(longer, probeGrace, append([]string{"doctor", ProbeWord}, words...), append(othersOf(d.environment), variables...))
	var all []Probed
	if json.Unmarshal(out, &all) != nil || len(all) == 0 {
		if ctx.Err() != nil {
			return []Probed{{Kind: string(source.Timeout), Cause: "no reading within the time limit of a check", Remedy: "check whether the host engine and the driver answer: nvidia-smi; " + GiveLonger}}
		}
		return []Probed{{Kind: string(source.Broken), Cause: "the process that read it failed: " + errorText(err), Remedy: "report this with the output of: kpulse-proxy --once"}}
	}
	return all
}

// errorText returns the text of an error, which may be nil.
func errorText(err error) string {
	if err == nil {
		return "no output"
	}
	return err.Error()
}

// theirsOf returns the neighbour's variables in an environment.
func theirsOf(environment []string) (theirs []string) {
	for _, entry := range environment {
		if name, _, _ := strings.Cut(entry, "="); slices.Contains(settings.TheirVariables, name) {
			theirs = append(theirs, entry)
		}
	}
	return theirs
}

// othersOf returns an environment without variables that set our settings.
func othersOf(environment []string) (others []string) {
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.Contains(settings.TheirVariables, name) && !strings.HasPrefix(name, settings.OwnVariables) {
			others = append(others, entry)
		}
	}
	return others
}

// state returns the state of the check that read a source.
func (p *Probed) state() state {
	switch {
	case p.Kind == "" && p.Devices > 0:
		return stateWorks
	case p.Kind == string(source.Timeout):
		return stateSilent
	case slices.Contains([]string{string(source.Unreachable), string(source.HostEngineUnavailable), string(source.Unsupported), NoPod}, p.Kind):
		return stateMissing
	}
	return stateRefused
}
