package app

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/itself"
	"github.com/kpulse/kpulse-proxy/internal/plain"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

const (
	// probeWord, behind doctor, has a process of ours read the sources that its environment
	// names and tell what came of it. A driver may hang in it, and not in the doctor.
	probeWord = "probe"
	// probeGrace is how long a probe that was told to end may take for it: it ends what it
	// started, such as dcgmi.
	probeGrace = 3 * time.Second
	// settling is how long a probe waits for inputs of our scores that the first reading
	// lacks: averages between two samples are not in it.
	settling = 5 * time.Second
)

// probed is what came of reading a source.
type probed struct {
	Name    string
	Devices int
	Missing []string // inputs of our scores that no device has
	Kind    string   // of the failure, "" for none
	Cause   string
	Remedy  string
	// Amiss are what is wrong though there is a reading.
	Amiss []canonical.Note
}

// probe reads the sources of the environment and writes what came of each as JSON.
func probe(stdout io.Writer) int {
	opts, err := parse(nil, io.Discard)
	if err != nil {
		_ = json.NewEncoder(plain.JSONWriter(stdout)).Encode([]probed{{Kind: "usage", Cause: err.Error()}})
		return exitUsage
	}
	ctx, stop := opts.begin()
	defer stop()
	all := make([]probed, len(opts.sources))
	done := make(chan int, len(all))
	for i := range opts.sources {
		go func() {
			all[i] = opts.probeSource(ctx, &opts.sources[i])
			done <- i
		}()
	}
	for range all {
		<-done
	}
	if err := json.NewEncoder(plain.JSONWriter(stdout)).Encode(all); err != nil {
		return exitFailed
	}
	return exitDone
}

// probeSource reads one source until it has all inputs, or has had time to.
func (o *options) probeSource(ctx context.Context, s *sourceSettings) (got probed) {
	src, err := open(o, s, newUserAgent(), slog.New(slog.DiscardHandler))
	if err != nil {
		return failedProbe(s.name, err)
	}
	got.Name = src.Name()
	p, err := wire(src, o, s, parts{logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return failedProbe(got.Name, errors.Join(err, src.Close()))
	}
	life, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = p.Run(life) }()
	defer func() { end(); <-ended }()
	for begun := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		snapshot, release, err := p.Read(ctx)
		if err != nil {
			return failedProbe(got.Name, err)
		}
		got.take(snapshot)
		release()
		if len(got.Missing) == 0 || time.Since(begun) > settling || !s.backend.selects {
			return got
		}
	}
}

// failedProbe is a source that could not be read.
func failedProbe(name string, err error) probed {
	if f, is := errors.AsType[*canonical.Failure](err); is {
		return probed{Name: name, Kind: f.Kind, Cause: f.Cause, Remedy: f.Remedy}
	}
	if e, is := errors.AsType[*source.Error](err); is {
		return probed{Name: name, Kind: string(e.Failure), Cause: e.Cause, Remedy: e.Remedy}
	}
	cause, remedy, _ := strings.Cut(err.Error(), "; ")
	return probed{Name: name, Kind: string(source.Broken), Cause: cause, Remedy: remedy}
}

// take takes what a reading tells.
func (p *probed) take(s *canonical.Snapshot) {
	p.Devices, p.Missing, p.Amiss = s.Frame.Len(), nil, slices.Clone(s.Source.Notes)
	for _, f := range s.Source.Missing {
		if name := canonical.Fields[f].Name; !slices.Contains(p.Missing, name) {
			p.Missing = append(p.Missing, name)
		}
	}
	for _, stream := range s.Source.Streams {
		if stream.Failure != nil {
			p.Amiss = append(p.Amiss, canonical.Note{Cause: stream.Name + ": " + stream.Failure.Cause, Remedy: stream.Failure.Remedy})
		}
	}
}

// probe has a process of its own read what variables name, and returns what came of it.
// One that does not end in time is told to, and then killed; if that does not end it
// either, it is the kernel's.
func (d *doctor) probe(ctx context.Context, variables ...string) []probed {
	out, err := itself.Output(ctx, probeGrace, []string{"doctor", probeWord}, append(othersOf(d.environment), variables...))
	var all []probed
	if json.Unmarshal(out, &all) != nil || len(all) == 0 {
		if ctx.Err() != nil {
			return []probed{silentProbe()}
		}
		return []probed{{Kind: string(source.Broken), Cause: "the reading ended the process that made it: " + errorText(err), Remedy: "report this with the output of: kpulse-proxy --once"}}
	}
	if ctx.Err() != nil { // it was told to end, and says that
		for i := range all {
			if all[i].Kind != "" && all[i].Kind != string(source.Timeout) {
				all[i] = silentProbe()
			}
		}
	}
	return all
}

// errorText is that of an error, which may be nil.
func errorText(err error) string {
	if err == nil {
		return "no output"
	}
	return err.Error()
}

// silentProbe is a source that did not answer.
func silentProbe() probed {
	return probed{Kind: string(source.Timeout), Cause: "no reading in the time that doctor gave it", Remedy: "see whether the host engine and the driver answer: nvidia-smi; or give it longer: --timeout=1m"}
}

// othersOf returns an environment without what names settings of ours.
func othersOf(environment []string) (others []string) {
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.Contains(theirVariables, name) && !strings.HasPrefix(name, ownVariables) {
			others = append(others, entry)
		}
	}
	return others
}

// state is what kind of failure it is.
func (p *probed) state() state {
	switch {
	case p.Kind == "" && p.Devices > 0:
		return stateWorks
	case p.Kind == string(source.Timeout):
		return stateSilent
	case slices.Contains([]string{string(source.Unreachable), string(source.HostEngineUnavailable), string(source.Unsupported)}, p.Kind):
		return stateMissing
	}
	return stateRefused
}
