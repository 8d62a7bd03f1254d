package app

import (
	"errors"
	"log/slog"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/host"
	"github.com/kpulse/kpulse-proxy/internal/pipeline"
	"github.com/kpulse/kpulse-proxy/internal/settings"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// parts are the optional parts of a pipeline, and the logger.
type parts struct {
	observer  pipeline.Observer
	attribute func(*canonical.Frame)
	xidEvents func(*canonical.Frame)
	state     *stateFile           // nil for none
	interval  func() time.Duration // the longest of all scrapers, nil without any
	logger    *slog.Logger
}

// wire returns the pipeline of a source. If it fails, it closes the source.
func wire(src source.Source, opts *options, s *settings.Upstream, with parts) (*pipeline.Pipeline, error) {
	translator, err := opts.newTranslator(s, src)
	judge, wrong := opts.newJudge(s)
	if err = errors.Join(err, wrong); err != nil {
		return nil, errors.Join(err, src.Close())
	}
	caps := src.Caps()
	here, name := caps.Local || isHere(caps.Host), src.Name()
	var faults func([]canonical.Fault) bool
	bootID := ""
	if here {
		bootID = readBootID(procfs)
	}
	if with.state != nil {
		if len(opts.Upstreams) == 1 && opts.Kube.Discover.Selector == "" {
			with.state.adopt(name)
		}
		judge.Restore(with.state.of(name, here), with.state.doubts(here))
		faults = func(now []canonical.Fault) bool { return with.state.keep(name, now) }
	}
	return pipeline.New(pipeline.Options{
		BootID:      bootID,
		Faults:      faults,
		Source:      src,
		Host:        host.NewMeter(procfs).Read,
		Translator:  translator,
		Judge:       judge,
		Logger:      with.logger,
		Attribute:   with.attribute,
		XIDEvents:   with.xidEvents,
		MinInterval: time.Duration(opts.MinInterval),
		Poll:        s.Period,
		Timeout:     opts.LongestRead(),
		NotGiven:    s.NotGiven,
		Observer:    with.observer,
		Interval:    with.interval,
	}), nil
}

// newTranslator returns the translator of a source. Readings without a hostname get that of the machine
// that it reads; a loopback address is this machine.
func (o *options) newTranslator(s *settings.Upstream, src source.Source) (*translate.Translator, error) {
	caps := src.Caps()
	hostname := caps.Host
	if caps.Local || canonical.NamesLoopback(hostname) {
		var err error
		if hostname, err = thisMachine(); err != nil {
			return nil, err
		}
	}
	var compat []translate.Version // that readings are also served in; none if nothing is served
	for _, word := range o.Compat {
		if o.Mode() != settings.ModeServe {
			break
		}
		v, err := translate.ParseVersion(word)
		if err != nil {
			return nil, err
		}
		compat = append(compat, v)
	}
	devices, allocations := o.form().Limits(o.SeriesPerSource(), int(s.ExpectedGPUs))
	return translate.New(translate.Options{
		NodeName:       s.NodeName,
		FallbackHost:   hostname,
		MaxLabelValue:  int(o.Limits.MaxLabelValue),
		MaxDevices:     devices,
		MaxAllocations: allocations,
		Rows:           o.Rows,
		Compat:         compat,
		CompatAll:      o.Passthrough == expose.PassOff,
	})
}

// newJudge returns the judge of a source.
func (o *options) newJudge(s *settings.Upstream) (*compute.Judge, error) {
	judging := o.Judge
	judging.ExpectedGPUs = int(s.ExpectedGPUs)
	judging.MaxDevices, judging.MaxAllocations = o.form().Limits(o.SeriesPerSource(), int(s.ExpectedGPUs))
	return compute.New(judging)
}

// form returns the form of our own series. Modes that read directly and show readings use the
// full form.
func (o *options) form() expose.Form {
	return expose.Form{Full: o.Series.Form == settings.FullSeries || o.Mode() != settings.ModeServe}
}
