package app

import (
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/prometheus/common/version"

	"github.com/kpulse/kpulse-proxy/internal/holders"
	"github.com/kpulse/kpulse-proxy/internal/selection"
	"github.com/kpulse/kpulse-proxy/internal/settings"
)

// options are the settings in force, and what the modes of the program share.
type options struct {
	*settings.Options

	// userAgent is the User-Agent for upstreams. It differs between processes, so that a proxy whose
	// --source is itself can notice.
	userAgent string
	// visible returns the boards that this process may open, or nil if unknown. The function is
	// nil in modes that do not choose GPUs.
	visible func() []selection.Visible
	// notice warns the user of the terminal if its numbers are not what the flags suggest; ""
	// for none.
	notice string
	lead   <-chan struct{} // of the demo in a dashboard, which opens with a history; else nil
	// kubelet is that of --kube.pod-resources, nil for none.
	kubelet *holders.Kubelet
}

func newOptions(read *settings.Options) *options {
	return &options{Options: read, userAgent: fmt.Sprintf("kpulse-proxy/%s (%08x)", version.Version, rand.Uint32())}
}

// parse reads the settings, as settings.Read does.
func parse(args []string, stdout io.Writer) (*options, error) {
	o, err := settings.Read(args, stdout)
	return newOptions(o), err
}
