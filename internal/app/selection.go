package app

import (
	"context"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/host"
	"github.com/kpulse/kpulse-proxy/internal/selection"
	"github.com/kpulse/kpulse-proxy/internal/settings"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// requestFor returns which GPUs to select of those that are read from hosts, each with or without a
// port. "" is a file, which belongs to no machine. A server selects all unless --gpus names some.
//
// The boards that this process may open limit what is shown, but not the series of a server, and not
// check health, which must not skip a board because it cannot be opened, unless CUDA_VISIBLE_DEVICES
// has to be resolved.
func (o *options) requestFor(hosts ...string) selection.Request {
	shows := o.Presents() || o.TUI
	r := selection.Request{GPUs: o.GPUs, ShowAll: o.ShowAll || !shows && !o.Health && o.GPUs == "", LookupEnv: os.LookupEnv}
	_, counted := os.LookupEnv("CUDA_VISIBLE_DEVICES")
	if o.visible != nil && !slices.Contains(hosts, "") && (shows || o.Health && counted) {
		r.Visible = o.visible()
	}
	if !slices.Contains(hosts, "") {
		r.Minors = host.Minors(procfs)
	}
	r.Elsewhere = slices.ContainsFunc(hosts, func(address string) bool { return !isHere(address) })
	return r
}

// requestOf returns the request for a source that reads only the chosen GPUs.
func (o *options) requestOf(s *settings.Upstream) selection.Request {
	if !settings.IsHere(s.DCGMHost) {
		return o.requestFor(s.DCGMHost)
	}
	r := o.requestFor()
	r.Local = true
	return r
}

// isHere reports whether an address is this machine's: a loopback one, one of its own, or its name with or without the
// domain.
func isHere(address string) bool {
	if name, _, err := net.SplitHostPort(address); err == nil {
		address = name
	}
	if canonical.NamesLoopback(address) {
		return true
	}
	if ip := net.ParseIP(strings.Trim(address, "[]")); ip != nil {
		ours, _ := net.InterfaceAddrs() // without them it is not ours
		return slices.ContainsFunc(ours, func(a net.Addr) bool { n, is := a.(*net.IPNet); return is && n.IP.Equal(ip) })
	}
	name, err := os.Hostname()
	host, domain, _ := strings.Cut(strings.ToLower(address), ".")
	ours, ourDomain, _ := strings.Cut(strings.ToLower(name), ".")
	return err == nil && host != "" && host == ours && (domain == ourDomain || domain == "" || ourDomain == "")
}

// visibleBoards returns the boards that this process may open, or nil if unknown. It runs
// nvidia-smi, which is slow, only if the driver is not in /proc, or does not show UUIDs there
// before a board is first used.
func visibleBoards(ctx context.Context) (boards []selection.Visible) {
	unnamed := false
	for _, g := range host.GPUs(procfs, "/dev") {
		boards = append(boards, selection.Visible{UUID: g.UUID, PCIBusID: g.PCIBusID, Instances: g.Instances})
		unnamed = unnamed || g.UUID == ""
	}
	if boards != nil && !unnamed {
		return boards
	}
	var listed []selection.Visible
	for _, d := range dcgm.Visible(ctx) {
		listed = append(listed, selection.Visible{UUID: d.UUID, PCIBusID: d.PCIBusID})
	}
	if boards == nil {
		return listed
	}
	return named(boards, listed)
}

// named returns boards with the UUIDs of the listed ones at the same PCI addresses.
func named(boards, listed []selection.Visible) []selection.Visible {
	for i := range boards {
		address := canonical.PCIAddress(boards[i].PCIBusID)
		at := slices.IndexFunc(listed, func(l selection.Visible) bool { return address != "" && address == canonical.PCIAddress(l.PCIBusID) })
		if at >= 0 {
			boards[i].UUID = listed[at].UUID
		}
	}
	return boards
}

// doubtOf returns why a selection may be wrong, or "". own devices are those that this process reads: in
// a cgroup the driver numbers the boards of the job itself, and a list of other numbers that chose all
// of them is right.
func doubtOf(s canonical.Selection, own bool) string {
	if s.Doubt == nil || own && s.By != "" && s.All {
		return ""
	}
	return s.Doubt.Error()
}

// selector chooses the devices of a reading to present. It is for one goroutine.
type selector struct {
	request  selection.Request
	chosen   bool // the source reads only the chosen devices
	logger   *slog.Logger
	topology *canonical.Topology
	devices  []int
}

func newSelector(o *options, caps source.Caps, logger *slog.Logger) *selector {
	return &selector{request: o.requestFor(caps.Host), chosen: o.Upstreams[0].Backend.Selects, logger: logger}
}

// choose returns the indices in t of the devices to present, or nil for all. An empty choice is an
// error only at first: later, chosen devices may come back. The slice is valid until the next
// call.
func (s *selector) choose(t *canonical.Topology) ([]int, error) {
	if s.chosen || t == s.topology {
		return s.devices, nil
	}
	selected, err := s.request.Select(t.Devices)
	if err != nil && s.topology == nil {
		return nil, err
	}
	s.topology, s.devices = t, []int{}
	for i, chosen := range selected.Chosen {
		if chosen {
			s.devices = append(s.devices, i)
		}
	}
	switch doubt := doubtOf(selected, true); {
	case err != nil:
		s.logger.Warn("no chosen GPU is in the reading", "cause", err.Error())
	case selected.Missing != nil:
		s.logger.Warn("a chosen GPU is not in the reading", "cause", selected.Missing.Error())
	case doubt != "":
		s.logger.Warn("a GPU of the job is not in the reading", "cause", doubt, "remedy", "if Slurm numbers GPUs differently, choose with --gpus")
	case !selected.All && selected.By == canonical.ByAccess:
		s.logger.Warn("GPUs of others are left out", "by", selected.By, "remedy", "run it outside of the job's cgroup or container to see them")
	case !selected.All && selected.By != "--gpus":
		s.logger.Warn("some GPUs are left out", "by", selected.By, "remedy", "--show-all shows all that this process may open")
	}
	return s.devices, nil
}

// chooser returns the function that chooses the devices to show of the node at a URL. --gpus applies to
// all nodes, the environment of a job only to the machine that the job is on.
func (o *options) chooser(address string) func(*client.Node) client.Selection {
	return func(n *client.Node) (s client.Selection) {
		own := address == client.InProcess && o.Upstreams[0].Backend.Selects // it reads only the chosen devices
		request := o.requestFor(hostsOf(address, n)...)
		if own {
			request = o.requestOf(&o.Upstreams[0])
		}
		devices, at := devicesOf(n)
		selected, err := request.Select(devices)
		for i := range at {
			if own || err == nil && selected.Chosen[at[i]] {
				s.Shown = append(s.Shown, i)
			}
		}
		if own && request.GPUs != "" {
			s.By = "--gpus"
			return s
		}
		s.Doubt = doubtOf(selected, own)
		value, _ := request.LookupEnv(selected.By)
		if own && value != "all" && selected.By != "--show-all" || !own && !selected.All {
			s.By = selected.By
		}
		if err == nil {
			err = selected.Missing
		}
		if err != nil && len(n.GPUs) > 0 && !own {
			s.Trouble = err.Error()
		}
		return s
	}
}

// hostsOf returns the hosts that a node is read from, for requestFor.
func hostsOf(address string, n *client.Node) (hosts []string) {
	add := func(text string) {
		if u, err := url.Parse(text); err == nil {
			hosts = append(hosts, u.Host) // "" for a file
		}
	}
	if address != client.InProcess {
		add(address)
	}
	for i := range n.Sources {
		s := &n.Sources[i]
		_, engine, remote := strings.Cut(s.Name, "@")
		if s.Backend == "prometheus" || s.Backend == "replay" {
			add(s.Name)
		} else if s.Backend == "dcgm" && remote && !settings.IsHere(engine) {
			hosts = append(hosts, engine)
		}
	}
	return hosts
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
