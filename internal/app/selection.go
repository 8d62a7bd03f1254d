package app

import (
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/checks"
	"github.com/kpulse/kpulse-proxy/internal/selection"
	"github.com/kpulse/kpulse-proxy/internal/settings"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// selector chooses the devices of a reading to present. It is for one goroutine.
type selector struct {
	request  selection.Request
	off      bool // the source has chosen already, or nothing is to be chosen
	logger   *slog.Logger
	topology *canonical.Topology
	devices  []int
	begun    bool
	logged   string // the last message
}

// newSelector returns the selector for a source. Backends that select themselves have already
// chosen. For the others --gpus applies; the environment of a job and the boards that it may open
// apply only to devices of the machine that the job is on. A file belongs to no machine.
func newSelector(o *options, caps source.Caps, logger *slog.Logger) *selector {
	request, off := o.request(), o.Upstreams[0].Backend.Selects
	if !off && caps.Host != "" {
		request = o.confined(request)
		request.Elsewhere = !ofThisMachine(caps)
	}
	if caps.Host == "" || request.Elsewhere && request.Visible == nil {
		request.ShowAll = request.GPUs == ""
	}
	return &selector{request: request, off: off || request.GPUs == "" && request.ShowAll && request.Visible == nil, logger: logger}
}

// ofThisMachine reports whether the address of an upstream is on this machine.
func ofThisMachine(caps source.Caps) bool {
	name, err := os.Hostname()
	return canonical.NamesLoopback(caps.Host) || caps.Host != "" && err == nil && caps.Host == name
}

// choose returns the indices in t of the devices to present, or nil for all. An empty choice is an
// error only at first: later, chosen devices may come back. The slice is valid until the next
// call.
func (s *selector) choose(t *canonical.Topology) ([]int, error) {
	if s.off || t == s.topology {
		return s.devices, nil
	}
	selected, err := s.request.Select(t.Devices)
	if err != nil && !s.begun {
		return nil, err
	}
	s.begun, s.topology, s.devices = true, t, []int{}
	for i, chosen := range selected.Chosen {
		if chosen {
			s.devices = append(s.devices, i)
		}
	}
	switch {
	case err != nil:
		s.warn("no chosen GPU is in the reading", "cause", err.Error())
	case selected.Missing != nil:
		s.warn("a chosen GPU is not in the reading", "cause", selected.Missing.Error())
	case doubtOfOwn(selected) != "":
		s.warn("a GPU of the job is not in the reading", "cause", doubtOfOwn(selected), "remedy", "if Slurm numbers GPUs differently, choose with --gpus")
	case !selected.All && selected.By == canonical.ByAccess:
		s.warn("GPUs of others are left out", "by", selected.By, "remedy", "run it outside of the job's cgroup or container to see them")
	case !selected.All && selected.By != "--gpus":
		s.warn("some GPUs are left out", "by", selected.By, "remedy", "--show-all shows all that this process may open")
	}
	return s.devices, nil
}

// warn logs a warning unless it is the same as the previous one.
func (s *selector) warn(what string, args ...any) {
	if s.logged != what {
		s.logger.Warn(what, args...)
	}
	s.logged = what
}

// chooser returns the function that chooses the devices that the dashboard shows of the node at a
// URL. --gpus applies to all nodes, the environment of a job only to the machine that the job
// is on.
func (o *options) chooser(address string) func(*client.Node) client.Selection {
	request := o.confined(o.request())
	return func(n *client.Node) client.Selection {
		if address == client.InProcess && o.Upstreams[0].Backend.Selects {
			return alreadyChosen(n, o.requestOf(&o.Upstreams[0]))
		}
		one := request
		if one.Elsewhere = !isHost(address) || !isOfThisMachine(n); slices.ContainsFunc(n.Sources, checks.Replays) {
			one.Visible = nil
		}
		return chooseShown(n, one)
	}
}

// chooseShown selects among the devices of a node.
func chooseShown(n *client.Node, request selection.Request) client.Selection {
	devices, at := devicesOf(n)
	selected, err := request.Select(devices)
	var s client.Selection
	for i := range at {
		if err == nil && selected.Chosen[at[i]] {
			s.Shown = append(s.Shown, i)
		}
	}
	if !selected.All {
		s.By = selected.By
	}
	if err == nil {
		err = selected.Missing
	}
	s.Doubt = doubtOf(selected)
	if err != nil && len(n.GPUs) > 0 {
		s.Trouble = err.Error()
	}
	return s
}

// doubtOf returns the Doubt of a selection as a line, or "".
func doubtOf(s canonical.Selection) string {
	if s.Doubt == nil {
		return ""
	}
	return s.Doubt.Error()
}

// doubtOfOwn is doubtOf for devices that this process reads: in a cgroup the driver numbers the boards
// of the job itself, and a list of other numbers that chose all of them is right.
func doubtOfOwn(s canonical.Selection) string {
	if s.By != "" && s.All {
		return ""
	}
	return doubtOf(s)
}

// alreadyChosen returns the selection for a source that reads only the chosen devices. The number
// of others is not known.
func alreadyChosen(n *client.Node, request selection.Request) client.Selection {
	s := client.Selection{By: "--gpus"}
	for i := range n.GPUs {
		s.Shown = append(s.Shown, i)
	}
	if request.GPUs == "" {
		devices, _ := devicesOf(n)
		selected, _ := request.Select(devices)
		s.By = selected.By
		s.Doubt = doubtOfOwn(selected)
	}
	if value, _ := request.LookupEnv(s.By); value == "all" || s.By == "--show-all" {
		s.By = ""
	}
	return s
}

// devicesOf returns the devices of a node, with the boards of instances that are listed without
// one, and the index in devices of each GPU of the node.
func devicesOf(n *client.Node) (devices []canonical.Device, at []int) {
	boards := map[canonical.Device]int{}
	for _, g := range n.GPUs {
		b := canonical.Device{Hostname: g.Hostname, GPU: g.GPU, UUID: g.UUID}
		board, known := boards[b]
		if !known {
			board = len(devices)
			boards[b] = board
			b.Board, b.PCIBusID = board, g.PCIBusID
			devices = append(devices, b)
		}
		if g.IsInstance() {
			b.Instance, b.Profile, b.Board = g.Instance, g.Profile, board
			board = len(devices)
			devices = append(devices, b)
		}
		at = append(at, board)
	}
	return devices, at
}

// isHost reports whether the host of a URL is this machine.
func isHost(address string) bool {
	u, err := url.Parse(address)
	return err == nil && ofThisMachine(source.Caps{Host: u.Hostname()})
}

// isOfThisMachine reports whether a proxy on this machine reads this machine, rather than a
// capture or another machine.
func isOfThisMachine(n *client.Node) bool {
	for i := range n.Sources {
		switch s := &n.Sources[i]; s.Backend {
		case "replay":
			return false
		case "prometheus":
			if strings.Contains(s.Name, "://") && !isHost(s.Name) {
				return false
			}
		case "dcgm":
			if _, host, remote := strings.Cut(s.Name, "@"); remote && !settings.IsHere(host) {
				return false
			}
		}
	}
	return true
}
