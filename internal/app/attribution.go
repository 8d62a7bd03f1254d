package app

import "github.com/kpulse/kpulse-proxy/internal/canonical"

// attribution completes the holders of the devices of a Frame, for pipeline.Options.Attribute. It
// belongs to one source.
type attribution func(*canonical.Frame)

// attribute returns the attribution of a source, or nil. Each step needs the results of the
// previous one.
func (p *service) attribute(r *reader) attribution {
	var steps []attribution
	if p.kube.kubelet != nil {
		steps = append(steps, p.kubeletFeed(r).Attribute)
	}
	if p.kube.resolver != nil {
		steps = append(steps, p.kube.resolver.NewCompleter().Complete)
	}
	if p.jobInfo != nil {
		steps = append(steps, p.jobInfo.Feed().Complete)
	}
	switch len(steps) {
	case 0:
		return nil
	case 1:
		return steps[0]
	}
	return func(f *canonical.Frame) {
		for _, complete := range steps {
			complete(f)
		}
	}
}
