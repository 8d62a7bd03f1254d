package history

import (
	"fmt"
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
		{"it falls ill, becomes less sick, and gets well", 40, func(i int, g *client.GPU) {
			switch {
			case i >= 5 && i < 10:
				crit(g)
			case i >= 10 && i < 15:
				g.Health, g.Raised = canonical.HealthHot, []client.RaisedCondition{{Condition: canonical.CondGPUTemperature, State: canonical.HealthHot}}
			}
		}, []string{"5s crit GPU 3 crit: row remap failed"}},
		{"it falls ill twice", 40, func(i int, g *client.GPU) {
			if i == 5 || i == 8 {
				crit(g)
			}
		}, []string{"5s crit GPU 3 crit: row remap failed", "8s crit GPU 3 crit: row remap failed"}},
		{"unknown health is no news", 40, func(i int, g *client.GPU) {
			if crit(g); i > 3 {
				g.Health = canonical.HealthUnknown
			}
		}, []string{"0s crit GPU 3 crit: row remap failed"}},
		{"it vanishes and comes back", 5, func(i int, g *client.GPU) {
			if i == 2 || i == 3 {
				g.Gone, g.Health = true, canonical.HealthCrit
			}
		}, []string{"2s crit GPU 3 is not there: it fell off the bus, or the node has fewer GPUs than expected", "4s ok GPU 3 is there again"}},
		{"it is missing for a while", 5, func(i int, g *client.GPU) {
			if i == 2 || i == 3 {
				g.Gone, g.Health = true, canonical.HealthUnknown
			}
		}, nil},
		{"it is gone for so long that nothing is known", 6, func(i int, g *client.GPU) {
			if g.Gone = i > 1 && i < 5; g.Gone {
				g.Health = canonical.HealthUnknown
			}
			if i == 2 {
				g.Health = canonical.HealthCrit
			}
		}, []string{"2s crit GPU 3 is not there: it fell off the bus, or the node has fewer GPUs than expected", "5s ok GPU 3 is there again"}},
	} {
		if got := eventsOf(t, test.seconds, test.set); !slices.Equal(got, test.want) {
			t.Errorf("%s:\n%s\nwant\n%s", test.name, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
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

func TestMerge(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	nodes := []*client.Node{{URL: "a", Name: "node-a", Hiding: client.Hiding{HiddenBoards: map[client.Key]bool{{Node: "a", UUID: "GPU-other"}: true}}}, {URL: "b", Name: "node-b"}}
	derived := []Event{
		{At: at(2), Key: client.Key{Node: "a"}, Health: true, Text: "of a, derived"},
		{At: at(4), Key: client.Key{Node: "b"}, Health: true, Text: "of b"},
		{At: at(15), Node: "node-a", Text: "stale"},
	}
	xid := canonical.Event{At: at(2), Kind: canonical.EventXID, GPU: "0", Code: 79, Count: 2, Severity: canonical.SeverityFatal, Action: canonical.ActionRebootNode, Text: "fell off", PID: 7, Process: "python"}
	served := []client.ServedEvent{
		{Event: xid},
		{Key: client.Key{Node: "a", UUID: "GPU-other"}, Event: xid},
		{Event: canonical.Event{At: at(10), Kind: canonical.EventXID, GPU: "0", Code: 45, Count: 1, Severity: canonical.SeveritySympathetic, PID: 8}},
		{Event: canonical.Event{At: at(11), Kind: canonical.EventSXID, PCIBusID: "0000:05:00", Code: 12028, Severity: canonical.SeverityWarning, Text: "Non-fatal", Process: "x"}},
		{Event: canonical.Event{At: at(12), Kind: canonical.EventRaised, GPU: "0", Condition: canonical.CondXIDFatal, State: canonical.HealthCrit, Action: canonical.ActionResetGPU}},
		{Event: canonical.Event{At: at(13), Kind: canonical.EventResolved, GPU: "0", Code: 79, Text: "an operator says so"}},
		{Event: canonical.Event{At: at(13), Kind: canonical.EventCleared, GPU: "0", Condition: canonical.CondXIDFatal, State: canonical.HealthCrit}},
		{Event: canonical.Event{At: at(14), Kind: canonical.EventReset, GPU: "0", Text: "energy fell"}},
		{Event: canonical.Event{At: at(16), Kind: canonical.EventCleared, GPU: "0", Condition: canonical.NumConditions}},
		{Event: canonical.Event{At: at(17), Kind: "of_tomorrow", GPU: "0", Text: "something"}},
	}
	var got []string
	for _, e := range Merge(derived, nodes, [][]client.ServedEvent{served, nil}) {
		got = append(got, fmt.Sprintf("%d %s|%s|%s", e.At.Unix(), e.GPU, e.State, e.Text))
	}
	want := []string{
		"2 GPU 0|crit|XID 79 ×2 (reboot node): fell off [python 7]",
		"4 |ok|of b",
		"10 GPU 0|ok|XID 45 [pid 8]",
		"11 0000:05:00|warn|SXID 12028: Non-fatal [x]",
		"12 GPU 0|crit|xid_fatal is raised: reset GPU",
		"13 GPU 0|ok|XID 79 is resolved: an operator says so",
		"13 GPU 0|ok|xid_fatal is cleared",
		"14 GPU 0|ok|was reset: energy fell",
		"15 |ok|stale",
		"16 GPU 0|ok|a condition that this version does not know is cleared",
		"17 GPU 0|ok|of_tomorrow: something",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// gpu returns a device without readings.
func gpu(index, instance string) *client.GPU {
	return client.NewGPU("", canonical.Device{Hostname: "dgx-1", GPU: index, UUID: "GPU-" + index, Instance: instance})
}
