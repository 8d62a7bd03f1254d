package app

import (
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// selector chooses which devices of a reading are presented. It belongs to one
// goroutine.
type selector struct {
	wish     dcgm.Wish
	off      bool // the source has chosen already, or nothing is to be chosen
	logger   *slog.Logger
	topology *canonical.Topology
	devices  []int
	begun    bool
	said     string // what was logged last
}

// newSelector returns what chooses among the devices of a source. The backends that
// watch devices by themselves have chosen; of others --gpus counts, and the
// environment of a job only where they tell of the machine that the job is on.
func newSelector(o *options, caps source.Caps, logger *slog.Logger) *selector {
	wish := o.wish()
	if wish.GPUs == "" && !ofThisMachine(caps) {
		wish.ShowAll = true
	}
	return &selector{wish: wish, off: o.backend.selects || wish.GPUs == "" && wish.ShowAll, logger: logger}
}

// ofThisMachine tells whether an upstream is addressed as one of this machine.
func ofThisMachine(caps source.Caps) bool {
	if ip := net.ParseIP(caps.Host); ip != nil {
		return ip.IsLoopback()
	}
	name, err := os.Hostname()
	return caps.Host == "localhost" || caps.Host != "" && err == nil && caps.Host == name
}

// choose returns the indices in t of the devices to be presented, nil for all of
// them. That nothing is left is an error of the first choice alone: later on, what
// was chosen may come back. The slice is valid until the next call.
func (s *selector) choose(t *canonical.Topology) ([]int, error) {
	if s.off || t == s.topology {
		return s.devices, nil
	}
	node, at := nodeOf(t)
	chosen, missing, err := dcgm.SelectPresent(&node, s.wish)
	if err == nil && len(chosen.Picks) == 0 {
		err = missing
	}
	if err != nil && !s.begun {
		return nil, err
	}
	s.begun, s.topology, s.devices = true, t, []int{}
	for i := range t.Devices {
		if chosen.Holds(at[i]) {
			s.devices = append(s.devices, i)
		}
	}
	switch {
	case err != nil:
		s.say("no chosen GPU is in the reading", "cause", err.Error())
	case missing != nil:
		s.say("a chosen GPU is not in the reading", "cause", missing.Error())
	case !chosen.All && chosen.From != "--gpus":
		s.say("some GPUs are left out", "by", chosen.From, "remedy", "--show-all shows all")
	}
	return s.devices, nil
}

// say logs what was not said just before.
func (s *selector) say(what string, args ...any) {
	if s.said != what {
		s.logger.Warn(what, args...)
	}
	s.said = what
}

// nodeOf describes the devices of a reading as those of a node, and where each of
// them stands there. Boards of several hosts may have the same index; an index then
// chooses all of them.
func nodeOf(t *canonical.Topology) (dcgm.Node, []dcgm.Pick) {
	var node dcgm.Node
	boards := map[int]int{} // by the index in t
	at := make([]dcgm.Pick, len(t.Devices))
	for i := range t.Devices {
		d := &t.Devices[i]
		if !d.IsInstance() {
			boards[i] = len(node.Boards)
			at[i] = dcgm.Pick{Board: len(node.Boards), Instance: dcgm.Whole}
			node.Boards = append(node.Boards, dcgm.Board{Entity: number(d.GPU), Index: dcgm.Unknown, UUID: d.UUID})
			continue
		}
		b := boards[d.Board]
		board := &node.Boards[b]
		at[i] = dcgm.Pick{Board: b, Instance: len(board.Instances)}
		// An exposition does not tell the UUIDs of MIG devices but in the form that
		// drivers before R470 gave them.
		board.Instances = append(board.Instances, dcgm.Instance{
			Entity: dcgm.Unknown, ID: number(d.Instance), Profile: d.Profile,
			Devices: []dcgm.MIGDevice{{Index: dcgm.Unknown, UUID: "MIG-" + d.UUID + "/" + d.Instance + "/0"}},
		})
	}
	return node, at
}

// number reads an index, Unknown if it is none.
func number(s string) int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 0 {
		return dcgm.Unknown
	}
	return n
}
