package app

import (
	"net/url"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// chooser returns what chooses the devices that the dashboard shows of the node at a
// URL: --gpus of every node, the environment of a job only of the machine that the
// job is on.
func (o *options) chooser(address string) func(*client.Node) client.Selection {
	wish := o.wish()
	return func(n *client.Node) client.Selection {
		switch {
		case address == client.InProcess && o.backend.selects:
			return alreadyChosen(n, wish)
		case wish.GPUs == "" && (!isHost(address) || !tellsOfThisMachine(n)):
			return client.Selection{Shown: allOf(n)}
		}
		return chooseShown(n, wish)
	}
}

// chooseShown applies a wish to what a node says.
func chooseShown(n *client.Node, wish dcgm.Wish) client.Selection {
	topology, places := topologyOf(n)
	node, at := nodeOf(topology)
	chosen, missing, err := dcgm.SelectPresent(&node, wish)
	var s client.Selection
	for i, place := range places {
		if chosen.Holds(at[place]) {
			s.Shown = append(s.Shown, i)
		}
	}
	if !chosen.All {
		s.By = chosen.From
	}
	if err == nil {
		err = missing
	}
	if err != nil && len(n.GPUs) > 0 {
		s.Trouble = err.Error()
	}
	return s
}

// alreadyChosen is the selection of a source that reads the chosen devices alone. How
// many others there are nobody knows.
func alreadyChosen(n *client.Node, wish dcgm.Wish) client.Selection {
	s := client.Selection{Shown: allOf(n), By: "--gpus"}
	if wish.GPUs == "" {
		topology, _ := topologyOf(n)
		node, _ := nodeOf(topology)
		chosen, _, _ := dcgm.SelectPresent(&node, wish)
		s.By = chosen.From
	}
	if value, _ := wish.LookupEnv(s.By); value == "all" || s.By == "--show-all" {
		s.By = ""
	}
	return s
}

func allOf(n *client.Node) []int {
	all := make([]int, len(n.GPUs))
	for i := range all {
		all[i] = i
	}
	return all
}

// topologyOf is what a node says of its devices in the terms of a reading, and where
// each of them stands there. A board that it does not tell of is added.
func topologyOf(n *client.Node) (t *canonical.Topology, places []int) {
	type board struct{ node, uuid, index string }
	t, places = &canonical.Topology{}, make([]int, len(n.GPUs))
	boards := map[board]int{}
	add := func(d canonical.Device) int {
		t.Devices = append(t.Devices, d)
		return len(t.Devices) - 1
	}
	for i, g := range n.GPUs {
		b := board{g.Hostname, g.UUID, g.GPU}
		at, known := boards[b]
		if !known {
			at = add(canonical.Device{Hostname: g.Hostname, GPU: g.GPU, UUID: g.UUID, Board: len(t.Devices)})
			boards[b] = at
		}
		if places[i] = at; g.IsInstance() {
			places[i] = add(canonical.Device{Hostname: g.Hostname, GPU: g.GPU, UUID: g.UUID, Instance: g.Instance, Profile: g.Profile, Board: at})
		}
	}
	return t, places
}

// isHost tells whether a URL is one of this machine.
func isHost(address string) bool {
	u, err := url.Parse(address)
	return err == nil && ofThisMachine(source.Caps{Host: u.Hostname()})
}

// tellsOfThisMachine tells whether what a proxy on this machine reads is of it too:
// no capture, and no other machine.
func tellsOfThisMachine(n *client.Node) bool {
	for i := range n.Sources {
		switch s := &n.Sources[i]; s.Backend {
		case "replay":
			return false
		case "prometheus":
			if strings.Contains(s.Name, "://") && !isHost(s.Name) {
				return false
			}
		case "dcgm":
			if _, host, remote := strings.Cut(s.Name, "@"); remote && !isHere(host) {
				return false
			}
		}
	}
	return true
}
