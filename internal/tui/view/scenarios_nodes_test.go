package view

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// migNode returns a node with four boards: one in seven instances, one in three, and two whole.
func migNode(at time.Time) []*client.Node {
	n := node("dgx-03", 4, at)
	boards := n.GPUs
	n.GPUs = nil
	for i, g := range boards {
		n.GPUs = append(n.GPUs, g)
		profiles := [][]string{{"1g.18gb", "1g.18gb", "1g.18gb", "1g.18gb", "1g.18gb", "1g.18gb", "1g.18gb+me"}, {"3g.71gb", "2g.35gb", "1g.18gb"}, {}, {}}[i]
		for k, profile := range profiles {
			in := fixture(n, 10*i+k+4, at)
			in.Key, in.UUID, in.GPU = client.Key{Node: n.URL, UUID: g.UUID, Instance: strconv.Itoa(k + 3)}, g.UUID, g.GPU
			in.Instance, in.Profile, in.Health = strconv.Itoa(k+3), profile, canonical.HealthUnknown
			in.Values[canonical.NVMLUtilization] = math.NaN()
			for f := range in.Values {
				if canonical.Fields[f].Level == canonical.BoardLevel {
					in.Values[f] = math.NaN()
				}
			}
			n.GPUs = append(n.GPUs, in)
		}
		if len(profiles) > 0 { // known only from its instances
			g.RealUtilization, g.Class, g.Allocations = math.NaN(), canonical.ClassUnknown, nil
			for f := range g.Values {
				if canonical.Fields[f].Level == canonical.InstanceLevel {
					g.Values[f] = math.NaN()
				}
			}
		}
	}
	return []*client.Node{n}
}

// silentNodes returns a node that answers and two that never did.
func silentNodes(at time.Time) []*client.Node {
	down := &client.Node{URL: "http://dgx-04:9401/metrics", Name: "dgx-04:9401", Err: "dial tcp 10.0.0.4:9401: connection refused; is kpulse-proxy running there?"}
	return []*client.Node{node("dgx-03", 4, at), down, {URL: "http://dgx-05:9401/metrics", Name: "dgx-05:9401"}}
}

// twoNodes returns a node that is up and one that is no longer reachable.
func twoNodes(at time.Time) []*client.Node {
	up, down := node("dgx-03", 4, at), node("dgx-17.cluster.example", 4, noon.Add(-50*time.Second))
	if at.After(noon.Add(-50 * time.Second)) {
		down.Up, down.Err = false, "dial tcp 10.0.0.17:9401: connection refused; is kpulse-proxy running there?"
	}
	return []*client.Node{up, down}
}

// rackNodes returns eight nodes of eight boards. One stopped answering 12 s ago; another has
// boards that are gone, crit, warn and hot.
func rackNodes(at time.Time) []*client.Node {
	var nodes []*client.Node
	for i := range 8 {
		name := fmt.Sprintf("rack7-gpu%02d", i+1)
		n := node(name, 8, at)
		switch i {
		case 3:
			for _, g := range n.GPUs {
				sicken(at, g)
			}
		case 6:
			const silent = 12 * time.Second
			if at.After(noon.Add(-silent)) {
				n = node(name, 8, noon.Add(-silent))
				n.Up, n.Err = false, "dial tcp 10.0.0.7:9401: connection refused"
				for k, g := range n.GPUs {
					n.GPUs[k] = g.Silent()
				}
			}
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// cutNodes returns two nodes of four boards, the first three of which have seven instances each.
func cutNodes(at time.Time) []*client.Node {
	var nodes []*client.Node
	for i := range 2 {
		n := node(fmt.Sprintf("mig%02d", i+1), 4, at)
		boards := n.GPUs
		n.GPUs = nil
		for k, g := range boards {
			n.GPUs = append(n.GPUs, g)
			for slice := range 7 {
				if k == 3 {
					break
				}
				in := fixture(n, 10*k+slice+4, at)
				in.Key, in.UUID, in.GPU = client.Key{Node: n.URL, UUID: g.UUID, Instance: strconv.Itoa(slice + 7)}, g.UUID, g.GPU
				in.Instance, in.Profile, in.Health = strconv.Itoa(slice+7), "1g.18gb", canonical.HealthUnknown
				n.GPUs = append(n.GPUs, in)
			}
		}
		nodes = append(nodes, n)
	}
	return nodes
}
