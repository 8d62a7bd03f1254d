package history

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// eventsOf sets a device each second, and returns the events with their seconds.
func eventsOf(t *testing.T, seconds int, set func(second int, g *client.GPU)) []string {
	t.Helper()
	w := NewWatch()
	var all []string
	for i := range seconds {
		g := gpu("3", "")
		g.Health = canonical.HealthOK
		set(i, g)
		at := start.Add(time.Duration(i) * time.Second)
		for _, e := range w.Reading(&client.Node{At: at, FetchedAt: at, Period: time.Second, GPUs: []*client.GPU{g}}) {
			all = append(all, e.At.Sub(start).String()+" "+e.State.String()+" "+e.GPU+" "+e.Text)
		}
	}
	return all
}

func TestEvents(t *testing.T) {
	crit := func(g *client.GPU) {
		g.Health, g.Raised = canonical.HealthCrit, []client.RaisedCondition{{Condition: canonical.CondRowRemapFailure, State: canonical.HealthCrit}}
	}
	for _, test := range []struct {
		name    string
		seconds int
		set     func(i int, g *client.GPU)
		want    []string
	}{
		{"nothing happens", 100, func(int, *client.GPU) {}, nil},
		{"it is sick at the start", 5, func(_ int, g *client.GPU) { crit(g) }, []string{"0s crit GPU 3 crit: row remap failed"}},
		{"it falls ill at once and gets well slowly", 40, func(i int, g *client.GPU) {
			if i == 5 || i == 8 {
				crit(g)
			}
		}, []string{"5s crit GPU 3 crit: row remap failed", "19s ok GPU 3 is ok again, was crit"}},
		{"it becomes less sick", 40, func(i int, g *client.GPU) {
			if crit(g); i >= 10 {
				g.Health, g.Raised = canonical.HealthHot, []client.RaisedCondition{{Condition: canonical.CondGPUTemperature, State: canonical.HealthHot}}
			}
		}, []string{"0s crit GPU 3 crit: row remap failed", "20s hot GPU 3 is better: hot, GPU hot"}},
		{"unknown health is no news", 40, func(i int, g *client.GPU) {
			if i > 3 {
				g.Health = canonical.HealthUnknown
			}
		}, nil},
		{"it vanishes and comes back", 5, func(i int, g *client.GPU) { g.Gone = i == 2 || i == 3 }, []string{
			"2s crit GPU 3 is not there: it fell off the bus, or the node has fewer GPUs than expected", "4s ok GPU 3 is there again"}},
	} {
		if got := eventsOf(t, test.seconds, test.set); !slices.Equal(got, test.want) {
			t.Errorf("%s:\n%s\nwant\n%s", test.name, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
}

// TestEventsOfLostDevices checks that boards that a node no longer reports cause one event
// each, in order, and that no device is kept forever.
func TestEventsOfLostDevices(t *testing.T) {
	w := NewWatch()
	say := func(after time.Duration, up bool, gpus ...*client.GPU) string {
		var all []string
		for _, e := range w.Reading(&client.Node{URL: "u", Name: "n", FetchedAt: start.Add(after), Sources: []client.Source{{Up: up}}, GPUs: gpus}) {
			all = append(all, e.GPU+" "+e.State.String())
		}
		return strings.Join(all, "; ")
	}
	var boards []*client.GPU
	for _, g := range []*client.GPU{gpu("2", ""), gpu("10", ""), gpu("2", "7")} {
		g.Key.Node, g.Health = "u", canonical.HealthOK
		boards = append(boards, g)
	}
	for i, test := range []struct {
		up   bool
		gpus []*client.GPU
		want string
	}{
		{true, boards, ""},
		{false, boards[:0], ""}, // a source that is down reports nothing
		{true, boards[:0], "GPU 2 warn; GPU 10 warn"},
		{true, boards[:0], ""},
	} {
		if got := say(time.Duration(i)*time.Second, test.up, test.gpus...); got != test.want {
			t.Errorf("reading %d: %q, want %q", i, got, test.want)
		}
	}
	if len(w.devices) != 0 {
		t.Errorf("%d devices are remembered", len(w.devices))
	}
}

func TestEventsOfNodes(t *testing.T) {
	w := NewWatch()
	n := &client.Node{URL: "u", Name: "dgx-1", Period: time.Second}
	step := func(after time.Duration) string {
		var all []string
		for _, e := range w.Clock([]*client.Node{n}, start.Add(after)) {
			all = append(all, e.Node+" "+e.State.String()+" "+e.Text)
		}
		return strings.Join(all, "; ")
	}
	if got := step(time.Hour); got != "" {
		t.Errorf("before the first answer: %q", got)
	}
	n.FetchedAt = start
	for _, test := range []struct {
		after time.Duration
		want  string
	}{
		{time.Second, ""},
		{3 * time.Second, "dgx-1 warn is not updated: connection refused"},
		{time.Minute, ""},
	} {
		n.Err = "connection refused"
		if got := step(test.after); got != test.want {
			t.Errorf("after %v: %q, want %q", test.after, got, test.want)
		}
	}
	n.FetchedAt, n.Err = start.Add(70*time.Second), ""
	if got := step(71 * time.Second); got != "dgx-1 ok is back after 1m11s" {
		t.Errorf("back: %q", got)
	}
	never := NewWatch()
	if got := never.Clock([]*client.Node{{URL: "v", Name: "v", Err: "refused"}}, start); len(got) != 1 || got[0].Text != "cannot be read: refused" {
		t.Errorf("a node that never answered: %v", got)
	}
}

// gpu returns a device without readings.
func gpu(index, instance string) *client.GPU {
	return client.NewGPU("", canonical.Device{Hostname: "dgx-1", GPU: index, UUID: "GPU-" + index, Instance: instance})
}
